"""What a module of a library holds once for all: sentinels, units, registries, contexts. Each side has its own.

The library compares them by identity, or keeps what it knows in them, so a copy would be another thing. Of such an
object only what people set travels: its public attributes that are plain data.
"""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

from bulletin.state.atoms import ATOMS
from bulletin.state.encoding import Encoding
from bulletin.state.inplace import attributes_of, is_all_attributes
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, NotHere, Reduced
from bulletin.state.modules.sources import location_of, spec_in

from .containers import USUAL_STATE
from .named import find_by_name

#: Where a constant is found: a module, and a name in it.
Place = tuple[str, str]
#: They are what they hold, so they travel with it, whoever holds them.
_CONTAINERS = (dict, list, set, bytearray, BaseException, ModuleType)
_ABSENT = object()


class _Package(NamedTuple):
    """What the modules of a package hold of its own types, and which of them were looked at."""

    modules: dict[str, ModuleType]
    places: dict[type, dict[int, Place]]


_packages: dict[str, _Package] = {}
#: How many modules were imported when each package was looked at.
_looked_at: dict[str, int] = {}


def places_of(kind: type) -> Mapping[int, Place]:
    """Find, by their ids, the instances of a type of a library that a module of the same library holds.

    Whoever finds one there asks `is_in_place`: names may have been bound anew since.
    """
    if kind is object:
        return _sentinels()
    module = kind.__module__
    top = module.partition(".")[0] if isinstance(module, str) else ""
    if top in _NEVER or issubclass(kind, _CONTAINERS):
        return {}
    package = _packages.setdefault(top, _Package({}, {}))
    if _looked_at.get(top) != len(sys.modules) or package.modules.get(top) is not sys.modules.get(top):
        _looked_at[top] = len(sys.modules)
        stem = f"{top}."
        for name, held in list(sys.modules.items()):
            if (name == top or name.startswith(stem)) and package.modules.get(name) is not held:
                package.modules[name] = held
                _look_at(name, held, top, package.places)
    return package.places.get(kind, {})


_NEVER = frozenset(
    {"", "builtins", "__main__", "__mp_main__", "bulletin", "bulletin_lab", "bulletin_magic", "gpu_worker"}
)


#: Modules that were looked through for sentinels, by name; and the sentinels that were found.
_looked_through: dict[str, ModuleType] = {}
_found_sentinels: dict[int, Place] = {}


def _sentinels() -> Mapping[int, Place]:
    """Find bare `object()`s that modules of libraries and of Python hold: there is nothing in them but identity."""
    for name, module in list(sys.modules.items()):
        if _looked_through.get(name) is module or name.partition(".")[0] in _NEVER:
            continue
        _looked_through[name] = module
        if not isinstance(module, ModuleType) or location_of(name, spec_in(module)) is not None:
            continue
        for attribute, value in list(vars(module).items()):
            if type(value) is object:
                _found_sentinels.setdefault(id(value), (name, attribute))
    return _found_sentinels


def _look_at(name: str, module: ModuleType, top: str, places: dict[type, dict[int, Place]]) -> None:
    if not isinstance(module, ModuleType) or location_of(name, spec_in(module)) is not None:
        return  # of the notebook's own modules the content travels
    for attribute, value in list(vars(module).items()):
        kind = type(value)
        home = kind.__module__
        if issubclass(kind, type) or not isinstance(home, str) or home.partition(".")[0] != top:
            continue
        found = places.setdefault(kind, {})
        if id(value) not in found or (_is_private(found[id(value)]) and not _is_private((name, attribute))):
            found[id(value)] = name, attribute


def _is_private(place: Place) -> bool:
    """Tell whether a name is the library's own business: another version may have it elsewhere."""
    return any(part[:1] == "_" for part in (*place[0].split("."), place[1]))


def is_in_place(value: object, place: Place) -> bool:
    """Tell whether a module still holds this very object under that name."""
    module, name = place
    return getattr(sys.modules.get(module), "__dict__", {}).get(name, _ABSENT) is value


def reduce_constant(_: Encoding, value: Any, place: Place) -> Reduced:
    """Reduce an object that a module of a library holds to where it is, and what people have set of it."""
    found = _set_by_people(value)
    if not found:
        return find_constant, (RECEIVER, *place)
    return find_constant, (RECEIVER, *place), (RECEIVER, found), None, None, fill_constant


def _set_by_people(value: Any) -> dict[str, Any]:
    kind = type(value)
    if getattr(kind, "__getstate__", None) not in USUAL_STATE or not is_all_attributes(kind):
        return {}  # it says itself what is to be kept, and may hold what is of its process
    attributes = attributes_of(value) or {}
    return {name: held for name, held in attributes.items() if type(held) in ATOMS and name[:1] != "_"}


def find_constant(transaction: LoadTransaction, module: str, name: str) -> Any:
    """Return what this side's module holds under that name. Raises NotHere if there is nothing."""
    old = transaction.take_existing()
    found = find_by_name(module, name)
    if found is None:
        raise NotHere(f"it uses {module}.{name}, which this version of the library does not have")
    if old is not None and old is not found:
        transaction.replaced.append((old, found))
    return found


def fill_constant(value: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Set the attributes that differ."""
    transaction, wanted = state
    attributes = attributes_of(value)
    if attributes is None:
        return
    for name, held in wanted.items():
        before = attributes.get(name, _ABSENT)
        if type(before) is not type(held) or before != held:
            transaction.undoable(_set, attributes, name, before)
            attributes[name] = held


def _set(attributes: dict[str, Any], name: str, held: object) -> None:
    if held is _ABSENT:
        attributes.pop(name, None)
    else:
        attributes[name] = held
