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
from bulletin_magic.output.page_arrivals import FIRST_REQUEST, ArrivalListener
from bulletin_magic.output.page_tracker import PageTracker

Handler = Callable[..., Any]


class MissedOutputNotifier:
    """Hears pages come, and tells each what it has missed."""

    def __init__(self, shell: InteractiveShell, history: OutputHistory) -> None:
        self._shell, self._history, self._pages = shell, history, PageTracker()
        self._kernel: Any = getattr(shell, "kernel", None)
        self._arrivals = ArrivalListener(self._kernel, self._note_arrival)
        #: Of each channel whose handler was replaced: the kernel's handlers, its own one, and ours.
        self._replaced: list[tuple[dict[str, Any], Handler, Handler]] = []

    def install(self) -> None:
        """Listen to pages, in a kernel that has some."""
        if self._kernel is None:
            return
        self._shell.events.register("pre_run_cell", self._before_cell)
        self._shell.events.register("post_run_cell", self._after_cell)
        self._arrivals.install()
        # A page is first heard of by its `kernel_info_request`, and ipykernel has no hook for that. Were the handlers
        # gone, a page would count as come with its first cell: one that came while a cell ran would be told less.
        for channel, handle in (("control", self._handle_on_control), ("shell", self._handle_on_shell)):
            handlers = getattr(self._kernel, f"{channel}_handlers", {})
            original = handlers.get(FIRST_REQUEST)
            if original is not None:
                ours = functools.partial(handle, original)
                handlers[FIRST_REQUEST] = ours
                self._replaced.append((handlers, original, ours))

    def uninstall(self) -> None:
        """Leave the kernel as it was."""
        self._arrivals.uninstall()
        for event, callback in (("pre_run_cell", self._before_cell), ("post_run_cell", self._after_cell)):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)
        for handlers, original, ours in self._replaced:
            if handlers[FIRST_REQUEST] is ours:
                handlers[FIRST_REQUEST] = original
        self._replaced.clear()

    def _note_arrival(self, page: str) -> None:
        """Note a page's first request at once, as it is heard beside the cell that runs."""
        with self._history.lock:
            self._pages.note_arrival(page, self._history.now_ms())

    def _handle_on_control(self, original: Handler, stream: Any, ident: Any, message: dict[str, Any]) -> Any:
        """Note a page's first request at once: the control channel has a thread of its own, whatever runs meanwhile.

        Its server may ask here for it, where no cell runs.
        """
        self._note_arrival(message["header"].get("session", ""))
        return original(stream, ident, message)

    def _handle_on_shell(self, original: Handler, stream: Any, ident: Any, message: dict[str, Any]) -> Any:
        """Note a page's first request late: the shell channel hears it when the cell has ended that ran then."""
        with self._history.lock:
            header = message["header"]
            self._pages.note_arrival(header.get("session", ""), self._history.now_ms(), _said_ms(header))
        return original(stream, ident, message)

    def _before_cell(self, _: object) -> None:
        header = (self._kernel.get_parent() or {}).get("header", {})
        with self._history.lock:
            page, now_ms = header.get("session", ""), self._history.now_ms()
            self._pages.note_request(page, _said_ms(header), now_ms, self._history.unseen)

    def _after_cell(self, result: ExecutionResult) -> None:
        """Tell the page what it has missed: what is shown at the end of a cell is not cleared by the cell any more."""
        # A cell without history is not one that a person reads.
        if not self._history.unseen or result.info is None or not result.info.store_history:
            return
        with self._history.lock:
            certain, possible = self._pages.pop_missed(page_id(self._shell), self._history.unseen)
            self._history.forget_settled(self._pages.is_settled)
        if certain:
            show_note(self._shell, describe_missed(certain, "went on"))
        if possible:
            show_note(self._shell, describe_missed(possible, "may have gone on"))


def _said_ms(header: Mapping[str, Any]) -> int | None:
    """Return when a message was written, by the clock of who wrote it."""
    said = header.get("date")
    return round(said.timestamp() * 1000) if isinstance(said, datetime) else None


def describe_missed(cells: Sequence[CellOutputs], what: str) -> str:
    """Write the line that says which cells a page has missed; `what` they did meanwhile."""
    text = list_numbers(cells)
    first = cells[0].number
    whose = "it" if len(cells) == 1 else f"[{first}]"
    return (
        f"{text[:1].upper()}{text[1:]} {what} while this page was closed: "
        f"`%gpu attach {first}` shows all that {whose} showed."
    )
