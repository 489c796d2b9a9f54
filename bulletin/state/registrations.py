"""What a notebook has put into libraries: its own functions and classes, under new names, and plain values of modules.

A library keeps an accessor on its class, a constructor in a dict of it, a processor in its configuration. All of these
that are the notebook's own are one value, which travels with each cell; each side puts them where the other has them.
"""

import contextlib
import threading
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from itertools import count as counter, islice
from operator import is_
from types import FunctionType, ModuleType
from typing import Any, TypeAlias

from . import hand_made_modules, hooks, untransferable
from .atoms import is_atom
from .context_values import ContextValues
from .entry_owners import (
    MAX_PARTS,
    begins_empty,
    is_constant,
    is_found_there,
    is_own,
    is_own_entry,
    is_put_by_user,
    made_later,
    text_of_key,
)
from .handles import Handle
from .library_places import LibraryDict, LibraryPlace, LibraryPlaces, is_kept_for_speed, newest_of, owner_of
from .load_transaction import LoadTransaction
from .object_paths import Stayed
from .place_origins import PlaceOrigins, begins_alike, is_here_too, is_single, starts_of
from .place_values import ABSENT, changer, find, put
from .plain_variables import (
    changed_options,
    is_options,
    is_same,
    is_set_by_people,
    is_tuple,
    is_withheld,
    keep_option,
)
from .reducers.functions import MADE_LATER
from .reducers.registries import is_plain

#: What a library has, by its places there.
Found: TypeAlias = dict[LibraryPlace, Any]


def _is_said_of_it(holder: LibraryDict, value: Any) -> bool:
    """Tell whether an entry says something of its key: it is plain, or a function that the library has made for it."""
    return (
        is_plain(value)
        or type(value) is counter
        or (type(value) is FunctionType and not is_kept_for_speed(holder.attribute))
    )


