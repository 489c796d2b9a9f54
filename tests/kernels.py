"""Kernels of the tests: reached through sockets in a folder of their own, so that no other process can take a port."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

#: Gone with this process. Short, since a socket's path may have some hundred letters and no more.
_FOLDER = tempfile.TemporaryDirectory(prefix="bulletin-kernels-")
_numbers = itertools.count()


def where_to_listen() -> dict[str, str]:
    """Choose sockets that nothing else has, as settings of a `KernelManager`.

    Jupyter's choice of TCP ports is a race: it looks for free ones, and the kernel binds them a second later. In
    between another test's process may have them; the kernel then never answers.
    """
    return {"transport": "ipc", "ip": str(Path(_FOLDER.name) / str(next(_numbers)))}


def make_manager(**options: Any) -> KernelManager:
    """Make a manager of a kernel that listens there."""
    return KernelManager(**where_to_listen(), **options)
