"""The whole pool at this moment, for the hub's pages: slots, leases, the line, projects. Reads; changes nothing."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from bulletin.ids import AgentId
from bulletin.kept_time import LABEL, is_kept
from bulletin.wire import console, page_requests
from gpu_worker.broker import reports
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.announcement_board import find_announcement
from gpu_worker.broker.connected_agent import ConnectedAgent
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.estimates import explain
from gpu_worker.scheduler.leases.leases import Lease

#: So much of the line is told, the first of it explained anew; and so many leases and projects.
MOST_WAITING, MOST_EXPLAINED, _MOST_LEASES, _MOST_PROJECTS = 2_500, 100, 5_000, 2_000


def draw_pool(
    shell: SchedulerShell,
    agents: Agents,
    now_ms: int,
    why_drained: Callable[[AgentId], str],
    *,
    started_ms: int,
    serves_hub: bool,
    boosts: Iterable[console.BoostRow] = (),
) -> page_requests.PoolReport:
    """Draw all of it with everybody's names: who asks leaves out what its readers may not see."""
    state = shell.scheduler.state
    missing: dict[str, tuple[str, ...]] = {}
    of_pool = [agent for agent in agents.known.values() if not agent.owner]
    for agent in of_pool if serves_hub else ():
        for word in agent.message.missing_protections:
            missing[word] = (*missing.get(word, ()), agent.message.node)
    accounts = {agent.message.shared_account for agent in of_pool} - {""}
    return page_requests.PoolReport(
        slots=tuple(slot for agent in agents.known.values() for slot in _slots(shell, agent, now_ms, why_drained)),
        leases=tuple(_leases(shell, now_ms)),
        waiting=tuple(_waiting(shell, now_ms, is_for_own=False)),
        waiting_for_own=tuple(_waiting(shell, now_ms, is_for_own=True)),
        waiting_count=sum(one.lane != "own" for one in state.pending.values()),
        projects=tuple(reports.project(account, state) for account in islice(reports.tree(state), _MOST_PROJECTS)),
        boosts=tuple(boosts),
        slot_word=agents.slot_word,
        uptime_ms=now_ms - started_ms,
        shared_accounts=tuple(sorted(accounts)) if serves_hub else (),
        missing_protections=missing,
        absent_nodes=agents.absent_nodes,
        announcement=find_announcement(shell.teller, now_ms),
    )


def _slots(
    shell: SchedulerShell, agent: ConnectedAgent, now_ms: int, why_drained: Callable[[AgentId], str]
) -> Iterator[page_requests.PoolSlot]:
    state, message = shell.scheduler.state, agent.message
    node, drains_at_ms = state.nodes.get(message.agent), state.planned_drains.at_ms.get(message.agent)
    uses = {use.slot: use for use in agent.slot_uses}
    for slot in message.slots:
        lease = node.tenants.get(slot.slot) if node is not None else None
        use = uses.get(slot.slot)
        yield page_requests.PoolSlot(
            node=message.node,
            slot=slot.slot,
            name=slot.name,
            memory_bytes=slot.memory_bytes,
            milli=slot.milli,
            lease=lease if lease in state.leases else None,
            is_drained=node is not None and node.is_drained,
            drains_in_ms=None if drains_at_ms is None else max(0, drains_at_ms - now_ms),
            why_drained=why_drained(message.agent),
            owner=agent.owner,
            busy_percent=None if use is None else use.busy_percent,
            used_bytes=None if use is None else use.used_bytes,
            idle_ms=0 if use is None else use.idle_ms,
        )


def _leases(shell: SchedulerShell, now_ms: int) -> Iterator[page_requests.PoolLease]:
    state = shell.scheduler.state
    for lease in sorted(state.leases.values(), key=lambda one: (one.since_ms, one.id))[:_MOST_LEASES]:
        row = reports.running(state, lease, now_ms, is_in_quota=shell.is_in_quota(lease))
        yield page_requests.PoolLease(**msgspec.structs.asdict(row), label=_label(shell, lease))


def _label(shell: SchedulerShell, lease: Lease) -> str:
    if is_kept(lease.cell):
        return LABEL
    active = shell.active_leases.get(lease.id)
    return active.label if active is not None else ""


def _waiting(shell: SchedulerShell, now_ms: int, *, is_for_own: bool) -> Iterator[console.WaitingRow]:
    """Tell the pool's line, or who waits for a node of their own.

    Further back, each is told as its notebook was last: to explain all anew would hold up others.
    """
    line = (one for one in reports.in_line(shell.scheduler.state) if (one.lane == "own") == is_for_own)
    for place, request in enumerate(islice(line, MOST_WAITING)):
        pending = shell.pending_requests.get(request.id)
        if pending is None:
            continue
        told = pending.told
        if place < MOST_EXPLAINED or told is None:
            known, usual_ms = shell.waiting(request.id, now_ms), shell.teller.usual_ms(pending, now_ms)
        else:
            known = explain.WaitExplanation(told.position, told.reason, told.wait_ms, told.in_quota)
            usual_ms = told.usual_ms
        if known is not None:
            yield reports.waiting(
                request, known, waited_ms=now_ms - pending.since_ms, usual_ms=usual_ms, label=pending.message.label
            )
