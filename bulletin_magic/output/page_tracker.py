"""Pages that show a notebook: which of them were there while a cell of the pool showed something.

A page that is opened anew is another session of Jupyter's protocol, and no page shows what cells of another asked for.
"""

from collections.abc import Iterable
from typing import NamedTuple

from bulletin_magic.output.cell_outputs import CellOutputs

#: Of a cell that was so short, it is not worth asking whether it was seen to its end.
_LONG_CELL_MS = 2_000

#: A server says hello on all channels at once, and some are heard before others.
_SAME_GREETING_MS = 1_000
#: What is heard so soon after the end of a cell has waited for it.
_QUEUED_MS = 500


class _FirstContact(NamedTuple):
    """The first that the kernel heard of a page. Without `said_ms` it was said just then."""

    heard_ms: int
    said_ms: int | None  #: by the page's own clock


class PageTracker:
    """Judges by what pages say to the kernel. Times are in milliseconds of one clock, unless it says otherwise."""

    def __init__(self) -> None:
        self._first: dict[str, _FirstContact] = {}
        #: By how much the clock of each page is behind the kernel's, at most.
        self._clock_lag_ms: dict[str, int] = {}

    def note_arrival(self, page: str, now_ms: int, said_ms: int | None = None) -> None:
        """Note that the kernel hears a page, if it is the first time.

        `said_ms` is the page's own clock when it wrote, where its request may have been queued; None: it was not.
        """
        known = self._first.get(page)
        is_exact = said_ms is None and known is not None and known.said_ms is not None
        if known is None or (is_exact and now_ms - known.heard_ms < _SAME_GREETING_MS):
            self._first[page] = _FirstContact(now_ms, said_ms)

    def _has_waited(self, page: str, cell: CellOutputs) -> bool:
        """Tell whether the first request of a page waited for the end of a cell."""
        heard_ms, said_ms = self._first[page]
        is_last = said_ms is not None and cell.ended_ms is not None
        return is_last and 0 <= heard_ms - (cell.ended_ms or 0) < _QUEUED_MS

    def _came_ms(self, page: str) -> int:
        """Return when a page came; rather too late than too early."""
        heard_ms, said_ms = self._first[page]
        lag_ms = self._clock_lag_ms.get(page)
        return heard_ms if said_ms is None or lag_ms is None else min(heard_ms, said_ms + lag_ms)

    def note_request(self, page: str, said_ms: int | None, now_ms: int, cells: Iterable[CellOutputs]) -> None:
        """Note that the kernel begins with what a page has asked for at `said_ms` of the page's own clock.

        It may have been queued behind a cell, and the page be gone. That what took least to arrive took no time tells
        how the clocks differ.
        """
        self.note_arrival(page, now_ms, said_ms)
        sent_ms = now_ms
        if said_ms is not None:
            lag_ms = min(now_ms - said_ms, self._clock_lag_ms.get(page, now_ms - said_ms))
            self._clock_lag_ms[page] = lag_ms
            sent_ms = said_ms + lag_ms
        for cell in cells:
            if cell.page == page and cell.ended_ms is not None and cell.ended_ms <= sent_ms:
                cell.seen_until_ms = max(cell.seen_until_ms, sent_ms)

    def pop_missed(self, page: str, cells: Iterable[CellOutputs]) -> tuple[list[CellOutputs], list[CellOutputs]]:
        """Return the cells of other pages of which this one misses something, having come after they began; each once.

        First those of which that is certain, since they went on when it was there; then those that may have shown more
        than the page that asked for them was there to see.
        """
        came_ms = self._came_ms(page)
        certain, possible = [], []
        for cell in cells:
            if cell.page == page or came_ms <= cell.began_ms or page in cell.told_pages or cell.last_ms is None:
                continue
            if cell.last_ms > came_ms or self._has_waited(page, cell):
                certain.append(cell)
            elif (
                cell.ended_ms is not None
                and cell.last_ms > cell.seen_until_ms
                and cell.ended_ms - cell.began_ms >= _LONG_CELL_MS
                and not cell.told_pages
            ):
                possible.append(cell)
        for cell in (*certain, *possible):
            cell.told_pages.add(page)
        return certain, possible

    def is_settled(self, cell: CellOutputs) -> bool:
        """Tell whether there is nothing more to be said of a cell, unless it shows more."""
        if cell.ended_ms is None or cell.last_ms is None:
            return False
        if cell.told_pages:
            return True
        return cell.last_ms <= cell.seen_until_ms and not any(
            cell.began_ms < self._came_ms(page) < cell.last_ms for page in self._first if page != cell.page
        )
