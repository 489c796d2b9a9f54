"""The time between the cells of a notebook that keeps its place (`--keep`): told, and charged, as a cell of its own."""

from secrets import token_hex

from bulletin.ids import CellId

#: Agents alone draw such names: they run no cell that a kernel calls so.
PREFIX = "kept-"
#: What such a cell is called in lists and in the ledger.
LABEL = "kept between cells"


def make_kept_cell() -> CellId:
    """Draw the name of such a cell."""
    return CellId(f"{PREFIX}{token_hex(16)}")


def is_kept(cell: CellId | None) -> bool:
    """Tell whether no cell of the notebook runs, and its place is kept: by the name of what is told as its cell."""
    return cell is not None and cell.startswith(PREFIX)
