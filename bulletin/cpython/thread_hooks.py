"""The inside of threads: what surrounds their start and their run, and the handle by which they know their end."""

import _thread
import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

#: What a thread knows its end by, since Python 3.13; None before.
ThreadHandle: Any = getattr(_thread, "_ThreadHandle", None)


def surround_threads(
    starting: Callable[[threading.Thread], AbstractContextManager[None]],
    running: Callable[[threading.Thread], AbstractContextManager[None]],
) -> None:
    """Enter `starting(thread)` around each `Thread.start` and, in the new thread, `running(thread)` around its run.

    For all threads of the process from now on, and for good. No public hook will do. `threading.setprofile` and
    `settrace` are one each, and belong to the user's profiler or debugger; they say nothing of a thread's end.
    `Thread.run` is what people override, so a patched one would not be called. Context variables are not inherited by
    threads before Python 3.14. `Thread._bootstrap_inner` is the one method that runs in every new thread of whatever
    subclass, and returns when it ends.
    """
    kind: Any = threading.Thread
    start, run = kind.start, kind._bootstrap_inner

    @functools.wraps(start)
    def start_surrounded(thread: threading.Thread) -> None:
        with starting(thread):
            start(thread)

    @functools.wraps(run)
    def run_surrounded(thread: threading.Thread) -> None:
        with running(thread):
            run(thread)

    kind.start, kind._bootstrap_inner = start_surrounded, run_surrounded


def make_thread_handle(is_done: bool) -> Any:  # noqa: FBT001  pickle passes it so
    """Make the handle of a thread that has ended, or of one that has not begun."""
    if not is_done:
        return ThreadHandle()
    start: Any = vars(_thread)["start_joinable_thread"]
    handle = start(int)  # only a thread can make one that has ended
    handle.join()
    return handle


def is_owned_by_this_thread(lock: Any) -> bool:
    """Tell whether the thread that asks holds this `RLock`.

    To try `acquire` would not say it, since that succeeds for the thread that holds the lock.
    """
    owned: bool = lock._is_owned()
    return owned
