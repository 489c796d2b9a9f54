"""The pool on this host: a broker and an agent as two processes, each started again within a second when it dies."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections.abc import Sequence

import structlog

from bulletin.wire import keys
from gpu_worker.config import Settings

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.1, 10.0
_HEALTHY_S = 10.0
_TERM_S = 5.0
_HUB = ("JUPYTERHUB_", "JPY_", "CONFIGPROXY_")
_SECRET = re.compile("TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY")
#: How a child says that it will never run, or that it has had enough: it is not started again.
BAD_CONFIG, IDLE = 78, 0  # 78 is EX_CONFIG of sysexits.h


class LocalPool:
    """Starts `bulletin broker` and `bulletin agent` with the arguments that `bulletin pool` was given."""

    def __init__(self, settings: Settings, arguments: Sequence[str]) -> None:
        self._settings, self._arguments = settings, list(arguments)
        self._log = structlog.get_logger("pool")
        self._over = asyncio.Event()
        self._status = 0

    async def run(self) -> int:
        """Keep both alive until a signal comes, the pool is idle, or its configuration is bad. The exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._over.set)
        keepers = [asyncio.create_task(self._keep(part)) for part in ("broker", "agent")]
        await self._over.wait()
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        self._settings.connection_file.unlink(missing_ok=True)
        return self._status

    def stop(self) -> None:
        """End the pool."""
        self._over.set()

    async def _keep(self, part: str) -> None:
        wait_s, was_healthy = _FIRST_WAIT_S, False
        loop = asyncio.get_running_loop()
        if part == "agent":
            await self._broker_files()
        while True:
            began = loop.time()
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "gpu_worker.cli",
                part,
                "--exit-with-stdin",
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                env=self._environ(part),
                start_new_session=True,
            )
            try:
                status = await process.wait()
            except asyncio.CancelledError:
                await _end(process)
                raise
            is_bad = status == BAD_CONFIG and not was_healthy  # later, something has gone that may come back
            if is_bad or status == IDLE:
                self._status = status
                self._over.set()
                return
            if loop.time() - began > _HEALTHY_S:
                wait_s, was_healthy = _FIRST_WAIT_S, True
            self._log.warning("a part of the pool ended and is started again", part=part, status=status)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    async def _broker_files(self) -> None:
        """An agent needs the broker's address, which the broker writes when it has bound for the first time."""
        while True:  # another process writes it
            with contextlib.suppress(FileNotFoundError):
                if keys.read_private(self._settings.pool_file, keys.PoolFile).agent_address:
                    return
            await asyncio.sleep(0.02)

    @staticmethod
    def _environ(part: str) -> dict[str, str]:
        """Only the broker talks to the hub and to the database: no other process of the pool has their secrets.

        A hub's own environment is its operator's: what looks like a secret there is no user's business. A pool of
        one's own has its user's environment, and cells see it as local cells do.
        """
        if part == "broker":
            return dict(os.environ)
        is_of_hub = "JUPYTERHUB_API_TOKEN" in os.environ
        return {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_HUB) and not (is_of_hub and _SECRET.search(name))
        }


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            async with asyncio.timeout(_TERM_S):
                await process.wait()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
