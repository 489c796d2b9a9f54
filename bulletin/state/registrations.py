"""What a notebook has put into libraries: its own functions and classes, under new names, and plain values of modules.

A library keeps an accessor on its class, a constructor in a dict of it, a processor in its configuration. All of these
that are the notebook's own are one value, which travels with each cell; each side puts them where the other has them.
"""

import contextlib
import functools
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from contextvars import ContextVar, copy_context
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

from bulletin.cpython.class_layout import is_python_class

from . import untransferable
from .atoms import ATOMS
from .handles import Handle
from .inplace import attributes_of
from .library_places import LibraryDict, LibraryPlace, LibraryPlaces, is_kept_for_speed
from .load_transaction import LoadTransaction
from .modules.sources import spec_in
from .names import REGISTERED
from .object_paths import Stayed
from .place_values import ABSENT, changer, find, is_atom, owner_of, put
from .reducers import context_variables, is_in_place, places_of
from .reducers.functions import MADE_LATER
from .reducers.registries import is_plain

_MAIN = frozenset({"__main__", "__mp_main__"})
#: A container of more is not looked through for what is the notebook's.
_MAX_PARTS = 64


#: What a library has, by its places there.
Found: TypeAlias = dict[LibraryPlace, Any]


def _is_options(value: Any) -> bool:
    return type(value) is dict and len(value) <= _MAX_PARTS and is_plain(list(value.items()))


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
        #: Context variables with a value, of which it is known where they are.
        self._variables: set[ContextVar[Any]] = set()
        #: The dicts whose entries are counted, how many there were, those that are asked each time, and the revision of
        #: the places that all this is of: to count thousands is quick, and to go through them is not.
        self._helds, self._lengths = list[Any](), list[int]()
        self._asked: list[LibraryDict] = []
        self._revision = -1

    def observe(self, namespace: Mapping[str, Any]) -> Mapping[str, Found]:
        """Look for what was put into libraries since; return all that there is, by the name of the library."""
        self._places.extend(namespace)
        if self._revision == self._places.revision and list(map(len, self._helds)) == self._lengths:
            for holder in self._asked:
                self._ask(holder)
        else:
            self._look_at_all()
        for variable in copy_context():
            if variable not in self._variables:
                self._variables.add(variable)
                found_at = context_variables.place_of(variable)
                if found_at is not None:
                    self._note(LibraryPlace(found_at.module, "", found_at.attribute, found_at.key), variable)
        while self._later:
            place, value = self._later.popitem()
            if find(place) is value:
                self._note(place, value)
        self._note_named()
        for library, found in self._found.items():
            self._follow(found)
            self._settled[library] = dict(found)
        return self._found

    def adopt(self, library: str, found: Found, transaction: LoadTransaction) -> None:
        """Put into this side's library what the other side's has, undoably, and take out what is gone there."""
        before, settled = self._found.get(library, {}), self._settled.get(library, {})
        if found is not before:  # both had put something there; the other side learns of this one's with the next cell
            self._later.update((place, value) for place, value in before.items() if place not in found)
        for place in settled.keys() - found.keys():
            if find(place) is settled[place]:
                put(place, ABSENT, transaction)
        for place, value in found.items():
            if type(value) is not Handle and not (place not in settled and _is_here_too(place, value)):
                with contextlib.suppress(LookupError, AttributeError, TypeError):  # another version of the library
                    put(place, value, transaction)
                    _know(place, value)
        self._found[library], self._settled[library] = found, dict(found)

    def forget(self) -> None:
        """Forget what there is, and take out what is of the notebook's own: another one begins."""
        for place, value in ((place, value) for found in self._found.values() for place, value in found.items()):
            is_of_instance = not isinstance(owner_of(place), type | ModuleType)
            is_kept = is_of_instance or is_atom(value) or type(value) is ContextVar
            if not is_kept and find(place) is value:
                changer(place)(ABSENT)
        for part in (self._found, self._settled, self._refused, self._later, self._variables):
            part.clear()

    def take_stayed(self) -> list[Stayed]:
        """Hand out, once, what was put into a library here and cannot go to the other side."""
        stayed, self._stayed = self._stayed, []
        return stayed

    def _look_at_all(self) -> None:
        """Look at each dict that has got other entries, and note how many all have now."""
        holders, count = self._places.holders, 0
        while count < len(holders):  # to look at one may add others
            for holder in list(islice(holders.values(), count, None)):
                count += 1
                if len(holder.held) != holder.length and holder.kind is not threading.local:
                    self._look(holder)
                self._ask(holder)
        counted = [holder for holder in holders.values() if holder.kind is not threading.local]
        self._helds, self._lengths = [holder.held for holder in counted], [holder.length for holder in counted]
        self._asked = [holder for holder in holders.values() if holder.kind is threading.local or holder.atoms]
        self._revision = self._places.revision

    def _ask(self, holder: LibraryDict) -> None:
        if holder.kind is threading.local:
            self._look_at_local(holder)
        elif holder.atoms is not None:
            self._compare_atoms(holder, holder.atoms)

    def _look(self, holder: LibraryDict) -> None:
        """Look at the entries that are new in a dict, or at all of one that has become smaller."""
        held, is_first = holder.held, holder.length < 0
        count = len(held) - holder.length if len(held) > holder.length >= 0 else len(held)
        holder.length = len(held)
        new = [(key, held[key]) for key in islice(reversed(held), count)]
        if holder.kind is object and any(_is_own(value) for _, value in new):
            new = list(held.items())  # what configures something goes as a whole
            holder.is_whole = True
        later = _made_later(holder, new) if holder.kind is ModuleType and holder.atoms is not None else ()
        is_used = holder.is_shared and (holder.module, holder.owner) in self._places.used
        looks_closely = (is_used or not is_first) and len(new) <= _MAX_PARTS
        for key, value in reversed(new):
            if holder.attribute:
                is_added = holder.is_public and not is_first and isinstance(key, str) and key[:1] != "_"
                if looks_closely and isinstance(key, str) and key not in holder.seen:
                    is_added = is_added or _is_users(holder, key, value, is_first=is_first)
                if is_added or _is_own_entry(value) or (_is_own_entry(key) and is_plain(value)):
                    self._note(holder.place_of(key), value)
            elif not isinstance(key, str) or (key[:2] == "__" and key[-2:] == "__"):
                continue
            elif _is_own(value) or holder.is_whole:
                self._note(holder.place_of(key), value)
            elif key in later:
                MADE_LATER[id(value)] = value
                self._note(holder.place_of(key), value)
            elif holder.atoms is not None and (is_atom(value) or (holder.is_public and _is_options(value))):
                holder.atoms[key] = value
                if not is_first and key[0] != "_":
                    self._note(holder.place_of(key), value)
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
                if value is not ABSENT and not _is_constant(value):
                    self._note(holder.place_of(key), value)
                    self._note_current(value)

    def _note_current(self, chosen: object) -> None:
        for holder in list(self._places.holders.values()):
            if holder.kind is threading.local:
                for name in [name for name, value in holder.held.items() if value is chosen]:
                    self._note(holder.place_of(name), chosen)

    def _compare_atoms(self, holder: LibraryDict, atoms: dict[str, Any]) -> None:
        """Note which plain values of a module, or of what was configured, are others than before."""
        held = holder.held
        changed = [name for name, before in atoms.items() if held.get(name) is not before]
        for name in changed:
            before, atoms[name] = atoms[name], held.get(name)
            now = atoms[name]
            # What has a private name says how far a library has come; only its modules' variables, but for flags, and
            # options that were set anew, are what somebody has asked for.
            is_meant = name[0] != "_" or type(now) is dict or (type(now) is not bool and not holder.is_public)
            if type(now) is type(before) and is_meant and (is_atom(now) or _is_options(now)) and now != before:
                self._note(holder.place_of(name), now)

    def _note(self, place: LibraryPlace, value: Any) -> None:
        library = place.module.partition(".")[0]
        found = self._found.get(library, {})
        if found.get(place, ABSENT) is value or self._refused.get(place, ABSENT) is value:
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
            if now is value or type(value) is Handle:
                continue
            del found[place]
            is_of_instance = not isinstance(owner_of(place), type | ModuleType)
            if now is not ABSENT and (is_of_instance or place.key or _is_own(now) or is_atom(now)):
                self._note(place, now)


