"""Why cells and leases end and why something is refused: one word for one cause, on the wire and in the ledger.

A word that this version does not know comes from another version of Bulletin. It is read as UNRECOGNIZED, and the
sentence beside it still tells the user what happened.
"""

from enum import StrEnum
from typing import Self

#: What earlier versions said, and agents that were started by one still say.
EARLIER_WORDS = {"died": "executor-died", "session-over": "executor-died", "unknown": "no-such-lease"}


class _Code(StrEnum):
    """A word, and as its docstring what it means, in a sentence for the reference."""

    def __new__(cls, word: str, meaning: str = "") -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.__doc__ = meaning
        return member

    @classmethod
    def _missing_(cls, value: object) -> Self:
        known = cls._value2member_map_.get(EARLIER_WORDS.get(str(value)), cls["UNRECOGNIZED"])
        assert isinstance(known, cls)
        return known


class LeaseEnd(_Code):
    """Why a lease ended: `leases.why` in the ledger, and `code` in LeaseOver and Revoked."""

    EVICTED = "evicted", "The session was idle, and its slots were needed by somebody who waited."
    RECLAIMED = "reclaimed", "Somebody with more right to the slots needed them, or their node was taken away."
    LEFT = "left", "The notebook gave the session back."
    CANCELLED = "cancelled", "The cell was cancelled before it came."
    KERNEL_GONE = "kernel-gone", "The notebook was gone for longer than the pool keeps its session."
    STOPPED = "stopped", "The cell was stopped by ending its process."
    WALLTIME = "walltime", "The cell reached its walltime, and its process was ended."
    FLOOD = "flood", "The notebook sent more at once than the protocol allows."
    RETURN_LATE = "return-late", "The executor said that its cell had ended, and did not hand its results back in time."
    MEMORY_LIMIT = "memory-limit", "The session used more of its node's memory than it may."
    PROCESS_LIMIT = "process-limit", "The session had more processes than it may."
    EXECUTOR_DIED = "executor-died", "The executor ended by itself: it crashed, was killed, or left by `os._exit`."
    CANNOT_START = "cannot-start", "No executor could be started, or the node had an error with the session."
    KEEP_OVER = "keep-over", "The notebook had kept its place (`--keep`) for as long as it may."
    NO_SUCH_LEASE = "no-such-lease", "The agent was asked to end the lease and no longer had it."
    NODE_LOST = "node-lost", "The node no longer answered the broker. Its agent may still come back with the lease."
    NOT_HELD = "not-held", "The agent came back without the lease, or a restarted broker has not heard of it again."
    SUPERSEDED = "superseded", "The node was thought lost, and the session went on elsewhere."
    NOT_RELEASED = "not-released", "The node never said that the lease was over, and the notebook went on elsewhere."
    UNRECOGNIZED = "unrecognized", "A version of Bulletin said why that this one does not know."

    @property
    def outcome(self) -> "CellOutcome":
        """The outcome of a cell that ended because its lease did."""
        return CellOutcome(self.value)


