"""Histograms of boost_histogram, upon which hist builds: the counts are in C++, and arrays look at them (`h.view()`).

The counts are changed in place, so that such an array sees them; one that travels goes as a view of its histogram.
"""

import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from . import arrays

_LIBRARY = "boost_histogram"


def is_storage(kind: type) -> bool:
    """Tell whether a type is the C++ object that holds the counts and the axes of a histogram."""
    return kind.__module__ == f"{_LIBRARY}._core.hist" and hasattr(kind, "view") and hasattr(kind, "axis")


def reduce_storage(_: Encoding, storage: Any) -> Reduced:
    """Reduce a storage to its type and its state, so that the receiver may keep the one that it has."""
    return _make_storage, (RECEIVER, type(storage), storage.__getstate__())


def _make_storage(transaction: LoadTransaction, kind: Any, state: Any) -> Any:
    """Make a storage; or where the existing one has the same axes, give that one the counts, undoably."""
    made, old = kind.__new__(kind), transaction.take_existing()
    made.__setstate__(state)
    if type(old) is not kind or not _is_alike(old, made):
        if old is not None:
            transaction.replaced.append((old, made))
        return made
    counts = old.view(True)
    transaction.undoable(_set, counts, counts.copy())
    _set(counts, made.view(True))
    return old


def _set(counts: Any, content: Any) -> None:
    counts[...] = content


def _is_alike(one: Any, other: Any) -> bool:
    return one.rank() == other.rank() and all(one.axis(at) == other.axis(at) for at in range(one.rank()))


def reduce_view(array: Any) -> Reduced | None:
    """Reduce an array that looks at the counts of a histogram to a view of these; None for any other array."""
    storage = arrays.owner_of(array) if _LIBRARY in sys.modules else None
    if storage is None or not is_storage(type(storage)):
        return None
    layout = (array.dtype, array.shape, array.strides, array.flags.writeable)
    return _view_counts, (RECEIVER, storage, arrays.address_of(array) - arrays.address_of(storage.view(True)), *layout)


def _view_counts(transaction: LoadTransaction, storage: Any, *layout: Any) -> Any:
    return arrays.view_array(transaction, storage.view(True), *layout)
