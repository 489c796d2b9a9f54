"""Signs of life of a cell that waits or runs in silence: a hub that ends idle servers counts what a kernel says.

Jupyter's server takes a kernel for active when it sends something, and a hub's culler looks at nothing else: not at
whether the kernel is busy. So the kernel says again, now and then, that it is.
"""

import time
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


class KernelActivity:
    """Reports that the kernel is busy, again after each `every_s` seconds."""

    def __init__(self, shell: InteractiveShell, every_s: float) -> None:
        self._kernel: Any = getattr(shell, "kernel", None)
        self._every_s = every_s
        self._due_s = time.monotonic() + every_s

    @property
    def due_in_s(self) -> float | None:
        """How long until `report` should be called; None where there is nobody to tell."""
        return None if self._kernel is None else max(0.0, self._due_s - time.monotonic())

    def report(self) -> None:
        """Say that the kernel is busy, if it is time."""
        if self._kernel is None or time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + self._every_s
        self._kernel.send_response(self._kernel.iopub_socket, "status", {"execution_state": "busy"})