def _is_own(value: Any) -> bool:
    """Tell whether what a library holds as an attribute is the notebook's, or is made around what is."""
    if _is_own_entry(value):
        return True
    kind = type(value)
    if issubclass(kind, property | classmethod | staticmethod):
        return _is_own_definition(getattr(value, "fget", None) or getattr(value, "__func__", None))
    attributes = attributes_of(value)
    if not attributes or len(attributes) > _MAX_PARTS:
        return False
    return any(map(_is_own_definition, attributes.values())) and not issubclass(kind, FunctionType | type)


def _is_own_entry(value: Any) -> bool:
    """Tell whether an entry of a dict is a function or a class of the notebook's, or a few of them."""
    kind = type(value)
    if kind in (list, tuple):
        return len(value) <= _MAX_PARTS and any(map(_is_own_definition, value))
    return _is_own_definition(value)


def _is_own_definition(value: Any) -> bool:
    kind = type(value)
    if kind is FunctionType:
        if value.__module__ in _MAIN:
            return True
        return value.__closure__ is not None and any(map(_is_in_cell, value.__closure__))
    if issubclass(kind, type):
        return value.__module__ in _MAIN
    if kind is MethodType:
        return _is_own_definition(value.__func__) or _is_own_definition(value.__self__)
    if kind is functools.partial:
        return _is_own_definition(value.func)
    return kind.__module__ in _MAIN


