"""Iterators of `itertools` that have a state at times: one without it is at its end, or between two steps.

Pickle gives no state to those that have none; an iterator that is there already would keep its own.
"""

import itertools
from collections.abc import Callable
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced


def reduce_iterator(_: Encoding, value: Any) -> Reduced:
    """Reduce an iterator as it says itself, or without a state to one that is made anew."""
    reduced = value.__reduce__()
    if _has_state(reduced):
        return reduced
    return make_iterator, (RECEIVER, *reduced[:2])


def make_iterator(transaction: LoadTransaction, made_by: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Make an iterator without a state; one that is there stays if it has none either, and comes from the same."""
    old = transaction.take_existing()
    made = made_by(*args)
    if old is None:
        return made
    if transaction.note_read_and_tell(old):
        return old
    reduced: tuple[Any, ...] = old.__reduce__() if type(old) is type(made) else ()
    if reduced[:1] == (made_by,) and not _has_state(reduced) and list(map(id, reduced[1])) == list(map(id, args)):
        return old
    transaction.replaced.append((old, made))
    return made


def _has_state(reduced: tuple[Any, ...]) -> bool:
    return len(reduced) > 2 and reduced[2] is not None


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    kind: reduce_iterator
    for kind in vars(itertools).values()
    if isinstance(kind, type) and hasattr(kind, "__setstate__")
}
