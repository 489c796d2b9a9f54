"""`%gpu push` and `%gpu reset`: what they take, and what is said of it."""

import keyword
from collections.abc import Callable, Mapping, Sequence

from bulletin import state
from bulletin.errors import BadOption, CannotSend
from bulletin.state.holdings import Holdings, Home
from bulletin.state.names import is_users
from bulletin.units import show_size
from bulletin_magic.connection.deliveries import CellFinished


def variables(line: str, verb: str, namespace: Mapping[str, object]) -> list[str]:
    """The names of variables that a line lists, each once.

    Raises
    ------
    BadOption
        For what is no variable of this notebook.
    """
    names = list(dict.fromkeys(line.replace(",", " ").split()))
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise BadOption(f"`%gpu {verb}` takes names of variables, and {name!r} is none.")
        if name not in namespace or not is_users(name):
            raise BadOption(f"There is no variable {name!r} in this notebook.")
    return names


def refuse_stayed(names: Sequence[str]) -> Callable[[state.Captured], None]:
    """A check that raises CannotSend for one of the names that would stay behind."""

    def check(captured: state.Captured) -> None:
        for stayed in captured.stayed:
            if stayed.path in names:
                raise CannotSend(stayed.name, stayed.path, stayed.kind)

    return check


def describe_pushed(names: Sequence[str], finished: CellFinished) -> str:
    """What came of it, in a line."""
    return f"{listed(names)} {are(names)} on the pool now; {show_size(finished.sent_bytes)} were sent."


def describe_reset(held: Holdings, *, had: bool) -> str:
    """What is gone, and what is not."""
    lost = [value.name for value in held.values if value.home is Home.THERE]
    if not had:
        return "This notebook has no process on the pool. The next cell there starts in a fresh one."
    gone = f" {listed(lost)} {'was' if len(lost) == 1 else 'were'} only there, and {are(lost)} gone." if lost else ""
    return f"The process on the pool has ended. The next cell there starts in a fresh one, with your variables.{gone}"


def listed(names: Sequence[str]) -> str:
    """As a person lists them: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def are(names: Sequence[str]) -> str:
    """The verb for them."""
    return "is" if len(names) == 1 else "are"
