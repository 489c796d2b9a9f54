"""A person's own cells that nodes have: those that run, and those whose results wait for a notebook. Pure."""

from typing import Literal

import msgspec

from bulletin.ids import CellId
from bulletin.wire.messages import Found


class NodeCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that a node has. `attach` is what a notebook of its user types to have it."""

    cell: CellId
    node: str
    state: Literal["running", "finished", "lost"]
    #: The first line of its source that says something: its own user reads it, and nobody else.
    line: str
    label: str
    since_ms: int
    #: Its notebook is there, and takes its results itself.
    is_attended: bool
    attach: str


class NodeCells(msgspec.Struct, frozen=True, kw_only=True):
    """The cells, the oldest first; `missing` are nodes that did not answer."""

    cells: tuple[NodeCell, ...]
    missing: tuple[str, ...]


def view_cells(found: Found) -> NodeCells:
    """Show what nodes said, to the user whose cells they are."""
    return NodeCells(
        cells=tuple(
            NodeCell(
                cell=note.cell,
                node=note.node,
                state=note.state,
                line=note.line,
                label=note.label,
                since_ms=note.since_ms,
                is_attended=note.is_attended,
                attach=f"%gpu attach {note.cell}",
            )
            for note in found.cells
        ),
        missing=found.missing,
    )
