"""A notebook's state on its way to a cell and back: `needs`, `capture`, `restore`, `changes`, `apply`, in that order.

The notebook's kernel calls the first two and the last, the executor the others. Each side keeps its half of a `Table`,
which says what the other has already. Nothing here opens a socket or a file. The page docs/explanation/state.md has the
picture: table, unit, region and stream, the life of one value, and the words of this folder.
"""

from .apply import Applied, apply
from .capture import Captured, capture
from .changes import Baseline, Changed, changes, whole
from .handles import Handle
from .meanwhile import Meanwhile, depart
from .needs import Needs, needs
from .object_paths import Stayed
from .restore import restore
from .table import Table

__all__ = [
    "Applied", "Baseline", "Captured", "Changed", "Handle", "Meanwhile", "Needs", "Stayed", "Table",
    "apply", "capture", "changes", "depart", "needs", "restore", "whole",
]  # fmt: skip
