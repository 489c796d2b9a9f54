"""One part of a pool, its broker or an agent, as a process of this host that is started again when it dies."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from typing import Literal

import structlog

from bulletin.restarts import RestartDelays
from gpu_worker.config import PoolSettings, serves_hub
from gpu_worker.engines.engine import BAD_CONFIG, IDLE
from gpu_worker.harmless_environment import select_harmless
from gpu_worker.running_program import running_program

_FIRST_DELAY_S = 0.1
_HEALTHY_AFTER_S = 10.0
#: From the end of its standard input to SIGKILL.
_END_S = 5.0
_HUB = ("JUPYTERHUB_", "JPY_", "CONFIGPROXY_")


class PoolPart:
    """Runs `bulletin broker` or `bulletin agent` with the arguments that `bulletin pool` was given."""

    def __init__(self, part: Literal["broker", "agent"], settings: PoolSettings, arguments: Sequence[str]) -> None:
        self._part = part
        python = [sys.executable, *settings.interpreter_options]
        self._command = [*python, "-m", "gpu_worker.cli", part, "--exit-with-stdin", *arguments]
        self._delays = RestartDelays(_FIRST_DELAY_S, healthy_after_s=_HEALTHY_AFTER_S)
        self._log = structlog.get_logger("pool")

    async def run(self) -> int:
        """Keep the process alive until cancelled, which ends it, or until it is not to be started again: its status."""
        clock = asyncio.get_running_loop().time
        while True:
            started_s = clock()
            status = await self._run_once()
            # Once it was well, a configuration is bad because something has gone that may come back.
            if status == IDLE or (status == BAD_CONFIG and not self._delays.was_healthy):
                return status
            delay_s = self._delays.record_exit(clock() - started_s)
            self._log.warning("a part of the pool ended and is started again", part=self._part, status=status)
            await asyncio.sleep(delay_s)

    async def _run_once(self) -> int:
        async with running_program(*self._command, stdin=PIPE, env=_environ(self._part)) as process:
            try:
                return await process.wait()
            except asyncio.CancelledError:
                await _end(process)
                raise


def _environ(part: str) -> dict[str, str]:
    """Make the environment of a part of the pool.

    Only the broker talks to the hub and to the database, so no other part has their secrets.

    A hub's own environment is its operator's: of that users' cells see what is known to be harmless. A pool of one's
    own has its user's environment, and cells see it as local cells do.
    """
    if part == "broker":
        return dict(os.environ)
    if not serves_hub(os.environ):
        return {name: value for name, value in os.environ.items() if not name.startswith(_HUB)}
    return select_harmless(os.environ)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it at once: its standard input ends. SIGTERM would let cells have their grace, in a pool that is gone."""
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            await process.wait()
