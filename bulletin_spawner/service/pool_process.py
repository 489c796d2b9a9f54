"""The pool as a child of the service: started, started again when it dies, ended with its whole process group.

The child's stdin is a pipe that this process keeps open and never writes to. However this process ends, even by
SIGKILL, the pipe closes, and the pool ends itself (`--exit-with-stdin`).
"""

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Self

from bulletin.restarts import RestartDelays

log = logging.getLogger("bulletin.service")

_FIRST_DELAY_S = 0.2
_HEALTHY_AFTER_S = 30.0
#: From SIGTERM to SIGKILL.
_GRACE_S = 8.0


class PoolProcess:
    """Keeps one command running while its `async with` block runs."""

    def __init__(self, command: Sequence[str], grace_s: float = _GRACE_S) -> None:
        self._command = list(command)
        self._grace_s = grace_s
        self._stop = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        #: The process of now, for tests and logs; None between two.
        self.pid: int | None = None

    async def __aenter__(self) -> Self:
        self._keeper = asyncio.create_task(self._keep())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._keeper is not None
        self._stop.set()
        await self._keeper

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        delays = RestartDelays(_FIRST_DELAY_S, healthy_after_s=_HEALTHY_AFTER_S)
        while not self._stop.is_set():
            started_s = clock()
            code = await self._run_once()
            if self._stop.is_set():
                return
            delay_s = delays.record_exit(clock() - started_s)
            log.error("the pool ended with %s; starting it again in %.1f s", code, delay_s)
            await _wait_for_first(self._stop, timeout_s=delay_s)

    async def _run_once(self) -> int:
        """Start it and wait for its end, or end it. Nothing of its process group is left afterwards."""
        kept_open = None
        try:
            ours, kept_open = os.pipe()
            try:
                process = subprocess.Popen(self._command, stdin=ours, start_new_session=True)  # noqa: ASYNC220
            finally:
                os.close(ours)
            self.pid = process.pid
            log.info("pool started, process %d", process.pid)
            ended = asyncio.Event()
            descriptor = os.pidfd_open(process.pid)
            asyncio.get_running_loop().add_reader(descriptor, ended.set)
            try:
                await _wait_for_first(ended, self._stop)
                if not ended.is_set():
                    os.killpg(process.pid, signal.SIGTERM)
                    await _wait_for_first(ended, timeout_s=self._grace_s)
            finally:
                asyncio.get_running_loop().remove_reader(descriptor)
                os.close(descriptor)
                # Not reaped yet, so the group's id is still its own.
                os.killpg(process.pid, signal.SIGKILL)
                self.pid = None
            return process.wait()
        finally:
            if kept_open is not None:
                os.close(kept_open)


async def _wait_for_first(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Wait for one of several events, or for the time."""
    waiters = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiters, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)
