"""Which classes were written in Python, what their instances hold, and the registry of an abstract base class."""

import abc
import ctypes
import importlib
from collections.abc import Iterable
from typing import Any

#: `Py_TPFLAGS_HEAPTYPE`: set for every class of a `class` statement, and for few of C code.
_HEAP_TYPE = 1 << 9
#: `Py_TPFLAGS_IMMUTABLETYPE`: set for most classes of C code.
_IMMUTABLE_TYPE = 1 << 8
#: What an instance keeps for each attribute, slot or list of weak references: one pointer.
_POINTER_BYTES = 8
#: The C half of `abc`: there is no other way to a class's registry.
_abc: Any = importlib.import_module("_abc")
#: The base of all types of `ctypes`, which has no public name.
CData: Any = ctypes.Structure.__mro__[1]


def is_python_class(kind: type) -> bool:
    """Tell whether a `class` statement made this class, or C code that makes classes in the same way."""
    return bool(kind.__flags__ & _HEAP_TYPE)


def is_immutable(kind: type) -> bool:
    """Tell whether nobody can set or delete attributes of a class."""
    return bool(kind.__flags__ & _IMMUTABLE_TYPE)


def is_python_all_through(kind: type) -> bool:
    """Tell whether a `class` statement made the class and all its bases but `object`."""
    return all(base is object or base.__flags__ & _HEAP_TYPE for base in kind.__mro__)


def holds_slots_only(kind: type, slot_count: int) -> bool:
    """Tell whether instances are no larger than that many slots, a `__dict__` and weak references make them.

    An instance that is larger holds something of C code, which nobody here can see.
    """
    references = slot_count + bool(kind.__dictoffset__) + bool(kind.__weakrefoffset__)
    return kind.__basicsize__ <= object.__basicsize__ + _POINTER_BYTES * references


def holds_more_than(kind: type, base: type) -> bool:
    """Tell whether an instance of a class has room for more than one of its base has."""
    return kind.__basicsize__ > base.__basicsize__


def count_slots(kind: type) -> int:
    """Count the slots of an instance that pickle knows of; an object of C code may hold more than these."""
    names = [
        name
        for slots in (vars(base).get("__slots__", ()) for base in kind.__mro__)
        if hasattr(slots, "__len__")
        for name in ([slots] if isinstance(slots, str) else slots)
        if name not in {"__dict__", "__weakref__"}
    ]
    return len(names)


def make_abstract(cls: abc.ABCMeta) -> None:
    """Give a class that `type.__new__` made what `ABCMeta` would have: its abstract methods and an empty registry."""
    _abc._abc_init(cls)


def registered_with(cls: abc.ABCMeta) -> list[type]:
    """List the classes that were registered with an abstract base class and still live, in no order."""
    registry = [reference() for reference in _abc._get_dump(cls)[0]]
    return [other for other in registry if other is not None]


def register_anew(cls: abc.ABCMeta, registered: Iterable[type]) -> None:
    """Replace the classes that are registered with an abstract base class by these, and clear its caches."""
    _abc._reset_registry(cls)
    _abc._reset_caches(cls)
    for other in registered:
        abc.ABCMeta.register(cls, other)
