"""A notebook's state on its way to a cell and back: `needs`, `capture`, `restore`, `changes`, `apply`, in that order.

The notebook's kernel calls the first two and the last, the executor the others. Nothing here opens a socket or a file.
"""

from .capture import Captured, capture
from .changes import Baseline, changes
from .needs import Needs, needs
from .report import Stayed
from .restore import Applied, apply, restore

__all__ = ["Applied", "Baseline", "Captured", "Needs", "Stayed", "apply", "capture", "changes", "needs", "restore"]
