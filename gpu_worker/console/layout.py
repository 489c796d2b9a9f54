"""How a report is laid out, by rich: paragraphs that fold, tables as wide as they need; plain text in a pipe."""

import io
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from bulletin.joiners import joins

#: Paragraphs are no wider, on however wide a terminal, and just as wide in a pipe.
WIDTH = 120
#: No table is wider.
_WIDEST = 100_000
_INDENT = "  "

#: What a report is made of, from its top to its bottom.
Blocks = list[RenderableType]


class ReportTable:
    """Rows below a head, each column as wide as its widest cell, whatever the width of the console.

    Ids and names in it are to be copied and searched for, so no cell is folded. Each row may have a paragraph below it.
    """

    def __init__(self, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] | None = None) -> None:
        self._table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=bool(head))
        for name in head or (rows[0] if rows else ()):
            self._table.add_column(name, no_wrap=True)
        for row in rows:
            self._table.add_row(*(Text(printable(cell)) for cell in row))
        self._notes = notes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._table, options.update(width=_WIDEST), pad=False)
        notes = iter(self._notes or ())
        for at, line in enumerate(lines):
            yield Segments([Segment(_INDENT), *_without_end(line), Segment.line()])
            if at and self._notes:
                yield paragraph(next(notes), indent=7)


def _without_end(line: list[Segment]) -> list[Segment]:
    """Leave out the spaces that end a row: a terminal would fold them into an empty line."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    return [*kept[:-1], Segment(kept[-1].text.rstrip(), kept[-1].style)] if kept else []


def paragraph(text: str, indent: int = 0) -> RenderableType:
    """Make a block of text that is folded between words."""
    return Padding(Text(printable(text)), (0, 0, 0, indent), expand=False)


def line(text: str) -> RenderableType:
    """Make one line that is not folded, however long it is."""
    return Text(printable(text), no_wrap=True, overflow="ignore")


def name_value_lines(named: Sequence[tuple[str, str]]) -> RenderableType:
    """Make lines of a name and what belongs to it."""
    return ReportTable((), named)


def plain_lines(blocks: Blocks) -> list[str]:
    """Lay a report out as it stands in a pipe: the same everywhere, without colours or spaces at the end of a line."""
    file = io.StringIO()
    _print(Console(file=file, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False), blocks)
    return [one.rstrip() for one in file.getvalue().splitlines()]


def write(blocks: Blocks, file: TextIO) -> None:
    """Write a report: for eyes where the file is a terminal, else as `plain_lines`."""
    if file.isatty():
        console = Console(file=file, force_jupyter=False)
        console.width = min(console.width, WIDTH)
        _print(console, blocks)
    else:
        file.writelines(one + "\n" for one in plain_lines(blocks))


def _print(console: Console, blocks: Blocks) -> None:
    for block in blocks:
        console.print(block, markup=False, emoji=False, highlight=False, crop=False)


def printable(text: str) -> str:
    """Replace what would move the cursor of who reads it, as in the name of a user."""
    return "".join(letter if letter.isprintable() or joins(text, at) else "\ufffd" for at, letter in enumerate(text))
