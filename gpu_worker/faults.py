"""What nobody expected, kept from ending more than what it belongs to: logged with its traceback, and counted."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog


class FatalError(Exception):
    """What this process believes may be wrong from here on: it ends, and is started again."""


class Faults:
    """The faults of one process. What somebody says to it never decides whether it lives."""

    def __init__(self, part: str) -> None:
        """Log as this part of the pool."""
        self.count = 0
        self._log = structlog.get_logger(part)

    @contextmanager
    def contain(self, end: Callable[[], object], **about: object) -> Iterator[None]:
        """Do what is in the block; where it raises what nobody expected, note that and `end` whatever it belongs to.

        `about` says in the log whose it is. A FatalError goes on: it is no one's alone.
        """
        try:
            yield
        except FatalError:
            raise
        except Exception as error:  # noqa: BLE001  this is the place where all end that nobody expects
            self.note(error, **about)
            end()

    def note(self, error: BaseException | None, **about: object) -> None:
        """Log a fault with its traceback, and count it."""
        self.count += 1
        self._log.error("fault", problem=repr(error), exc_info=error, **about)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Note also what callbacks and forgotten tasks of this loop raise, which end nothing by themselves."""
        loop.set_exception_handler(self._take_from_loop)

    def _take_from_loop(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.note(context.get("exception"), during=context["message"])
