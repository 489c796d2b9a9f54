"""The pool at this moment, as a person may see it. Reads; changes nothing."""

import asyncio
from collections.abc import Callable
from typing import Literal

from bulletin.errors import LedgerAway
from bulletin.ids import AgentId
from bulletin.kept_time import is_kept
from bulletin.picture_sight import hide_others
from bulletin.wire import messages as wire
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import CellRecord, Ledger
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.accounts.branches import covered_room
from gpu_worker.scheduler.estimates.window_words import show_class_hours
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase

_RECENT = 20
_State = Literal["free", "granted", "busy", "kept", "hot", "leaving", "drained"]
_STATES: dict[Phase, _State] = {
    Phase.GRANTED: "granted",
    Phase.BUSY: "busy",
    Phase.HOT: "hot",
}


async def draw(
    viewer: Person,
    shell: SchedulerShell,
    agents: Agents,
    ledger: Ledger,
    now_ms: Callable[[], int],
    why_drained: Callable[[AgentId], str],
    *,
    started_ms: int,
    counters: dict[str, int],
    ledger_problem: str,
    serves_hub: bool,
) -> wire.Picture:
    """Draw slots, queue, recent cells and counters. Whoever is no admin sees what `hide_others` leaves."""
    rows: list[CellRecord] = []  # without them, the rest of the picture is not the ledger's
    try:
        rows = await asyncio.to_thread(_recent_cells, ledger, viewer)
    except LedgerAway as error:
        ledger_problem = str(error)
    at_ms = now_ms()

    state = shell.scheduler.state
    slots = []
    for agent in agents.known.values():
        node = state.nodes.get(agent.message.agent)
        for slot in agent.message.slots:
            tenant = node.tenants.get(slot.slot) if node is not None else None
            lease = state.leases.get(tenant) if tenant is not None else None
            unused: _State = "drained" if node is not None and node.is_drained else "free"
            drains_at_ms = state.planned_drains.at_ms.get(agent.message.agent)
            slots.append(
                wire.SlotPicture(
                    node=agent.message.node,
                    slot=slot.slot,
                    name=slot.name,
                    memory_bytes=slot.memory_bytes,
                    state=_state(lease) if lease is not None else unused,
                    user=lease.user if lease is not None else None,
                    drains_in_ms=None if drains_at_ms is None else max(0, drains_at_ms - at_ms),
                    why_drained=why_drained(agent.message.agent),
                    owner=agent.owner,
                )
            )
    missing: dict[str, tuple[str, ...]] = {}
    of_pool = [agent for agent in agents.known.values() if not agent.owner]
    for agent in of_pool if serves_hub else ():
        for word in agent.message.missing_protections:
            missing[word] = (*missing.get(word, ()), agent.message.node)
    accounts = {agent.message.shared_account for agent in of_pool} - {""}
    waiting = []
    for request, pending in shell.pending_requests.items():
        standing = shell.waiting(request, at_ms)
        if standing is not None:
            waiting.append(
                wire.WaitingPicture(
                    position=standing.position,
                    user=pending.person.user,
                    qos=pending.message.qos,
                    gpus=pending.message.gpus,
                    reason=standing.reason,
                    waited_ms=at_ms - pending.since_ms,
                    wait_ms=standing.wait_ms,
                    usual_ms=shell.teller.usual_ms(pending, at_ms),
                    is_for_own=state.pending[request].lane == "own",
                )
            )
    picture = wire.Picture(
        slots=tuple(slots),
        waiting=tuple(sorted(waiting, key=lambda one: one.position)),
        recent=tuple(
            wire.CellPicture(
                cell=row.cell,
                user=row.user,
                project=row.project,
                qos=row.qos,
                node=row.node,
                outcome=row.outcome,
                ended_at_ms=row.ended_at_ms,
                ran_ms=row.ran_ms,
                gpu_ms=row.gpu_ms,
                slot_ms=row.gpu_ms if agents.slot_word == "GPU" else row.slot_ms,
                peak_memory_bytes=row.peak_memory_bytes,
                mean_utilization=row.mean_utilization,
            )
            for row in rows
        ),
        counters=counters,
        uptime_ms=at_ms - started_ms,
        slot_word=agents.slot_word,
        project=_project(shell, viewer, at_ms),
        shared_accounts=tuple(sorted(accounts)) if serves_hub else (),
        missing_protections=missing,
        announcement=shell.teller.announcement.words_at(at_ms),
        ledger_problem=ledger_problem,
        absent_nodes=agents.absent_nodes,
        clocks_ahead_ms={agent.message.node: agent.day_ahead_ms for agent in of_pool if agent.day_ahead_ms},
    )
    return picture if viewer.is_admin else hide_others(picture, viewer.user)


def _state(lease: Lease) -> _State:
    if lease.phase is Phase.BUSY and is_kept(lease.cell):
        return "kept"
    return _STATES.get(lease.phase, "leaving")


def _project(shell: SchedulerShell, viewer: Person, now_ms: int) -> wire.ProjectPicture | None:
    """Show how the viewer's own project stands; None for one that nobody has configured or used."""
    account = shell.scheduler.state.accounts.by_id.get(viewer.project)
    if account is None:
        return None
    pools = shell.scheduler.state.pools.by_name.values()
    accounts = [account, *(pool.accounts.of(account.project.id) for pool in pools)]
    return wire.ProjectPicture(
        project=account.project.id,
        used_milli=account.used,
        guaranteed_milli=account.guaranteed,
        limit_milli=account.limit,
        covered_milli=max(map(covered_room, accounts)),
        class_hours=show_class_hours(account, now_ms),
    )


def _recent_cells(ledger: Ledger, viewer: Person) -> list[CellRecord]:
    """Read the cells that ended last; blocks while the ledger reads. Raises LedgerAway."""
    return ledger.cells(user=None if viewer.is_admin else viewer.user, limit=_RECENT)
