"""Errors about values and modules that cannot go where they are needed. The user must change or move them."""

import sys
from types import TracebackType
from typing import Any

from .base_error import BulletinError
from .value_words import RUN_AGAIN, advise, name_kind

#: So many differences of an environment are said with what they may have led to.
_MOST_DIFFERENCES = 3


class CannotSend(BulletinError):
    """A variable that the cell needs cannot leave the notebook. Nothing has run."""

    code = "cannot-send"

    def __init__(self, name: str, path: str, kind: str) -> None:
        super().__init__(name, path, kind)
        self.name, self.path, self.kind = name, path, kind

    def __str__(self) -> str:
        is_nested = self.path != self.name
        if " that was lost " in self.kind:
            advice = RUN_AGAIN
        elif is_nested:
            advice = advise(self.kind) or f"Create it inside the cell, or take it out of {self.name!r}."
        else:
            advice = advise(self.kind) or "Create it inside the cell."
        return (
            f"%%gpu cannot send {self.name!r}: {self.path if is_nested else 'it'} is {name_kind(self.kind)}. "
            f"Nothing was run; your variables are unchanged. {advice}"
        )


class CannotReturn(BulletinError):
    """What the cell made cannot be loaded in the notebook. The notebook is as before the cell."""

    code = "cannot-return"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem
        #: How the environment of the cell differs from the notebook's, in sentences.
        self.differences: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f"{self.name!r}" if self.name else "The result of the cell"
        said = f"{what} could not be loaded in the notebook: {self.problem}. Your variables are as before the cell."
        return " ".join((said, *self.differences[:_MOST_DIFFERENCES]))


class ModulesTooLarge(BulletinError):
    """The sources of the notebook's own modules are more than may travel. Nothing has run."""

    code = "modules-too-large"

    def __init__(self, size_bytes: int, limit_bytes: int, largest: str, largest_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes, largest, largest_bytes)
        self.size_bytes, self.limit_bytes = size_bytes, limit_bytes
        self.largest, self.largest_bytes = largest, largest_bytes

    def __str__(self) -> str:
        return (
            f"%%gpu cannot send the notebook's own modules: they are {self.size_bytes / 1e6:.1f} MB of source, and "
            f"{self.limit_bytes / 1e6:.0f} MB may travel; the largest, {self.largest!r}, is "
            f"{self.largest_bytes / 1e6:.1f} MB. Nothing was run; your variables are unchanged. "
            "Install what you do not edit, or move its data to files that are not modules."
        )


class StayedBehind(BulletinError):
    """A value was touched that is on the other side, and cannot travel from there. `where` says what became of it.

    It comes in the midst of the user's own code, and is shown with the lines that led to it.
    """

    code = "stayed-behind"

    def __init__(self, path: str, kind: str, where: str) -> None:
        super().__init__(path, kind, where)
        self.path, self.kind, self.where = path, kind, where

    def __str__(self) -> str:
        if "lost" in self.where:
            advice = RUN_AGAIN
        elif "pool" in self.where:
            advice = "Use it in a %%gpu cell."
        else:
            advice = advise(self.kind) or "Create it inside the cell."
        return f"{self.path} is {name_kind(self.kind)} and {self.where}. {advice}"

    def _render_traceback_(self) -> list[str]:
        """Show it as IPython shows any error, with the lines of the user's that led to it."""
        shell: Any = sys.modules["IPython.core.interactiveshell"].InteractiveShell.instance()
        at = _above_ours(self.__traceback__) or self.__traceback__
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, at)
        return lines


def _above_ours(at: TracebackType | None) -> TracebackType | None:
    """Copy a traceback down to where code of this package begins."""
    if at is None or at.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        return None
    return TracebackType(_above_ours(at.tb_next), at.tb_frame, at.tb_lasti, at.tb_lineno)


_OURS = __name__.partition(".")[0] + "."
