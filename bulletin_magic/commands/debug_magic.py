"""`%debug` in the notebook after a %%gpu cell that failed: the frames are on the pool, and so it is opened there."""

import sys
from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell

from bulletin_magic.output.notes import show_note
from bulletin_magic.running.outcome import RemoteTraceback

_GONE = "The frames of that cell are gone with the process it ran in. Run it again, then %debug."


class DebugMagic:
    """Stands before the shell's own debugger."""

    def __init__(self, shell: InteractiveShell, open_there: Callable[[], bool]) -> None:
        """`open_there` debugs the last cell where it ran; False if that process is gone."""
        self._shell, self._open_there = shell, open_there
        self._own = shell.debugger

    def serve(self) -> None:
        """Begin."""
        self._shell.debugger = self.debug  # type: ignore[method-assign]

    def stop(self) -> None:
        """Leave the shell as it was."""
        vars(self._shell).pop("debugger", None)

    def debug(self, force: bool = False) -> None:  # noqa: FBT001, FBT002  as the shell has it
        """Debug what was raised last, where it was raised."""
        error = getattr(sys, "last_value", None)
        if not isinstance(getattr(error, "_render_traceback_", None), RemoteTraceback):
            self._own(force)  # type: ignore[no-untyped-call]
        elif (force or self._shell.call_pdb) and not self._open_there():
            show_note(self._shell, _GONE)
