"""A row of the type matrix: how a kind of value is made, changed and looked at, and what is expected of it."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from bulletin.errors import CannotSend, StayedBehind

Column: TypeAlias = Literal["there", "back", "seen", "kept"]
Mark: TypeAlias = Literal["yes", "no", "refused", "stays", "touch", ""]

#: The columns of the page, in order, with their titles.
COLUMNS: dict[Column, str] = {
    "there": "sent and used",
    "back": "made there",
    "seen": "change seen through an alias",
    "kept": "identity kept",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value. The sources run in a notebook; `x` is the value, and only the notebook holds an alias of it."""

    name: str
    make: str  # binds x
    change: str = ""  # changes x in place, in a %%gpu cell; nothing where it cannot be changed
    look: str = "x"  # its repr tells the value from any other
    inner: str = ""  # an object within x: the notebook holds that as well, and must find it there again
    once: bool = False  # looking at the value uses it up
    after: str = ""  # closes the value
    refused: str = ""  # "KIND" or "PATH: KIND", as the refusal names what cannot travel
    behind: str = (
        ""  # "PATH: KIND" of a part that cannot travel, where the rest does: an error when the part is touched
    )
    wrong: str = ""  # columns that are not right yet, separated by blanks
    known: str = ""  # why they are not
    note: str = ""  # what a reader of the page should know besides
    needs: tuple[str, ...] = ()  # modules without which there is no such value

    def marks(self) -> dict[Column, Mark]:
        """What is expected in each column; an empty mark where the question does not arise."""
        marks: dict[Column, Mark] = {"there": "yes", "back": "yes", "seen": "yes" if self.change else "", "kept": "yes"}
        if self.refused:
            marks = {"there": "refused", "back": "stays", "seen": "", "kept": ""}
        elif self.behind:
            marks = {"there": "touch", "back": "stays", "seen": "", "kept": "yes"}
        wrong = set(self.wrong.split())
        assert wrong <= marks.keys()
        assert bool(wrong) == bool(self.known), f"{self.name}: what is wrong has a reason"
        return {column: "no" if column in wrong else mark for column, mark in marks.items()}

    def sentence(self) -> str:
        """What a person reads who asks for what cannot travel; nothing where all does."""
        path, found, kind = (self.refused or self.behind).rpartition(": ")
        if self.refused:
            return str(CannotSend("x", path if found else "x", kind))
        return str(StayedBehind(path, kind, "stayed in the notebook")) if self.behind else ""


@dataclass(frozen=True, slots=True)
class Family:
    """Kinds of one library, under one title of the page."""

    title: str
    kinds: tuple[Kind, ...]
    needs: tuple[str, ...] = ()
