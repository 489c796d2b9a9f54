"""A cell at its agent, from Run until its kernel has all of it."""

import asyncio
import time
from itertools import count
from pathlib import Path
from typing import Literal

from msgspec import structs

from bulletin.wire import messages as wire
from gpu_worker.agent.inventory import Load
from gpu_worker.agent.output_buffer import OutputBuffer
from gpu_worker.agent.results import Results, Tell

#: How much of a cell's first line is told.
_LINE = 80


def now_ms() -> int:
    """A clock that does not run backwards."""
    return time.monotonic_ns() // 1_000_000


class Cell:
    """What it has said, what it has cost so far, and how it ended: for a kernel that comes back, too."""

    def __init__(self, run: wire.Run, folder: Path, output_buffer_bytes: int) -> None:
        self.id = run.cell
        self.outputs = OutputBuffer(run.cell, folder, output_buffer_bytes)
        self.began_ms = now_ms()
        self.load = Load()
        self.bytes_sent = sum(run.parcel.sizes)
        self.lacks = 0 if run.parcel.inline else self.bytes_sent  #: bytes of its state that have not come
        self.question: wire.Asked | None = None
        self._questions = 0
        self.ended: wire.Ended | None = None
        self.results: Results | None = None
        #: For another kernel, once it was asked for: the number of its round, then what came.
        self.whole_round: int | None = None
        self.whole: Results | None = None
        self.lost: wire.Lost | None = None
        self._rounds = count(1)
        self.line = _first_line(run.source)
        self.outlives_kernel = run.outlives_kernel
        self.has_noticed = False
        self.is_overdue = False
        self.is_stopped = False
        self.alarms: list[asyncio.TimerHandle] = []
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def is_safe(self) -> bool:
        """Whether its executor may go: nothing that its kernel may still need is in it."""
        return self.lost is not None or (self.results is not None and self.results.is_safe)

    def draw_round(self) -> int:
        """The number of a new sending of results."""
        return next(self._rounds)

    @property
    def state(self) -> Literal["running", "finished", "lost"]:
        """For people."""
        if self.lost is not None:
            return "lost"
        return "running" if self.results is None else "finished"

    def asks(self, question: wire.Asked) -> wire.Asked:
        """Number a question and keep it until it is answered."""
        self._questions += 1
        self.question = structs.replace(question, number=self._questions)
        return self.question

    def quiet(self) -> None:
        """It runs no more: its alarms are off."""
        for alarm in self.alarms:
            alarm.cancel()
        for task in self.tasks:
            task.cancel()

    async def tell_missed(self, attach: wire.Attach, tell: Tell) -> None:
        """Say again all that a kernel does not have which has seen so many outputs: it came back, or is another.

        What another needs in place of `results` is `whole`; where there is none, the session asks for it.
        """
        for output, blobs in self.outputs.after(attach.seen):
            await tell(output, blobs)
        if self.lost is not None:
            await tell(self.lost, ())
        elif attach.is_joining and self.results is not None:
            if self.whole is not None:
                await self.whole.again(has_rings=attach.has_rings)
        elif self.results is not None:
            await self.results.again(has_rings=attach.has_rings)
        elif self.question is not None:
            await tell(self.question, ())

    def close(self) -> None:
        """Forget it: the kernel has all, or will never ask."""
        self.quiet()
        self.outputs.close()
        for results in (self.results, self.whole):
            if results is not None:
                results.close()


def _first_line(source: str) -> str:
    """What a person knows a cell by."""
    lines = (line.strip() for line in source.splitlines())
    said = [line for line in lines if line and not line.startswith(("#", "%"))]
    return (said[0] if said else "")[:_LINE]
