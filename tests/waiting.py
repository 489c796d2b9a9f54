"""Waits for what only another process knows."""

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 120.0
#: Who has waited for so long looks less often: each look costs what others compute with.
_SOON_S, _OFTEN_S, _SELDOM_S = 2.0, 0.05, 0.2


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Look again and again; what `condition` returns when it is true at last."""
    began = time.monotonic()
    while (waited_s := time.monotonic() - began) < patience_s:
        found = condition()
        if found:
            return found
        threading.Event().wait(_OFTEN_S if waited_s < _SOON_S else _SELDOM_S)
    raise AssertionError(f"waited {patience_s:.0f} s in vain for {what}")
