"""Locks: a free one protects nothing at this moment, so the other side gets one of its own; a held one stays."""

import _thread
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bulletin.state.landing import Reduced, Unpicklable

if TYPE_CHECKING:
    from bulletin.state.codec import Encoder


def reduce_lock(_: "Encoder", lock: Any) -> Reduced:
    """A new one of that kind.

    Raises
    ------
    Unpicklable
        If it is held.
    """
    if not lock.acquire(blocking=False):
        raise Unpicklable(f"cannot pickle a {type(lock).__name__} that is held")
    lock.release()
    return (_thread.allocate_lock if type(lock) is _thread.LockType else _thread.RLock), ()


def reduce_rlock(encoder: "Encoder", lock: Any) -> Reduced:
    """As a lock; one that this very thread holds is held as well."""
    if lock._is_owned():
        raise Unpicklable("cannot pickle an RLock that is held")
    return reduce_lock(encoder, lock)


EXACT: dict[type, Callable[["Encoder", Any], Reduced]] = {
    _thread.LockType: reduce_lock,
    _thread.RLock: reduce_rlock,
}