def _is_in_cell(cell: Any) -> bool:
    try:
        held = cell.cell_contents
    except ValueError:
        return False
    return type(held) is FunctionType and held.__module__ in _MAIN


def _is_users(holder: LibraryDict, key: str, value: Any, *, is_first: bool) -> bool:
    """Tell whether an entry is what people have put into a dict of a library's, and not what it filled itself.

    The dict is for everybody, or the object that has it gives the value out under this key (plotly's templates).
    """
    if issubclass(type(value), type | FunctionType | BuiltinFunctionType | ModuleType):
        return False
    if holder.is_shared:
        is_put_there = not is_first or _begins_empty(holder.module, holder.attribute)
    else:
        is_put_there = holder.attribute[:1] == "_" and _gives_out(holder, key)
    return is_put_there and not _is_constant(value)


def _gives_out(holder: LibraryDict, key: str) -> bool:
    """Tell whether an object that a library has under a public name gives out the entries of a dict that it has."""
    owner = owner_of(holder.place_of(key)) if holder.owner and holder.owner[:1] != "_" else None
    if owner is None or isinstance(owner, type) or not hasattr(type(owner), "__getitem__"):
        return False
    try:
        return key in owner
    except Exception:  # noqa: BLE001  code of a library
        return False


def _is_constant(value: Any) -> bool:
    """Tell whether a library has it once for all, so that each side has its own."""
    place = places_of(type(value)).get(id(value)) if type(value) not in ATOMS else None
    return place is not None and is_in_place(value, place)


@functools.lru_cache(maxsize=256)
def _begins_empty(module: str, attribute: str) -> bool:
    """Tell whether the text of a module makes a dict empty: whatever is in it was put there since."""
    text = _text_of(module)
    made = rf"^\s*{re.escape(attribute)}\s*(?::[^=\n]*)?=\s*(?:\{{\}}|dict\(\))\s*(?:#.*)?$"
    return text is not None and re.search(made, text, re.MULTILINE) is not None


def _made_later(holder: LibraryDict, new: Iterable[tuple[Any, Any]]) -> set[str]:
    """List classes that somebody has made in a module after its text had run, and that nobody finds there otherwise.

    They come behind all that the text binds.
    """
    classes = {name for name, value in new if _is_home(value, holder.module, name)}
    if not classes:
        return classes
    text = _text_of(holder.module)
    later = set()
    for name in reversed(holder.held):
        if text is None or re.search(_BINDING.format(re.escape(name)), text, re.MULTILINE):
            break
        later.add(name)
    return classes & later


def _text_of(module: str) -> str | None:
    spec = spec_in(sys.modules.get(module))
    try:
        return spec.loader.get_source(module)  # type: ignore[union-attr, no-any-return]
    except (AttributeError, ImportError, OSError):
        return None


#: How a text binds a name, as far as lines say it.
_BINDING = r"^\s*(?:class|def|async def)\s+{0}\b|^\s*{0}\s*[:=,]|^\s*(?:from|import)\s.*\b{0}\b|^\s+{0},?$"


def _is_home(value: Any, module: str, name: str) -> bool:
    kind = type(value)
    is_class = issubclass(kind, type) and is_python_class(value)
    return is_class and value.__module__ == module and value.__qualname__ == name


def _know(place: LibraryPlace, value: Any) -> None:
    """Remember of a class that came that it is in no text of a library."""
    if isinstance(value, type) and value.__module__ == place.module and not place.owner:
        MADE_LATER[id(value)] = value


def _is_here_too(place: LibraryPlace, value: Any) -> bool:
    """Tell whether the library has filled an entry on this side as well, before the two sides agreed on anything."""
    here = find(place) if place.key and type(find(place._replace(key=()))) is dict else ABSENT
    return type(here) is type(value) and not _is_own_entry(value) and not is_atom(value) and here is not value


_of_process = Registrations()
observe, adopt, forget, take_stayed = (
    _of_process.observe, _of_process.adopt, _of_process.forget, _of_process.take_stayed,
)  # fmt: skip


def named(found: Mapping[str, Found]) -> dict[str, Found]:
    """Give the values of libraries the names by which they travel."""
    return {REGISTERED + library: of_library for library, of_library in found.items()}


def told(left: Iterable[Stayed]) -> Iterable[Stayed]:
    """Name, in what could not be loaded here, libraries as people do; leave out those that are not here at all."""
    for one in left:
        library = one.name.removeprefix(REGISTERED)
        if library == one.name:
            yield one
        elif library in sys.modules:
            yield Stayed(library, one.kind, f"what was set in {library}", one.why)
