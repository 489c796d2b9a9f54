"""What the pool's cells of this kernel showed, kept for a page that was not there: `%gpu attach 3` shows it anew."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from IPython.core.interactiveshell import InteractiveShell

from bulletin.ids import CellId
from bulletin.units import show_duration, show_size
from bulletin.wire.messages import ErrorText
from bulletin_magic.output.cell_outputs import CellOutputs, JupyterMessage
from bulletin_magic.output.frontend import cell_text, message_id, page_id
from bulletin_magic.output.notes import dim
from bulletin_magic.output.output_writer import cell_number

#: One cell may have this part of all that is kept: a quarter.
_CELL_SHARE = 4
#: What a cell counts that showed nothing.
_OVERHEAD_BYTES = 1024
_LISTED = 20
#: Of so many cells, or blocks of cells, it is known by their ids which they are.
_KNOWN_IDS = 1024


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class OutputHistory:
    """What the last cells of this kernel on the pool showed. Any thread may add to it."""

    def __init__(self, shell: InteractiveShell, limit: Callable[[], int], now_ms: Callable[[], int] = _now_ms) -> None:
        """Take what says how many bytes are kept in all (`limit`)."""
        self._shell, self._limit, self.now_ms = shell, limit, now_ms
        self._cells: deque[CellOutputs] = deque()  # oldest first
        self._by_id: OrderedDict[CellId, CellOutputs] = OrderedDict()
        self._bytes = 0
        #: The front end's message that asked for the last of them.
        self._request = ""
        self.lock = threading.RLock()
        #: Those that no page is known to have seen to their end.
        self.unseen: dict[CellOutputs, None] = {}

    def begin(self, cell: CellId | None = None) -> CellOutputs:
        """Return the outputs of the notebook's cell that runs: a cell is sent for it, or a block of it."""
        request = message_id(self._shell)
        with self.lock:
            last = self._cells[-1] if self._cells else None
            if last is None or not request or request != self._request:
                last = CellOutputs(
                    cell_number(self._shell),
                    first_telling_line(cell_text(self._shell)),
                    page_id(self._shell),
                    self.now_ms(),
                )
                self._cells.append(last)
                self._bytes += _OVERHEAD_BYTES
            self._request, last.ended_ms = request, None
            if cell is not None:
                self._by_id[cell] = last
                if len(self._by_id) > _KNOWN_IDS:
                    self._by_id.popitem(last=False)
        return last

    def add(self, cell: CellOutputs, kind: str, message: JupyterMessage, size: int) -> None:
        """Add what a cell shows: a Jupyter message, and the size of its content in bytes."""
        limit = self._limit()
        with self.lock:
            if cell.is_forgotten:
                return
            before = cell.size_bytes
            cell.add(kind, message, size, self.now_ms())
            cell.shrink(limit // _CELL_SHARE)
            self._bytes += cell.size_bytes - before
            if cell.last_ms is not None:
                self.unseen[cell] = None
            while self._bytes > limit:
                oldest = next((one for one in self._cells if one is not cell and one.ended_ms is not None), None)
                if oldest is None:
                    break
                self._forget(oldest)

    def add_note(self, cell: CellOutputs, text: str) -> None:
        """Add what Bulletin says of a cell."""
        self.add(cell, "display_data", {"data": dim(text), "metadata": {}}, len(text))

    def add_error(self, cell: CellOutputs, error: ErrorText) -> None:
        """Add what a cell has raised, as the notebook shows it."""
        content = {"ename": error.name, "evalue": error.value, "traceback": list(error.traceback)}
        self.add(cell, "error", content, sum(map(len, error.traceback)))

    def add_late(self, name: CellId, kind: str, message: JupyterMessage, size: int) -> None:
        """Add what a cell prints that has ended."""
        with self.lock:
            cell = self.find_by_id(name)
            if cell is not None:
                self.add(cell, kind, message, size)

    def forget_settled(self, is_settled: Callable[[CellOutputs], bool]) -> None:
        """Forget which cells have been seen to their end."""
        self.unseen = {cell: None for cell in self.unseen if not is_settled(cell)}

    def move_to_page(self, cell: CellOutputs, page: str) -> None:
        """Take in that all of a cell is shown on this page from now on."""
        with self.lock:
            cell.page, cell.seen_until_ms = page, self.now_ms()
            cell.told_pages.clear()

    def end(self, cell: CellOutputs) -> None:
        """Note that the cell has ended."""
        with self.lock:
            cell.ended_ms = self.now_ms()

    def find_by_id(self, cell: CellId) -> CellOutputs | None:
        """Return the outputs of this cell; None where it is another notebook's, or is not kept."""
        found = self._by_id.get(CellId(cell.partition("-")[0]))  # one that was run again has a number
        return None if found is None or found.is_forgotten else found

    def find_by_number(self, number: int) -> CellOutputs | None:
        """Return the last cell of this number that has shown something, or may."""
        with self.lock:
            cells = (one for one in reversed(self._cells) if one.number == number)
            return next((one for one in cells if _has_something_to_show(one)), None)

    def describe(self) -> list[str]:
        """Return a line for each of the last cells that showed something or still run, and what to type."""
        with self.lock:
            cells = [one for one in self._cells if _has_something_to_show(one)][-_LISTED:]
            lines = [_describe(one, self.now_ms()) for one in cells]
        if cells:
            missed = next((one for one in reversed(cells) if one.told_pages), cells[-1])
            lines.append(
                f"`%gpu attach {missed.number}` shows anew what cell [{missed.number}] of this notebook showed."
            )
        return lines

    def _forget(self, cell: CellOutputs) -> None:
        self._cells.remove(cell)
        cell.is_forgotten = True
        self._bytes -= cell.size_bytes + _OVERHEAD_BYTES
        self.unseen.pop(cell, None)


def first_telling_line(source: str) -> str:
    """Return the first line of a cell that is more than a remark or a magic, cut to a fair length."""
    lines = (line.strip() for line in source.splitlines())
    said = [line for line in lines if line and not line.startswith("#")]
    return next((line for line in said if not line.startswith("%%")), said[0] if said else "")[:80]


def describe_replay(cell: CellOutputs, now_ms: int, *, goes_on: bool) -> str:
    """Write the line above what a cell showed, when it is shown once more."""
    if goes_on:
        text = f"All that cell [{cell.number}] has shown so far; what it shows from now on appears here, too."
    elif cell.ended_ms is None:
        text = f"All that cell [{cell.number}] has shown so far."
    else:
        text = f"All that cell [{cell.number}] showed. It ended {show_duration(now_ms - cell.ended_ms)} ago."
    return f"{text} The first {show_size(cell.dropped_bytes)} of it are not kept." if cell.dropped_bytes else text


def _has_something_to_show(cell: CellOutputs) -> bool:
    return cell.last_ms is not None or cell.ended_ms is None


def _describe(cell: CellOutputs, now_ms: int) -> str:
    if cell.ended_ms is None:
        state = f"running, began {show_duration(now_ms - cell.began_ms)} ago"
    else:
        state = f"ended {show_duration(now_ms - cell.ended_ms)} ago"
    missed = ", while this page was closed" if cell.told_pages else ""
    return f"[{cell.number}]  {cell.first_line}  ({state}{missed})"


def list_numbers(cells: Iterable[CellOutputs]) -> str:
    """Write the numbers of cells for people: "cell [3]", "cells [3], [4] and [5]"."""
    *first, last = (f"[{cell.number}]" for cell in cells)
    return f"cells {', '.join(first)} and {last}" if first else f"cell {last}"
