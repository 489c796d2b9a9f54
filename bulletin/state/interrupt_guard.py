"""The stop button while values land: what was begun is undone, or it is finished; nothing is cut in two."""

import signal
import threading
from types import FrameType
from typing import Any, Self


class InterruptGuard:
    """Holds SIGINT while it is entered, but for the time between `release` and `hold`.

    There the first one raises what it always raises, and later ones wait: what undoes things is not interrupted. What
    has waited is raised by the next `release`, or in the end. Threads other than the main one are never interrupted.
    """

    def __init__(self) -> None:
        self._is_open = self._is_due = False
        self._before: Any = None

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            if self._is_due and kind is None:
                self._before(signal.SIGINT, None)

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if not self._is_open:
            self._is_due = True
            return
        self._is_open = self._is_due = False
        self._before(number, frame)
        self._is_open = True  # nothing was raised

    def release(self) -> None:
        """Let interrupts through from now on, and raise the one that has waited."""
        self._is_open = True
        if self._is_due:
            self._pressed(signal.SIGINT, None)

    def hold(self) -> None:
        """Hold interrupts back from now on; one that comes waits for `release` or the end."""
        self._is_open = False
