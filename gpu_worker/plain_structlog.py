"""structlog without rich, with which it would draw tracebacks in colour: no line of the log has one.

Rich is more than half of what structlog imports, and every `bulletin` command and every part of a pool begins with it.
"""

import sys

_HAS_RICH = "rich" in sys.modules
if not _HAS_RICH:
    sys.modules["rich"] = None  # type: ignore[assignment]  # by which Python says that there is none
try:
    import structlog
    from structlog.tracebacks import ExceptionDictTransformer
finally:
    if not _HAS_RICH:
        del sys.modules["rich"]

__all__ = ["ExceptionDictTransformer", "structlog"]
