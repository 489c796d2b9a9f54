"""What is switched off while values load: garbage collection, warnings, and what loading does to torch's gradients."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .silence import silence


@contextmanager
def undisturbed() -> Iterator[None]:
    """Switch off garbage collection and warnings for a while. Torch's switch for gradients is put back as well."""
    torch: Any = sys.modules.get("torch")
    has_grads = getattr(torch, "is_grad_enabled", bool)()
    was_enabled = gc.isenabled()
    try:
        gc.disable()  # nothing that is loaded is garbage, and looking for some takes longer than loading
        with silence():
            yield
    finally:
        if was_enabled:
            gc.enable()
        if hasattr(torch, "set_grad_enabled"):
            torch.set_grad_enabled(has_grads)  # a `no_grad` that was interrupted on its way out
