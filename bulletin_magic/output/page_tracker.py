"""Pages that show a notebook: which of them were there while a cell of the pool showed something.

A page that is opened anew is another session of Jupyter's protocol, and no page shows what cells of another asked for.
"""

from collections.abc import Iterable
from typing import NamedTuple

from bulletin_magic.output.cell_outputs import CellOutputs

#: Of a cell that was so short, it is not worth asking whether it was seen to its end.
_LONG_MS = 2_000

#: A server says hello on all channels at once, and some are heard before others.
_SAME_MS = 1_000
#: What is heard so soon after the end of a cell has waited for it.
_WAITED_MS = 500


class _FirstContact(NamedTuple):
    """The first that the kernel heard of a page; None: it was said just then."""

    heard_ms: int
    said_ms: int | None


class PageTracker:
    """Judges by what pages say to the kernel. Times are in milliseconds of one clock, but where it says otherwise."""

    def __init__(self) -> None:
        self._heard: dict[str, _FirstContact] = {}
        self._behind_ms: dict[str, int] = {}

    def came(self, page: str, now_ms: int, said_ms: int | None = None) -> None:
        """The kernel hears a page for the first time, at once; or at last, what it has `said_ms` by its own clock."""
        known = self._heard.get(page)
        is_better = known is not None and said_ms is None and now_ms - known.heard_ms < _SAME_MS
        if known is None or is_better:
            self._heard[page] = _FirstContact(now_ms, said_ms)

    def _has_waited(self, page: str, cell: CellOutputs) -> bool:
        """Whether the first words of a page waited for the end of a cell."""
        heard_ms, said_ms = self._heard[page]
        is_last = said_ms is not None and cell.ended_ms is not None
        return is_last and 0 <= heard_ms - (cell.ended_ms or 0) < _WAITED_MS

    def _came_ms(self, page: str) -> int:
        """When a page came; rather too late than too early."""
        heard_ms, said_ms = self._heard[page]
        behind_ms = self._behind_ms.get(page)
        return heard_ms if said_ms is None or behind_ms is None else min(heard_ms, said_ms + behind_ms)

    def asked(self, page: str, said_ms: int | None, now_ms: int, cells: Iterable[CellOutputs]) -> None:
        """The kernel begins with what a page has asked for at `said_ms` of the page's own clock.

        It may have been queued behind a cell, and the page be gone. That what took least to arrive took no time tells
        how the clocks differ.
        """
        self.came(page, now_ms, said_ms)
        sent_ms = now_ms
        if said_ms is not None:
            behind_ms = min(now_ms - said_ms, self._behind_ms.get(page, now_ms - said_ms))
            self._behind_ms[page] = behind_ms
            sent_ms = said_ms + behind_ms
        for cell in cells:
            if cell.page == page and cell.ended_ms is not None and cell.ended_ms <= sent_ms:
                cell.seen_ms = max(cell.seen_ms, sent_ms)

    def missed(self, page: str, cells: Iterable[CellOutputs]) -> tuple[list[CellOutputs], list[CellOutputs]]:
        """The cells of other pages of which this one, which came after they had begun, misses something; each once.

        First those of which that is certain, since they went on when it was there; then those that may have shown more
        than the page that asked for them was there to see.
        """
        came_ms = self._came_ms(page)
        certain, possible = [], []
        for cell in cells:
            if cell.page == page or came_ms <= cell.began_ms or page in cell.told or cell.last_ms is None:
                continue
            if cell.last_ms > came_ms or self._has_waited(page, cell):
                certain.append(cell)
            elif (
                cell.ended_ms is not None
                and cell.last_ms > cell.seen_ms
                and cell.ended_ms - cell.began_ms >= _LONG_MS
                and not cell.told
            ):
                possible.append(cell)
        for cell in (*certain, *possible):
            cell.told.add(page)
        return certain, possible

    def is_settled(self, cell: CellOutputs) -> bool:
        """Whether there is nothing more to be said of a cell, unless it shows more."""
        if cell.ended_ms is None or cell.last_ms is None:
            return False
        if cell.told:
            return True
        return cell.last_ms <= cell.seen_ms and not any(
            cell.began_ms < self._came_ms(page) < cell.last_ms for page in self._heard if page != cell.page
        )
