"""IPython's advice how to leave a terminal, which it adds to each SystemExit: left out where `exit` ended a cell."""

import contextlib
import warnings

from IPython.core.interactiveshell import InteractiveShell

from bulletin.cell_words import EXITED

_ADVICE = "To exit: use"


def leave_out_exit_advice(shell: InteractiveShell, error: BaseException) -> None:
    """Keep the shell, until its cell is over, from saying how to exit beside this error, if `exit()` raised it.

    What else raises SystemExit is shown as by a cell that runs here.
    """
    if not isinstance(error, SystemExit) or error.code != EXITED:
        return
    warnings.filterwarnings("ignore", _ADVICE, UserWarning)
    added = warnings.filters[0]

    def restore() -> None:
        shell.events.unregister("post_execute", restore)
        with contextlib.suppress(ValueError):  # the cell has set the filters anew
            warnings.filters.remove(added)  # type: ignore[attr-defined]

    shell.events.register("post_execute", restore)
