"""One conversation with the pool, on the kernel's main thread: waits, shows, asks, and hears the stop button."""

import getpass
import os
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Protocol, Self, assert_never

from IPython.core.interactiveshell import InteractiveShell

from bulletin_magic.connection.deliveries import (
    CellFinished,
    CellList,
    CellSent,
    Delivery,
    LeaseChanged,
    LeaseReleased,
    OutputMessage,
    PoolStatus,
    QuestionAsked,
    QueuePosition,
    RequestFailed,
    UserNote,
)
from bulletin_magic.connection.link import ClientRequest, DeliveryQueue, Link
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.connection.session_events import QuestionAnswered, ReleaseAsked, StopPressed
from bulletin_magic.output.notes import StatusLine, describe_waiting, dim, show_note
from bulletin_magic.output.output_writer import OutputWriter
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.kernel_activity import KernelActivity

_ConversationAnswer = CellFinished | LeaseChanged | PoolStatus | CellList | LeaseReleased
#: After so many presses the main thread leaves at once, whatever the link says.
_PATIENCE_PRESSES = 4


class StopButton:
    """While it is held, SIGINT is told to the link and raises nothing here: no delivery is ever cut in two.

    In a question it raises KeyboardInterrupt as usual, so that `input` ends. SIGTERM, which ends a kernel that does not
    end by itself, leaves the pool first, in whatever way: nobody could do it later.
    """

    def __init__(self, link: Link, leave: Callable[[], None]) -> None:
        self._link, self._leave = link, leave
        self.is_asking = False
        self._presses = 0
        self._before: Any = None
        self._end_before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._pressed)
            self._end_before = signal.signal(signal.SIGTERM, self._ended)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            signal.signal(signal.SIGTERM, self._end_before)

    def _ended(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, self._end_before)
        self._leave()
        os.kill(os.getpid(), number)

    def _pressed(self, _signal: int, _frame: FrameType | None) -> None:
        self._presses += 1
        if self.is_asking or self._presses >= _PATIENCE_PRESSES:
            raise KeyboardInterrupt
        self._link.tell(StopPressed())


class RunWatcher(Protocol):
    """Learns what becomes of a cell, whatever the conversation ends with."""

    def began(self, lease: LeaseInfo) -> None:
        """It has been sent there, for the first time or again."""

    def keep(self, kind: str, message: Mapping[str, Any], size: int) -> None:
        """It has shown something: as `outputs.Keep`."""


class Conversation:
    """A question to the pool and all that is shown until its answer."""

    def __init__(
        self,
        link: Link,
        shell: InteractiveShell,
        line: StatusLine,
        comms: WidgetComms,
        activity: KernelActivity,
        button: StopButton,
        watcher: RunWatcher | None = None,
    ) -> None:
        self._link, self._shell, self._line, self._activity = link, shell, line, activity
        self._outputs = OutputWriter(shell, comms, keep=watcher.keep if watcher is not None else None)
        self._button, self._watcher = button, watcher
        #: Why the notebook could not ask what the cell asked. The cell was then interrupted.
        self.input_error: Exception | None = None

    def hold(self, request: ClientRequest) -> _ConversationAnswer:
        """Ask, and show what comes until the answer is there.

        Raises
        ------
        BulletinError
            What the pool, or the way there, had to say instead of an answer.
        """
        is_over = False
        with self._button:
            deliveries = self._link.ask(request)
            try:
                while True:
                    delivery = self._next(deliveries)
                    is_over = isinstance(delivery, _ConversationAnswer | RequestFailed | BaseException)
                    answer = self._take(delivery)
                    if answer is not None:
                        return answer
            finally:
                if not is_over:  # this thread was torn away: nobody waits for the cell any more
                    self._link.tell(ReleaseAsked())
                self._line.clear()
                self._outputs.flush()

    def _next(self, deliveries: DeliveryQueue) -> Delivery | BaseException:
        if deliveries.empty():
            self._outputs.flush()
        while True:
            try:
                dues = (self._line.due_in_s, self._activity.due_in_s)
                return deliveries.get(timeout=min((due for due in dues if due is not None), default=None))
            except queue.Empty:
                if self._line.due_in_s == 0:
                    self._line.show_now()
                self._activity.tell()

    def _take(self, delivery: Delivery | BaseException) -> _ConversationAnswer | None:
        match delivery:
            case OutputMessage(type=kind, content=content, buffers=buffers):
                self._outputs.show(kind, content, buffers)
            case QueuePosition():
                self._line.say(describe_waiting(delivery))
            case CellSent(lease=lease):
                self._line.clear()
                if self._watcher is not None:
                    self._watcher.began(lease)
            case UserNote(text=text):
                show_note(self._shell, text)
                if self._watcher is not None:
                    self._watcher.keep("display_data", {"data": dim(text), "metadata": {}}, len(text))
            case QuestionAsked():
                self._outputs.flush()
                self._answer(delivery)
            case CellFinished() | LeaseChanged() | PoolStatus() | CellList() | LeaseReleased():
                return delivery
            case RequestFailed(error=error):
                raise error
            case BaseException():
                raise RuntimeError("the link to the pool broke; this is a bug of Bulletin") from delivery
            case _:
                assert_never(delivery)
        return None

    def _answer(self, question: QuestionAsked) -> None:
        try:
            self._button.is_asking = True
            ask = getpass.getpass if question.password else input
            self._link.tell(QuestionAnswered(ask(question.prompt)))
        except KeyboardInterrupt:
            self._link.tell(StopPressed())
        except Exception as error:  # noqa: BLE001 - whatever the front end has against it, the cell must not wait for ever
            self.input_error = error
            self._link.tell(StopPressed())
        finally:
            self._button.is_asking = False
