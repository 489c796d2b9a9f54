"""How the results of a session's cells get from the executor to a kernel: the one that sent the cell, or another."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from bulletin.errors import MalformedMessage
from bulletin.wire import blobs as bulk, messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.cell_results import CellResults
from gpu_worker.agent.executor_link import ExecutorLink
from gpu_worker.agent.session_kernel import SessionKernel
from gpu_worker.agent.session_outputs import SessionOutputs
from gpu_worker.agent.spool import DiskShare
from gpu_worker.config import PoolSettings


class ResultTransfer:
    """Passes results on, keeps them where no kernel takes them, and tells when an executor has none left.

    The kernel that sent a cell gets what changed; another one, which joins the cell, needs *full* results, which the
    executor makes on request.
    """

    def __init__(
        self,
        executor: ExecutorLink,
        kernel: SessionKernel,
        settings: PoolSettings,
        share: DiskShare,
        outputs: SessionOutputs,
        on_complete: Callable[[AgentCell], Awaitable[None]],
        on_settled: Callable[[], None],
    ) -> None:
        """Call `on_complete` when a cell's results are out of the executor, `on_settled` when none need stay in it.

        Where the disk has no room for what no kernel takes, that stays in the executor, and the cell's outputs say so.
        """
        self._executor, self._kernel, self._settings, self._share = executor, kernel, settings, share
        self._outputs, self._on_complete, self._on_settled = outputs, on_complete, on_settled

    def is_settled(self, cell: AgentCell) -> bool:
        """Tell whether the executor no longer has anything of the cell that its kernel, or the next one, may need."""
        has_safe_full = cell.full_results is not None and cell.full_results.is_safe
        if cell.lost is not None:
            return True
        if self._kernel.is_joined:
            return has_safe_full
        return cell.is_safe and (has_safe_full or self._kernel.is_attended)

    def check(self, ended: wire.Ended, blobs: Sequence[Blob]) -> None:
        """Raise MalformedMessage if the results are larger than allowed, or come with what they do not tell of.

        The user's code can reach the pipe.
        """
        bulk.check(ended.parcel, self._settings.parcel_limit_bytes)
        told_bytes = sum(ended.parcel.sizes) if ended.parcel.inline else 0
        came_bytes = sum(memoryview(blob).nbytes for blob in blobs)
        if came_bytes != told_bytes:
            raise MalformedMessage(f"{came_bytes} bytes beside the end of a cell, which tells of {told_bytes}")

    async def begin(self, cell: AgentCell, ended: wire.Ended, blobs: Sequence[Blob]) -> None:
        """Pass the results of a cell on that has just ended."""
        cell.results = self._make_results(cell, ended, blobs)
        if self._kernel.is_joined:
            self.send_full(cell)
            return
        await cell.results.tell()
        if cell.results.is_out:
            await self._on_complete(cell)

    async def receive(self, cell: AgentCell, message: wire.Chunk | wire.Ended, blobs: Sequence[Blob]) -> None:
        """Take in what the executor sends of a cell that has ended: a piece, or the head of another round.

        Raises MalformedMessage if that cannot be.
        """
        if isinstance(message, wire.Ended) and message.round == cell.full_round and cell.full_results is None:
            await self._begin_full(cell, message, blobs)
            return
        for results in (cell.results, cell.full_results):
            if results is None or results.round != message.round:
                continue
            if isinstance(message, wire.Ended):
                results.check_round(message)
            else:
                await self._receive_chunk(cell, results, message, blobs)

    async def _receive_chunk(
        self, cell: AgentCell, results: CellResults, chunk: wire.Chunk, blobs: Sequence[Blob]
    ) -> None:
        try:
            await results.receive(chunk, blobs)
        except OSError as error:
            self._outputs.note_unkept(cell, error)
            return
        if results.is_out:
            await self._on_complete(cell)
        self.release(cell)

    async def acknowledge(self, cell: AgentCell, took: wire.Took) -> None:
        """Take note that the kernel took a piece in; send it the next."""
        for results in (cell.results, cell.full_results):
            if results is not None:
                await results.acknowledge(took)

    def release(self, cell: AgentCell) -> None:
        """Let the executor forget the results of the cell, once nobody needs them from it."""
        if self.is_settled(cell):
            self._executor.write(wire.Seen(cell=cell.id, seq=0, is_done=True))
            self._on_settled()

    def keep(self, cell: AgentCell, *, for_kernel: bool = False) -> None:
        """Take the results into a file: no kernel is there. Then ask for full ones, for another kernel.

        With `for_kernel` one is there, and too slow: it gets them from the file.
        """
        assert cell.results is not None
        try:
            cell.results.keep(for_kernel=for_kernel)
        except OSError as error:
            self._outputs.note_unkept(cell, error)
            return
        if cell.results.is_safe and not for_kernel:  # one after the other: they share the executor's pipe
            self._request_full(cell)

    def send_full(self, cell: AgentCell) -> None:
        """Send a kernel that joins the cell full results, in place of those for the kernel that sent it."""
        assert cell.results is not None
        cell.results.close()
        self._request_full(cell)

    def _request_full(self, cell: AgentCell) -> None:
        if cell.full_round is None:
            cell.full_round = cell.draw_round()
            self._executor.write(wire.Return(cell=cell.id, round=cell.full_round, is_whole=True))

    async def _begin_full(self, cell: AgentCell, ended: wire.Ended, blobs: Sequence[Blob]) -> None:
        usage = cell.ended.usage if cell.ended is not None else None
        cell.full_results = self._make_results(cell, structs.replace(ended, usage=usage), blobs)
        if self._kernel.is_joined:
            await cell.full_results.tell()
        else:
            try:
                cell.full_results.take_in()
            except OSError as error:
                self._outputs.note_unkept(cell, error)
        if cell.full_results.is_out:
            await self._on_complete(cell)
        self.release(cell)

    def _make_results(self, cell: AgentCell, ended: wire.Ended, blobs: Sequence[Blob]) -> CellResults:
        self.check(ended, blobs)
        return CellResults(ended, blobs, self._share, self._kernel.tell, self._executor.write, cell.draw_round)
