"""What takes its time for one connection, beside the work for all others: the hub and the ledger are asked, say.

Of each connection only so much goes on at once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine

from gpu_worker.faults import FatalError, Faults

#: So much goes on at once for one connection.
_MOST = 4


class AsideWork:
    """Owns the tasks. What one of them raises ends its connection alone, but for a FatalError."""

    def __init__(self, faults: Faults, end: Callable[[bytes], object]) -> None:
        """Take `end`, which ends the connection of a route: what was done for it has failed."""
        self._faults, self._end = faults, end
        self._tasks: set[asyncio.Task[None]] = set()
        self._counts: Counter[bytes] = Counter()
        self._fatal: asyncio.Event = asyncio.Event()
        self._error: FatalError | None = None

    def start(self, route: bytes, work: Coroutine[None, None, None]) -> bool:
        """Begin, for the connection of this route. False: too much goes on for it already, and this is dropped."""
        if self._counts[route] >= _MOST:
            work.close()
            return False
        self._begin(route, work, lambda: self._end(route))
        return True

    def start_last(self, route: bytes, work: Coroutine[None, None, None]) -> None:
        """Begin what is done for a connection after its end."""
        self._begin(route, work, lambda: None)

    def _begin(self, route: bytes, work: Coroutine[None, None, None], end: Callable[[], object]) -> None:
        self._counts[route] += 1
        task = asyncio.create_task(self._do(route, work, end))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _do(self, route: bytes, work: Coroutine[None, None, None], end: Callable[[], object]) -> None:
        try:
            with self._faults.contain(end):
                await work
        except FatalError as error:
            self._error = error
            self._fatal.set()
        finally:
            self._counts[route] -= 1
            if not self._counts[route]:
                del self._counts[route]

    async def run(self) -> None:
        """Wait until something has failed after which nothing can be believed, and raise it."""
        await self._fatal.wait()
        assert self._error is not None
        raise self._error

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
