"""What a library has at a place, and how another value is put there."""

import copy
import functools
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import hooks
from .atoms import is_atom
from .inplace import attributes_of
from .library_places import DICTS, LibraryPlace, owner_of
from .load_transaction import LoadTransaction
from .reducers.classes import setter
from .reducers.named import import_module

#: Stands for nothing at all.
ABSENT = object()


def find(place: LibraryPlace) -> Any:
    """Return what is at a place, or ABSENT."""
    if hooks.is_hook(place):
        return ABSENT if not place.key or (hook := hooks.find_hook(place)) is None else hook
    owner = owner_of(place)
    held: Any = vars(owner) if isinstance(owner, type | ModuleType) else attributes_of(owner)
    found = ABSENT if held is None else held.get(place.attribute, ABSENT)
    if not place.key or found is ABSENT:
        return found
    entries = entries_of(found)
    return ABSENT if entries is None else entries.get(place.key[0], ABSENT)


def entries_of(found: Any) -> Any:
    """Return the entries of a dict, or what a `threading.local` has for this thread; None of anything else."""
    if issubclass(type(found), threading.local):
        return vars(found)
    return found if type(found) in DICTS else None


def put(place: LibraryPlace, value: Any, transaction: LoadTransaction) -> None:
    """Put a value where it belongs, or take out what is there. Raises ImportError without the module."""
    import_module(place.module)
    before = find(place)
    if before is value or (type(before) is type(value) and is_atom(value) and before == value):
        return
    if place.key and not hooks.is_hook(place) and entries_of(find(place._replace(key=()))) is None:
        inherited = getattr(owner_of(place), place.attribute, None)  # a library copies it for the class (yaml)
        put(place._replace(key=()), copy.copy(inherited) if type(inherited) in DICTS else {}, transaction)
    change = changer(place)
    change(value)  # where that fails, its undoing would fail too
    transaction.undoable(change, before)


def changer(place: LibraryPlace) -> Callable[[Any], None]:
    """Make the function that puts a value there, or takes out what is there."""
    if hooks.is_hook(place):
        return lambda value: hooks.set_hook(place, None if value is ABSENT else value)
    owner = owner_of(place)
    if place.key:
        return functools.partial(_set_item, entries_of(find(place._replace(key=()))), place.key[0])
    if isinstance(owner, type):
        return functools.partial(_set_attribute, owner, place.attribute)
    held = vars(owner) if isinstance(owner, ModuleType) else attributes_of(owner)
    return functools.partial(_set_item, held, place.attribute)


def _set_item(held: Any, key: Any, value: Any) -> None:
    if value is ABSENT:
        held.pop(key, None)
    else:
        held[key] = value


def _set_attribute(cls: type, name: str, value: Any) -> None:
    if value is ABSENT:
        if name in vars(cls):
            setter(cls).__delattr__(cls, name)
    else:
        setter(cls).__setattr__(cls, name, value)
