"""One session on its node: its executor, its pipe and rings, the cell that runs, and how each of them ends.

The session passes bytes on and never looks into them. It decides three things: when a stopped cell has had its grace,
when a cell has had its walltime, and what to say when the executor is gone.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog
from msgspec import structs

from bulletin.codes import CellOutcome, LeaseEnd, RefusalCode
from bulletin.errors import MalformedMessage
from bulletin.ids import AgentId, CellId
from bulletin.units import show_duration
from bulletin.wire import blobs as bulk, frames, messages as wire, pipe
from bulletin.wire.frames import Blob
from gpu_worker.agent.cells import Cell, now_ms
from gpu_worker.agent.ends import End, epitaph
from gpu_worker.agent.executor_process import ExecutorProcess
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.output_buffer import OutputBuffer
from gpu_worker.agent.results import Results
from gpu_worker.config import PoolSettings

_PIPE_BUFFER = 4 * 2**20
_UNREAD_LIMIT = 4 * bulk.RING
_STATUS_WAIT_S = 2.0
#: A cell that is over sooner is not told before it is done.
_BEGAN_S = 0.03
#: How soon an interrupt that nobody has noticed is sent again: at first, and at last.
_AGAIN_S = (0.5, 2.0)
#: After so long, or `away_ms`, another kernel may join the cell of one that is silent: it has not even answered once.
_GONE_MS = 3_000
#: After so many times `away_ms` of silence a cell that does not outlive its kernel is ended.
_ALONE = 3
#: From then on, a cell that prints does not wait for it.
_UNREAD = 6

#: How a session reaches its kernel, and the broker. Either may be gone: what they are given may be lost.
ToKernel = Callable[[bytes, wire.Message, Sequence[Blob]], Awaitable[None]]
ToBroker = Callable[[wire.Message], Awaitable[None]]


class Session:
    """A lease that this node holds, from Prepare to LeaseOver."""

    def __init__(
        self,
        prepare: wire.Prepare,
        settings: PoolSettings,
        inventory: Inventory,
        to_kernel: ToKernel,
        to_broker: ToBroker,
    ) -> None:
        self.prepare, self._settings, self._inventory = prepare, settings, inventory
        self._to_kernel, self._to_broker = to_kernel, to_broker
        self.route: bytes | None = None  #: the connection that showed the ticket last
        self._began_ms = self.heard_ms = now_ms()
        self.cell: Cell | None = None
        self.last: Cell | None = None  #: the cell before, until its kernel has all of it, or runs another
        #: What threads of cells that have ended go on to print.
        self._late = OutputBuffer(None, settings.folder, settings.output_buffer_bytes)
        self._late_seen = 0
        self.executor: ExecutorProcess | None = None
        self.is_ready = False
        self._is_over = False
        self._is_left = False  #: its kernel has said that it ends
        self.is_joined = False  #: its kernel is not the one that sent the cell
        self._used: set[CellId] = set()
        self.is_wanted = False  #: somebody waits for its place: it goes after this cell
        self.end: End | None = None
        self.gone = asyncio.Event()  #: the executor's process is gone
        self.rings: tuple[int, ...] = (bulk.make_ring(), bulk.make_ring())
        self.log = structlog.get_logger("agent").bind(lease=prepare.lease, session=prepare.session, user=prepare.user)
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        self._ours = ours
        self._writer: asyncio.StreamWriter | None = None
        self._finishing: asyncio.Task[None] | None = None

    def held(self) -> wire.HeldLease:
        """The lease as a broker that has forgotten it must learn it."""
        prepare, cell = self.prepare, self.cell
        return wire.HeldLease(
            lease=prepare.lease,
            session=prepare.session,
            kernel=prepare.kernel,
            user=prepare.user,
            project=prepare.project,
            qos=prepare.qos,
            slots=prepare.slots,
            walltime_ms=prepare.walltime_ms,
            cell=cell.id if cell else None,
            running_ms=now_ms() - cell.began_ms if cell else 0,
            held_ms=now_ms() - self._began_ms,
            cpus=prepare.cpus,
            memory_bytes=prepare.memory_bytes,
        )

    @property
    def lease_end(self) -> LeaseEnd:
        """Why its lease ended, once it has: where the agent did not end the executor, that died."""
        return LeaseEnd.EXECUTOR_DIED if self.end is None else self.end.value

    def began(self, cell: Cell) -> wire.CellBegan:
        """That a cell runs, for the broker."""
        return wire.CellBegan(lease=self.prepare.lease, cell=cell.id, running_ms=now_ms() - cell.began_ms)

    # --- the executor's side

    async def run(self) -> str:
        """Pass on what the executor says until it is gone and its slots are empty. The reason, in words."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._ours, limit=_PIPE_BUFFER)
        if self.end is not None:  # it was evicted before there was anything to end
            self._writer.close()
        unpacker: frames.Unpacker[wire.FromExecutor] = frames.Unpacker(wire.FromExecutor)
        try:
            while True:
                await self._late.wait_for_room()
                if self.cell is not None:
                    await self.cell.outputs.wait_for_room()
                message, blobs = unpacker.unpack(await pipe.read(reader))
                await self._from_executor(message, blobs)
        except (EOFError, OSError):
            pass  # the executor has ended; why comes below
        except MalformedMessage as error:
            self.log.warning("the executor sent junk and is ended", problem=error.problem)
        return await self._bury()

    async def _from_executor(self, message: wire.FromExecutor, blobs: Sequence[Blob]) -> None:
        cell = self.cell
        if isinstance(message, wire.Ready):
            self.is_ready = True
            await self._to_broker(wire.Prepared(lease=self.prepare.lease))
        elif isinstance(message, wire.Chunk | wire.Ended) and (known := self._cell_of(message.cell)) is not None:
            await self._result(known, message, blobs)
        elif cell is None or message.cell != cell.id:
            if isinstance(message, wire.Output):  # of a cell that is over
                await self._tell(self._keep(self._late, message, blobs), blobs)
        elif isinstance(message, wire.Output):
            await self._tell(self._keep(cell.outputs, message, blobs), blobs)
        elif isinstance(message, wire.Noticed):
            cell.has_noticed, cell.question = True, None
        elif isinstance(message, wire.Asked):
            await self._tell(cell.asks(message))
        else:
            await self._tell(message, blobs)

    def _may_go(self, cell: Cell) -> bool:
        """Whether nothing of the cell is in the executor that its kernel, or where that is gone another, may need."""
        is_whole_safe = cell.whole is not None and cell.whole.is_safe
        if cell.lost is not None or self.is_joined:
            return cell.lost is not None or is_whole_safe
        return cell.is_safe and (is_whole_safe or self.is_attended)

    @property
    def may_go(self) -> bool:
        """Whether the executor may be ended for somebody who waits."""
        return self.cell is None and (self.last is None or self._may_go(self.last))

    def _cell_of(self, name: CellId) -> Cell | None:
        """The cell of that name that runs, or ran last."""
        return next((cell for cell in (self.cell, self.last) if cell is not None and cell.id == name), None)

    def _keep(self, buffer: OutputBuffer, output: wire.Output, blobs: Sequence[Blob]) -> wire.Output:
        try:
            return buffer.append(output, blobs)
        except OSError as error:
            self.log.error("an output cannot be kept", cell=output.cell, problem=str(error))
            return structs.replace(output, seq=buffer.last, late=buffer is self._late)

    async def _result(self, cell: Cell, message: wire.Chunk | wire.Ended, blobs: Sequence[Blob]) -> None:
        if cell.results is None:
            if isinstance(message, wire.Ended):
                await self._ended(cell, message, blobs)
        elif isinstance(message, wire.Ended) and message.round == cell.whole_round and cell.whole is None:
            await self._whole(cell, message, blobs)
        else:
            for results in filter(None, (cell.results, cell.whole)):
                if results.round == message.round and isinstance(message, wire.Ended):
                    results.began(message)
                elif results.round == message.round and isinstance(message, wire.Chunk):
                    await self._chunk(cell, results, message, blobs)

    def _results(self, cell: Cell, ended: wire.Ended, blobs: Sequence[Blob]) -> Results:
        bulk.check(ended.parcel, self._settings.parcel_limit_bytes)  # the user's code can reach the pipe

        def ask(said: wire.Return | wire.Took) -> None:
            self._to_executor(said, ())

        return Results(ended, blobs, self._settings.folder, self._tell, ask, cell.draw_round)

    def _ask_whole(self, cell: Cell) -> None:
        """The kernel that sent the cell is gone: what is for another one, the executor must make."""
        if cell.whole_round is None:
            cell.whole_round = cell.draw_round()
            self._to_executor(wire.Return(cell=cell.id, round=cell.whole_round, is_whole=True), ())

    async def _whole(self, cell: Cell, message: wire.Ended, blobs: Sequence[Blob]) -> None:
        usage = cell.ended.usage if cell.ended is not None else None
        cell.whole = self._results(cell, structs.replace(message, usage=usage), blobs)
        if self.is_joined:
            await cell.whole.tell()
        else:
            self._take_in(cell, cell.whole)
        if cell.whole.is_out:
            await self._close_cell(cell)
        self._release(cell)

    def _take_in(self, cell: Cell, results: Results) -> None:
        try:
            results.take_in()
        except OSError as error:
            self.log.error("results cannot be kept", cell=cell.id, problem=str(error))

    async def _chunk(self, cell: Cell, results: Results, chunk: wire.Chunk, blobs: Sequence[Blob]) -> None:
        try:
            await results.chunk(chunk, blobs)
        except OSError as error:
            self.log.error("results cannot be kept", cell=cell.id, problem=str(error))
            raise MalformedMessage("the disk of the node failed") from error
        if results.is_out:
            await self._close_cell(cell)
        self._release(cell)

    def _release(self, cell: Cell) -> None:
        """Once its results are safe, the executor need not hold them; it may go, if somebody waits for its place."""
        if not self._may_go(cell):
            return
        self._to_executor(wire.Seen(cell=cell.id, seq=0, is_done=True), ())
        if self.is_wanted and self.cell is None:
            self.finish_soon(End.EVICTED)

    async def _ended(self, cell: Cell, message: wire.Ended, blobs: Sequence[Blob]) -> None:
        bulk.check(
            message.parcel, self._settings.parcel_limit_bytes
        )  # before any of it is believed: a cell can forge it
        await self._inventory.sample(self.prepare.slots, cell.load)  # a short cell may have had no sample yet
        usage = self._usage(cell, CellOutcome.WALLTIME if cell.is_overdue else CellOutcome(message.outcome), message)
        cell.quiet()  # no walltime ends it any more
        cell.ended, cell.question = structs.replace(message, usage=usage), None
        cell.results = self._results(cell, cell.ended, blobs)
        if self.is_joined:
            cell.results.close()
            self._ask_whole(cell)
            return
        await cell.results.tell()
        if cell.results.is_out:
            await self._close_cell(cell)

    async def _close_cell(self, cell: Cell, outcome: CellOutcome | None = None) -> None:
        """The cell is over in every respect: count it once, and let the session be hot."""
        if self.cell is not cell:
            return
        self.cell, self.last = None, cell
        cell.quiet()
        usage = cell.ended.usage if cell.ended is not None and outcome is None else None
        prepare = self.prepare
        await self._to_broker(
            wire.CellDone(
                lease=prepare.lease,
                session=prepare.session,
                cell=cell.id,
                user=prepare.user,
                project=prepare.project,
                qos=prepare.qos,
                slots=prepare.slots,
                label=prepare.label,
                usage=usage or self._usage(cell, outcome or CellOutcome.EXECUTOR_DIED, cell.ended),
            )
        )
        if self.is_wanted and self.may_go:  # or a notebook that runs cell after cell would never give way
            self.finish_soon(End.EVICTED)

    def _usage(self, cell: Cell, outcome: CellOutcome, ended: wire.Ended | None) -> wire.CellUsage:
        held_ms = now_ms() - cell.began_ms
        return wire.CellUsage(
            outcome=outcome,
            ran_ms=min(max(0, ended.ran_ms), held_ms) if ended is not None else held_ms,
            held_ms=held_ms,
            peak_memory_bytes=cell.load.peak_memory_bytes,
            mean_utilization=cell.load.mean_utilization,
            bytes_sent=cell.bytes_sent,
            bytes_returned=sum(ended.parcel.sizes) if ended is not None else 0,
            walltime_ms=self.prepare.walltime_ms if cell.is_overdue else None,
        )

    async def _tell(self, message: wire.Message, blobs: Sequence[Blob] = ()) -> None:
        if self.route is not None:
            await self._to_kernel(self.route, message, blobs)

    # --- the kernel's side

    async def attach(self, route: bytes, message: wire.Attach) -> None:
        """The ticket was right: this connection is the session's. Send again what it has missed."""
        self.route, self.heard_ms, self._is_left = route, now_ms(), False
        cell = self.cell or self.last
        about: dict[str, Any] = {}
        if cell is not None:
            about = {"cell": cell.id, "lacks": cell.lacks, "is_stopped": cell.is_stopped}
        await self._tell(wire.Attached(lease=self.prepare.lease, **about))
        for output, blobs in self._late.after(self._late_seen):
            await self._tell(output, blobs)
        if cell is not None and message.cell == cell.id:
            cell.outputs.set_has_reader(True)
            await cell.tell_missed(message, self._tell)
            if self.is_joined and cell.results is not None and cell.lost is None:
                cell.results.close()
                self._ask_whole(cell)

    async def from_kernel(self, message: wire.KernelToAgent, blobs: Sequence[Blob]) -> None:
        """Pass on what the kernel says."""
        self.heard_ms = now_ms()
        match message:
            case wire.Run():
                await self._run_cell(message, blobs)
            case wire.Seen(late=True):
                self._late_seen = max(self._late_seen, message.seq)
                self._late.mark_seen(message.seq)
            case wire.Chunk():
                if self.cell is not None and self.cell.id == message.cell:
                    self.cell.lacks = max(0, self.cell.lacks - message.size)
                self._to_executor(message, blobs)
            case wire.Took():
                cell = self._cell_of(message.cell)
                for results in filter(None, (cell.results, cell.whole) if cell is not None else ()):
                    await results.took(message)
                if cell is not None and cell is self.last:
                    self._release(cell)
            case wire.Answer():
                if self.cell is not None and self.cell.id == message.cell and self.cell.question is not None:
                    self.cell.question = None
                    self._to_executor(message, blobs)
            case wire.Seen():
                await self._seen(message)
            case wire.Stop():
                if self.cell is not None and self.cell.id == message.cell:
                    self._stop(self.cell, hard=message.hard)
            case wire.Leave(keeps_cell=keeps_cell):
                self._leave(keeps_cell=keeps_cell)
            case wire.Ping():
                await self._tell(wire.Pong())
            case wire.Attach():
                pass  # the agent's own business; it has happened

    def _leave(self, *, keeps_cell: bool) -> None:
        """The kernel has no use for the session; its cell may go on for another kernel."""
        cell = self.cell or self.last
        if not keeps_cell or cell is None:
            self.finish_soon(End.LEFT)
            return
        self._is_left, self.route, cell.outlives_kernel = True, None, True

    async def _seen(self, message: wire.Seen) -> None:
        cell = self._cell_of(message.cell)
        if cell is None:
            return
        cell.outputs.mark_seen(message.seq)
        if message.is_done and cell is self.last:
            self._forget_last()
            if self._is_over:
                await self._tell_over()
            elif self.is_wanted:
                self.finish_soon(End.EVICTED)

    def _forget_last(self) -> None:
        cell, self.last = self.last, None
        if cell is not None:
            self._to_executor(wire.Seen(cell=cell.id, seq=0, is_done=True), ())
            cell.close()

    def look(self) -> None:
        """Once a second: whether the kernel is there for what its cell says, and what to do if it is not."""
        cell = self.cell or self.last
        away_ms = self._settings.away_ms
        silent_ms = _UNREAD * away_ms if self._is_left else now_ms() - self.heard_ms
        self._late.set_has_reader(silent_ms < _UNREAD * away_ms)
        if cell is None:
            return
        cell.outputs.set_has_reader(silent_ms < _UNREAD * away_ms)
        # What lacks some of its state will not begin: a kernel that comes back sends all of it anew, to any session.
        is_vain = cell.lacks > 0 or (not cell.outlives_kernel and silent_ms >= _ALONE * away_ms)
        if self.cell is not None and is_vain and silent_ms >= away_ms:
            self.finish_soon(End.KERNEL_GONE)
        elif cell.results is not None and cell.lost is None and silent_ms >= away_ms and not self._is_over:
            try:
                cell.results.keep()
                if cell.results.is_safe:  # one after the other: they share the executor's pipe
                    self._ask_whole(cell)
            except OSError as error:
                self.log.error("results cannot be kept", cell=cell.id, problem=str(error))

    # --- another kernel

    @property
    def is_attended(self) -> bool:
        """Whether its kernel is there, as far as one knows."""
        return not self._is_left and now_ms() - self.heard_ms < min(_GONE_MS, self._settings.away_ms)

    def note(self) -> wire.CellNote | None:
        """What it has for its user, if anything. The node's agent fills its own name in."""
        cell = self.cell or self.last
        if cell is None or cell.lacks:
            return None
        return wire.CellNote(
            cell=cell.id,
            agent=AgentId(""),
            node="",
            state=cell.state,
            line=cell.line,
            label=self.prepare.label,
            since_ms=now_ms() - cell.began_ms,
            is_attended=self.is_attended,
        )

    def hand_over(self, message: wire.HandOver) -> str:
        """Let another kernel of the same user have the cell. Or a sentence why not."""
        cell = self.cell or self.last
        if cell is None or cell.lacks or cell.id != message.cell or message.user != self.prepare.user:
            return "There is no such cell of yours any more."
        if self.is_attended and message.kernel != self.prepare.kernel:
            return "The notebook that runs the cell is still there: stop the cell in it, or close it."
        if cell.results is not None and cell.whole is None and self._is_over:
            return "The results of the cell are gone: its process ended before they could be kept for another notebook."
        self.prepare = structs.replace(
            self.prepare, session=message.session, kernel=message.kernel, ticket=message.ticket
        )
        self.route, self.is_joined, self.heard_ms, self._is_left = None, True, now_ms(), False
        return ""

    async def _run_cell(self, message: wire.Run, blobs: Sequence[Blob]) -> None:
        if self._cell_of(message.cell) is not None:
            return  # said twice
        try:
            bulk.check(message.parcel, self._settings.parcel_limit_bytes)
        except MalformedMessage as error:
            lost = wire.Lost(cell=message.cell, code=CellOutcome.STATE_TOO_LARGE, sentence=_not_accepted(error))
            await self._tell(lost)
            return
        is_ending = self.end is not None or self._is_over
        if is_ending or self.cell is not None or message.cell in self._used:
            sentence = "The session is ending." if is_ending else "The session runs another cell."
            await self._tell(wire.Gone(code=RefusalCode.NOT_FREE, sentence=sentence))
            return
        self._used.add(message.cell)  # each is counted once, so each is new
        self._forget_last()
        cell = self.cell = Cell(message, self._settings.folder, self._settings.output_buffer_bytes)
        self._to_executor(message, blobs)
        later = asyncio.get_running_loop().call_later
        cell.alarms.append(later(_BEGAN_S, self._tell_began, cell))
        cell.alarms.append(later(self.prepare.walltime_ms / 1000, self._walltime, cell))
        if self._inventory.visible(self.prepare.slots):
            cell.tasks.append(asyncio.create_task(self._inventory.watch(self.prepare.slots, cell.load)))

    def _tell_began(self, cell: Cell) -> None:
        """Shorter cells are only told when they are done: the broker need not know of them before."""
        cell.tasks.append(asyncio.create_task(self._say_began(cell)))

    async def _say_began(self, cell: Cell) -> None:
        await self._to_broker(self.began(cell))

    def _to_executor(self, message: wire.Message, blobs: Sequence[Blob]) -> None:
        if self._writer is None or self._writer.is_closing():
            return  # its end is told by `run`
        pipe.write(self._writer, frames.pack(message, blobs))
        # Nobody waits here, or one slow executor would hold up every kernel. An honest kernel keeps to its window.
        if self._writer.transport.get_write_buffer_size() > _UNREAD_LIMIT:
            self.log.warning("the kernel sends more than its window allows; the session is ended")
            self.finish_soon(End.FLOOD)

    # --- stopping

    def _stop(self, cell: Cell, *, hard: bool) -> None:
        if hard:
            self.finish_soon(End.STOPPED)
        elif not cell.is_stopped:
            cell.is_stopped = True
            self._interrupt(cell, End.STOPPED, self._settings.interrupt_grace_ms)
        elif self.executor is not None:
            self.executor.interrupt()

    def _interrupt(self, cell: Cell, end: End, grace_ms: int) -> None:
        """Interrupt; end the executor if no Python code has noticed within the grace."""
        if self.executor is not None:
            self.executor.interrupt()
        cell.alarms.append(asyncio.get_running_loop().call_later(_AGAIN_S[0], self._interrupt_again, cell, _AGAIN_S[0]))
        cell.alarms.append(asyncio.get_running_loop().call_later(grace_ms / 1000, self._escalate, cell, end))

    def _interrupt_again(self, cell: Cell, after_s: float) -> None:
        """An executor that has not taken the cell in yet does not hear it: until a cell is there, it means nothing."""
        if self.cell is not cell or cell.has_noticed or self.executor is None:
            return
        self.executor.interrupt()
        after_s = min(2 * after_s, _AGAIN_S[1])
        cell.alarms.append(asyncio.get_running_loop().call_later(after_s, self._interrupt_again, cell, after_s))

    def _escalate(self, cell: Cell, end: End) -> None:
        if self.cell is cell and (end is End.WALLTIME or not cell.has_noticed):
            self.finish_soon(end)

    def _walltime(self, cell: Cell) -> None:
        cell.is_overdue = True
        self.log.info("walltime", cell=cell.id, walltime_ms=self.prepare.walltime_ms)
        self._interrupt(cell, End.WALLTIME, self._settings.walltime_grace_ms)

    async def give_back(self, grace_ms: int, *, is_for_share: bool) -> None:
        """The slots are wanted back: the session goes with its cell, which has so long to end."""
        cell, self.is_wanted = self.cell, True
        if cell is None:
            self.finish_soon(End.EVICTED)
            return
        cell.alarms.append(asyncio.get_running_loop().call_later(grace_ms / 1000, self._take_back, cell))
        if grace_ms:
            owner = "a project that has less than its share" if is_for_share else "the project that it is guaranteed to"
            sentence = (
                f"Your cell runs on a borrowed place, and {owner} needs it back. It has "
                f"{show_duration(grace_ms)} to end; if it has not by then, it is run again from its beginning."
            )
            await self._tell(wire.Notice(cell=cell.id, sentence=sentence))

    async def cancel(self, sentence: str, *, hard: bool) -> None:
        """Somebody with the right to it cancels the cell: it is stopped, or if it has not come yet, never begins."""
        cell = self.cell
        if cell is not None:
            await self._tell(wire.Notice(cell=cell.id, sentence=sentence))
            self._stop(cell, hard=hard)
        elif not self._used:
            self.finish_soon(End.CANCELLED)

    def _take_back(self, cell: Cell) -> None:
        if self.cell is cell and cell.ended is None:  # else its results are on their way
            self.finish_soon(End.RECLAIMED)

    def exited(self, status: int) -> None:
        """The executor's process is gone."""
        assert self.executor is not None
        self.executor.status = status
        self.gone.set()
        self._late.release()
        if self.cell is not None:
            self.cell.outputs.release()

    def finish_soon(self, end: End) -> None:
        """`finish`, from a place that cannot wait."""
        if self._finishing is None or self._finishing.done():
            self._finishing = asyncio.create_task(self.finish(end))

    async def finish(self, end: End) -> None:
        """End the executor, the whole of its process group. `run` then comes to its end."""
        self.end = self.end or end
        if self.gone.is_set():
            return
        self._late.release()
        if self.cell is not None:
            self.cell.outputs.release()
        if self.executor is not None:
            gentle = end in (End.STOPPED, End.WALLTIME)
            await self.executor.end(self.gone, at_once=not gentle)
        elif self._writer is not None:
            self._writer.close()

    # --- the end

    async def _bury(self) -> str:
        """The executor is gone or as good: see to it, say why, and wait until its slots are empty."""
        executor, self._is_over = self.executor, True
        if executor is not None:
            with contextlib.suppress(TimeoutError):  # it may have closed its pipe and live on
                async with asyncio.timeout(_STATUS_WAIT_S):
                    await self.gone.wait()
            executor.kill_group()
            await self.gone.wait()
        status = executor.status if executor is not None else None
        sentence = epitaph(self.end, status, self.prepare.walltime_ms)
        cell = self.cell
        if cell is not None:
            await self._lose(cell, self.lease_end.outcome, sentence)
            await self._close_cell(cell, self.lease_end.outcome)
        elif self.last is not None and not (self._may_go(self.last) if self.is_joined else self.last.is_safe):
            await self._lose(self.last, CellOutcome.EXECUTOR_DIED, sentence)
        elif self.last is None:
            await self._tell_over()
        while not await self._inventory.wait_empty(self.prepare.slots):  # nobody else gets the GPU before
            self.log.error("memory of a GPU is still in use after its executor has gone", slots=self.prepare.slots)
        self.discard()
        return sentence

    async def _lose(self, cell: Cell, code: CellOutcome, sentence: str) -> None:
        cell.lost = wire.Lost(cell=cell.id, code=code, sentence=sentence)
        await self._tell(cell.lost)

    async def _tell_over(self) -> None:
        """The kernel has all of its cells: there will be no more of them here."""
        if self.end not in (End.LEFT, End.CANCELLED):  # of the one it knows; of the other the broker tells
            sentence = epitaph(self.end, self.executor.status if self.executor else None, self.prepare.walltime_ms)
            await self._tell(wire.Lost(cell=None, code=self.lease_end.outcome, sentence=sentence))

    def forget(self) -> None:
        """Nobody will ask for what its last cell has left."""
        if self.last is not None:
            self.last.close()
            self.last = None

    def discard(self) -> None:
        """Give pipe and rings back; whoever has mapped a ring keeps a hold of its own on it."""
        self.theirs.close()
        if self._writer is not None:
            self._writer.close()
        else:
            self._ours.close()
        rings, self.rings = self.rings, ()
        for descriptor in rings:
            os.close(descriptor)


def _not_accepted(error: MalformedMessage) -> str:
    return f"What the cell needs was not accepted ({error.problem}). Nothing was run."
