"""What `%gpu attach` prints: the cells of this user that nodes still have."""

from collections.abc import Callable

from bulletin.ids import SHORT
from bulletin.units import show_duration
from bulletin.wire.messages import CellNote, Found


def describe_found(found: Found, is_own: Callable[[CellNote], bool]) -> str:
    """List each cell that is not this notebook's own (`is_own`), and what to type; or that none is there."""
    cells = [note for note in found.cells if not is_own(note)]
    lines = [_describe(note) for note in cells]
    free = [note for note in cells if not note.is_attended]
    if free:
        name, whose = (free[0].cell[:SHORT], "this") if len(free) == 1 else ("ID", "such a")
        lines.append(f"`%gpu attach {name}` shows all that {whose} cell printed, and brings its variables here.")
    elif lines:
        lines.append("A notebook that has just ended counts as there for some seconds more: then ask again.")
    else:  # one of its own may have ended so lately that its node still has it
        a_cell = "another cell" if found.cells else "a cell"
        lines.append(f"No node has {a_cell} of yours that this notebook could join.")
    if found.missing:
        lines.append(f"Not answered: {', '.join(found.missing)}.")
    return "\n".join(lines)


def _describe(note: CellNote) -> str:
    label = f" [{note.label}]" if note.label else ""
    state = "in a notebook that is there" if note.is_attended else note.state
    return f"{note.cell[:SHORT]}{label}  {note.line}  ({state}, {note.node}, began {show_duration(note.since_ms)} ago)"


def choose(found: Found, name: str) -> CellNote | None:
    """Return the cell whose id begins so, if there is exactly one."""
    named = [note for note in found.cells if note.cell.startswith(name)]
    return named[0] if len(named) == 1 else None
