"""The stop button while a cell is prepared: nothing of it has run yet, and that is what its user reads."""

import signal
import threading
from types import FrameType
from typing import Any, Self

from bulletin.errors import CellStopped
from bulletin_magic.connection.cell_run import NEVER_RAN


class EarlyStop:
    """Hears SIGINT until the cell is sent, and makes CellStopped of it, whatever it has cut off on its way.

    A press raises at once, as it always does. Much of what runs here is not ours (attributes and `__reduce__` of the
    user's objects, destructors), and may take the exception for its own: so that there was a press is noted, too.
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._is_sent = self._is_pressed = False

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._on_press)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if not isinstance(error, CellStopped):
            self.raise_if_pressed()

    def _on_press(self, number: int, frame: FrameType | None) -> None:
        self._is_pressed = not self._is_sent
        self._before(number, frame)

    def raise_if_pressed(self) -> None:
        """Raise CellStopped where there was a press, also one that nothing has come of."""
        if self._is_pressed:
            raise CellStopped(NEVER_RAN) from None

    def cell_sent(self) -> None:
        """From now on the cell may have run: no press says anything about that any more, not even an earlier one."""
        self._is_sent, self._is_pressed = True, False

    def cell_returned(self) -> None:
        """Prepare the cell again: it came back without having run."""
        self._is_sent = False
