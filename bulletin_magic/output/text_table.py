"""A small table with sentences below it, as a notebook shows it: in HTML, and in plain text of the same words."""

import html
from collections.abc import Sequence

_DIM = "opacity:.7;font-size:90%"


def as_bundle(
    head: Sequence[str], rows: Sequence[Sequence[str]], below: Sequence[str], right: set[int]
) -> dict[str, str]:
    """Return the table and the sentences as a bundle of MIME types. Columns `right`, from 0, are right-aligned."""
    text = [*_text(head, rows, right), *below]
    notes = "".join(f'<div role="note" style="{_DIM}">{html.escape(sentence)}</div>' for sentence in below)
    return {"text/plain": "\n".join(text), "text/html": (as_html(head, rows, right) if rows else "") + notes}


def _text(head: Sequence[str], rows: Sequence[Sequence[str]], right: set[int]) -> list[str]:
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return [*lines, ""]


def as_html(head: Sequence[str], rows: Sequence[Sequence[str]], right: set[int]) -> str:
    """Return the table alone, in HTML; every word in it is escaped."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "".join(
            f'<{tag} style="text-align:{"right" if column in right else "left"}">{html.escape(cell)}</{tag}>'
            for column, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>"
