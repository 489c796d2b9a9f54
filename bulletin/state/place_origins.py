"""What variables of libraries held before a notebook changed them.

It is put back when another notebook begins, and says whether the two sides began alike.
"""

from contextvars import ContextVar
from typing import Any

from .atoms import is_atom
from .entry_owners import is_own_entry
from .library_places import DICTS, LibraryPlace, LibraryPlaces, owner_of
from .place_values import ABSENT, changer, entries_of, find
from .plain_variables import is_options, is_same, is_tuple


def is_variable(value: Any) -> bool:
    """Tell whether a value is one that is put back: an atom, a tuple of such, or nothing."""
    return value is ABSENT or is_atom(value) or is_tuple(value)


class PlaceOrigins:
    """The first value of each place that was changed in this process, here or from the other side."""

    def __init__(self) -> None:
        self._first: dict[LibraryPlace, Any] = {}

    def keep(self, place: LibraryPlace, before: Any, now: Any) -> None:
        """Remember what is there before the first change; what comes after that changes nothing of it.

        What has a private name says how far a library has come, and it has come so far.
        """
        is_kept = (is_variable(before) and place.attribute[:1] != "_") or is_single(place, now)
        if place not in self._first and is_kept:
            self._first[place] = before

    def find(self, place: LibraryPlace, otherwise: Any = ABSENT) -> Any:
        """Return what was there first."""
        return self._first.get(place, otherwise)

    def restore(self, places: LibraryPlaces) -> None:
        """Put back what was there first wherever a plain value is now, and forget it."""
        for place, before in self._first.items():
            now = find(place)
            is_here = owner_of(place) is not None  # a module may be gone, and a dict be something else by now
            is_here = is_here and (not place.key or entries_of(find(place._replace(key=()))) is not None)
            if is_here and (is_variable(now) or is_single(place, now)) and not is_same(now, before):
                changer(place)(before)
                places.accept(place)
        self._first.clear()


def starts_of(library: str) -> LibraryPlace:
    """Return the place, of nothing in a library, under which travels what its changed variables were first."""
    return LibraryPlace(library, "", "")


def begins_alike(place: LibraryPlace, start: Any, value: Any) -> bool:
    """Tell whether this side has at a place what the other one had first, or has now."""
    here = find(place)
    return is_same(here, start) or is_same(here, value)


def is_here_too(place: LibraryPlace, value: Any) -> bool:
    """Tell whether the library has filled an entry on this side as well, before the two sides agreed on anything."""
    if is_single(place, value) or type(value) is ContextVar:  # one that another notebook's library made may be left
        return False
    here = find(place) if place.key and type(find(place._replace(key=()))) in DICTS else ABSENT
    if is_options(here) and is_options(value):
        return bool(here == value)  # else somebody has set some of them on the other side
    return type(here) is type(value) and not is_own_entry(value) and not is_atom(value) and here is not value


def is_single(place: LibraryPlace, value: Any) -> bool:
    """Tell whether this is the instance that a class of a library has for everybody, where that class keeps it."""
    owner, kind = owner_of(place), type(value)
    if not isinstance(owner, type) or kind.__module__.partition(".")[0] != place.module.partition(".")[0]:
        return False
    return place.key[0] is kind if place.key else issubclass(kind, owner)
