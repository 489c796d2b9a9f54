"""The log: one line an event, in logfmt, on standard error; whatever is in it, nothing that a terminal would obey.

Of each kind of event so many lines are written in a minute: what is said to the pool, by whomever, fills no disk.
"""

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any

from gpu_worker.plain_structlog import ExceptionDictTransformer, structlog

#: Of one kind of event.
MOST_A_MINUTE = 600


class LineLimit:
    """Leaves out what is too much of one event in a minute, and says with the next line of it how much that was."""

    def __init__(self, most: int, clock_s: Callable[[], float]) -> None:
        """Take how many lines of each event are written in a minute of this clock."""
        self._most, self._clock_s = most, clock_s
        self._minute = 0
        self._written: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def __call__(self, _logger: object, _method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Count a line. Raises structlog.DropEvent for one that is not written."""
        event, minute = str(entry["event"]), int(self._clock_s() // 60)
        if minute != self._minute:
            self._minute = minute
            self._written.clear()
        self._written[event] += 1
        if self._written[event] > self._most:
            self._left_out[event] += 1
            raise structlog.DropEvent
        if left_out := self._left_out.pop(event, 0):
            entry["left_out"] = left_out
        return entry


def configure(part: str) -> None:
    """Let all loggers of this process write lines that name the part of the pool."""
    structlog.configure(
        processors=[
            LineLimit(MOST_A_MINUTE, time.monotonic),
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
