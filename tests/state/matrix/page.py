"""The matrix as a page of the documentation. It says what the rows say; the tests hold the rows to what happens."""

from collections.abc import Iterable

from .kind import COLUMNS, Kind, Mark
from .kinds import FAMILIES

#: How a mark reads.
WORDS: dict[Mark, str] = {
    "yes": "yes",
    "no": "**no**",
    "refused": "refused",
    "stays": "stays there",
    "touch": "in part",
    "": "-",
}

LEGEND = """\
Each row is a test: its value goes through a `%%gpu` cell in another process, and the notebook afterwards is compared
with one that ran the same cell itself.

| column | what is compared |
| --- | --- |
| sent and used | the value and its type, as the cell finds them and as the notebook has them after the cell |
| made there | the same for a value that a cell makes; *stays there*: only later `%%gpu` cells can use it |
| change seen through an alias | whether a variable that the cell does not name shows what the cell did to the value |
| identity kept | `x is keep` after the cell, also for an object within `x` |

A dash: the question does not arise. *refused*: the cell does not run, and the note is what its user reads.
*in part*: the cell runs, and the note is the error that it meets if it touches what stayed behind.
"""


def text() -> str:
    """The page, without its first heading."""
    parts = [summary(kind for family in FAMILIES for kind in family.kinds), "\n", LEGEND]
    for family in FAMILIES:
        parts.append(f"\n## {family.title}\n\n| kind | {' | '.join(COLUMNS.values())} | |\n|{' --- |' * 6}\n")
        parts += [row(kind) for kind in family.kinds]
    return "".join(parts)


def summary(kinds: Iterable[Kind]) -> str:
    """How many kinds there are, and how many of them travel."""
    marks = [kind.marks() for kind in kinds]
    refused = sum(mark["there"] in ("refused", "touch") for mark in marks)
    wrong = sum("no" in mark.values() for mark in marks)
    return (
        f"{len(marks)} kinds of values: {len(marks) - refused - wrong} behave as if the cell had run in the notebook, "
        f"{wrong} not in every respect yet, {refused} cannot travel or have a part that cannot.\n"
    )


def row(kind: Kind) -> str:
    """One line of a table."""
    cells = [escaped(kind.name), *(WORDS[mark] for mark in kind.marks().values())]
    notes = [kind.known, kind.note, kind.sentence()]
    return f"| {' | '.join(cells)} | {escaped('. '.join(note for note in notes if note))} |\n"


def escaped(words: str) -> str:
    """The same to read, with nothing that Markdown would take as its own."""
    for sign in "\\_*|[]<`":
        words = words.replace(sign, "\\" + sign)
    return words
