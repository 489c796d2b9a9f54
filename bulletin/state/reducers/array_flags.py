"""The flags of an array (`x.flags`), which write through to it: they lead to that array on the other side too."""

import sys
from typing import Any

from bulletin.cpython.raw_memory import first_field_of, held_first_by
from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, refuse


def is_flags(kind: type) -> bool:
    """Tell whether a type is numpy's for the flags of arrays."""
    numpy = sys.modules.get("numpy")
    return hasattr(numpy, "ndarray") and kind.__name__ == "flagsobj" and kind.__module__.startswith("numpy.")


def reduce_flags(_: Encoding, flags: Any) -> Reduced:
    """Reduce flags to their array. Raises Unpicklable for those of a scalar."""
    array = _array_of(flags)
    return refuse(flags) if array is None else (make_flags, (RECEIVER, array, flags.writeable))


def make_flags(transaction: LoadTransaction, array: Any, writeable: bool) -> Any:
    """Return the existing flags if they are those of this array and say the same, or ask for them anew.

    They say what the array was like when somebody asked, and not what it is like now.
    """
    old, made = transaction.take_existing(), array.flags
    if type(old) is type(made) and _array_of(old) is array and old.writeable == writeable:
        return old
    if made.writeable != writeable:
        made = _as_they_were(array, writeable)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def _as_they_were(array: Any, writeable: bool) -> Any:
    now = array.flags.writeable
    try:
        array.flags.writeable = writeable
    except ValueError:  # it looks at memory that cannot be written
        return array.flags
    found = array.flags
    array.flags.writeable = now
    return found


def _array_of(flags: Any) -> Any:
    """Return the array that flags write to; None where they have none, as those of a scalar."""
    return held_first_by(flags) if int.from_bytes(first_field_of(flags), sys.byteorder) else None
