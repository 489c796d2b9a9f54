"""One conversation with the pool, on the kernel's main thread: waits, shows, asks, and hears the stop button."""

import getpass
import queue
import signal
import threading
from types import FrameType
from typing import Any, assert_never

from IPython.core.interactiveshell import InteractiveShell

from bulletin_magic.display import StatusLine, describe_waiting, show_note
from bulletin_magic.facts import (
    Answered,
    Began,
    Failed,
    Finished,
    LeaveAsked,
    Left,
    Note,
    Pictured,
    Printed,
    Question,
    StopPressed,
    Waiting,
)
from bulletin_magic.link import Link
from bulletin_magic.link import Question as Asked
from bulletin_magic.outputs import Outputs

#: After so many presses the main thread leaves at once, whatever the link says.
_PATIENCE_PRESSES = 4


class StopButton:
    """While it is held, SIGINT is told to the link and raises nothing here: no delivery is ever cut in two.

    In a question it raises KeyboardInterrupt as usual, so that `input` ends.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.is_asking = False
        self._presses = 0
        self._before: Any = None

    def __enter__(self) -> "StopButton":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _pressed(self, _signal: int, _frame: FrameType | None) -> None:
        self._presses += 1
        if self.is_asking or self._presses >= _PATIENCE_PRESSES:
            raise KeyboardInterrupt
        self._link.tell(StopPressed())


def converse(link: Link, asked: Asked, shell: InteractiveShell, line: StatusLine) -> Finished | Pictured | Left:
    """Ask, and show what comes until the answer is there.

    Raises
    ------
    BulletinError
        What the pool, or the way there, had to say instead of an answer.
    """
    outputs = Outputs(shell)
    answer: Finished | Pictured | Left | None = None
    failed_input: Exception | None = None
    with StopButton(link) as button:
        deliveries = link.ask(asked)
        try:
            while answer is None:
                if deliveries.empty():
                    outputs.flush()
                try:
                    delivery = deliveries.get(timeout=line.due_in_s)
                except queue.Empty:
                    line.show_now()
                    continue
                match delivery:
                    case Printed(type=kind, content=content):
                        outputs.show(kind, content)
                    case Waiting():
                        line.say(describe_waiting(delivery))
                    case Began():
                        line.clear()
                    case Note(text=text):
                        show_note(shell, text)
                    case Question():
                        outputs.flush()
                        failed_input = _answer(link, delivery, button)
                    case Finished() | Pictured() | Left():
                        answer = delivery
                    case Failed(error=error):
                        raise error
                    case BaseException():
                        raise RuntimeError("the link to the pool broke; this is a bug of Bulletin") from delivery
                    case _:
                        assert_never(delivery)
        except BaseException as error:
            if not (isinstance(error, RuntimeError) or deliveries.empty()) or not _is_closing(error):
                link.tell(LeaveAsked())
            raise
        finally:
            line.clear()
            outputs.flush()
    if failed_input is not None:
        raise failed_input
    return answer
