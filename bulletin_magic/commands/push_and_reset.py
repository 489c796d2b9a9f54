"""`%gpu push` and `%gpu reset`: what they take, and what is said of it."""

import keyword
from collections.abc import Callable, Mapping, Sequence

from bulletin import state
from bulletin.errors import BadOption, CannotSend
from bulletin.state.holdings import Holdings, Home
from bulletin.state.names import is_users
from bulletin.units import show_size
from bulletin_magic.connection.deliveries import CellFinished


def parse_variable_names(line: str, verb: str, namespace: Mapping[str, object]) -> list[str]:
    """Return the names of variables that a line lists, each once.

    Raises
    ------
    BadOption
        For what is no variable of this notebook.
    """
    names = list(dict.fromkeys(line.replace(",", " ").split()))
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise BadOption(f"`%gpu {verb}` takes names of variables, and {name!r} is none.", "%gpu")
        if name not in namespace or not is_users(name):
            raise BadOption(f"There is no variable {name!r} in this notebook.", "%gpu")
    return names


def check_none_stays(names: Sequence[str]) -> Callable[[state.Captured], None]:
    """Return a check that raises CannotSend for one of the names that would stay behind."""

    def check(captured: state.Captured) -> None:
        for stayed in captured.stayed:
            if stayed.path in names:
                raise CannotSend(stayed.name, stayed.path, stayed.kind)

    return check


def describe_pushed(names: Sequence[str], finished: CellFinished) -> str:
    """Say in a line what was sent."""
    return f"{join_names(names)} {is_or_are(names)} on the pool now; {show_size(finished.sent_bytes)} were sent."


def describe_reset(holdings: Holdings, *, had: bool) -> str:
    """Say what is gone with the process, and what is not. `had`: there was one."""
    lost = [value.name for value in holdings.values if value.home is Home.THERE]
    if not had:
        return "This notebook has no process on the pool. The next cell there starts in a fresh one."
    gone = (
        f" {join_names(lost)} {'was' if len(lost) == 1 else 'were'} only there, and {is_or_are(lost)} gone."
        if lost
        else ""
    )
    return f"The process on the pool has ended. The next cell there starts in a fresh one, with your variables.{gone}"


def join_names(names: Sequence[str]) -> str:
    """List names as a person does: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def is_or_are(names: Sequence[str]) -> str:
    """Return the verb that goes with so many names."""
    return "is" if len(names) == 1 else "are"
