"""Kernels of the tests: reached through sockets in a folder of their own, so that no other process can take a port."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager

#: Gone with this process. Short, since a socket's path may have some hundred letters and no more.
_FOLDER = tempfile.TemporaryDirectory(prefix="bulletin-kernels-")
_numbers = itertools.count()


def make_manager(kind: type[Any] = KernelManager, **options: Any) -> Any:
    """Make a manager, of this kind, whose kernel listens at Unix sockets.

    Jupyter's choice of TCP ports is a race: it looks for free ones, and the kernel binds them a second later. In
    between another test's process may have them; the kernel then never answers.
    """
    return kind(transport="ipc", ip=str(Path(_FOLDER.name) / str(next(_numbers))), **options)
