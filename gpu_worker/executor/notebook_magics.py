"""Line magics that are about the notebook's history, page or kernel: a cell on the pool says where they belong."""

from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError

#: Those that IPython has everywhere would find no history here and say nothing; those of a kernel are not here at all.
NAMES = (
    "gpu",
    *("history", "hist", "recall", "rep", "rerun", "notebook", "logstart", "logon", "logoff", "logstop", "logstate"),
    *("edit", "ed", "store", "clear", "less", "more", "man", "autosave", "connect_info", "qtconsole", "subshell"),
)


def register(shell: Any) -> None:
    """Put a stand-in into the shell for each of them."""
    for name in NAMES:
        shell.register_magic_function(_make_refusal(name), "line", name)


def _make_refusal(name: str) -> Callable[[str], None]:
    def refuse(_line: str) -> None:
        raise UsageError(f"%{name} is for the notebook. Write it in a cell of its own, without %%gpu.")

    return refuse
