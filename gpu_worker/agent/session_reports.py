"""What the broker, and people, are told of a session and its cell."""

from msgspec import structs

from bulletin.codes import CellOutcome
from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.clock import now_ms


def held_lease(prepare: wire.Prepare, cell: AgentCell | None, started_ms: int) -> wire.HeldLease:
    """Describe a lease to a broker that was restarted and must learn it anew.

    `cell` is the one that runs now, and `started_ms` is when the session began, by the agent's clock.
    """
    return wire.HeldLease(
        lease=prepare.lease,
        session=prepare.session,
        kernel=prepare.kernel,
        user=prepare.user,
        project=prepare.project,
        qos=prepare.qos,
        slots=prepare.slots,
        walltime_ms=prepare.walltime_ms,
        cell=cell.id if cell else None,
        running_ms=now_ms() - cell.held_since_ms if cell else 0,
        held_ms=now_ms() - started_ms,
        cpus=prepare.cpus,
        memory_bytes=prepare.memory_bytes,
        more_ms=cell.more_ms if cell else 0,
        label=cell.label if cell else "",
        is_kept=prepare.keep_ms > 0,
        is_exclusive=prepare.is_exclusive,
    )


def attached(prepare: wire.Prepare, cell: AgentCell | None) -> wire.Attached:
    """Make the answer to a kernel that showed its ticket: which cell the session has, and how far it is."""
    if cell is None:
        return wire.Attached(lease=prepare.lease)
    return wire.Attached(lease=prepare.lease, cell=cell.id, lacks=cell.missing_bytes, is_stopped=cell.is_stopped)


def cell_began(prepare: wire.Prepare, cell: AgentCell) -> wire.CellBegan:
    """Make the message that a cell runs, with how long it has."""
    said_ms = now_ms()
    running_ms = said_ms - cell.held_since_ms
    return wire.CellBegan(lease=prepare.lease, cell=cell.id, running_ms=running_ms, clock_ms=said_ms, label=cell.label)


def cell_usage(
    prepare: wire.Prepare, cell: AgentCell, outcome: CellOutcome, ended: wire.Ended | None, until_ms: int
) -> wire.CellUsage:
    """Sum up what the cell has used until a time of the agent's clock.

    `ended` is what the executor says of it. User code can forge that: it ran at most since it came.
    """
    held_ms, most_ms = max(0, until_ms - cell.held_since_ms), max(0, until_ms - cell.started_ms)
    ran_ms = max(0, ended.ran_ms) if ended is not None else 0 if cell.missing_bytes else most_ms
    return wire.CellUsage(
        outcome=outcome,
        ran_ms=min(ran_ms, most_ms),
        held_ms=held_ms,
        peak_memory_bytes=cell.load.peak_memory_bytes,
        mean_utilization=cell.load.mean_utilization,
        bytes_sent=cell.bytes_sent,
        bytes_returned=sum(ended.parcel.sizes) if ended is not None else 0,
        walltime_ms=prepare.walltime_ms + cell.more_ms if cell.is_overdue else None,
    )


def cell_closed(prepare: wire.Prepare, cell: AgentCell, outcome: CellOutcome | None, heard_ms: int) -> wire.CellDone:
    """Make the message that a cell is over now, in every respect. `outcome` is given where its results never come.

    `heard_ms` is when its kernel was heard last: what lacks some of its state never began, and nobody is charged for
    the agent's waiting for its kernel.
    """
    until_ms = max(cell.started_ms, heard_ms) if cell.missing_bytes else now_ms()
    usage = cell.ended.usage if cell.ended is not None and outcome is None else None
    if usage is None:
        usage = cell_usage(prepare, cell, outcome or CellOutcome.EXECUTOR_DIED, cell.ended, until_ms)
    return cell_done(prepare, cell, usage, until_ms)


def cell_done(prepare: wire.Prepare, cell: AgentCell, usage: wire.CellUsage, until_ms: int) -> wire.CellDone:
    """Make the message that a cell was over at a time of the agent's clock, with what it has used and who pays."""
    said_ms = now_ms()
    return wire.CellDone(
        lease=prepare.lease,
        session=prepare.session,
        cell=cell.id,
        user=prepare.user,
        project=prepare.project,
        qos=prepare.qos,
        slots=prepare.slots,
        label=cell.label,
        usage=structs.replace(usage, held_ms=until_ms - cell.held_since_ms),  # to the last byte of its results
        ended_ago_ms=said_ms - until_ms,
        clock_ms=said_ms,
    )


def refuse_hand_over(
    prepare: wire.Prepare, cell: AgentCell | None, message: wire.HandOver, *, is_attended: bool, is_over: bool
) -> str:
    """Say why another kernel may not have the latest cell of a session; empty where it may."""
    if cell is None or cell.missing_bytes or cell.id != message.cell or message.user != prepare.user:
        return "There is no such cell of yours any more."
    if is_attended and message.kernel != prepare.kernel:
        return "The notebook that runs the cell is still there: stop the cell in it, or close it."
    if cell.results is not None and cell.full_results is None and is_over:
        return "The results of the cell are gone: its process ended before they could be kept for another notebook."
    return ""


def cell_note(cell: AgentCell, *, is_attended: bool) -> wire.CellNote:
    """Describe the cell as its user finds it in another notebook; the agent fills in its own id and its node."""
    return wire.CellNote(
        cell=cell.id,
        agent=AgentId(""),
        node="",
        state=cell.state,
        line=cell.line,
        label=cell.label,
        since_ms=now_ms() - cell.started_ms,
        is_attended=is_attended,
    )
