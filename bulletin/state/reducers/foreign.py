"""Types of `ctypes`: those that are derived from another come from that one, structures are made of their fields."""

import ctypes
import operator
from collections.abc import Iterable, Mapping
from typing import Any

from bulletin.cpython.class_layout import CData
from bulletin.state.load_transaction import Reduced

#: Types of types that nobody has by name, and what has them.
_METACLASSES: dict[type, type] = {type(kind): kind for kind in (ctypes.Structure, ctypes.Union)}
#: In the order in which they must be set; the last makes the class what it is, once and for all.
_LAYOUT = ("_pack_", "_align_", "_anonymous_", "_fields_")
_USES_ERRNO, _KEEPS_LOCK = 8, 4


class _Any(ctypes.Structure):
    _fields_ = (("field", ctypes.c_int),)


_Field: type = type(vars(_Any)["field"])


def reduce_derived(cls: Any) -> Reduced:
    """Reduce an array, a pointer or a function type to the types that it comes from; None for any other class.

    `ctypes` gives the same type again, on each side. Types of the other byte order, and the types of structures and
    unions themselves, count too.
    """
    if cls in _METACLASSES:
        return type, (_METACLASSES[cls],)
    if not issubclass(cls, CData):
        return None
    made_by: Any
    args: tuple[Any, ...]
    if issubclass(cls, ctypes.Array) and hasattr(cls, "_length_"):
        made_by, args = operator.mul, (cls._type_, cls._length_)
    elif issubclass(cls, ctypes._Pointer) and hasattr(cls, "_type_"):
        made_by, args = ctypes.POINTER, (cls._type_,)
    elif issubclass(cls, ctypes._CFuncPtr) and hasattr(cls, "_argtypes_"):  # type: ignore[attr-defined]
        made_by, args = function_type, (cls._flags_, cls._restype_, *cls._argtypes_)
    elif issubclass(cls, ctypes._SimpleCData) and hasattr(cls, "__ctype_be__"):
        swapped = "__ctype_be__" if cls.__ctype_be__ is cls else "__ctype_le__"
        native = cls.__ctype_le__ if cls.__ctype_be__ is cls else cls.__ctype_be__
        if native is cls:
            return None
        made_by, args = getattr, (native, swapped)
    else:
        return None
    return (derived, (cls.__module__, made_by, *args)) if made_by(*args) is cls else None


def derived(module: str, made_by: Any, *args: Any) -> Any:
    """Return the type that comes from these; `ctypes` makes it where there is none yet.

    A new one takes its module from whoever asks first, which would be this one; so it is given `module`.
    """
    made = made_by(*args)
    if made.__module__.startswith(__name__.partition(".")[0]):
        made.__module__ = module
    return made


def function_type(flags: int, result: Any, *args: Any) -> Any:
    """Return the type of C functions that have these flags, and result and arguments of these types."""
    if flags & _KEEPS_LOCK:
        return ctypes.PYFUNCTYPE(result, *args)
    return ctypes.CFUNCTYPE(result, *args, use_errno=bool(flags & _USES_ERRNO))


def is_field(value: object) -> bool:
    """Tell whether a value is what gives access to a field of a structure, and is made with the class."""
    return type(value) is _Field


def insists(metaclass: type) -> bool:
    """Tell whether a metaclass is that of structures or unions: only it itself can make one."""
    return issubclass(metaclass, tuple(_METACLASSES))


def is_made_of_fields(cls: type) -> bool:
    """Tell whether a class is a structure or union, whose attributes only its own metaclass can set."""
    return issubclass(cls, ctypes.Structure | ctypes.Union)


def lay_out(cls: type, new: Mapping[str, Any]) -> Iterable[str]:
    """Give a structure its fields, if it has none yet; return the names of attributes that this is about."""
    if not is_made_of_fields(cls):
        return ()
    for name in _LAYOUT:
        if name in new and name not in vars(cls):
            setattr(cls, name, new[name])
    return _LAYOUT
