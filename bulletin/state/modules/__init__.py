"""Modules that the user wrote beside the notebook: sent as source, imported by name, kept alike on both sides.

The notebook calls `observe` after each cell, `out` before a %%gpu cell, and `follow` and `apply` after it; the executor
`settle` and `snapshot` before the cell and `changed_since` after it. What is sent is plain data.

A module is the user's own unless it is built in, of the standard library, below `site-packages` or `dist-packages`, or
Bulletin's. So is an editable install. The truth is the module as the notebook has loaded it: an edited file changes
nothing until the notebook (by itself or by `%autoreload`) or a %%gpu cell reloads it; then both sides run the file as
it was when the cell was sent.

What does not travel: data files beside modules, compiled modules (`import` says so), modules that only computed names
lead to (unless their package is small), and globals that are neither atoms nor plain containers of atoms. Processes
that a cell starts afresh, not by fork, do not have the modules.
"""

from .executor import Before, ExecutorModules
from .notebook import MAX_SOURCES_BYTES, NotebookModules
from .shipment import Changes, Known, Shipment
from .sources import imports_of, imports_of_cell, submodules

__all__ = [
    "MAX_SOURCES_BYTES",
    "Before",
    "Changes",
    "ExecutorModules",
    "Known",
    "NotebookModules",
    "Shipment",
    "apply",
    "changed_since",
    "follow",
    "imports_of",
    "imports_of_cell",
    "imports_through",
    "keep",
    "observe",
    "out",
    "settle",
    "snapshot",
    "submodules",
]

_notebook, _executor = NotebookModules(), ExecutorModules()
observe, out, keep = _notebook.observe, _notebook.out, _notebook.keep
imports_through = _notebook.imports_through
follow, apply = _notebook.follow, _notebook.apply
settle, snapshot, changed_since = _executor.settle, _executor.snapshot, _executor.changed_since
