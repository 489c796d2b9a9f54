"""The ways in which an executor ends, and what its user is told of each."""

import signal
from enum import Enum

from bulletin.codes import LeaseEnd
from bulletin.units import show_duration


class EndReason(Enum):
    """Why the agent ended an executor; each value is the word for it on the wire."""

    EVICTED = LeaseEnd.EVICTED
    RECLAIMED = LeaseEnd.RECLAIMED
    LEFT = LeaseEnd.LEFT
    CANCELLED = LeaseEnd.CANCELLED
    KERNEL_GONE = LeaseEnd.KERNEL_GONE
    STOPPED = LeaseEnd.STOPPED
    WALLTIME = LeaseEnd.WALLTIME
    FLOOD = LeaseEnd.FLOOD


_TOLD = {
    EndReason.EVICTED: "The session was idle, and its place was needed for somebody who waited.",
    EndReason.RECLAIMED: "Its place was borrowed, and a project with more right to it needed it.",
    EndReason.LEFT: "The notebook gave the session back.",
    EndReason.CANCELLED: "The cell was cancelled before it ran.",
    EndReason.KERNEL_GONE: "The notebook was gone for longer than the pool keeps its session.",
    EndReason.STOPPED: "The cell was stopped by ending its process.",
    EndReason.WALLTIME: "The cell reached its walltime of {walltime} and was ended.",
    EndReason.FLOOD: "The notebook sent more at once than the protocol allows.",
}
_SIGNALS = {
    signal.SIGKILL: "was killed (SIGKILL). Most often that is the system, because memory ran out: "
    "try with less data at a time.",
    signal.SIGSEGV: "crashed (segmentation fault) in one of the libraries it uses.",
    signal.SIGABRT: "was aborted (SIGABRT) by one of the libraries it uses.",
}


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
    if status >= 0:
        return f"The process that ran your cell ended by itself, with status {status} (as os._exit does)."
    number = signal.Signals(-status) if -status in set(signal.Signals) else None
    how = _SIGNALS.get(number) if number is not None else None
    return f"The process that ran your cell {how or f'was ended by signal {-status}.'}"
