"""A cell beside those of the notebook: a link of its own, and a thread that listens to it."""

import contextvars
import os
import queue
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, assert_never

from IPython.core.interactiveshell import InteractiveShell

from bulletin.errors import BulletinError, CellLost
from bulletin.units import show_duration
from bulletin_magic.connection.deliveries import (
    CellFinished,
    CellList,
    CellSent,
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
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.connection.session_events import CellSubmitted, ReleaseAsked, StopPressed
from bulletin_magic.output.frontend import is_notebook
from bulletin_magic.output.notes import describe_queue_position, dim, show_note
from bulletin_magic.output.output_writer import OutputRecorder, OutputWriter
from bulletin_magic.output.receipts import describe_slots
from bulletin_magic.output.widget_comms import ViewMessageHandler, WidgetComms

#: How often it says anew where the cell is, and for how long it has run: at first, and later. A server that ends idle
#: kernels counts what they say, and the kernel looks idle.
_OFTEN_S, _SELDOM_S = 1.0, 10.0
#: A cell that has run for longer is told of seldom.
_YOUNG_S = 60.0
#: What became of a cell. LeaseChanged: the lease that it was for is gone, and its parts are of no use to another.
RunAnswer = CellFinished | LeaseChanged | BaseException


class BackgroundRunner(threading.Thread):
    """Runs cells one after the other, on a link of its own; what they show appears under the cell that made it."""

    def __init__(
        self,
        name: str,
        link: Link,
        shell: InteractiveShell,
        on_status: Callable[[str], None],
        on_answer: Callable[["BackgroundRunner", RunAnswer], None],
        *,
        shows_values: bool = True,
        comms: WidgetComms | None = None,
        on_view_message: ViewMessageHandler | None = None,
        record: OutputRecorder | None = None,
    ) -> None:
        """Make a thread that is not started yet; `name` stands in notes.

        `on_status` is told where a cell is, in words, and `on_answer` what came of it; both are called in this thread.
        `shows_values`: the value of a cell's last line is shown, too. `comms` and `on_view_message` are for the widgets
        of its cells; without them nobody hears what their views say. `record` is told of all that is shown.
        """
        super().__init__(name=f"bulletin-{name}", daemon=True)
        self.label = name
        self.lease: LeaseInfo | None = None
        self._link, self._shell = link, shell
        self._on_status, self._on_answer = on_status, on_answer
        self._shows_values = shows_values
        self._inbox: queue.SimpleQueue[CellSubmitted | None] = queue.SimpleQueue()
        # The notebook counts on: no `Out[n]` is it.
        self._outputs = OutputWriter(shell, comms, on_view_message=on_view_message, is_numbered=False, record=record)
        self._status = "on its way"
        self._context = contextvars.copy_context()  # in which outputs belong to the cell that runs now
        self._show_lock = threading.Lock()  # of what shows something there
        self._began_s = 0.0
        self._pid = os.getpid()

    # --- any thread

    def submit(self, asked: CellSubmitted) -> None:
        """Run this cell next."""
        self._inbox.put(asked)

    def cancel(self) -> None:
        """Interrupt the cell; called again, end its process."""
        if os.getpid() == self._pid:
            self._link.tell(StopPressed())

    def detach(self) -> None:
        """Leave the cell that runs to itself, for another kernel: this one ends."""
        if os.getpid() == self._pid:
            self._link.tell(ReleaseAsked(keeps_cell=True))

    def close(self) -> None:
        """End the thread after the cells that were submitted."""
        self._inbox.put(None)

    def abort(self) -> None:
        """End the thread and leave the pool; what runs there ends."""
        self.close()
        if os.getpid() == self._pid:
            self._link.close()

    def redirect_output(self, replay: Callable[[], None]) -> None:
        """Show all that comes below the cell that runs now, after `replay` has shown there what came before."""
        with self._show_lock:
            replay()
            self._context = contextvars.copy_context()

    @property
    def location(self) -> str:
        """Where the cell runs, as the end of a sentence."""
        return f" on {describe_slots(self.lease)}" if self.lease is not None else ""

    # --- the thread

    def run(self) -> None:
        """Run cells until `close`."""
        try:
            while (asked := self._inbox.get()) is not None:
                self._show(self._on_answer, self, self._listen(self._link.ask(asked)))
        finally:
            self._link.close()

    def _show(self, show: Callable[..., object], *arguments: object) -> None:
        """Call `show` in the context in which outputs belong to the right cell."""
        with self._show_lock:
            self._context.run(show, *arguments)

    def _listen(self, deliveries: DeliveryQueue) -> RunAnswer:
        """Show what a cell shows until it has ended; return what came of it."""
        refusal: BulletinError | None = None
        while True:
            delivery = self._wait_for_delivery(deliveries)
            match delivery:
                case OutputMessage(type="execute_result") if not self._shows_values:
                    pass
                case OutputMessage(type=kind, content=content, buffers=buffers):
                    self._show(self._print, kind, content, buffers)
                case QueuePosition():
                    self._status = describe_queue_position(delivery)
                    self._show(self._on_status, self._status)
                case CellSent(lease=lease):
                    self.lease, self._began_s = lease, time.monotonic()
                    self._show(self._on_status, f"▶ running{self.location}")
                case UserNote(text=text):
                    self._show(show_note, self._shell, f"{self.label}: {text}")
                case QuestionAsked(prompt=prompt):
                    refusal = CellLost(
                        f"A cell in the background cannot ask: {prompt.strip()!r} has nobody to answer it."
                    )
                    self._link.tell(StopPressed())
                case CellFinished() | LeaseChanged():
                    return refusal or delivery
                case RequestFailed(error=error):
                    return refusal or error
                case BaseException():
                    return delivery
                case PoolStatus() | CellList() | LeaseReleased():
                    raise AssertionError(f"{type(delivery).__name__} answers something else")
                case _:
                    assert_never(delivery)

    def _wait_for_delivery(self, deliveries: DeliveryQueue) -> Any:
        while True:
            is_young = time.monotonic() - self._began_s < _YOUNG_S
            try:
                return deliveries.get(timeout_s=_OFTEN_S if is_young else _SELDOM_S)
            except queue.Empty:
                since_s = int(time.monotonic() - self._began_s)
                running = f"▶ running for {show_duration(since_s * 1000)}{self.location}"
                self._show(self._on_status, self._status if self.lease is None else running)

    def _print(self, kind: str, content: bytes, buffers: tuple[bytes, ...]) -> None:
        self._outputs.show(kind, content, buffers)
        self._outputs.flush()


class LiveLine:
    """One line under a cell that replaces itself for as long as there is something to say."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell, self._id, self._is_shown = shell, f"bulletin-{uuid.uuid4().hex}", False

    def show(self, text: str) -> None:
        """Show this instead."""
        if is_notebook(self._shell):
            transient = {"display_id": self._id}
            self._shell.display_pub.publish(dim(text, role="status"), transient=transient, update=self._is_shown)
            self._is_shown = True

    def show_below_this_cell(self, text: str) -> None:
        """Show it below the cell that runs now, too."""
        self._is_shown = False
        self.show(text)
