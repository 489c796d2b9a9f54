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
from bulletin_magic.connection.link import DeliveryQueue, Link
from bulletin_magic.connection.resource_spec import LeaseInfo
from bulletin_magic.connection.session_events import CellSubmitted, ReleaseAsked, StopPressed
from bulletin_magic.output.frontend import is_notebook
from bulletin_magic.output.notes import describe_waiting, dim, show_note
from bulletin_magic.output.output_writer import OutputRecorder, OutputWriter
from bulletin_magic.output.receipts import describe_place
from bulletin_magic.output.widget_comms import ViewMessageHandler, WidgetComms

#: How often it says anew where the cell is, and for how long it has run: at first, and later. A server that ends idle
#: kernels counts what they say, and the kernel looks idle.
_OFTEN_S, _SELDOM_S, _YOUNG_S = 1.0, 10.0, 60.0
#: Moved: the lease that it was for is gone, and its parts are of no use to another.
RunAnswer = CellFinished | LeaseChanged | BaseException


class BackgroundRunner(threading.Thread):
    """Runs cells one after the other; what they show appears under the cell in which it was made.

    `say` is told where the cell is, in words; `answer` gets what came of it. Both are called in this thread. The value
    of a cell's last line is shown as well, where `shows_values` says so.
    """

    def __init__(
        self,
        name: str,
        link: Link,
        shell: InteractiveShell,
        say: Callable[[str], None],
        answer: Callable[["BackgroundRunner", RunAnswer], None],
        *,
        shows_values: bool = True,
        comms: WidgetComms | None = None,
        bring: ViewMessageHandler | None = None,
        keep: OutputRecorder | None = None,
    ) -> None:
        """`comms` and `bring` are for the widgets of its cells; without them nobody hears what their views say.

        `keep` gets all that is shown.
        """
        super().__init__(name=f"bulletin-{name}", daemon=True)
        self.called = name
        self.lease: LeaseInfo | None = None
        self._link, self._shell, self._say, self._answer = link, shell, say, answer
        self._shows_values = shows_values
        self._inbox: queue.SimpleQueue[CellSubmitted | None] = queue.SimpleQueue()
        # The notebook counts on: no `Out[n]` is it.
        self._outputs = OutputWriter(shell, comms, bring=bring, is_numbered=False, keep=keep)
        self._said = "on its way"
        self._place = contextvars.copy_context()  # in which outputs belong to the cell that runs now
        self._turn = threading.Lock()  # of what shows something there
        self._began_s = 0.0
        self._pid = os.getpid()

    # --- any thread

    def ask(self, asked: CellSubmitted) -> None:
        """Run this cell next."""
        self._inbox.put(asked)

    def cancel(self) -> None:
        """Press stop."""
        if os.getpid() == self._pid:
            self._link.tell(StopPressed())

    def detach(self) -> None:
        """The kernel ends, and what runs goes on."""
        if os.getpid() == self._pid:
            self._link.tell(ReleaseAsked(keeps_cell=True))

    def close(self) -> None:
        """End after the cell that runs."""
        self._inbox.put(None)

    def leave(self) -> None:
        """End now, and leave the pool; what runs there ends."""
        self.close()
        if os.getpid() == self._pid:
            self._link.close()

    def move(self, replay: Callable[[], None]) -> None:
        """Show all that comes below the cell that runs now, after `replay` has shown there what came before."""
        with self._turn:
            replay()
            self._place = contextvars.copy_context()

    @property
    def at(self) -> str:
        """Where the cell runs, as the end of a sentence."""
        return f" on {describe_place(self.lease)}" if self.lease is not None else ""

    # --- the thread

    def run(self) -> None:
        """Answer cells until `close`."""
        try:
            while (asked := self._inbox.get()) is not None:
                self._show(self._answer, self, self._listen(self._link.ask(asked)))
        finally:
            self._link.close()

    def _show(self, show: Callable[..., object], *arguments: object) -> None:
        """Call it where what it shows belongs."""
        with self._turn:
            self._place.run(show, *arguments)

    def _listen(self, deliveries: DeliveryQueue) -> RunAnswer:
        refusal: BulletinError | None = None
        while True:
            delivery = self._next(deliveries)
            match delivery:
                case OutputMessage(type="execute_result") if not self._shows_values:
                    pass
                case OutputMessage(type=kind, content=content, buffers=buffers):
                    self._show(self._print, kind, content, buffers)
                case QueuePosition():
                    self._said = describe_waiting(delivery)
                    self._show(self._say, self._said)
                case CellSent(lease=lease):
                    self.lease, self._began_s = lease, time.monotonic()
                    self._show(self._say, f"▶ running{self.at}")
                case UserNote(text=text):
                    self._show(show_note, self._shell, f"{self.called}: {text}")
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

    def _next(self, deliveries: DeliveryQueue) -> Any:
        while True:
            is_young = time.monotonic() - self._began_s < _YOUNG_S
            try:
                return deliveries.get(timeout=_OFTEN_S if is_young else _SELDOM_S)
            except queue.Empty:
                since_s = int(time.monotonic() - self._began_s)
                running = f"▶ running for {show_duration(since_s * 1000)}{self.at}"
                self._show(self._say, self._said if self.lease is None else running)

    def _print(self, kind: str, content: bytes, buffers: tuple[bytes, ...]) -> None:
        self._outputs.show(kind, content, buffers)
        self._outputs.flush()


class LiveLine:
    """One line under a cell that replaces itself for as long as there is something to say."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell, self._id, self._is_shown = shell, f"bulletin-{uuid.uuid4().hex}", False

    def say(self, text: str) -> None:
        """Show this instead."""
        if is_notebook(self._shell):
            transient = {"display_id": self._id}
            self._shell.display_pub.publish(dim(text, role="status"), transient=transient, update=self._is_shown)
            self._is_shown = True

    def say_here(self, text: str) -> None:
        """Show it below the cell that runs now, too."""
        self._is_shown = False
        self.say(text)
