"""Bulletin's own words in a notebook: the queue line that replaces itself, and dim notes."""

import html
import sys
import time
import uuid

from IPython.core.interactiveshell import InteractiveShell

from bulletin.wait_words import count, describe_place
from bulletin_magic.connection.deliveries import QueuePosition
from bulletin_magic.output.frontend import cell_text, is_notebook

#: A wait shorter than this shows nothing: a line that flickers says less than none.
_SHOW_AFTER_S = 0.3
_CLEAR_LINE = "\r\x1b[K"


def describe_queue_position(position: QueuePosition) -> str:
    """Write the queue line: what is waited for, where in line, how long, and why."""
    what = count(position.gpus, position.slot_word)
    return "⏳ " + describe_place(position.position, what, position.usual_ms, position.wait_ms, position.reason)


def dim(text: str, role: str = "note") -> dict[str, str]:
    """Return a quiet line as a bundle of MIME types: plain, and HTML that a screen reader announces politely."""
    style = "opacity:.7;font-size:90%"
    return {
        "text/plain": text,
        "text/html": f'<div role="{role}" style="{style}">{html.escape(text)}</div>',
    }


def show_note(shell: InteractiveShell, text: str) -> None:
    """Show one dim line."""
    shell.display_pub.publish(dim(text))


class StatusLine:
    """One line that replaces itself, appears only after a moment, and goes when the wait is over."""

    def __init__(self, shell: InteractiveShell, *, is_whole: bool = False) -> None:
        """`is_whole`: what is sent to the pool is all of the cell that the user ran."""
        self._shell, self._is_whole = shell, is_whole
        self._id = ""
        self._text = ""
        self._is_shown = False
        self._due_s: float | None = None

    @property
    def due_in_s(self) -> float | None:
        """How long until `show_now` should be called; None while nothing is pending."""
        if self._due_s is None or self._is_shown:
            return None
        return max(0.0, self._due_s - time.monotonic())

    def say(self, text: str) -> None:
        """Show this text instead of the last one, at once if the line is there."""
        if text == self._text:
            return
        self._text = text
        if self._is_shown:
            self._write(update=True)
        elif self._due_s is None:
            self._due_s = time.monotonic() + _SHOW_AFTER_S

    def show_now(self) -> None:
        """Show what there is to say, now that it has taken a moment."""
        if not self._is_shown and self._text:
            self._is_shown, self._id = True, f"bulletin-{uuid.uuid4().hex}"
            self._write(update=False)

    def clear(self) -> None:
        """Take the line away: the wait is over."""
        was_shown = self._is_shown
        self._is_shown, self._due_s, self._text = False, None, ""
        if not was_shown:
            return
        if not is_notebook(self._shell):
            self._write_to_terminal("")
        elif self._owns_the_cell():
            self._shell.display_pub.clear_output(wait=False)  # type: ignore[no-untyped-call]  # IPython's
        else:  # others have shown something in this cell: only an empty line can replace ours
            self._shell.display_pub.publish(
                {"text/plain": "", "text/html": ""}, transient={"display_id": self._id}, update=True
            )

    def _write(self, *, update: bool) -> None:
        if is_notebook(self._shell):
            self._shell.display_pub.publish(
                dim(self._text, role="status"), transient={"display_id": self._id}, update=update
            )
        else:
            self._write_to_terminal(self._text)

    def _write_to_terminal(self, text: str) -> None:
        if sys.stdout.isatty():
            sys.stdout.write(_CLEAR_LINE + text)
            sys.stdout.flush()

    def _owns_the_cell(self) -> bool:
        """Tell whether the whole cell is sent: then nothing but our line can have been shown before it began."""
        return self._is_whole or cell_text(self._shell).lstrip().lower().startswith("%%gpu")
