"""What the kernel's request of this moment says about the front end that sent it."""

from collections.abc import Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


def is_notebook(shell: InteractiveShell) -> bool:
    """Return whether outputs go to a front end that shows MIME bundles; else the shell is in a terminal."""
    return getattr(shell, "kernel", None) is not None


def cell_text(shell: InteractiveShell) -> str:
    """Return the notebook's cell that runs, as the user wrote it; empty in a terminal."""
    code = _request(shell).get("content", {}).get("code", "")
    return code if isinstance(code, str) else ""


def message_id(shell: InteractiveShell) -> str:
    """Return the id of the message that the kernel is busy with; empty in a terminal."""
    return str(_request(shell).get("header", {}).get("msg_id", ""))


def page_id(shell: InteractiveShell) -> str:
    """Return the id of the page (or other client) whose request the kernel is busy with; empty in a terminal."""
    return str(_request(shell).get("header", {}).get("session", ""))


def _request(shell: InteractiveShell) -> Mapping[str, Any]:
    kernel: Any = getattr(shell, "kernel", None)
    return (kernel.get_parent() if kernel is not None else None) or {}
