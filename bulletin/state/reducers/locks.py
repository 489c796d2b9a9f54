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


#: What a thread knows its end by, since Python 3.13.
_Handle: Any = getattr(_thread, "_ThreadHandle", None)


def reduce_thread_handle(_: "Encoder", handle: Any) -> Reduced:
    """Of a thread that has not begun, or has ended.

    Raises
    ------
    Unpicklable
        If the thread runs.
    """
    if handle.ident and not handle.is_done():
        raise Unpicklable("cannot pickle a thread that runs")
    return make_thread_handle, (handle.is_done(),)


def make_thread_handle(is_done: bool) -> Any:
    """One of a thread that has not begun, or has ended."""
    if not is_done:
        return _Handle()
    start: Any = vars(_thread)["start_joinable_thread"]
    handle = start(int)  # only a thread can make one that has ended
    handle.join()
    return handle


EXACT: dict[type, Callable[["Encoder", Any], Reduced]] = {
    _thread.LockType: reduce_lock,
    _thread.RLock: reduce_rlock,
    **({} if _Handle is None else {_Handle: reduce_thread_handle}),
}
