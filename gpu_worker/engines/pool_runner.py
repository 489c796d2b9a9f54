"""A whole pool: its broker as a process of this host, its agents by an engine, until a signal ends both."""

import asyncio
import signal
from collections.abc import Sequence

from gpu_worker.config import PoolSettings
from gpu_worker.engines.engine import Engine
from gpu_worker.engines.pool_part import PoolPart


class PoolRunner:
    """What `bulletin pool` runs."""

    def __init__(self, settings: PoolSettings, arguments: Sequence[str], engine: Engine) -> None:
        self._settings, self._engine = settings, engine
        self._broker = PoolPart("broker", settings, arguments)
        self._is_stopped = asyncio.Event()

    async def run(self) -> int:
        """Keep broker and agents alive until a signal comes, the pool is idle, or its configuration is bad.

        Returns the exit status.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._is_stopped.set)
        parts = [asyncio.create_task(self._broker.run()), asyncio.create_task(self._engine.run())]
        stopped = asyncio.create_task(self._is_stopped.wait())
        try:
            await asyncio.wait([*parts, stopped], return_when=asyncio.FIRST_COMPLETED)
            return next((part.result() for part in parts if part.done()), 0)
        finally:
            for task in (*parts, stopped):
                task.cancel()
            await asyncio.gather(*parts, stopped, return_exceptions=True)
            self._settings.connection_file.unlink(missing_ok=True)

    def stop(self) -> None:
        """End the pool."""
        self._is_stopped.set()
