"""One conversation with the pool, on the kernel's main thread: waits, shows, asks, and hears the stop button."""

import getpass
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Protocol, Self, assert_never

from IPython.core.interactiveshell import InteractiveShell

from bulletin_magic.connection.deliveries import (
    AllowancesTold,
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
from bulletin_magic.connection.delivery_queue import DeliveryQueue
from bulletin_magic.connection.link import ClientRequest, Link
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.connection.session_events import QuestionAnswered, ReleaseAsked, StopPressed
from bulletin_magic.output.notes import StatusLine, describe_queue_position, dim, show_note
from bulletin_magic.output.output_writer import OutputWriter
from bulletin_magic.output.widget_comms import WidgetComms
from bulletin_magic.running.kernel_activity import KernelActivity

#: What a conversation ends with, unless it is an error.
ConversationAnswer = CellFinished | LeaseChanged | PoolStatus | CellList | AllowancesTold | LeaseReleased
#: After so many presses, and so long after the first, the main thread leaves at once, whatever the link says.
_MOST_PRESSES, _LEAVE_AFTER_S = 4, 4.0


class StopButton:
    """While it is held, SIGINT is told to the link and raises nothing here: no delivery is ever cut in two.

    In a question it raises KeyboardInterrupt as usual, so that `input` ends. SIGTERM, which ends a kernel that does not
    end by itself, leaves the pool first, in whatever way: nobody could do it later.
    """

    def __init__(self, link: Link, leave_pool: Callable[[], None]) -> None:
        self._link, self._leave_pool = link, leave_pool
        self.is_asking = False
        self._presses, self._pressed_at_s = 0, 0.0
        #: The handlers of SIGINT and SIGTERM that ours stand in for.
        self._original_sigint: Any = None
        self._original_sigterm: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._original_sigint = signal.signal(signal.SIGINT, self._on_sigint)
            self._original_sigterm = signal.signal(signal.SIGTERM, self._on_sigterm)
        return self

    def __exit__(self, *_: object) -> None:
        if self._original_sigint is not None:
            signal.signal(signal.SIGINT, self._original_sigint)
            signal.signal(signal.SIGTERM, self._original_sigterm)

    def _on_sigterm(self, number: int, _frame: FrameType | None) -> None:
        signal.signal(number, self._original_sigterm)
        self._leave_pool()
        os.kill(os.getpid(), number)

    def _on_sigint(self, _signal: int, _frame: FrameType | None) -> None:
        self._presses += 1
        if self._presses == 1:
            self._pressed_at_s = time.monotonic()
        is_late = time.monotonic() - self._pressed_at_s >= _LEAVE_AFTER_S
        if self.is_asking or (self._presses >= _MOST_PRESSES and is_late):
            raise KeyboardInterrupt
        self._link.tell(StopPressed())


class RunWatcher(Protocol):
    """Learns what becomes of a cell, whatever the conversation ends with."""

    def check_stop(self) -> None:
        """Raise CellStopped if stop was pressed before the conversation could hear it; called before it asks."""

    def cell_sent(self, lease: LeaseInfo) -> None:
        """Take in that the cell has been sent to the node of this lease, for the first time or again."""

    def record(self, kind: str, message: Mapping[str, Any], size: int) -> None:
        """Take in what the cell has shown; called as an `OutputRecorder`."""


class Conversation:
    """A request to the pool and all that is shown until its answer."""

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
        self._outputs = OutputWriter(shell, comms, record=watcher.record if watcher is not None else None)
        self._button, self._watcher = button, watcher
        #: Why the notebook could not ask what the cell asked. The cell was then interrupted.
        self.input_error: Exception | None = None

    def run(self, request: ClientRequest) -> ConversationAnswer:
        """Ask, and show what comes until the answer is there.

        Raises
        ------
        BulletinError
            What the pool, or the way there, had to say instead of an answer.
        """
        is_over = False
        with self._button:
            if self._watcher is not None:
                self._watcher.check_stop()
            deliveries = self._link.ask(request)
            try:
                while True:
                    delivery = self._wait_for_delivery(deliveries)
                    is_over = isinstance(delivery, ConversationAnswer | RequestFailed | BaseException)
                    answer = self._handle(delivery)
                    if answer is not None:
                        return answer
            finally:
                if not is_over:  # this thread was torn away: nobody waits for the cell any more
                    self._link.tell(ReleaseAsked())
                self._line.clear()
                self._outputs.flush()

    def _wait_for_delivery(self, deliveries: DeliveryQueue) -> Delivery | BaseException:
        if deliveries.is_empty():
            self._outputs.flush()
        while True:
            try:
                dues = (self._line.due_in_s, self._activity.due_in_s)
                return deliveries.get(timeout_s=min((due for due in dues if due is not None), default=None))
            except queue.Empty:
                if self._line.due_in_s == 0:
                    self._line.show_now()
                self._activity.report()

    def _handle(self, delivery: Delivery | BaseException) -> ConversationAnswer | None:
        match delivery:
            case OutputMessage(type=kind, content=content, buffers=buffers):
                self._outputs.show(kind, content, buffers)
            case QueuePosition():
                self._line.say(describe_queue_position(delivery))
            case CellSent(lease=lease):
                self._line.clear()
                if self._watcher is not None:
                    self._watcher.cell_sent(lease)
            case UserNote(text=text):
                show_note(self._shell, text)
                if self._watcher is not None:
                    self._watcher.record("display_data", {"data": dim(text), "metadata": {}}, len(text))
            case QuestionAsked():
                self._outputs.flush()
                self._ask_user(delivery)
            case CellFinished() | LeaseChanged() | PoolStatus() | CellList() | AllowancesTold() | LeaseReleased():
                return delivery
            case RequestFailed(error=error):
                raise error
            case BaseException():
                raise RuntimeError("the link to the pool broke; this is a bug of Bulletin") from delivery
            case _:
                assert_never(delivery)
        return None

    def _ask_user(self, question: QuestionAsked) -> None:
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
