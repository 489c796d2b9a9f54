"""Kinds of arrays that were written in Python, masked ones or those with units: each is a plain array, seen as that.

A library says how its kind is pickled so that another program gets a copy. Here the array stays the memory that it is:
plain views of it, and its parts, go on sharing that.
"""

import sys
from typing import Any

from bulletin.cpython.class_layout import is_python_class
from bulletin.state.atoms import ATOMS
from bulletin.state.encoding import Encoding
from bulletin.state.inplace import attributes_of, empty_attributes, slots_held
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .arrays import address_of, marked, reduce_array, reduce_memory, relaid, settle

_SAYS = ("__reduce__", "__reduce_ex__", "__setstate__", "__getstate__")
#: As deep as containers among the attributes of an array are looked at, and as many of their items.
_MAX_DEPTH, _MAX_ITEMS = 3, 64


def is_array(kind: type) -> bool:
    """Tell whether a type is one of arrays, whoever wrote it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.ndarray)


def is_kind(kind: type) -> bool:
    """Tell whether a type is `recarray`, `matrix` or another kind of array that was written in Python."""
    numpy = sys.modules["numpy"]
    return issubclass(kind, numpy.ndarray) and (kind in {numpy.recarray, numpy.matrix} or is_python_class(kind))


def reduce_kind(encoder: Encoding, array: Any) -> Reduced:
    """Reduce an array of such a kind as `reduce_seen` does.

    One that holds objects is left to pickle, and so is one of which the notebook's own class says how it travels; and
    where a library's says so, one that has attributes that cannot.
    """
    if array.dtype.hasobject:
        return NotImplemented
    sayer = _sayer(type(array))
    if sayer is not None and (sayer.__module__ in {"__main__", "__mp_main__"} or not _can_travel(encoder, array)):
        return NotImplemented
    return reduce_seen(encoder, array)


def _sayer(kind: type) -> type | None:
    """Find the class that says how arrays of this kind are pickled; None where that is numpy's own array."""
    bases = kind.__mro__[: kind.__mro__.index(sys.modules["numpy"].ndarray)]
    return next((base for base in bases if not vars(base).keys().isdisjoint(_SAYS)), None)


def _can_travel(encoder: Encoding, array: Any) -> bool:
    """Tell whether all that an array has besides its memory can travel. One part of many arrays is asked about once."""
    parts = [*(attributes_of(array) or {}).values(), *(part for _, part in slots_held(array))]
    return all(_is_simple(part, 0) or encoder.try_to_send(part, (part,)) for part in parts)


def _is_simple(part: Any, depth: int) -> bool:
    """Tell whether a part travels for certain: an atom, an array of numbers, a class, or a few of these."""
    kind, numpy = type(part), sys.modules["numpy"]
    if kind in ATOMS or kind is type:
        return True
    if kind in {numpy.ndarray, numpy.void}:
        return not part.dtype.hasobject
    if kind not in {dict, list, tuple} or len(part) > _MAX_ITEMS or depth > _MAX_DEPTH:
        return False
    inside = [*part, *part.values()] if kind is dict else part
    return all(_is_simple(one, depth + 1) for one in inside)


def reduce_seen(encoder: Encoding, array: Any) -> Reduced:
    """Reduce an array to a plain one, the kind as which it is seen, and its attributes and slots."""
    numpy = sys.modules["numpy"]
    plain = numpy.ndarray.view(array, numpy.ndarray)
    make, made_of = reduce_memory(encoder, plain, array) if plain.nbytes else reduce_array(encoder, plain)[:2]
    held = dict(attributes_of(array) or {}), dict(slots_held(array))
    return see_as, (RECEIVER, type(array), array.dtype, make, *made_of[1:]), (RECEIVER, *held), None, None, fill_kind


def see_as(transaction: LoadTransaction, kind: Any, dtype: Any, make: Any, *made_of: Any) -> Any:
    """Make the plain array and view it as that kind, or return the existing array, where it looks at this memory.

    `make` and `made_of` are what `reduce_memory` gave for the plain array, the last of it whether it can be written to.
    The plain one always can: an array over one that cannot would never be told otherwise.
    """
    old, writeable = transaction.take_existing(), made_of[-1]
    array = make(transaction, *made_of[:-1], True).view(kind)
    if array.dtype != dtype:
        array.dtype = dtype
    if type(old) is kind and relaid(transaction, old, address_of(array), array.dtype, array.shape, array.strides):
        try:
            return marked(transaction, old, writeable)
        except ValueError:  # what it is a view of cannot be written to
            pass
    return settle(transaction, old, marked(transaction, array, writeable))


def fill_kind(array: Any, state: tuple[LoadTransaction, dict[str, Any], dict[str, Any]]) -> None:
    """Replace the attributes and the slots of an array by these."""
    transaction, attributes, slots = state
    empty_attributes(transaction, array)
    if attributes:
        array.__dict__.update(attributes)
    for name, held in slots.items():
        object.__setattr__(array, name, held)
