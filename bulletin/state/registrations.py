"""What a notebook has put into libraries: its own functions and classes, under new names, and plain values of modules.

A library keeps an accessor on its class, a constructor in a dict of it, a processor in its configuration. All of these
that are the notebook's own are one value, which travels with each cell; each side puts them where the other has them.
"""

import contextlib
import enum
import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar, copy_context
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

from bulletin.cpython.class_layout import is_python_class

from . import untransferable
from .atoms import ATOMS
from .handles import Handle
from .inplace import attributes_of
from .library_places import LibraryDict, LibraryPlace, LibraryPlaces
from .load_transaction import LoadTransaction
from .modules.sources import spec_in
from .names import REGISTERED
from .object_paths import Stayed
from .reducers import context_variables
from .reducers.functions import MADE_LATER
from .reducers.named import import_module
from .reducers.registries import is_plain

_ABSENT = object()
_MAIN = frozenset({"__main__", "__mp_main__"})
#: A container of more is not looked through for what is the notebook's.
_MAX_PARTS = 64


def _is_atom(value: Any) -> bool:
    kind = type(value)
    return kind in ATOMS or issubclass(kind, enum.Enum)


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

    def observe(self, namespace: Mapping[str, Any]) -> Mapping[str, Found]:
        """Look for what was put into libraries since; return all that there is, by the name of the library."""
        self._places.extend(namespace)
        holders, count = self._places.holders, 0
        while count < len(holders):  # to look at one may add others
            for holder in list(islice(holders.values(), count, None)):
                count += 1
                if len(holder.held) != holder.length:
                    self._look(holder)
                if holder.atoms is not None:
                    self._compare_atoms(holder, holder.atoms)
        for variable in copy_context():
            if variable not in self._variables:
                self._variables.add(variable)
                found_at = context_variables.place_of(variable)
                if found_at is not None:
                    self._note(LibraryPlace(found_at.module, "", found_at.attribute, found_at.key), variable)
        while self._later:
            place, value = self._later.popitem()
            if _find(place) is value:
                self._note(place, value)
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
            if _find(place) is settled[place]:
                _put(place, _ABSENT, transaction)
        for place, value in found.items():
            if type(value) is not Handle:
                with contextlib.suppress(LookupError, AttributeError, TypeError):  # another version of the library
                    _put(place, value, transaction)
                    _know(place, value)
        self._found[library], self._settled[library] = found, dict(found)

    def forget(self) -> None:
        """Forget what there is, and take out what is of the notebook's own: another one begins."""
        for place, value in ((place, value) for found in self._found.values() for place, value in found.items()):
            is_of_instance = not isinstance(_owner_of(place), type | ModuleType)
            is_kept = is_of_instance or _is_atom(value) or type(value) is ContextVar
            if not is_kept and _find(place) is value:
                _changer(place)(_ABSENT)
        for part in (self._found, self._settled, self._refused, self._later, self._variables):
            part.clear()

    def take_stayed(self) -> list[Stayed]:
        """Hand out, once, what was put into a library here and cannot go to the other side."""
        stayed, self._stayed = self._stayed, []
        return stayed

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
        for key, value in reversed(new):
            if holder.attribute:
                is_added = holder.is_public and not is_first and isinstance(key, str) and key[:1] != "_"
                if is_added or _is_own_entry(value) or (_is_own_entry(key) and is_plain(value)):
                    self._note(holder.place_of(key), value)
            elif not isinstance(key, str) or (key[:2] == "__" and key[-2:] == "__"):
                continue
            elif _is_own(value) or holder.is_whole:
                self._note(holder.place_of(key), value)
            elif key in later:
                MADE_LATER[id(value)] = value
                self._note(holder.place_of(key), value)
            elif holder.atoms is not None and (_is_atom(value) or (holder.is_public and _is_options(value))):
                holder.atoms[key] = value
                if not is_first and key[0] != "_":
                    self._note(holder.place_of(key), value)
            elif not is_first:
                self._places.add(holder.module, holder.owner, key, value, holder.module.partition(".")[0])

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
            if type(now) is type(before) and is_meant and (_is_atom(now) or _is_options(now)) and now != before:
                self._note(holder.place_of(name), now)

    def _note(self, place: LibraryPlace, value: Any) -> None:
        library = place.module.partition(".")[0]
        found = self._found.get(library, {})
        if found.get(place, _ABSENT) is value or self._refused.get(place, _ABSENT) is value:
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
            now = _find(place)
            if now is value or type(value) is Handle:
                continue
            del found[place]
            is_of_instance = not isinstance(_owner_of(place), type | ModuleType)
            if now is not _ABSENT and (is_of_instance or _is_own(now) or _is_atom(now)):
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


def _made_later(holder: LibraryDict, new: Iterable[tuple[Any, Any]]) -> set[str]:
    """List classes that somebody has made in a module after its text had run, and that nobody finds there otherwise.

    They come behind all that the text binds.
    """
    classes = {name for name, value in new if _is_home(value, holder.module, name)}
    if not classes:
        return classes
    spec = spec_in(sys.modules.get(holder.module))
    try:
        text = spec.loader.get_source(holder.module)  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        return set()
    later = set()
    for name in reversed(holder.held):
        if text is None or re.search(_BINDING.format(re.escape(name)), text, re.MULTILINE):
            break
        later.add(name)
    return classes & later


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


def _owner_of(place: LibraryPlace) -> Any:
    owner: Any = sys.modules.get(place.module)
    for part in place.owner.split(".") if place.owner else ():
        owner = getattr(owner, part, None)
    return owner


def _find(place: LibraryPlace) -> Any:
    owner = _owner_of(place)
    held: Any = vars(owner) if isinstance(owner, type | ModuleType) else attributes_of(owner)
    found = _ABSENT if held is None else held.get(place.attribute, _ABSENT)
    if not place.key or found is _ABSENT:
        return found
    return found.get(place.key[0], _ABSENT) if type(found) is dict else _ABSENT


def _put(place: LibraryPlace, value: Any, transaction: LoadTransaction) -> None:
    """Put a value where it belongs, or take out what is there. Raises ImportError without the module."""
    import_module(place.module)
    before = _find(place)
    if before is value or (type(before) is type(value) and _is_atom(value) and before == value):
        return
    if place.key and type(_find(place._replace(key=()))) is not dict:
        inherited = getattr(_owner_of(place), place.attribute, None)  # a library copies it for the class (yaml)
        _put(place._replace(key=()), dict(inherited) if type(inherited) is dict else {}, transaction)
    change = _changer(place)
    transaction.undoable(change, before)
    change(value)


def _changer(place: LibraryPlace) -> Callable[[Any], None]:
    """Make the function that puts a value there, or takes out what is there."""
    owner = _owner_of(place)
    if place.key:
        return functools.partial(_set_item, _find(place._replace(key=())), place.key[0])
    if isinstance(owner, type):
        return functools.partial(_set_attribute, owner, place.attribute)
    held = vars(owner) if isinstance(owner, ModuleType) else attributes_of(owner)
    return functools.partial(_set_item, held, place.attribute)


def _set_item(held: Any, key: Any, value: Any) -> None:
    if value is _ABSENT:
        held.pop(key, None)
    else:
        held[key] = value


def _set_attribute(cls: type, name: str, value: Any) -> None:
    if value is _ABSENT:
        if name in vars(cls):
            type.__delattr__(cls, name)
    else:
        type.__setattr__(cls, name, value)


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
