"""The log: one line an event, in logfmt, on standard error; whatever is in it, nothing that a terminal would obey."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog
from structlog.tracebacks import ExceptionDictTransformer


def configure(part: str) -> None:
    """Let all loggers of this process write lines that name the part of the pool."""
    structlog.configure(
        processors=[
            lambda _logger, _method, entry: {"part": part, **entry},
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Where in the code, and not what the variables were: they may be tickets and tokens.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            _clean,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "part", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # as it is when something is said
    )


def _clean(_logger: object, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace what cannot be seen: ids and labels are as clients wrote them."""
    for name, value in entry.items():
        if isinstance(value, str) and not value.isprintable():
            entry[name] = "".join(one if one.isprintable() else " " if one in "\n\t" else "?" for one in value)
    return entry
