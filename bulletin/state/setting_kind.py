"""What one kind of setting is: how it is read and written, and which library it belongs to."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class SettingKind(NamedTuple):
    """One kind of setting: plain data that is read here and written there, whole."""

    module: str
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]
    #: What a library's own defaults are read as. With none, the library is left alone where it is not imported.
    default: object = None


def shell_of_cells() -> Any:
    """Return IPython's shell of this process, which runs its cells; None where there is none."""
    interactive: Any = sys.modules.get("IPython.core.interactiveshell")
    return interactive.InteractiveShell._instance if hasattr(interactive, "InteractiveShell") else None
