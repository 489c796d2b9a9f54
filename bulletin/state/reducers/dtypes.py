"""Types of numpy's arrays: a plain one is what its text says, and numpy has most of them once."""

import importlib
import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced


def is_dtype(kind: type) -> bool:
    """Tell whether a type is one of numpy's for types of arrays."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and hasattr(numpy, "dtype") and issubclass(kind, numpy.dtype)


def reduce_dtype(_: Encoding, dtype: Any) -> Reduced:
    """Reduce a plain type to its text. One with fields, notes or a class of its own is left to pickle.

    Pickle makes a copy, which would then have to take the place of the one that numpy has for all arrays.
    """
    numpy: Any = sys.modules["numpy"]
    if dtype.hasobject or dtype.fields is not None or dtype.subdtype is not None or dtype.metadata is not None:
        return NotImplemented
    if type(numpy.dtype(dtype.str)) is not type(dtype) or numpy.dtype(dtype.str) != dtype:
        return NotImplemented
    return make_dtype, (RECEIVER, dtype.str)


def plain_text_of(dtype: Any) -> Any:
    """Return the text of a type that numpy has once for all arrays, and any other type itself; see `type_of`."""
    text: str = dtype.str
    return text if dtype.isbuiltin == 1 and sys.modules["numpy"].dtype(text) is dtype else dtype


def type_of(numpy: Any, told: Any) -> Any:
    """Return the type that `plain_text_of` has told."""
    return numpy.dtype(told) if type(told) is str else told


def make_dtype(transaction: LoadTransaction, text: str) -> Any:
    """Return the type of that text; the existing one, if it is the same."""
    numpy: Any = sys.modules.get("numpy") or importlib.import_module("numpy")
    old = transaction.take_existing()
    made = numpy.dtype(text)
    is_same = type(old) is type(made) and old == made and old.metadata is None
    if old is not None and not is_same:
        transaction.replaced.append((old, made))
    return old if is_same else made