class Registrations:
    """All of them, by library and place. One for a process, since libraries are."""

    def __init__(self) -> None:
        self._places = LibraryPlaces()
        #: The value that travels of each library; and what was in it when the two sides last had the same.
        self._found: dict[str, Found] = {}
        self._settled: dict[str, Found] = {}
        self._refused: Found = {}
        #: What is here, and is to be noted again.
        self._later: Found = {}
        self._stayed: list[Stayed] = []
        self._origins = PlaceOrigins()
        #: Variables that the library had otherwise on the two sides to begin with: each keeps its own.
        self._apart: set[LibraryPlace] = set()
        self._context = ContextValues()
        #: The dicts whose entries are counted, how many there were, the newest key of each, those that are asked each
        #: time, and the revision of the places that all this is of: to count thousands is quick, to go through is not.
        self._helds, self._lengths, self._newest = list[Any](), list[int](), list[Any]()
        self._asked: list[LibraryDict] = []
        self._revision = -1

    def observe(self, namespace: Mapping[str, Any]) -> Mapping[str, Found]:
        """Look for what was put into libraries since; return all that there is, by the name of the library."""
        self._places.extend(namespace)
        is_as_it_was = self._revision == self._places.revision and list(map(len, self._helds)) == self._lengths
        if is_as_it_was and all(map(is_, newest_of(self._helds), self._newest)):
            for holder in self._asked:
                self._ask(holder)
        else:
            self._look_at_all()
        for place, variable in self._context.take_new():
            self._note(place, variable)
        singles = [(place, find(place)) for place in self._places.singletons]
        for place, single in singles:
            if not is_atom(single) and any(single is value for value in namespace.values()):
                self._note(place, single)
        for place, hook in hooks.observe():
            self._note(place, hook)
        for name, module in hand_made_modules.on_both_sides().items():
            self._note(LibraryPlace(*_MODULES, (name,)), module)
        while self._later:
            place, value = self._later.popitem()
            if find(place) is value:
                self._note(place, value)
        self._note_named()
        self._note_beside()
        for library, found in self._found.items():
            self._follow(found)
            self._settled[library] = dict(found)
        return self._found

    def adopt(self, library: str, found: Found, transaction: LoadTransaction, departed: Found | None = None) -> None:
        """Put into this side's library what the other side's has, undoably, and take out what is gone there.

        `departed` is what was here when a cell left that the notebook did not wait for: what is another since stays.
        """
        before, settled = self._found.get(library, {}), self._settled.get(library, {})
        if found is not before:  # both had put something there; the other side learns of this one's with the next cell
            self._later.update((place, value) for place, value in before.items() if place not in found)
        kept = set[LibraryPlace]() if departed is None else self._changed_since(departed, settled.keys() | found.keys())
        for place in settled.keys() - found.keys() - self._apart - kept:
            is_variable = self._origins.find(place) is not ABSENT  # whatever it has become there is not for this side
            if find(place) is settled[place] and not is_variable:
                with _other_version:
                    put(place, ABSENT, transaction)
        starts = found.get(starts_of(library), {})
        for place, value in found.items():
            if type(value) is Handle or not place.attribute or place in self._apart:
                continue
            if place in kept:
                self._later[place] = find(place)
            elif place not in settled and place in starts and not begins_alike(place, starts[place], value):
                self._apart.add(place)
            elif place in settled or not is_here_too(place, value):
                self._origins.keep(place, find(place), value)
                transaction.undoable(self._places.accept, place)
                with _other_version:
                    put(place, value, transaction)
                    _know(place, value)
                    self._places.accept(place)
        self._found[library], self._settled[library] = found, dict(found)

    def depart(self) -> Found:
        """Return what plain variables hold now, since the notebook goes on while a cell is under way."""
        places: Found = {}
        for holder in self._places.holders.values():
            places.update((holder.place_of(name), value) for name, value in (holder.atoms or {}).items())
        return places

    def _changed_since(self, departed: Found, places: Iterable[LibraryPlace]) -> set[LibraryPlace]:
        return {place for place in places if place in departed and not is_same(find(place), departed[place])}

    def forget(self) -> None:
        """Forget what there is, take out what is of the notebook's own, and put back what was there: another begins."""
        for place, value in ((place, value) for found in self._found.values() for place, value in found.items()):
            if not place.attribute:
                continue
            is_of_instance = not isinstance(owner_of(place), type | ModuleType)
            is_kept = is_of_instance or is_found_there(place.module, value) or type(value) in (dict, ContextVar)
            is_kept = is_kept or is_single(place, value)
            if (hooks.is_hook(place) or not is_kept) and find(place) is value:
                changer(place)(ABSENT)
                MADE_LATER.pop(id(value), None)
        self._origins.restore(self._places)
        self._context.forget(value for found in self._found.values() for value in found.values())
        for part in (self._found, self._settled, self._refused, self._later, self._apart):
            part.clear()
        hand_made_modules.forget()

    def take_stayed(self) -> list[Stayed]:
        """Hand out, once, what was put into a library here and cannot go to the other side."""
        stayed, self._stayed = self._stayed, []
        return stayed

    def _look_at_all(self) -> None:
        """Look at each dict that has got other entries, and note how many all have now."""
        holders, count = self._places.holders, 0
        while self._places.parts:
            self._note_variables(self._places.parts.pop())
        while count < len(holders):  # to look at one may add others
            for holder in list(islice(holders.values(), count, None)):
                count += 1
                if holder.kind is not threading.local and not holder.is_as_it_was():
                    self._look(holder)
                self._ask(holder)
        counted = [holder for holder in holders.values() if holder.kind is not threading.local]
        self._helds, self._lengths = [holder.held for holder in counted], [holder.length for holder in counted]
        self._newest = [holder.newest for holder in counted]
        self._asked = [
            holder for holder in holders.values() if holder.kind is threading.local or holder.atoms or holder.groups
        ]
        self._revision = self._places.revision

    def _ask(self, holder: LibraryDict) -> None:
        if holder.kind is threading.local:
            self._look_at_local(holder)
        elif holder.atoms is not None:
            self._compare_atoms(holder, holder.atoms)

    def _look(self, holder: LibraryDict) -> None:
        """Look at the entries that are new in a dict, or at all of one from which some are gone."""
        held, is_first = holder.held, holder.length < 0
        new, known = holder.take_new(), set[Any]() if is_first else holder.seen
        if holder.kind is object and any(is_own(value) for _, value in new):
            new = list(held.items())  # what configures something goes as a whole
            holder.is_whole = True
        later = made_later(holder, new) if holder.kind is ModuleType and holder.atoms is not None else ()
        is_used = holder.is_shared and (holder.module, holder.owner) in self._places.used
        looks_closely = (is_used or not is_first) and len(set(held) - known) <= MAX_PARTS
        for key, value in reversed(new):
            if holder.attribute:
                if isinstance(key, str) and key not in known:
                    keep_option(holder, key, value)
                is_added = holder.is_public and (holder.is_named or not is_first) and key not in known
                is_added = is_added and isinstance(key, str) and key[:1] != "_"
                if looks_closely and isinstance(key, str) and key not in holder.seen:
                    is_added = is_added or is_put_by_user(holder, key, value, is_first=is_first)
                is_owned = is_own_entry(value) or (holder.is_shared and is_own(value))
                if is_added or is_owned or (is_own_entry(key) and _is_said_of_it(holder, value)):
                    self._note(holder.place_of(key), value)
            elif not isinstance(key, str) or (key[:2] == "__" and key[-2:] == "__"):
                continue
            elif is_own(value) or holder.is_whole:
                self._note(holder.place_of(key), value)
            elif key in later:
                MADE_LATER[id(value)] = value
                self._note(holder.place_of(key), value)
            elif holder.atoms is not None and (self._is_variable(holder, value)):
                is_known = not is_first and key in holder.atoms  # then it is compared
                if not is_known:
                    holder.atoms[key] = value
                if not is_first and not is_known and key[:1] != "_":
                    self._note_changed(holder, key, ABSENT, value)
            elif not is_first:
                self._places.add(holder.module, holder.owner, key, value, holder.module.partition(".")[0])
        if holder.attribute:
            holder.seen = set(held)

    def _look_at_local(self, holder: LibraryDict) -> None:
        """Note what a library holds for the thread of the cells, if it is plain: what is current there is a setting."""
        known: dict[str, Any] = holder.atoms or {}
        for name, value in list(holder.held.items()):
            if known.get(name, ABSENT) is not value:
                known[name] = value
                if is_atom(value) or is_plain(value):
                    self._note(holder.place_of(name), value)
        holder.atoms = known

    def _note_named(self) -> None:
        """Note the entries that texts among the settings name, in dicts of the same module: what they choose."""
        chosen = [
            (place.module, value)
            for found in self._found.values()
            for place, value in found.items()
            if type(value) is str and value
        ]
        for module, key in chosen:
            for holder in self._places.of_module.get(module, ()):
                is_asked = holder.kind is dict and holder.attribute and not is_kept_for_speed(holder.attribute)
                value = holder.held.get(key, ABSENT) if is_asked else ABSENT
                if value is not ABSENT and not is_constant(value):
                    self._note(holder.place_of(key), value)
                    self._note_current(value)

    def _note_beside(self) -> None:
        """Note what a library says, in a dict that it fills itself, of what the notebook has registered under a key."""
        for library, found in list(self._found.items()):
            lenders = {library, *self._places.lent.get(library, ())}
            for key in {
                text_of_key(place.key[0]) for place, value in found.items() if place.key and is_own_entry(value)
            }:
                for holder in self._places.dicts_of(lenders) if key else ():
                    value = holder.held.get(key, ABSENT)
                    if (
                        value is not ABSENT
                        and not is_own_entry(value)
                        and begins_empty(holder.module, holder.attribute)
                    ):
                        self._note(holder.place_of(key), value)

    def _note_current(self, chosen: object) -> None:
        for holder in list(self._places.holders.values()):
            if holder.kind is threading.local:
                for name in [name for name, value in holder.held.items() if value is chosen]:
                    self._note(holder.place_of(name), chosen)

    def _note_variables(self, holder: LibraryDict) -> None:
        """Note the plain values of a part of a library, to be compared; nobody looks at what else it has."""
        holder.atoms = {}
        for name, value in list(holder.held.items()):
            if not isinstance(name, str) or name[:1] == "_":
                continue
            if holder.attribute:
                keep_option(holder, name, value)
            elif is_atom(value) or is_tuple(value):
                holder.atoms[name] = value
        if holder.length < 0:
            holder.is_part, holder.seen = not holder.attribute, set(holder.held)
            holder.take_new()

    def _is_variable(self, holder: LibraryDict, value: Any) -> bool:
        if is_atom(value):
            return True
        return is_tuple(value) if holder.kind is ModuleType else holder.is_public and is_options(value)

    def _compare_atoms(self, holder: LibraryDict, atoms: dict[str, Any]) -> None:
        """Note which plain values of a module, or of what was configured, are others than before."""
        held = holder.held
        if not all(map(is_, map(held.get, atoms), atoms.values())):
            for name in [name for name, before in atoms.items() if held.get(name, ABSENT) is not before]:
                before, atoms[name] = atoms[name], held.get(name, ABSENT)
                now = atoms[name]
                # What has a private name says how far a library has come; only its modules' variables, but for flags,
                # and options that were set anew, are what somebody has asked for.
                is_meant = name[:1] != "_" or type(now) is dict or (type(now) is not bool and not holder.is_public)
                if is_meant and self._is_variable(holder, now) and is_set_by_people(holder, name, before, now):
                    self._note_changed(holder, name, before, now)
        if holder.groups:
            for name, options in changed_options(holder).items():
                self._note(holder.place_of(name), options)

    def _note_changed(self, holder: LibraryDict, name: str, before: Any, now: Any) -> None:
        """Note another value of a variable, with what it was first: the other side's may have begun as another one."""
        place = holder.place_of(name)
        if place in self._apart:
            return
        self._origins.keep(place, before, now)
        self._note(place, now)
        library = place.module.partition(".")[0]
        is_begun = holder.kind is ModuleType and type(before) is tuple
        is_begun = is_begun or (bool(holder.attribute) and not holder.is_public and not holder.owner)
        if is_begun and before is not ABSENT and place in self._found.get(library, {}):
            self._found[library].setdefault(starts_of(library), {}).setdefault(place, self._origins.find(place))

    def _note(self, place: LibraryPlace, value: Any) -> None:
        library = place.module.partition(".")[0]
        found = self._found.get(library, {})
        if found.get(place, ABSENT) is value or self._refused.get(place, ABSENT) is value:
            return
        if is_withheld(place, value) and not hooks.is_hook(place):
            return
        reasons = untransferable.reasons({place.attribute: value})
        if not reasons:
            self._found.setdefault(library, found)[place] = value
            return
        MADE_LATER.pop(id(value), None)
        self._refused[place] = value
        if not place.key and place.attribute[:1] != "_":
            name = ".".join(filter(None, (place.module, place.owner, place.attribute)))
            self._stayed.append(Stayed(name, reasons[0].kind, name, reasons[0].why))

    def _follow(self, found: Found) -> None:
        """Note what has become of what was found before."""
        for place, value in list(found.items()):
            now = find(place)
            if now is value or type(value) is Handle or place in self._apart:
                continue
            if not place.attribute:
                continue
            del found[place]
            if place[:3] == _MODULES:  # what is imported there now is no longer made by hand
                continue
            is_of_instance = not isinstance(owner_of(place), type | ModuleType)
            is_meant = is_of_instance or (place.key and not hooks.is_hook(place)) or is_own(now) or is_atom(now)
            is_meant = is_meant or (not place.owner and is_tuple(now))
            if now is not ABSENT and is_meant:
                self._note(place, now)


#: Leaves alone what another version of the library does not have, or does not let anybody change.
_other_version = contextlib.suppress(LookupError, AttributeError, TypeError)
#: Where modules are that a cell has made.
_MODULES = ("sys", "", "modules")


def _know(place: LibraryPlace, value: Any) -> None:
    """Remember of a class that came that it is in no text of a library."""
    if isinstance(value, type) and value.__module__ == place.module and not place.owner:
        MADE_LATER[id(value)] = value


_of_process = Registrations()
observe, adopt, depart, forget, take_stayed, lent_to = (
    _of_process.observe, _of_process.adopt, _of_process.depart, _of_process.forget, _of_process.take_stayed,
    _of_process._places.lent_to,
)  # fmt: skip