class CellOutcome(_Code):
    """How a cell ended: `cells.outcome` in the ledger, `outcome` in CellUsage, and `code` in Lost.

    What ends a lease ends the cell that runs on it, and has the same word.
    """

    RETURNED = "returned", "The code came to its end."
    RAISED = "raised", "The code raised an exception."
    INTERRUPTED = "interrupted", "The code was interrupted by the stop button."
    WALLTIME = "walltime", "The cell reached its walltime: it was interrupted, or its process was ended."
    RECLAIMED = "reclaimed", "Somebody with more right to the slots needed them, or their node left: not charged."
    CANCELLED = "cancelled", "The cell was cancelled before it came."
    STOPPED = "stopped", "The cell was stopped by ending its process."
    EXECUTOR_DIED = "executor-died", "The executor ended by itself: it crashed, was killed, or left by `os._exit`."
    CANNOT_START = "cannot-start", "No executor could be started, or the node had an error with the session."
    EVICTED = "evicted", "The broker had given the session up, and its agent ended it."
    LEFT = "left", "The notebook gave the session back while the cell ran."
    KERNEL_GONE = "kernel-gone", "The notebook was gone for longer than the pool keeps its session."
    FLOOD = "flood", "The notebook sent more at once than the protocol allows."
    RETURN_LATE = "return-late", "The executor said that its cell had ended, and did not hand its results back in time."
    MEMORY_LIMIT = "memory-limit", "The session used more of its node's memory than it may."
    PROCESS_LIMIT = "process-limit", "The session had more processes than it may."
    KEPT = "kept", "No cell ran: the notebook kept its place between two (`--keep`), which is charged as one."
    KEEP_OVER = "keep-over", "The notebook had kept its place (`--keep`) for as long as it may."
    STATE_TOO_LARGE = "state-too-large", "What the cell needs is more than the node accepts: it did not run."
    NO_SUCH_LEASE = "no-such-lease", "The agent no longer had the lease."
    NODE_LOST = "node-lost", "The node no longer answered the broker."
    NOT_HELD = "not-held", "The node's agent was restarted, and the cell ended with it."
    SUPERSEDED = "superseded", "The node was thought lost, and the session went on elsewhere."
    NOT_RELEASED = "not-released", "The node never said that the cell was over, and the notebook went on elsewhere."
    UNRECOGNIZED = "unrecognized", "A version of Bulletin said how that this one does not know."


class RefusalCode(_Code):
    """Why something that was asked for is refused: `code` in Refusal and Gone."""

    NOT_ALLOWED = "not-allowed", "Who asks may not do that, or cannot be identified."
    VERSION_MISMATCH = "version-mismatch", "The two sides speak different versions of the protocol."
    NOT_YOUR_PROJECT = "not-your-project", "The user is not in the project that should pay."
    UNKNOWN_QOS = "unknown-qos", "The pool has no QoS of that name."
    QOS_NOT_ALLOWED = "qos-not-allowed", "The project may not use the QoS."
    WALLTIME_TOO_LONG = "walltime-too-long", "The cell asked for more time than its QoS or its project gives."
    TOO_MANY_GPUS = "too-many-gpus", "No node of the pool could ever hold the request."
    NO_SUCH_GPU = "no-such-gpu", "No GPU of the pool was ever of this type."
    TOO_LARGE = "too-large", "No node of the pool ever offered as much of something, or of all together."
    OVER_LIMIT = "over-limit", "It is more than a project, one of its users or one cell may ever use."
    NEVER_IN_QUOTA = "never-in-quota", "The QoS never borrows, and the project is not guaranteed as much."
    QUEUE_FULL = "queue-full", "The user has as many requests in the queue as the QoS allows."
    REPLACED = "replaced", "The same session asked for something newer."
    CANCELLED = "cancelled", "A person withdrew the request on its kernel's behalf."
    NO_SUCH_CELL = "no-such-cell", "No node has the cell that a kernel wants to join."
    UNKNOWN_SESSION = "unknown-session", "The node does not have the session."
    NOT_FREE = "not-free", "The session is ending, or runs another cell."
    UNKNOWN_ID = "unknown-id", "Nothing has this id, or the id is too short."
    AMBIGUOUS_ID = "ambiguous", "Several ids begin so."
    NO_CELL = "no-cell", "No cell runs there."
    NOT_WAITING = "not-waiting", "It waits no longer."
    NOT_HELD_BACK = "not-held-back", "Nobody holds the request."
    NAME_TAKEN = "name-taken", "Another agent of that name is there, and answers."
    UNREACHABLE = "unreachable", "The broker cannot reach the node where notebooks would."
    NO_NODE = "no-node", "The pool has no node of that name."
    NOT_WRITTEN = "not-written", "The quota file cannot be changed from there; it is as it was."
    LEDGER_AWAY = "ledger-away", "The server of the ledger's database does not answer."
    FAULT = "fault", "The pool had an error that nobody expected, and ended the connection of who asked."
    TOO_FAST = "too-fast", "Who asks says more at once than the pool listens to."
    UNRECOGNIZED = "unrecognized", "A version of Bulletin said why that this one does not know."
