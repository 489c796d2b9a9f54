"""The local engine: one agent, as a process of this host beside the broker."""

import asyncio
import contextlib
from collections.abc import Sequence

from bulletin.wire import keys
from gpu_worker.config import PoolSettings
from gpu_worker.engines.pool_part import PoolPart

_LOOK_S = 0.02


class LocalEngine:
    """Runs the agent of this host."""

    def __init__(self, settings: PoolSettings, arguments: Sequence[str]) -> None:
        self._settings = settings
        self._agent = PoolPart("agent", settings, arguments)

    async def run(self) -> int:
        """Keep the agent alive until cancelled, once the broker can be reached. See `Engine.run`."""
        await self._wait_for_broker()
        return await self._agent.run()

    async def _wait_for_broker(self) -> None:
        """Wait for the broker's address, which the broker writes when it has bound for the first time."""
        while True:  # another process writes it
            with contextlib.suppress(FileNotFoundError):
                if keys.read_private(self._settings.pool_file, keys.PoolFile).agent_address:
                    return
            await asyncio.sleep(_LOOK_S)
