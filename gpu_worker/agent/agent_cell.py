"""A cell at its agent, from Run until its kernel has all of it."""

import asyncio
from itertools import count
from typing import Literal

from msgspec import structs

from bulletin.wire import messages as wire
from gpu_worker.agent.cell_results import CellResults, Tell
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.inventory import SlotLoad
from gpu_worker.agent.output_buffer import OutputBuffer
from gpu_worker.agent.output_feed import OutputFeed
from gpu_worker.agent.spool import DiskShare

#: How many characters of a cell's first line are told.
_LINE_LENGTH = 80


class AgentCell:
    """What it has said, what it has cost so far, and how it ended: for a kernel that comes back, too."""

    def __init__(self, run: wire.Run, lease_label: str, share: DiskShare, output_buffer_bytes: int) -> None:
        """Begin to count. Outputs that do not fit into memory go into a file, at most so many bytes."""
        self.id = run.cell
        self.label = lease_label if run.label is None else run.label
        self.outputs = OutputBuffer(run.cell, share, output_buffer_bytes)
        self.feed = OutputFeed(self.outputs)
        #: Of the kernel that is attached: whether results may come to it through rings, and whether it joined the cell.
        self.has_rings, self.is_joined = run.has_rings, False
        self.started_ms = now_ms()
        #: Since when its session has held the slots for it: before it came, where they were kept too shortly to tell.
        self.held_since_ms = self.started_ms
        self.load = SlotLoad()
        self.bytes_sent = sum(run.parcel.sizes)
        #: Bytes of its state that have not come.
        self.missing_bytes = 0 if run.parcel.inline else self.bytes_sent
        #: Of those that have, how many its executor has not taken in yet.
        self._chunks_under_way = 0
        self.question: wire.Asked | None = None
        self._questions = 0
        self.ended: wire.Ended | None = None
        self.results: CellResults | None = None
        #: Results for another kernel than the one that sent the cell, once they were asked for: the number of their
        #: round, then what came.
        self.full_round: int | None = None
        self.full_results: CellResults | None = None
        #: Why its results will never come.
        self.lost: wire.Lost | None = None
        self._rounds = count(1)
        self.line = _first_line(run.source)
        self.outlives_kernel = run.outlives_kernel
        #: Its code has noticed an interrupt.
        self.has_noticed = False
        self.is_overdue = False
        #: What it was given beside its walltime, and the timer that ends it then.
        self.more_ms = 0
        self.walltime_timer: asyncio.TimerHandle | None = None
        self.is_stopped = False
        #: Somebody with more right to its slots waits for its results alone.
        self.is_hurried = False
        #: Its user has been told that its results cannot be kept.
        self.is_told_unkept = False
        #: It has been counted, and the session is free for another.
        self.is_closed = False
        self.timers: list[asyncio.TimerHandle] = []
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def is_safe(self) -> bool:
        """Whether its executor may go: nothing that its kernel may still need is in it."""
        return self.lost is not None or (self.results is not None and self.results.is_safe)

    @property
    def memory_bytes(self) -> int:
        """About how much of the agent's memory is what it has said and handed back."""
        results = (one for one in (self.results, self.full_results) if one is not None)
        asked = 0 if self.question is None else len(self.question.prompt)
        return self.outputs.memory_bytes + asked + sum(one.memory_bytes for one in results)

    def note_chunk(self, size_bytes: int) -> None:
        """Take note of a part of its state that goes to its executor."""
        self.missing_bytes = max(0, self.missing_bytes - size_bytes)
        self._chunks_under_way += 1

    def take_chunk(self) -> bool:
        """Take note that its executor says that it has taken a part in; False if there is none that it could mean."""
        if not self._chunks_under_way:
            return False
        self._chunks_under_way -= 1
        return True

    def draw_round(self) -> int:
        """Draw the number of a new sending of results."""
        return next(self._rounds)

    @property
    def state(self) -> Literal["running", "finished", "lost"]:
        """The state that people are shown."""
        if self.lost is not None:
            return "lost"
        return "running" if self.results is None else "finished"

    def ask(self, question: wire.Asked) -> wire.Asked:
        """Give a question the cell's next number, and keep it until it is answered."""
        self._questions += 1
        self.question = structs.replace(question, number=self._questions)
        return self.question

    def cancel_timers(self) -> None:
        """Cancel what would end it, and what watches it: it runs no more."""
        for timer in self.timers:
            timer.cancel()
        for task in self.tasks:
            task.cancel()

    async def tell_standing(self, tell: Tell) -> None:
        """Tell a kernel that came back, or another, how the cell stands after its outputs: what it has come to, say.

        What another needs are `full_results`; where there are none, the session asks the executor for them.
        """
        if self.lost is not None:
            await tell(self.lost, ())
        elif self.is_joined and self.results is not None:
            if self.full_results is not None:
                await self.full_results.send_again(has_rings=self.has_rings)
        elif self.results is not None:
            await self.results.send_again(has_rings=self.has_rings)
        elif self.question is not None:
            await tell(self.question, ())

    def close(self) -> None:
        """Forget it: the kernel has all, or will never ask."""
        self.cancel_timers()
        self.outputs.close()
        for results in (self.results, self.full_results):
            if results is not None:
                results.close()


def _first_line(source: str) -> str:
    """Find the line by which a person knows a cell: the first that is neither a comment nor a magic, cut to length."""
    lines = (line.strip() for line in source.splitlines())
    code = [line for line in lines if line and not line.startswith(("#", "%"))]
    return (code[0] if code else "")[:_LINE_LENGTH]
