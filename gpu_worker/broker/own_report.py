"""What is a person's own in the pool, told to the person's notebook server again and again. Reads; changes nothing."""

import asyncio
from collections.abc import Callable

from bulletin.errors import LedgerAway
from bulletin.ids import KernelId
from bulletin.wire.messages.own_cells import AskOwn, OwnEnded, OwnProject, OwnReport, OwnRunning, OwnWaiting
from gpu_worker.broker import reports
from gpu_worker.broker.agents import Agents
from gpu_worker.broker.decision_news import DecisionNews
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.leases.leases import USING, Lease, Request
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.state import State

#: So many of each are told: each place in line is explained.
_MOST_WAITING, _MOST_RUNNING = 10, 50


async def make_report(
    person: Person,
    asked: AskOwn,
    shell: SchedulerShell,
    agents: Agents,
    ledger: Ledger,
    decisions: DecisionNews,
    now_ms: Callable[[], int],
) -> OwnReport:
    """Make the report. The ledger is read only where cells that ended are asked for; where it is away, it has none."""
    word = agents.slot_word
    ended = await asyncio.to_thread(_read_ended, ledger, person, asked.ended, word) if asked.ended else ()
    at_ms, state = now_ms(), shell.scheduler.state
    lane: Lane = "gpu" if word == "GPU" else "cpu"
    counts = [(node.lanes[lane], node.is_drained) for node in state.nodes.values()]
    mine = [one for one in state.pending.values() if one.user == person.user]
    held = sorted((one for one in state.leases.values() if one.user == person.user), key=lambda one: one.since_ms)
    account = state.accounts.by_id.get(person.project)
    return OwnReport(
        slot_word=word,
        total=sum(one.capacity for one, _ in counts),
        free=sum(one.free for one, is_drained in counts if not is_drained),
        ready=sum(one.hot for one, is_drained in counts if not is_drained),
        waiting_count=sum(reports.is_in_sight(one, person.user) for one in state.pending.values()),
        waiting=tuple(_waiting(shell, one, at_ms) for one in mine[:_MOST_WAITING]),
        own_waiting_count=len(mine),
        running=tuple(_running(shell, one, at_ms) for one in held[:_MOST_RUNNING]),
        project=_project(account, state) if account is not None else None,
        ended=ended,
        announcement=shell.teller.announcement.words_at(at_ms),
        decided=decisions.list_recent(person.user, at_ms),
        awaits_decision=decisions.is_awaited(person.user),
    )


def _waiting(shell: SchedulerShell, request: Request, now_ms: int) -> OwnWaiting:
    pending, known = shell.pending_requests.get(request.id), shell.waiting(request.id, now_ms)
    assert known is not None, "it is pending"
    return OwnWaiting(
        lease=request.lease,
        kernel=pending.kernel if pending is not None else KernelId(""),
        position=known.position,
        gpus=request.gpus,
        qos=request.qos,
        project=request.home,
        label=pending.message.label if pending is not None else "",
        reason=known.reason,
        waited_ms=now_ms - pending.since_ms if pending is not None else 0,
        wait_ms=known.wait_ms,
        usual_ms=shell.teller.usual_ms(pending, now_ms) if pending is not None else None,
    )


def _running(shell: SchedulerShell, lease: Lease, now_ms: int) -> OwnRunning:
    active, has_guarantees = shell.active_leases.get(lease.id), shell.scheduler.state.accounts.has_guarantees
    return OwnRunning(
        lease=lease.id,
        cell=lease.cell,
        kernel=active.kernel if active is not None else KernelId(""),
        label=active.label if active is not None else "",
        node=shell.scheduler.state.nodes[lease.agent].name,
        slots=lease.slots,
        state=reports.lease_state(lease),
        qos=lease.qos,
        project=lease.home,
        for_ms=max(0, now_ms - lease.since_ms),
        walltime_ms=lease.cell_walltime_ms,
        in_quota=shell.is_in_quota(lease) if lease.phase in USING and has_guarantees else None,
    )


def _project(account: Account, state: State) -> OwnProject:
    row = reports.project(account, state)
    return OwnProject(
        project=row.project,
        used_milli=row.used_milli,
        guaranteed_milli=row.guaranteed_milli,
        limit_milli=row.limit_milli,
        budget_ms=row.budget_ms,
        budget_left_ms=row.budget_left_ms,
        period=row.period,
        class_hours=row.class_hours,
    )


def _read_ended(ledger: Ledger, person: Person, most: int, slot_word: str) -> tuple[OwnEnded, ...]:
    """Read what ended last; blocks while the ledger reads."""
    try:
        records = ledger.cells(user=person.user, limit=most)
    except LedgerAway:
        return ()  # the rest of the report is not the ledger's
    return tuple(
        OwnEnded(
            cell=one.cell,
            lease=one.lease,
            label=one.label,
            user=one.user,
            project=one.project,
            qos=one.qos,
            node=one.node,
            outcome=one.outcome,
            ended_at_ms=one.ended_at_ms,
            ran_ms=one.ran_ms,
            gpu_ms=one.gpu_ms,
            slot_ms=one.gpu_ms if slot_word == "GPU" else one.slot_ms,
            peak_memory_bytes=one.peak_memory_bytes,
            mean_utilization=one.mean_utilization,
        )
        for one in records
    )
