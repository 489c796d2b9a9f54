"""Objects of C code that give out their memory take what is in a new one there: who looks into it sees the change."""

from typing import Any

from .load_transaction import LoadTransaction


def take_memory(transaction: LoadTransaction, old: Any, fresh: Any) -> bool:
    """Write the memory of a new object into that of an old one, undoably; tell whether this made it say the same.

    If not, the old object is as it was.
    """
    try:
        target, source = memoryview(old), memoryview(fresh)
    except (TypeError, ValueError, BufferError):
        return False
    with target, source:
        if target.readonly or not target.c_contiguous or target.nbytes != source.nbytes or not target.nbytes:
            return False
        before, content = target.tobytes(), source.tobytes()
    _write(old, content)
    if says_the_same(old, fresh):
        transaction.undoable(_write, old, before)
        return True
    _write(old, before)
    return False


def _write(value: Any, content: bytes) -> None:
    with memoryview(value) as view, view.cast("B") as flat:
        flat[:] = content


def says_the_same(one: Any, other: Any) -> bool:
    """Tell whether two values say the same of themselves to pickle."""
    try:
        return is_same(one.__reduce_ex__(5), other.__reduce_ex__(5))
    except Exception:  # noqa: BLE001  a value's own code
        return False


def is_same(one: object, other: object) -> bool:
    """Tell whether two values are the same, or equal plain ones, and tuples of such."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, str | bytes | int | float | complex | range) and one == other
