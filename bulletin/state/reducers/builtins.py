"""Values of Python itself that pickle refuses or gets wrong: locks, weak references, cached properties, modules."""

import _thread
import dataclasses
import functools
import importlib
import io
import os
import sys
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bulletin.state.inplace import attributes_of, fill_dict, fill_list, fill_set, slots_held
from bulletin.state.landing import HERE, Landing, NotHere, Reduced, Unpicklable, refuse

if TYPE_CHECKING:
    from bulletin.state.codec import Encoder


def reduce_lock(_: "Encoder", lock: Any) -> Reduced:
    """A free lock protects nothing at this moment, so the other side gets one of its own."""
    if not lock.acquire(blocking=False):
        raise Unpicklable(f"cannot pickle a {type(lock).__name__} that is held")
    lock.release()
    return (_thread.allocate_lock if type(lock) is _thread.LockType else _thread.RLock), ()


def reduce_rlock(encoder: "Encoder", lock: Any) -> Reduced:
    """As a lock; one that this very thread holds is held as well."""
    if lock._is_owned():
        raise Unpicklable("cannot pickle an RLock that is held")
    return reduce_lock(encoder, lock)


def reduce_weakref(_: "Encoder", reference: Any) -> Reduced:
    """A weak reference to the twin of what it refers to. A callback stays here."""
    target = reference()
    return (dead_reference, ()) if target is None else (make_weakref, (HERE, target))


def make_weakref(landing: Landing, target: Any) -> Any:
    """The landing keeps the target for as long as its caller keeps the landing: it may have no other owner here."""
    landing.alive.append(target)
    return weakref.ref(target)


class _Gone:
    """Something to refer to, and to lose."""


def dead_reference() -> Any:
    """A weak reference whose target is gone."""
    return weakref.ref(_Gone())


def reduce_cached_property(_: "Encoder", found: Any) -> Reduced:
    """Python 3.11's holds a lock, so it is made anew."""
    return make_cached_property, (), (found.func, found.attrname, found.__doc__), None, None, fill_cached_property


def make_cached_property() -> Any:
    """One without its function, which may know the class that holds it."""
    return functools.cached_property(id)


def fill_cached_property(found: Any, state: tuple[Any, Any, Any]) -> None:
    """Its function, its name in the class, its docstring."""
    found.func, found.attrname, found.__doc__ = state


def reduce_module(encoder: "Encoder", module: ModuleType) -> Reduced:
    """By name, if importing that name gives it; modules of the notebook's folder branch off in `travels_by_name`."""
    if travels_by_name(module):
        return import_module, (module.__name__,)
    if encoder.is_digest:
        state = {name: value for name, value in vars(module).items() if name != "__builtins__"}
        return ModuleType, (module.__name__,), state
    return make_module, (module.__name__, module.__doc__), encoder.private(vars(module)), None, None, fill_module


def travels_by_name(module: ModuleType) -> bool:
    """True for a module that the other side imports by itself, from the same files."""
    return sys.modules.get(module.__name__) is module


def import_module(name: str) -> ModuleType:
    """The receiving side's module of that name.

    Raises
    ------
    NotHere
        If it cannot be imported here.
    """
    found = sys.modules.get(name)
    if found is not None:
        return found
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotHere(f"it uses the module {name!r}, which cannot be imported there ({error})") from error


def make_module(name: str, doc: str | None) -> ModuleType:
    """A module that no file stands for."""
    return ModuleType(name, doc)


def fill_module(module: ModuleType, state: dict[str, Any]) -> None:
    """Its names."""
    vars(module).update(state)


def reduce_sentinel(_: "Encoder", value: Any) -> Reduced:
    """Marks of `dataclasses` that are compared by identity."""
    return getattr, (dataclasses, "MISSING" if value is dataclasses.MISSING else "_HAS_DEFAULT_FACTORY")


def family_of_io(kind: type) -> Callable[["Encoder", Any], Reduced] | None:
    """Open files and sockets stay where they are; buffers in memory travel as pickle has it."""
    if kind.__name__ in {"StringIO", "BytesIO"} or issubclass(kind, BaseException):
        return None
    return reduce_file if kind in _FILES else _refuse


_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)


def reduce_file(_: "Encoder", file: Any) -> Reduced:
    """What `with open(...) as file` leaves over is closed: a name and a mode, and nothing else."""
    if not file.closed or isinstance(file.name, int):
        return refuse(file)
    encoding = file.encoding if isinstance(file, io.TextIOWrapper) else None
    return make_closed_file, (_FILES.index(type(file)), file.name, file.mode, encoding)


