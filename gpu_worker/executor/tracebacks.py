"""Tracebacks of cells: without our own frames, and quick to show."""

import inspect
import types
from pathlib import Path
from typing import Any

from bulletin.state.names import CALL

_OURS = ("gpu_worker.", "bulletin.", "bulletin_magic.")
#: Where `inspect` remembers which module a file is.
_module_of: dict[str, str] = inspect.modulesbyfile


def error_message(error: BaseException) -> str:
    """Return the message of an error, and a sentence in its place where its `__str__` raises."""
    try:
        return str(error)
    except Exception as error_of_str:  # noqa: BLE001  the user's __str__
        return f"<{type(error).__name__}, whose __str__ raises {type(error_of_str).__name__}>"


def register_cell_module(error: BaseException | None, namespace: dict[str, Any]) -> None:
    """Tell `inspect` that the cells on the way to an error belong to `__main__`.

    Else it looks through all modules for their files, again for each frame that IPython shows: where torch is imported,
    a recursion that does not end took half a minute to show.
    """
    at = None if error is None else error.__traceback__
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        if at.tb_frame.f_globals is namespace and file not in _module_of:
            _module_of[file] = _module_of[str(Path(file).absolute())] = "__main__"
        at = at.tb_next


def hide_bulletin_frames(error: BaseException | None) -> None:
    """Take our own frames out of the tracebacks of an error and of what led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        rebuilt: types.TracebackType | None = None
        at = error.__traceback__
        chain = []
        while at is not None:
            chain.append(at)
            at = at.tb_next
        for entry in reversed(chain):
            frame = entry.tb_frame
            if not frame.f_globals.get("__name__", "").startswith(_OURS) and CALL not in frame.f_code.co_names:
                # An interrupt may come at an instruction that belongs to no line: the function's own stands for it.
                line = entry.tb_lineno or entry.tb_frame.f_code.co_firstlineno
                rebuilt = types.TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, line)
        error.__traceback__ = rebuilt
        error = error.__cause__ or error.__context__
