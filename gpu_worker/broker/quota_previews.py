"""What the last week would have been with other quotas: worked out by a program of its own, a few at once, and kept."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from bulletin.units import DAY_MS
from bulletin.wire.messages.quota_edits import PreviewRow, QuotaPreview
from gpu_worker.broker.agents import Agents
from gpu_worker.harmless_environment import select_harmless
from gpu_worker.running_program import running_program
from gpu_worker.scheduler.policy.projects import SchedulerSettings

#: The program, by its name: the broker imports no simulator.
_PROGRAM = "gpu_worker.simulator.preview_program"
_DAYS, _LONGEST_S = 7, 90.0
#: So many are worked out at once, so many wait for that, and of so many the answer is kept.
_AT_ONCE, _MOST_WAITING, _MOST_KEPT = 1, 8, 32
_FAILED = "What the last week would have been could not be worked out{}. The change can be made all the same."


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the program writes."""

    sentence: str
    by_project: str = ""
    rows: tuple[PreviewRow, ...] = ()
    reclaims_now: int = 0
    reclaims_then: int = 0
    refused_now: int = 0
    refused_then: int = 0
    cut_now: int = 0
    cut_then: int = 0


class QuotaPreviews:
    """Owns the programs that run. What is asked for again is not begun again."""

    def __init__(
        self, database: str, agents: Agents, now_ms: Callable[[], int], environ: Callable[[], dict[str, str]]
    ) -> None:
        """Take the ledger's URL, which no other process is shown, and the broker's environment."""
        self._database, self._agents, self._now_ms, self._environ = database, agents, now_ms, environ
        self._found: dict[tuple[str, str], asyncio.Task[QuotaPreview]] = {}
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._log = structlog.get_logger("broker")

    def ask(self, key: tuple[str, str], now: SchedulerSettings, then: SchedulerSettings) -> QuotaPreview:
        """Return what is known of a change, or that it is being worked out: it is begun where it is not.

        `key` names both texts of the file.
        """
        task = self._found.get(key)
        if task is None:
            if sum(not one.done() for one in self._found.values()) > _MOST_WAITING:
                return QuotaPreview(state="failed", sentence=_FAILED.format(": too many wait for that already"))
            for old in [known for known, one in self._found.items() if one.done()][: -_MOST_KEPT + 1]:
                del self._found[old]
            task = self._found[key] = asyncio.create_task(self._work_out(now, then))
        if not task.done():
            return QuotaPreview(state="working")
        found = task.result()
        if found.state == "failed":  # the next one may have more luck
            del self._found[key]
        return found

    @property
    def tasks(self) -> list[asyncio.Task[QuotaPreview]]:
        """Those under way and those whose answers are kept."""
        return list(self._found.values())

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._found.values():
            task.cancel()
        await asyncio.gather(*self._found.values(), return_exceptions=True)

    async def _work_out(self, now: SchedulerSettings, then: SchedulerSettings) -> QuotaPreview:
        async with self._free:
            preview = running_program(
                sys.executable, "-m", _PROGRAM, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self._environ()
            )
            try:
                async with preview as program, asyncio.timeout(_LONGEST_S):
                    out, error = await program.communicate(self._question(now, then))
            except TimeoutError:
                return QuotaPreview(state="failed", sentence=_FAILED.format(f" in {_LONGEST_S:.0f} s"))
        if program.returncode:
            self._log.error(
                "a preview failed", status=program.returncode, problem=error.decode(errors="replace")[-500:]
            )
            return QuotaPreview(state="failed", sentence=_FAILED.format(": the broker's log says why"))
        answer = msgspec.json.decode(out, type=_Answer)
        return QuotaPreview(state="done", **msgspec.structs.asdict(answer))

    def _question(self, now: SchedulerSettings, then: SchedulerSettings) -> bytes:
        sizes, kind = self._sizes()
        until_ms = self._now_ms()
        question: dict[str, Any] = {
            "database": self._database,
            "since_ms": until_ms - _DAYS * DAY_MS,
            "until_ms": until_ms,
            "sizes": sizes,
            "kind": kind,
            "now": now,
            "then": then,
        }
        return msgspec.json.encode(question)

    def _sizes(self) -> tuple[list[int], str]:
        """Count the slots of each node: GPUs, or CPU slots where no node has one. A MIG slice is one."""
        offers = [agent.message.slots for agent in self._agents.known.values() if not agent.owner]
        for kind in ("gpu", "cpu"):
            sizes = [sum(slot.kind == kind for slot in slots) for slots in offers]
            if any(sizes):
                return [size for size in sizes if size], kind
        return [], "gpu"


def environment_of(environ: dict[str, str]) -> dict[str, str]:
    """Leave of an environment what the program needs, without the broker's tokens; drivers of databases read theirs."""
    return select_harmless(environ) | {name: value for name, value in environ.items() if name.startswith("PG")}
