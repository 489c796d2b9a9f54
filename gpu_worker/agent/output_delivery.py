"""What a session's kernel is sent of its cells: outputs as it takes them in, then what became of the cell."""

import asyncio
import json
from collections.abc import Sequence

from bulletin.wire import messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.output_feed import OutputFeed
from gpu_worker.agent.result_transfer import ResultTransfer
from gpu_worker.agent.session_kernel import SessionKernel
from gpu_worker.agent.session_outputs import SessionOutputs


class OutputDelivery:
    """Sends outputs, live ones and those that a kernel has missed, in their order and by the same credit.

    While a kernel is behind with them, it is told nothing that comes after them; then, how the cell stands.
    """

    def __init__(self, kernel: SessionKernel, outputs: SessionOutputs, results: ResultTransfer) -> None:
        self._kernel, self._outputs, self._results = kernel, outputs, results

    async def pass_on(self, cell: AgentCell | None, output: wire.Output, blobs: Sequence[Blob]) -> None:
        """Keep an output of a cell, or (None) of one that has ended, and send it, or let it wait for its turn."""
        numbered = self._outputs.keep(cell, output, blobs)
        feed = cell.feed if cell is not None else self._outputs.late_feed
        if feed.take_newest(numbered, blobs):
            await self._kernel.tell(numbered, blobs)
        elif cell is not None:
            self._kernel.is_behind = True
            await self.go_on(cell)
        else:
            await self._send(feed)

    async def pass_on_texts(self, cell: AgentCell, texts: Sequence[tuple[str, str]]) -> None:
        """Do so with what an executor that is gone had not sent: texts, each with its stream. Others have turns."""
        for name, text in texts:
            content = json.dumps({"name": name, "text": text}, ensure_ascii=False).encode()
            await asyncio.sleep(0)  # a tenant chooses how many there are
            await self.pass_on(cell, wire.Output(cell=cell.id, type="stream"), (content,))

    async def attach(self, cell: AgentCell | None, attach: wire.Attach) -> None:
        """Send a kernel that has come what it has missed. What was being sent again to an earlier one is given up."""
        self._kernel.is_behind = False
        self._outputs.late_feed.restart(self._outputs.late_seen)
        if cell is not None and attach.cell == cell.id:
            cell.outputs.set_has_reader(has_reader=True)
            cell.has_rings, cell.is_joined = attach.has_rings, attach.is_joining
            cell.feed.restart(attach.seen)
            self._kernel.is_behind = True
        elif cell is not None:
            cell.feed.restart()
        await self.go_on(cell)

    async def mark_seen(self, cell: AgentCell, number: int, latest: AgentCell | None) -> None:
        """Take note that the kernel has a cell's outputs up to this one, and send more of the latest one's."""
        cell.outputs.mark_seen(number)
        cell.feed.mark_seen(number)
        await self.go_on(latest)

    def begin(self) -> None:
        """Take note that a new cell runs: nothing of it has been sent."""
        self._kernel.is_behind = False

    async def mark_late_seen(self, number: int) -> None:
        """Do the same for what cells say that have ended."""
        self._outputs.mark_late_seen(number)
        await self._send(self._outputs.late_feed)

    async def go_on(self, cell: AgentCell | None) -> None:
        """Send as much as the kernel may be sent now; where that is all, say how the latest cell stands."""
        await self._send(self._outputs.late_feed)
        if cell is None:
            return
        await self._send(cell.feed)
        if self._kernel.is_behind and not cell.feed.is_behind:
            self._kernel.is_behind = False
            await cell.tell_standing(self._kernel.tell)
            if self._kernel.is_joined and cell.results is not None and cell.lost is None:
                self._results.send_full(cell)

    async def _send(self, feed: OutputFeed) -> None:
        while (following := feed.take_next()) is not None:
            await self._kernel.tell(*following)
