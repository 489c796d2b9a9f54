"""Which cell a task or a thread belongs to: what it says is an output of that cell, also when the cell has ended."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bulletin.cpython.thread_hooks import surround_threads
from bulletin.ids import CellId

#: The cell whose code runs in this context, for tasks that outlive it.
_OWNER: ContextVar[CellId | None] = ContextVar("bulletin_cell", default=None)


class CellOwners:
    """The cell that runs, and those whose tasks and threads go on."""

    def __init__(self) -> None:
        #: The cell that runs, or ran last; empty before the first.
        self.cell = CellId("")
        #: By the number of a thread, the cell that has started it.
        self._threads: dict[int, CellId] = {}

    @property
    def current(self) -> CellId:
        """The cell whose code has started this task or thread, or the one that runs."""
        return _OWNER.get() or self._threads.get(threading.get_ident()) or self.cell

    @property
    def has_threads(self) -> bool:
        """Whether a thread runs that a cell has started."""
        return bool(self._threads)

    @staticmethod
    def own_context(cell: CellId) -> None:
        """Let what this context does, and what is started in it, be the cell's from now on."""
        _OWNER.set(cell)

    def follow_threads(self) -> None:
        """Let threads belong to the cell that starts them, for as long as they run. Once in a process."""
        owners: dict[int, CellId] = {}  # by the id of a thread that is being started

        @contextmanager
        def starting(thread: threading.Thread) -> Iterator[None]:
            owners[id(thread)] = self.current
            try:
                yield
            finally:
                owners.pop(id(thread), None)

        @contextmanager
        def running(thread: threading.Thread) -> Iterator[None]:
            number = threading.get_ident()
            cell = owners.get(id(thread), self.cell)
            if cell:
                self._threads[number] = cell
            try:
                yield
            finally:
                self._threads.pop(number, None)

        surround_threads(starting, running)
