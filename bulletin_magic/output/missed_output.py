"""A page of the notebook that is opened anew: the first cell that it runs says which cells went on meanwhile."""

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

from bulletin_magic.output.cell_outputs import CellOutputs
from bulletin_magic.output.frontend import page_id
from bulletin_magic.output.notes import show_note
from bulletin_magic.output.output_history import OutputHistory, list_numbers
from bulletin_magic.output.page_tracker import PageTracker

#: What each page asks the kernel first; where no cell runs, its server as well, on the control channel too.
_HELLO = "kernel_info_request"
Handler = Callable[..., Any]


class MissedOutputNotifier:
    """Hears pages come, and tells each what it has missed."""

    def __init__(self, shell: InteractiveShell, shown: OutputHistory) -> None:
        self._shell, self._shown, self._pages = shell, shown, PageTracker()
        self._kernel: Any = getattr(shell, "kernel", None)
        #: The kernel's handlers of each channel that was changed: its own, and ours.
        self._changed: list[tuple[dict[str, Any], Handler, Handler]] = []

    def serve(self) -> None:
        """Begin, in a kernel that has pages."""
        if self._kernel is None:
            return
        self._shell.events.register("pre_run_cell", self._begins)
        self._shell.events.register("post_run_cell", self._ended)
        for channel, hear in (("control", self._hear_at_once), ("shell", self._hear_at_last)):
            handlers = getattr(self._kernel, f"{channel}_handlers", {})
            before = handlers.get(_HELLO)
            if before is not None:
                ours = functools.partial(hear, before)
                handlers[_HELLO] = ours
                self._changed.append((handlers, before, ours))

    def stop(self) -> None:
        """Leave the kernel as it was."""
        for event, callback in (("pre_run_cell", self._begins), ("post_run_cell", self._ended)):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)
        for handlers, before, ours in self._changed:
            if handlers[_HELLO] is ours:
                handlers[_HELLO] = before
        self._changed.clear()

    def _hear_at_once(self, before: Handler, stream: Any, ident: Any, message: dict[str, Any]) -> Any:
        """In the thread of the control channel, whatever runs meanwhile."""
        with self._shown.lock:
            self._pages.came(message["header"].get("session", ""), self._shown.now_ms())
        return before(stream, ident, message)

    def _hear_at_last(self, before: Handler, stream: Any, ident: Any, message: dict[str, Any]) -> Any:
        """When the cell has ended that ran then."""
        with self._shown.lock:
            header = message["header"]
            self._pages.came(header.get("session", ""), self._shown.now_ms(), _said_ms(header))
        return before(stream, ident, message)

    def _begins(self, _: object) -> None:
        header = (self._kernel.get_parent() or {}).get("header", {})
        with self._shown.lock:
            page, now_ms = header.get("session", ""), self._shown.now_ms()
            self._pages.asked(page, _said_ms(header), now_ms, self._shown.unseen)

    def _ended(self, result: ExecutionResult) -> None:
        """A cell has ended: what it shows is not cleared any more. What nobody reads (no history) says nothing."""
        if not self._shown.unseen or result.info is None or not result.info.store_history:
            return
        with self._shown.lock:
            certain, possible = self._pages.missed(page_id(self._shell), self._shown.unseen)
            self._shown.settle(self._pages.is_settled)
        if certain:
            show_note(self._shell, describe_missed(certain, "went on"))
        if possible:
            show_note(self._shell, describe_missed(possible, "may have gone on"))


def _said_ms(header: Mapping[str, Any]) -> int | None:
    """When a message was written, by the clock of who wrote it."""
    said = header.get("date")
    return round(said.timestamp() * 1000) if isinstance(said, datetime) else None


def describe_missed(cells: Sequence[CellOutputs], what: str) -> str:
    """The line that says so."""
    text = list_numbers(cells)
    first = cells[0].number
    whose = "it" if len(cells) == 1 else f"[{first}]"
    return (
        f"{text[:1].upper()}{text[1:]} {what} while this page was closed: "
        f"`%gpu attach {first}` shows all that {whose} showed."
    )
