"""The frames of a cell that failed, for `%debug` in the next one; with any other cell they go, and what they hold."""

import contextlib
import gc
import re
import sys
from types import TracebackType
from typing import Any

from bulletin.state.names import HEARD

#: Cells that look at the frames, and what the views of widgets say meanwhile.
_LOOKS = re.compile(rf"%debug|%tb|\bpdb\b|\bpost_mortem\b|\bsys\.last_|{HEARD}")
_LAST = ("last_exc", "last_type", "last_value", "last_traceback")


class Postmortem:
    """At most one error and the way to it. The error itself is without its frames while no cell looks at them."""

    def __init__(self) -> None:
        self._error: BaseException | None = None
        self._frames: TracebackType | None = None

    def begin(self, source: str, shell: Any) -> None:
        """Put the frames where debuggers look if the cell that begins may do so; else let them go."""
        if _LOOKS.search(source):
            if self._error is not None:
                self._error.__traceback__ = self._frames
                sys.last_type, sys.last_value, sys.last_traceback = type(self._error), self._error, self._frames
                setattr(sys, "last_exc", self._error)  # noqa: B010  since Python 3.12
            return
        had_frames = self._frames is not None
        self._error = self._frames = None
        for name in _LAST:
            with contextlib.suppress(AttributeError):
                delattr(sys, name)
        formatter: Any = shell.InteractiveTB
        vars(formatter).pop("tb", None)
        if formatter.pdb is not None:  # its debugger keeps what it has shown
            formatter.pdb = None
        if had_frames:
            gc.collect()  # frames and errors lead to each other, and may hold much of a GPU

    def end(self, error: BaseException | None) -> None:
        """Keep the frames of the error that a cell has ended with; those of the one before go."""
        if error is not None:
            self._error, self._frames = error, error.__traceback__
        if self._error is not None:
            self._error.__traceback__ = None  # it travels, and may be kept, without them
