"""The end of the kernel, which it hears of before it comes: what becomes of the cells that run on the pool then."""

from collections.abc import Callable
from typing import Any, Protocol

from IPython.core.interactiveshell import InteractiveShell


class ShutdownSettings(Protocol):
    """What the user wants: "detach" lets cells go on, "cancel" ends them."""

    on_restart: str
    on_shutdown: str
    stop_after_s: float


class KernelShutdown:
    """Learns how the kernel is asked to end. Jupyter presses stop first, and asks a few milliseconds later."""

    def __init__(self, shell: InteractiveShell, settings: ShutdownSettings) -> None:
        self._kernel: Any = getattr(shell, "kernel", None)
        self._settings = settings
        #: The kernel's own `do_shutdown`, while ours stands in its place.
        self._original: Any = None
        self._detach: Callable[[], None] = lambda: None
        #: One that ends unasked is one that dies, which counts as a restart.
        self._is_restart = True

    def install(self, detach: Callable[[], None]) -> None:
        """Listen, in a kernel that is asked. `detach` lets cells go on; it runs in the thread that is asked."""
        # Kernels have no hook for the end: `atexit` runs too late to tell the pool, and does not know whether it is a
        # restart. Were `do_shutdown` gone, cells that run would be kept or ended as if the kernel had died.
        original = getattr(self._kernel, "do_shutdown", None)
        if callable(original):
            self._detach, self._original = detach, original
            self._kernel.do_shutdown = self._on_shutdown_request

    def uninstall(self) -> None:
        """Listen no more."""
        if self._original is not None and self._kernel.do_shutdown == self._on_shutdown_request:
            self._kernel.do_shutdown = self._original
            self._original = None

    @property
    def outlives_kernel(self) -> bool:
        """Whether a cell goes on when its kernel dies."""
        return self._settings.on_restart == "detach"

    @property
    def keeps_cells(self) -> bool:
        """Whether cells go on if the kernel ends now."""
        return self.outlives_kernel if self._is_restart else self._settings.on_shutdown == "detach"

    @property
    def stop_after_ms(self) -> int:
        """How long a stop waits, in case the kernel is asked to end and the cell then goes on; 0 where it would not."""
        is_waiting = self._original is not None and "detach" in {self._settings.on_restart, self._settings.on_shutdown}
        return round(self._settings.stop_after_s * 1000) if is_waiting else 0

    def _on_shutdown_request(self, restart: bool) -> Any:  # noqa: FBT001  as the kernel calls it
        self._is_restart = restart
        if self.keeps_cells:
            self._detach()
        return self._original(restart)
