"""A notebook played by all ways, and what differs, cell by cell."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from bulletin import errors
from tests.zoo.known import KNOWN, Known
from tests.zoo.playing import WAYS, Shown, Way, play
from tests.zoo.specimens import Specimen


class Kind(Enum):
    """How a cell differs: Bulletin refuses something, an earlier cell was refused, another error, or not a word."""

    REFUSED = "refused"
    AFTER = "after a refusal"
    OTHER_ERROR = "other error"
    SILENT = "silent"


@dataclass(frozen=True)
class Difference:
    """A cell, counted from 0, that shows something else than in a plain notebook."""

    way: Way
    cell: int
    kind: Kind
    here: Shown
    there: Shown

    def __str__(self) -> str:
        return f"{self.way}, cell {self.cell} ({self.kind.value})\n  here:  {self.here}\n  there: {self.there}"


class BadSpecimen(Exception):
    """A notebook does not do by itself what it says it does."""


Played: TypeAlias = dict[Way, list[Shown]]


def play_all(name: str, python: str = sys.executable, ways: Sequence[Way] = WAYS) -> Played:
    """Play a notebook here and by these ways. Raises CannotPlay."""
    return {way: play(name, way, python) for way in ("here", *ways)}


def differences(material: Specimen, played: Played) -> list[Difference]:
    """What differs from the notebook that was played here. Raises BadSpecimen."""
    here = played["here"]
    unlike = [
        f"cell {place} ends with {shown.error}, and {cell.raises} was meant"
        for place, (cell, shown) in enumerate(zip(material.cells, here, strict=True))
        if shown.error_name != cell.raises
    ]
    if unlike:
        raise BadSpecimen(material.name, *unlike)
    found = []
    for way in (way for way in WAYS if way in played):
        is_refused = False
        for place, (one, other) in enumerate(zip(here, played[way], strict=True)):
            if one != other:
                kind = _kind(one, other, is_refused=is_refused)
                is_refused |= kind is Kind.REFUSED
                found.append(Difference(way, place, kind, one, other))
    return found


def _kind(here: Shown, there: Shown, *, is_refused: bool) -> Kind:
    if there.error_name in errors.__all__ or "bulletin.errors." in (there.error or ""):
        return Kind.REFUSED
    if is_refused:
        return Kind.AFTER
    return Kind.OTHER_ERROR if there.error is not None and there.error != here.error else Kind.SILENT


def unexplained(name: str, found: list[Difference], ways: Sequence[Way] = WAYS) -> tuple[list[Difference], list[str]]:
    """What differs that nobody knows of, and what is known to differ and no longer does."""
    rows: list[Known] = [row for row in KNOWN if row.name == name]
    seen = {(one.way, one.cell) for one in found}
    known = {(way, cell) for row in rows for way, cell in row.cells if way in ways}
    gone = [f"{way}, cell {cell}" for way, cell in sorted(known - seen)]
    return [one for one in found if (one.way, one.cell) not in known], gone
