"""Waits for what only another process knows."""

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 120.0


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Look again and again; what `condition` returns when it is true at last."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        threading.Event().wait(0.05)
    raise AssertionError(f"waited {patience_s:.0f} s in vain for {what}")
