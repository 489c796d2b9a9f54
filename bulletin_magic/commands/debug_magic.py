"""`%debug` in the notebook after a %%gpu cell that failed: the frames are on the pool, and so it is opened there."""

import sys
from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell

from bulletin_magic.output.notes import show_note
from bulletin_magic.running.outcome import RemoteTraceback

_GONE = "The frames of that cell are gone with the process it ran in. Run it again, then %debug."


class DebugMagic:
    """Stands before the shell's own debugger."""

    def __init__(self, shell: InteractiveShell, debug_remotely: Callable[[], bool]) -> None:
        """Take what debugs the last cell where it ran; it returns False if that process is gone."""
        self._shell, self._debug_remotely = shell, debug_remotely
        self._local_debugger = shell.debugger

    def install(self) -> None:
        """Replace the shell's debugger.

        `%debug` and `%pdb` call `shell.debugger`, and IPython has no hook for it. Were that to change, `%debug` would
        open at the frames of ours that raised the error here, instead of those of the cell.
        """
        self._shell.debugger = self.debug  # type: ignore[method-assign]

    def uninstall(self) -> None:
        """Leave the shell as it was."""
        vars(self._shell).pop("debugger", None)

    def debug(self, force: bool = False) -> None:  # noqa: FBT001, FBT002  as the shell has it
        """Debug what was raised last, where it was raised."""
        error = getattr(sys, "last_value", None)
        if not isinstance(getattr(error, "_render_traceback_", None), RemoteTraceback):
            self._local_debugger(force)  # type: ignore[no-untyped-call]
        elif (force or self._shell.call_pdb) and not self._debug_remotely():
            show_note(self._shell, _GONE)
