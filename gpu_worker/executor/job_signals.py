"""SIGTERM in a job of a cluster, which signals all processes of a job that it ends, and not the agent alone.

It is the agent's to obey: it tells people, and gives cells their time. A cell ends by what the agent does.
"""

import os
import signal
from types import FrameType

#: Set in the environment of a zygote whose agent is in such a job.
IN_JOB = "BULLETIN_IN_JOB"


def _let_pass(_signal: int, _frame: FrameType | None) -> None:
    """Do nothing. A handler, and not SIG_IGN, which programs that a cell starts would inherit."""


def leave_to_agent() -> None:
    """Let SIGTERM pass here, and in forks that become executors, where the agent is in such a job."""
    if os.environ.pop(IN_JOB, ""):
        signal.signal(signal.SIGTERM, _let_pass)
        signal.siginterrupt(signal.SIGTERM, False)  # code in C may take a call that was broken off for a failure


def reset_in_executor() -> None:
    """Let SIGTERM end this fork as it ends any program, unless it is left to the agent."""
    if signal.getsignal(signal.SIGTERM) is not _let_pass:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def reset_in_child() -> None:
    """Let SIGTERM end a fork of an executor, as `multiprocessing` ends workers, unless the cell's code handles it."""
    if signal.getsignal(signal.SIGTERM) is _let_pass:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
