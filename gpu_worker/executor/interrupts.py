"""How a cell is stopped: what SIGINT means at each moment of an executor's life.

Between cells it means nothing. While state arrives, that the cell need not start. While the cell runs,
KeyboardInterrupt in its code, wherever that is: in a loop, in a system call, in an `await`. While changes are
collected, nothing again.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from enum import Enum
from types import FrameType, TracebackType, coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
#: When to look after an interrupt, each since the one before.
_POKES_S = (0.01, 0.1, 1.0)


class InterruptPhase(Enum):
    """What the executor does now, which says what SIGINT means."""

    IDLE, LOADING, RUNNING, COLLECTING = range(4)


class Interrupts:
    """Owns SIGINT. `notice` is called from the signal handler: it may only do what is safe there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, notice: Callable[[], None]) -> None:
        self._loop, self._notice = loop, notice
        self.phase = InterruptPhase.IDLE
        #: SIGINT came before the cell began.
        self.is_stop_wanted = False
        self._task: asyncio.Task[object] | None = None
        self._is_cancelled = False
        #: How many holds are open, one in another.
        self._hold_depth = 0
        self._main = threading.get_ident()
        #: SIGINT came while it was held; it is raised when the hold ends.
        self.is_pending = False

    def listen(self) -> None:
        """Take SIGINT over. To be called in the main thread."""
        noticed, notices = os.pipe()
        os.set_blocking(notices, False)
        signal.set_wakeup_fd(notices, warn_on_full_buffer=False)
        signal.signal(signal.SIGURG, lambda *_: None)
        signal.signal(signal.SIGINT, self._handle)
        threading.Thread(target=self._poke, args=(noticed,), name="bulletin-interrupts", daemon=True).start()

    def become_child(self) -> None:
        """Let SIGINT mean, in a fork, what it means in any program."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _poke(self, noticed: int) -> None:
        """Wake the main thread out of a system call that it entered just after the signal had come.

        Python's handler would then wait until the call returns, which may be never. SIGURG does nothing but end the
        call for a moment, and then all handlers run that are due.
        """
        while True:
            if signal.SIGINT in os.read(noticed, 256):
                for delay_s in _POKES_S:
                    time.sleep(delay_s)
                    signal.pthread_kill(self._main, signal.SIGURG)

    def expect(self) -> None:
        """Let SIGINT mean the cell that comes. Runs in the main thread, which by then has handled every earlier one."""
        if self.phase is InterruptPhase.IDLE:
            self.phase = InterruptPhase.LOADING

    def begin(self) -> None:
        """Let SIGINT stop the cell's code, which runs from now on. Raises KeyboardInterrupt if it need not any more."""
        self.is_pending = False
        self.phase = InterruptPhase.RUNNING
        if self.is_stop_wanted:
            raise KeyboardInterrupt

    def finish(self) -> None:
        """Let SIGINT mean nothing: the cell's code is over, and its changes are collected."""
        self.phase = InterruptPhase.COLLECTING

    def end(self) -> None:
        """Forget the cell; the next may come as soon as this is said."""
        self.phase, self.is_stop_wanted = InterruptPhase.IDLE, False

    def __enter__(self) -> None:
        """Hold interrupts for a few lines that must be done whole."""
        if threading.get_ident() == self._main:
            self._hold_depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if threading.get_ident() != self._main:
            return
        self._hold_depth -= 1
        if self._hold_depth == 0 and self.is_pending:
            self.is_pending = False
            if self.phase is InterruptPhase.RUNNING:
                raise KeyboardInterrupt

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        if self.phase is InterruptPhase.IDLE:
            return
        self._notice()
        if self.phase is InterruptPhase.LOADING:
            self.is_stop_wanted = True
        elif self.phase is InterruptPhase.RUNNING:
            if self._hold_depth:
                self.is_pending = True
            elif self._is_awaiting() and not self._is_cancelled:
                self._cancel()
            else:
                raise KeyboardInterrupt

    def _is_awaiting(self) -> bool:
        """Tell whether the cell waits in an `await`: no task of the loop runs Python code now."""
        return self._task is not None and asyncio.current_task(self._loop) is None

    def _cancel(self) -> None:
        if self._task is not None:
            self._is_cancelled = True
            self._task.cancel()
            self._loop.call_soon_threadsafe(lambda: None)  # the loop sleeps in select: wake it

    def drive(self, work: Coroutine[Any, Any, Result], task_of: Callable[..., asyncio.Task[Result]]) -> Result:
        """Run a cell's coroutine to its end in the loop, whatever its code does to the loop."""
        task = task_of(_awaiting(self._translate(work)))
        self._task, self._is_cancelled = task, False
        try:
            while not task.done():
                try:
                    self._loop.run_until_complete(task)
                except KeyboardInterrupt:
                    # Raised in another task's code, or in a callback: the cell is what must end.
                    if not task.done():
                        self._cancel()
                except RuntimeError:
                    # The cell stopped the loop. It is ours: go on.
                    if task.done():
                        raise
            return task.result()
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            work.close()  # it was stopped before its first step: nothing in it could make of that what it means
            raise KeyboardInterrupt from None
        finally:
            self._task = None

    @coroutine
    def _translate(self, work: Coroutine[Any, Any, Result]) -> Generator[Any, Any, Result]:
        """Make of our own cancellation a KeyboardInterrupt at the `await` where the cell is."""
        send: Callable[[], Any] = lambda: work.send(None)  # noqa: E731
        while True:
            try:
                waited_for = send()
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            try:
                value = yield waited_for
            except asyncio.CancelledError as error:
                thrown: BaseException = error
                if self._is_cancelled and self._task is not None:
                    self._is_cancelled = False
                    self._task.uncancel()
                    thrown = KeyboardInterrupt()
                send = lambda thrown=thrown: work.throw(thrown)  # type: ignore[misc]  # noqa: E731
            except BaseException as error:  # noqa: BLE001  whatever it is, it is for the cell
                send = lambda thrown=error: work.throw(thrown)  # type: ignore[misc]  # noqa: E731
            else:
                send = lambda value=value: work.send(value)  # type: ignore[misc]  # noqa: E731


async def _awaiting(work: Awaitable[Result]) -> Result:
    """Wrap an awaitable as the coroutine that a task wants: since Python 3.12 a generator is none to asyncio."""
    return await work
