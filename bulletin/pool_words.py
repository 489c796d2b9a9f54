"""What is said of a pool, in the same words wherever people read of it."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from bulletin.codes import CellOutcome
from bulletin.units import show_duration

#: What a slot's state means to a person.
_STATES = {
    "free": "free",
    "granted": "starting",
    "busy": "running a cell",
    "kept": "kept between cells",
    "hot": "kept ready",
    "leaving": "being cleared",
    "drained": "given no more cells",
}
#: How a cell ended, where the code alone does not tell a person.
_OUTCOMES = {
    CellOutcome.RAISED: "raised an error",
    CellOutcome.WALLTIME: "reached its walltime",
    CellOutcome.RECLAIMED: "made room for others",
    CellOutcome.EXECUTOR_DIED: "its process died",
    CellOutcome.CANNOT_START: "could not start",
    CellOutcome.EVICTED: "its session was ended",
    CellOutcome.LEFT: "given back",
    CellOutcome.KERNEL_GONE: "its notebook was gone",
    CellOutcome.FLOOD: "sent too much at once",
    CellOutcome.MEMORY_LIMIT: "used too much memory",
    CellOutcome.PROCESS_LIMIT: "started too many processes",
    CellOutcome.RETURN_LATE: "its results came too late",
    CellOutcome.STATE_TOO_LARGE: "needed too much data",
    CellOutcome.KEPT: "kept between cells",
    CellOutcome.KEEP_OVER: "kept for as long as it may be",
    CellOutcome.NO_SUCH_LEASE: "its session was gone",
    CellOutcome.NODE_LOST: "its node was lost",
    CellOutcome.NOT_HELD: "its node was restarted",
    CellOutcome.SUPERSEDED: "went on elsewhere",
    CellOutcome.NOT_RELEASED: "its node did not let go of it",
    CellOutcome.UNRECOGNIZED: "ended",
}


def describe_outcome(outcome: CellOutcome) -> str:
    """Say how a cell ended, in a few words."""
    return _OUTCOMES.get(outcome, outcome.value)


def state_words(state: str) -> str:
    """Say what a slot's state means, for those who do not run the pool."""
    return _STATES.get(state, state)


def slot_word_of(kinds: Collection[str]) -> str:
    """Return what people call a slot of a pool that has slots of these kinds; of one that has none yet, a GPU."""
    return "CPU slot" if set(kinds) == {"cpu"} else "GPU"


def describe_node(node: str, owner: str) -> str:
    """Name a node, and who has brought it for themselves, if somebody has: "box (ada's own)"."""
    return f"{node} ({owner}'s own)" if owner else node


def describe_state(state: str, drains_in_ms: int | None, why_drained: str = "") -> str:
    """Add to a slot's state when its node is to be drained, and why it is: "free, drained in 3 h: new cooling"."""
    if drains_in_ms is not None:
        state = f"{state}, drained in {show_duration(drains_in_ms)}"
    elif why_drained and state not in ("drained", _STATES["drained"]):
        state = f"{state}, drained"
    return f"{state}: {why_drained}" if why_drained else state


def describe_drained(node: str, *, is_drained: bool, cells: int = 0, idle: int = 0, when: str = "") -> str:
    """Say whether a node is given cells, and what is left of those it had; `when` is a time that is still to come."""
    if not is_drained:
        return f"{node} is given cells again."
    if when:
        return f"{node} is drained {when}: until then it is given only cells that are over by then."
    left = []
    if cells:
        left.append("1 cell still runs there" if cells == 1 else f"{cells} cells still run there")
    if idle:
        left.append("1 idle session leaves" if idle == 1 else f"{idle} idle sessions leave")
    return f"{node} is given nothing more; {', and '.join(left) or 'nothing runs there'}."


def describe_project(
    project: str,
    slot_word: str,
    *,
    used_milli: int,
    guaranteed_milli: int,
    limit_milli: int | None,
    class_hours: str,
) -> str:
    """Say how a project stands, of thousandths of a slot: what it uses, what it is guaranteed, what it may use."""
    used, guaranteed = used_milli / 1000, guaranteed_milli / 1000
    many = "" if guaranteed == 1 else "s"
    limit = "" if limit_milli is None else f" and may use {limit_milli / 1000:g}"
    promised = f"{guaranteed:g} {slot_word}{many} guaranteed" if guaranteed else "nothing guaranteed"
    hours = f"; {class_hours}" if class_hours else ""
    return f"Your project {project!r} uses {used:g}, has {promised}{limit}{hours}."


def warn_of_accounts(shared_accounts: Sequence[str]) -> Iterator[str]:
    """Say of each Unix user that people's cells share what that means to them."""
    for account in shared_accounts:
        yield (
            f"All cells run as the Unix user {account!r}: whoever runs one can read and change everything of everybody "
            "else's cells, and of the pool. Admins choose otherwise with Pool.isolation."
        )


def describe_absence(node: str, absent_ms: int | None, problem: str) -> str:
    """Say that a node is not there, for how long, and why where that is known."""
    since = "has not come since the broker was started" if absent_ms is None else f"lost {show_duration(absent_ms)} ago"
    return f"{node}: not there, {since}. {problem}".strip()


_MISSING = {
    "memory-limit": "that use more memory than they may are ended within a second, not at once: a limit by the kernel "
    "needs cgroups of version 2 that are delegated to the agent",
    "namespaces": "see each other's processes and what is in /dev/shm, and could open each other's GPUs: namespaces of "
    "their own need an agent that runs as root with CAP_SYS_ADMIN",
}


#: What admins alone can make use of.
_FOR_ADMINS = ("memory-limit",)


def warn_of_missing(missing_protections: Mapping[str, Sequence[str]], *, for_admins: bool) -> Iterator[str]:
    """Say of each protection that nodes cannot give to people's cells what that means to them."""
    for word, nodes in sorted(missing_protections.items()):
        if word in _FOR_ADMINS and not for_admins:
            continue
        what = _MISSING.get(word, f"lack a protection that is called {word!r}")
        yield f"Cells on {', '.join(sorted(nodes))} {what}."
