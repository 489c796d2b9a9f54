"""An agent's way out: it takes nothing more, cells have their grace, and the broker hears of it before it is gone."""

import asyncio
import contextlib
import time

import structlog

from bulletin.wire import messages as wire
from gpu_worker.agent.broker_link import BrokerLink
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.config import PoolSettings
from gpu_worker.faults import Faults

#: What has ended is looked for so often, and whether it is time to leave.
_LOOK_S, _TIME_S = 0.05, 0.5


class Departed(Exception):
    """The agent has left its pool, and ends."""


class Departure:
    """Lets the agent leave when it is told to, when its broker speaks another protocol, and before its host ends."""

    def __init__(self, settings: PoolSettings, sessions: SessionRegistry, broker: BrokerLink, faults: Faults) -> None:
        self._settings, self._sessions, self._broker, self._faults = settings, sessions, broker, faults
        self._begun, self._ends_at_ms, self._has_moved = asyncio.Event(), settings.ends_at_ms, False
        self._log = structlog.get_logger("agent")

    @property
    def is_begun(self) -> bool:
        """Whether the agent leaves: it is given nothing more."""
        return self._begun.is_set()

    @property
    def leaves_in_ms(self) -> int | None:
        """How long until the agent leaves by itself, so that it is gone when its host's time ends; None is never."""
        if not self._ends_at_ms:
            return None
        return max(0, self._ends_at_ms - time.time_ns() // 1_000_000 - self._settings.leaving_takes_ms)

    @property
    def moved_to_ms(self) -> int | None:
        """How long until the agent leaves, where it has found out itself that this is another time; else None.

        NEVER_MS is never.
        """
        if not self._has_moved:
            return None
        leaves_in_ms = self.leaves_in_ms
        return wire.NEVER_MS if leaves_in_ms is None else leaves_in_ms

    def follow_host_end(self, ends_in_ms: int, about_ms: int) -> bool:
        """Leave in time before the host's time ends, so long from now; return whether that is another time.

        Times that are no more than `about_ms` apart are the same. NEVER_MS is never.
        """
        leaves_in_ms, known_ms = wire.NEVER_MS, self.leaves_in_ms
        if ends_in_ms < wire.NEVER_MS:
            leaves_in_ms = max(0, ends_in_ms - self._settings.leaving_takes_ms)
        if abs(leaves_in_ms - (wire.NEVER_MS if known_ms is None else known_ms)) <= about_ms:
            return False
        self.move(leaves_in_ms)
        self._has_moved = True
        return True

    def move(self, leaves_in_ms: int) -> None:
        """Leave after so long instead (NEVER_MS: never), unless that has begun."""
        if leaves_in_ms >= wire.NEVER_MS:
            self._ends_at_ms = 0
            return
        self._ends_at_ms = time.time_ns() // 1_000_000 + leaves_in_ms + self._settings.leaving_takes_ms

    def begin(self) -> None:
        """Begin to leave: a signal's handler. Said again it changes nothing: who ends a job may say it to each part."""
        self._begun.set()

    def _is_time(self) -> bool:
        """Tell whether the agent is to leave though nobody said so: its host's time ends, or it is alone."""
        alone_ms = self._settings.leave_alone_ms
        if alone_ms and self._broker.alone_ms > alone_ms:
            return all(session.cells.running is None for session in self._sessions.running.values())
        return self.leaves_in_ms == 0 or self._broker.end is not None

    async def run(self) -> None:
        """Wait until it is time to leave, and leave.

        Raises
        ------
        Departed
            At the end.
        NotDone
            At the end, where the broker will never take this agent: with why.
        """
        while not self.is_begun and not self._is_time():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TIME_S):
                    await self._begun.wait()
        self._begun.set()
        grace_ms = self._settings.leave_grace_ms
        self._log.info("leaving", sessions=len(self._sessions.running), grace_ms=grace_ms)
        await self._broker.send(wire.Leaving())
        for session in list(self._sessions.running.values()):
            with self._faults.contain(session.fail, **session.about):
                await session.leave_node(grace_ms)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.leaving_takes_ms / 1000):
                while True:  # sessions and notebooks go by themselves
                    if not self._sessions.running and not self._sessions.has_untaken:
                        break
                    await asyncio.sleep(_LOOK_S)
        await self._broker.send(wire.Left())
        raise self._broker.end or Departed
