"""Locks, threads and their own values: a free lock protects nothing now, so the other side gets one; a held one stays.

Whatever runs stays as a whole: a copy of its parts would fail in the midst of the standard library's code.
"""

import _thread
import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

from bulletin.cpython.referrers import arguments_of_local
from bulletin.cpython.thread_hooks import ThreadHandle, is_owned_by_this_thread, make_thread_handle
from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, Unpicklable, refuse

from . import containers


def reduce_lock(_: Encoding, lock: Any) -> Reduced:
    """Reduce a free lock to a new one of that kind.

    Raises
    ------
    Unpicklable
        If it is held.
    """
    if not lock.acquire(blocking=False):
        raise Unpicklable(f"cannot pickle a {type(lock).__name__} that is held")
    lock.release()
    return (_thread.allocate_lock if type(lock) is _thread.LockType else _thread.RLock), ()


def reduce_rlock(encoder: Encoding, lock: Any) -> Reduced:
    """Reduce a free RLock to a new one. Raises Unpicklable if it is held, even by the thread that asks."""
    if is_owned_by_this_thread(lock):
        raise Unpicklable("cannot pickle an RLock that is held")
    return reduce_lock(encoder, lock)


def reduce_thread_handle(_: Encoding, handle: Any) -> Reduced:
    """Reduce the handle of a thread that has not begun, or has ended.

    Raises
    ------
    Unpicklable
        If the thread runs.
    """
    if handle.ident and not handle.is_done():
        raise Unpicklable("cannot pickle a thread that runs")
    return make_thread_handle, (handle.is_done(),)


def reduce_thread(encoder: Encoding, thread: Any) -> Reduced:
    """Reduce a thread that has not begun, or has ended, as any other instance of its class.

    Raises
    ------
    Unpicklable
        If the thread runs.
    """
    if any(one is thread for one in threading.enumerate()):
        raise Unpicklable("cannot pickle a thread that runs", kind="threading.Thread")
    usual = containers.of_family(type(thread))
    return NotImplemented if usual is None else usual(encoder, thread)


def reduce_local(_: Encoding, local: Any) -> Reduced:
    """Reduce a `threading.local` to what it was made with, and holds for this thread, which runs the cells.

    Raises
    ------
    Unpicklable
        In any other thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return refuse(local)
    made_with = arguments_of_local(local)
    return make_local, (RECEIVER, type(local), *made_with), (RECEIVER, dict(vars(local))), None, None, fill_local


def make_local(transaction: LoadTransaction, kind: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the existing value of threads, or a new one, of which other threads make theirs with these arguments."""
    old = transaction.take_existing()
    return old if type(old) is kind else kind.__new__(kind, *args, **options)


def fill_local(local: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Make this all that it holds for this thread; other threads keep theirs."""
    transaction, held = state
    transaction.undoable(fill_dict, vars(local), dict(vars(local)))
    fill_dict(vars(local), held)


def reduce_pool(_: Encoding, pool: Any) -> Reduced:
    """Reduce a pool of threads that has ended to what it was, without its threads; nothing waits for them any more.

    Raises Unpicklable for one that can still be given work, or has some left.
    """
    if not pool._shutdown or any(thread.is_alive() for thread in pool._threads):
        return refuse(pool)
    held = {name: part for name, part in vars(pool).items() if name not in _OF_POOL}
    return make_pool, (RECEIVER, type(pool)), (RECEIVER, held), None, None, fill_pool


#: What a pool of threads needs to run; and its lock, which is free.
_OF_POOL = frozenset({"_work_queue", "_threads", "_idle_semaphore", "_shutdown_lock"})


def make_pool(transaction: LoadTransaction, kind: Any) -> Any:
    """Return the existing pool, or make one that has ended."""
    old = transaction.take_existing()
    if type(old) is kind and old._shutdown:
        return old
    made = kind.__new__(kind)
    concurrent.futures.ThreadPoolExecutor.__init__(made, 1)
    made.shutdown()
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def fill_pool(pool: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Let a pool that has ended be what the other one was."""
    transaction, held = state
    transaction.undoable(fill_dict, vars(pool), dict(vars(pool)))
    kept = {name: part for name, part in vars(pool).items() if name in _OF_POOL}
    fill_dict(vars(pool), {**kept, **held})


def of_family(kind: type) -> Callable[[Encoding, Any], Reduced] | None:
    """Choose the reducer for threads, their own values and their executors; None for other types."""
    if issubclass(kind, threading.local):
        return reduce_local
    if issubclass(kind, threading.Thread):
        return reduce_thread
    return reduce_pool if issubclass(kind, concurrent.futures.ThreadPoolExecutor) else None


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    _thread.LockType: reduce_lock,
    _thread.RLock: reduce_rlock,
    **({} if ThreadHandle is None else {ThreadHandle: reduce_thread_handle}),
}
