"""The ways in which an executor ends, and what its user is told of each."""

import signal
from typing import Literal

from bulletin.codes import LeaseEnd
from bulletin.units import show_duration, show_size
from bulletin.wire import messages as wire
from gpu_worker.executor.agent_link import UNHEARD

#: The ends of a lease that are the agent's own doing: it ended the executor, for this reason.
EndReason = Literal[
    LeaseEnd.EVICTED,
    LeaseEnd.RECLAIMED,
    LeaseEnd.LEFT,
    LeaseEnd.CANCELLED,
    LeaseEnd.KERNEL_GONE,
    LeaseEnd.STOPPED,
    LeaseEnd.WALLTIME,
    LeaseEnd.FLOOD,
    LeaseEnd.RETURN_LATE,
    LeaseEnd.MEMORY_LIMIT,
    LeaseEnd.PROCESS_LIMIT,
    LeaseEnd.CANNOT_START,
    LeaseEnd.KEEP_OVER,
]
_TOLD: dict[EndReason, str] = {
    LeaseEnd.EVICTED: "The session was idle, and its place was needed for somebody who waited.",
    LeaseEnd.RECLAIMED: "Somebody with more right to its place needed it.",
    LeaseEnd.LEFT: "The notebook gave the session back.",
    LeaseEnd.CANCELLED: "The cell was cancelled before it ran.",
    LeaseEnd.KERNEL_GONE: "The notebook was gone for longer than the pool keeps its session.",
    LeaseEnd.STOPPED: "The cell was stopped by ending its process.",
    LeaseEnd.WALLTIME: "The cell reached its walltime of {walltime} and was ended.",
    LeaseEnd.FLOOD: "The notebook sent more at once than the protocol allows.",
    LeaseEnd.RETURN_LATE: "The process that ran your cell did not hand its results back in time, and was ended.",
    LeaseEnd.MEMORY_LIMIT: "The session used more of its node's memory than it may, and was ended.",
    LeaseEnd.PROCESS_LIMIT: "The session had more processes than it may, and was ended.",
    LeaseEnd.CANNOT_START: "The node had an error with this session and ended it; the agent's log there says which.",
    LeaseEnd.KEEP_OVER: "The notebook had kept its place between cells for as long as it may.",
}
_SIGNALS = {
    signal.SIGKILL: "was killed (SIGKILL). Most often that is the system, because memory ran out: "
    "try with less data at a time.",
    signal.SIGSEGV: "crashed (segmentation fault) in one of the libraries it uses.",
    signal.SIGABRT: "was aborted (SIGABRT) by one of the libraries it uses.",
}


#: What the user of a session is told whose executor has closed its pipe, and went on.
CLOSED_LINK = (
    "The process that ran your cell closed its link to the node and could not be heard any more, so it was ended: code "
    "that closes all open files does that, or a thread that Bulletin needs was ended."
)
#: Whose executor wrote there what is no message of Bulletin's.
SPOILED_LINK = (
    "The process that ran your cell wrote on its link to the node what is no message of Bulletin's, so it was ended: "
    "code that writes to open files which are not its own does that."
)
#: And whose zygote has ended.
ZYGOTE_GONE = (
    "The process of the node from which yours was started has ended, and yours with it; nothing of yours did that."
)
#: And whose node leaves the pool before its cell could end.
NODE_LEFT = "The node that ran your cell was shut down."


def say_reclaim(message: wire.Reclaim) -> str:
    """Tell the user of a running cell why it is to leave its place, and how long it has."""
    if message.is_node_leaving:
        why = "The node of your cell is being shut down."
    elif message.is_by_admin:
        why = "An admin wants your cell to leave its place."
    elif message.is_for_class:
        why = "A cell of your project in a class of service that comes first needs the place of your cell."
    elif message.is_for_share:
        why = "Somebody who has less than their share needs the place of your cell."
    else:
        why = "Your cell runs on a borrowed place, and the project that it is guaranteed to needs it back."
    return (
        f"{why} Your cell has {show_duration(message.grace_ms)} to end; if it has not by then, it is run again "
        "from its beginning."
    )


def over_memory(use_bytes: int, limit_bytes: int) -> str:
    """Tell the user of a session that had too much memory."""
    return (
        f"Your session used {show_size(use_bytes)} of its node's memory and may use {show_size(limit_bytes)}, so its "
        "process was ended: work with less data at a time, or ask for more with %%gpu --memory."
    )


def over_processes(count: int, limit: int) -> str:
    """Tell the user of a session that had too many processes."""
    return (
        f"Your session had {count} processes and threads and may have {limit}, so all of it was ended: start fewer "
        "workers at a time."
    )


def unkept_results(why: str) -> str:
    """Tell the user of a cell whose results the node has no room for while nobody takes them."""
    return (
        f"the results of this cell could not be kept on the node: {why}. They stayed in its process, which keeps its "
        "place until this notebook has them, and are lost if that ends before: come back sooner, or return less."
    )


def describe_exit(end: EndReason | None, status: int | None, walltime_ms: int) -> str:
    """Say what became of an executor, in a sentence for its user.

    Parameters
    ----------
    end
        Why the agent ended it; None where it ended by itself.
    status
        As os.waitstatus_to_exitcode gives it, negative for a signal; None where there never was a process.
    walltime_ms
        Of its lease.
    """
    if end is not None:
        return _TOLD[end].format(walltime=show_duration(walltime_ms))
    if status is None:
        return "The process that ran your cells could not be started."
    if status == UNHEARD:
        return CLOSED_LINK
    if status >= 0:
        return f"The process that ran your cell ended by itself, with status {status} (as os._exit does)."
    number = signal.Signals(-status) if -status in set(signal.Signals) else None
    how = _SIGNALS.get(number) if number is not None else None
    return f"The process that ran your cell {how or f'was ended by signal {-status}.'}"
