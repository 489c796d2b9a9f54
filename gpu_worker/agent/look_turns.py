"""Looks at what a session's processes use, some at once: one that takes long keeps others only for a moment.

A look reads what the kernel says of processes, which user code can make slow, or have wait. Whoever has several
sessions would otherwise take all threads there are, and nobody else's would be looked at.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")

#: So many at once, each for so long before another may begin beside it.
_AT_ONCE, _TURN_S = 4, 1.0
#: More never are, however many of them wait: as many as a node has sessions at most.
_MOST_THREADS = 512


class LookTurns:
    """Runs looks in threads."""

    def __init__(self, at_once: int = _AT_ONCE, turn_s: float = _TURN_S) -> None:
        """Take how many begin at once, and after how long another one may."""
        self._turn_s = turn_s
        self._free = asyncio.Semaphore(at_once)
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "looks")

    async def run(self, look: Callable[[], Found]) -> Found:
        """Return what a look finds, when it is its turn, however long that takes."""
        async with self._free:
            found = asyncio.get_running_loop().run_in_executor(self._threads, look)
            await asyncio.wait([found], timeout=self._turn_s)
        return await found

    def close(self) -> None:
        """Begin no more looks, and wait for none."""
        self._threads.shutdown(wait=False, cancel_futures=True)
