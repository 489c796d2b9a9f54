"""Kinds of arrays that were written in Python, masked ones or those with units: each is a plain array, seen as that.

A library says how its kind is pickled so that another program gets a copy. Here the array stays the memory that it is:
plain views of it, and its parts, go on sharing that.
"""

import sys
from typing import Any

from bulletin.cpython.class_layout import is_python_class
from bulletin.state.encoding import Encoding
from bulletin.state.inplace import attributes_of, empty_attributes, slots_held
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .arrays import address_of, relaid, settle


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

    One that holds objects is left to pickle, and so is one that says itself how it travels and has attributes that
    cannot.
    """
    if array.dtype.hasobject:
        return NotImplemented
    if not _says_nothing(type(array)) and not encoder.try_to_send(array, (attributes_of(array), slots_held(array))):
        return NotImplemented
    return reduce_seen(encoder, array)


def _says_nothing(kind: type) -> bool:
    base = sys.modules["numpy"].ndarray
    return all(
        getattr(kind, name, None) == getattr(base, name, None)
        for name in ("__reduce__", "__reduce_ex__", "__setstate__", "__getstate__")
    )


def reduce_seen(encoder: Encoding, array: Any) -> Reduced:
    """Reduce an array to a plain one, the kind as which it is seen, and its attributes and slots."""
    numpy = sys.modules["numpy"]
    plain = numpy.ndarray.view(array, numpy.ndarray)
    encoder.alive.append(plain)
    held = dict(attributes_of(array) or {}), dict(slots_held(array))
    return see_as, (RECEIVER, plain, type(array), array.dtype), (RECEIVER, *held), None, None, fill_kind


def see_as(transaction: LoadTransaction, plain: Any, kind: Any, dtype: Any) -> Any:
    """View the plain array as that kind, or return the existing array, where it looks at this memory already."""
    old = transaction.take_existing()
    array = plain.view(kind)
    if array.dtype != dtype:
        array.dtype = dtype
    if type(old) is kind and relaid(transaction, old, address_of(array), array.dtype, array.shape, array.strides):
        return old
    return settle(transaction, old, array)


def fill_kind(array: Any, state: tuple[LoadTransaction, dict[str, Any], dict[str, Any]]) -> None:
    """Replace the attributes and the slots of an array by these."""
    transaction, attributes, slots = state
    empty_attributes(transaction, array)
    if attributes:
        array.__dict__.update(attributes)
    for name, held in slots.items():
        object.__setattr__(array, name, held)
