"""What the cells of a session say: kept until the kernel has seen it, also of cells that have ended."""

import json
from collections.abc import Sequence

from msgspec import structs
from structlog.typing import FilteringBoundLogger

from bulletin.wire import messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.end_reasons import unkept_results
from gpu_worker.agent.output_buffer import OutputBuffer
from gpu_worker.agent.output_feed import OutputFeed
from gpu_worker.agent.spool import DiskShare
from gpu_worker.config import PoolSettings


class SessionOutputs:
    """Each cell has a buffer of its own; one more is for what threads of cells that have ended go on to print."""

    def __init__(self, settings: PoolSettings, share: DiskShare, log: FilteringBoundLogger) -> None:
        self._log = log
        self._late = OutputBuffer(None, share, settings.output_buffer_bytes)
        self.late_seen = 0
        self.late_feed = OutputFeed(self._late)

    @property
    def late_memory_bytes(self) -> int:
        """About how much of the agent's memory is what ended cells have said."""
        return self._late.memory_bytes

    def keep(self, cell: AgentCell | None, output: wire.Output, blobs: Sequence[Blob]) -> wire.Output:
        """Give an output its number, and keep it; where the disk is full, log that it cannot be kept.

        `cell` is the one that the output belongs to, None for an output of a cell that has ended.
        """
        buffer = cell.outputs if cell is not None else self._late
        try:
            return buffer.append(output, blobs)
        except OSError as error:
            self._log.error("an output cannot be kept", cell=output.cell, problem=str(error))
            return structs.replace(output, seq=buffer.last, late=cell is None)

    def note_unkept(self, cell: AgentCell, error: OSError) -> None:
        """Add to what a cell has said, once, that its results stay in the executor, for a kernel that comes back."""
        if not cell.is_told_unkept:
            cell.is_told_unkept = True
            self._log.error("results cannot be kept", cell=cell.id, problem=str(error))
            text = f"bulletin: {unkept_results(error.strerror or str(error))}\n"
            content = json.dumps({"name": "stderr", "text": text}).encode()
            self.keep(cell, wire.Output(cell=cell.id, type="stream"), (content,))

    async def wait_for_room(self, cell: AgentCell | None) -> None:
        """Wait until the kernel has seen enough for more to come."""
        await self._late.wait_for_room()
        if cell is not None:
            await cell.outputs.wait_for_room()

    def set_has_reader(self, cell: AgentCell | None, *, has_reader: bool) -> None:
        """Say whether a kernel is there to read."""
        self._late.set_has_reader(has_reader=has_reader)
        if cell is not None:
            cell.outputs.set_has_reader(has_reader=has_reader)

    def release(self, cell: AgentCell | None) -> None:
        """Let the executor wait for no reader any more: it is ending."""
        self._late.release()
        if cell is not None:
            cell.outputs.release()

    def mark_late_seen(self, number: int) -> None:
        """Take note that the kernel has the outputs of ended cells up to this one."""
        self.late_seen = max(self.late_seen, min(number, self._late.last))
        self._late.mark_seen(number)
        self.late_feed.mark_seen(number)

    def close(self) -> None:
        """Forget what ended cells have said."""
        self._late.close()