def make_closed_file(place: int, name: Any, mode: str, encoding: str | None) -> Any:
    """A file of that kind, closed; no file of that name is touched."""
    letter = next((letter for letter in "ra" if letter in mode), "w")
    letters = letter + ("+" if "+" in mode else "")
    kind = _FILES[place]
    raw: Any = io.FileIO(os.devnull, letters)
    raw.name = name
    file: Any = raw
    if kind is io.TextIOWrapper:
        layer = io.BufferedRandom if "+" in mode else io.BufferedReader if letter == "r" else io.BufferedWriter
        file = io.TextIOWrapper(layer(raw), encoding=encoding)
        file.mode = mode
    elif kind is not io.FileIO:
        file = kind(raw)
    file.close()
    return file


def _refuse(_: "Encoder", value: object) -> Reduced:
    return refuse(value)


def reduce_delegating(_: "Encoder", value: Any) -> Reduced:
    """An instance whose `__getattr__` would be asked for `__setstate__` while it is still empty."""
    reduced = value.__reduce_ex__(5)
    if not isinstance(reduced, tuple) or len(reduced) != 5 or reduced[2] is None:
        return reduced
    return (*reduced, fill_instance)


def fill_instance(value: Any, state: Any) -> None:
    """What pickle does with a state, without asking the instance."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    for name, held in (slots or {}).items():
        object.__setattr__(value, name, held)


def is_own_container(kind: type) -> bool:
    """True for the user's own kinds of list, dict and set that do not say themselves how they travel."""
    return (
        issubclass(kind, list | dict | set)
        and bool(kind.__flags__ & _HEAP_TYPE)
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ in _USUAL_REDUCE
        and getattr(kind, "__getstate__", None) in {None, getattr(object, "__getstate__", None)}
        and not any(hasattr(kind, name) for name in ("__setstate__", "__getnewargs__", "__getnewargs_ex__"))
    )


_HEAP_TYPE = 1 << 9
_USUAL_REDUCE = (object.__reduce__, set.__reduce__, OrderedDict.__reduce__)


def reduce_own_container(encoder: "Encoder", value: Any) -> Reduced:
    """Its items and its attributes. Nothing of the user's is asked: an `append` of theirs would run a second time."""
    if isinstance(value, dict):
        items: Any = list((OrderedDict if isinstance(value, OrderedDict) else dict).items(value))
    else:
        items = list((list if isinstance(value, list) else set).__iter__(value))
    factory = value.default_factory if isinstance(value, defaultdict) else None
    state = (HERE, items, attributes_of(value), id(value) in encoder.lent, slots_held(value), factory)
    return make_own_container, (type(value),), state, None, None, fill_own_container


def make_own_container(kind: Any) -> Any:
    """An empty one; no `__init__` runs."""
    return kind.__new__(kind)


def fill_own_container(value: Any, state: tuple[Landing, Any, Any, bool, Any, Any]) -> None:
    """Its items and its attributes."""
    landing, items, attributes, is_lent, slots, factory = state
    if isinstance(value, dict):
        fill_dict(value, items)
    elif isinstance(value, list):
        fill_list(value, items)
    else:
        fill_set(value, items)
    if factory is not None:
        landing.undoable(setattr, value, "default_factory", value.default_factory)
        value.default_factory = factory
    if is_lent:
        fill_lender(value, (landing, attributes, slots))
        return
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    for slot, held in slots:
        object.__setattr__(value, slot, held)


def reduce_lender(value: Any) -> Reduced:
    """An instance of a plain class whose own dict somebody else holds too: the dict itself goes, not what is in it."""
    return make_own_container, (type(value),), (HERE, value.__dict__, slots_held(value)), None, None, fill_lender


def fill_lender(value: Any, state: tuple[Landing, dict[str, Any], list[tuple[str, Any]]]) -> None:
    """Let this be its own dict."""
    landing, attributes, slots = state
    before = object.__getattribute__(value, "__dict__")
    if before is not attributes:
        landing.undoable(object.__setattr__, value, "__dict__", before)
        object.__setattr__(value, "__dict__", attributes)
    for slot, held in slots:
        object.__setattr__(value, slot, held)


def is_delegating(kind: type) -> bool:
    """True for classes that answer for attributes they do not have, and do not say how to set their state."""
    return hasattr(kind, "__getattr__") and not hasattr(kind, "__setstate__")


EXACT: dict[type, Callable[["Encoder", Any], Reduced]] = {
    _thread.LockType: reduce_lock,
    _thread.RLock: reduce_rlock,
    weakref.ref: reduce_weakref,
    functools.cached_property: reduce_cached_property,
    ModuleType: reduce_module,
    type(dataclasses.MISSING): reduce_sentinel,
    type(dataclasses._HAS_DEFAULT_FACTORY): reduce_sentinel,  # type: ignore[attr-defined]
}
