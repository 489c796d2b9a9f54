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
    """Looks at how the kernel is asked to end. Jupyter presses stop first, and asks a few milliseconds later."""

    def __init__(self, shell: InteractiveShell, settings: ShutdownSettings) -> None:
        self._kernel: Any = getattr(shell, "kernel", None)
        self._settings = settings
        self._before: Any = None
        self._detach: Callable[[], None] = lambda: None
        self._is_restart = True

    def serve(self, detach: Callable[[], None]) -> None:
        """Begin to listen, in a kernel that is asked. `detach` lets cells go on; it runs in the thread that hears."""
        before = getattr(self._kernel, "do_shutdown", None)
        if callable(before):
            self._detach, self._before, self._kernel.do_shutdown = detach, before, self._asked

    def stop(self) -> None:
        """Listen no more."""
        if self._before is not None and self._kernel.do_shutdown == self._asked:
            self._kernel.do_shutdown, self._before = self._before, None

    @property
    def outlives_kernel(self) -> bool:
        """Whether a cell goes on when its kernel dies."""
        return self._settings.on_restart == "detach"

    @property
    def keeps_cells(self) -> bool:
        """Whether cells go on if the kernel ends now. One that ends unasked is one that dies."""
        return self.outlives_kernel if self._is_restart else self._settings.on_shutdown == "detach"

    @property
    def stop_after_ms(self) -> int:
        """How long a stop waits whether the kernel is asked to end, where a cell would then go on."""
        is_waiting = self._before is not None and "detach" in {self._settings.on_restart, self._settings.on_shutdown}
        return round(self._settings.stop_after_s * 1000) if is_waiting else 0

    def _asked(self, restart: bool) -> Any:  # noqa: FBT001  as the kernel calls it
        self._is_restart = restart
        if self.keeps_cells:
            self._detach()
        return self._before(restart)
