"""The page's log: whatever visitors send, no more than a disk can take, and nothing that a terminal would obey."""

import logging
import time
from collections import Counter
from collections.abc import Callable

#: Of one kind of line, in a minute. Of what kind a request is, `visit_kind` says.
MOST_A_MINUTE = 600
#: Characters of a line; a visitor's path may have some ten thousands.
MOST_CHARACTERS = 1_000


_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def visit_kind(method: str, user: str) -> tuple[str, str]:
    """Say of which kind a request is, so that no page that is left open, no stranger and no other user hides a change.

    `user` is by the hub's word, and empty for who is not logged in: each user of the hub makes a few kinds at most.
    """
    if method in _READING:
        return method, "somebody" if user else ""
    return method if method in _CHANGING else "other", user


class VisitorLimit(logging.Filter):
    """Leaves out what is too much of one kind of line in a minute; the next one of it says how much that was."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Count by the minutes of this clock."""
        super().__init__()
        self._clock_s, self._minute = clock_s, 0
        self._written: Counter[tuple[object, ...]] = Counter()
        self._left_out: Counter[tuple[object, ...]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Count a line, and tell whether it is written."""
        visit: object = getattr(record, "visit", None)  # of requests, as `visit_kind` says
        kind, minute = (record.name, record.levelno, str(record.msg), visit), int(self._clock_s() // 60)
        if minute != self._minute:
            self._minute = minute
            self._written.clear()
        self._written[kind] += 1
        if self._written[kind] > MOST_A_MINUTE:
            self._left_out[kind] += 1
            return False
        if left_out := self._left_out.pop(kind, 0):
            record.msg, record.args = f"{record.getMessage()} (and {left_out} before it, left out)", ()
        return True


class PrintableLines(logging.Formatter):
    """Writes a line without what a terminal would obey, and not longer than a person reads."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """See logging.Formatter."""
        line = super().formatMessage(record)
        shown = line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}..."
        return _printable(shown.replace("\n", " "))

    def formatException(self, ei: object) -> str:  # noqa: N802
        """See logging.Formatter."""
        return "\n".join(map(_printable, super().formatException(ei).split("\n")))  # type: ignore[arg-type]


def configure() -> None:
    """Let all loggers of this process write to standard error so."""
    handler = logging.StreamHandler()
    handler.addFilter(VisitorLimit())
    handler.setFormatter(PrintableLines("[%(levelname).1s %(asctime)s %(name)s] %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _printable(line: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in line)
