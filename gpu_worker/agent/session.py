"""One session on its node, from Prepare to LeaseOver: its executor, its kernel, and the cell that runs between them.

The session passes bytes on and never looks into them. It decides when the executor is to go, and what to say then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog
from msgspec import structs

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.errors import MalformedMessage
from bulletin.wire import blobs as bulk, messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent import session_reports
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.cell_stopper import CellStopper
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.end_reasons import NODE_LEFT, say_reclaim
from gpu_worker.agent.executor_link import ExecutorLink
from gpu_worker.agent.executor_shutdown import ExecutorShutdown
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.keep_watch import KeepWatch
from gpu_worker.agent.output_delivery import OutputDelivery
from gpu_worker.agent.result_transfer import ResultTransfer
from gpu_worker.agent.return_deadline import ReturnDeadline
from gpu_worker.agent.session_cells import SessionCells
from gpu_worker.agent.session_kernel import SessionKernel, ToKernel
from gpu_worker.agent.session_outputs import SessionOutputs
from gpu_worker.agent.spool import DiskShare
from gpu_worker.config import PoolSettings

#: The broker is told only of cells that run longer.
_TOLD_AFTER_S = 0.03
#: After so many times `away_ms` of silence a cell that does not outlive its kernel is ended.
_ALONE = 3
#: From then on, a cell that prints does not wait for it.
_UNREAD = 6

#: Tells the broker; it may be gone, and is told later then.
ToBroker = Callable[[wire.Message], Awaitable[None]]


class Session:
    """A lease that this node holds."""

    def __init__(
        self,
        prepare: wire.Prepare,
        settings: PoolSettings,
        inventory: Inventory,
        to_kernel: ToKernel,
        to_broker: ToBroker,
        share: DiskShare,
    ) -> None:
        self.prepare, self._settings, self._inventory = prepare, settings, inventory
        self._to_broker, self._share = to_broker, share
        #: What the log says of it.
        self.about = {"lease": prepare.lease, "session": prepare.session, "user": prepare.user}
        self.log = structlog.get_logger("agent").bind(**self.about)
        self._started_ms, self._keep_watch = now_ms(), KeepWatch(prepare, to_broker)
        self.kernel = SessionKernel(to_kernel, settings.away_ms)
        self.executor = ExecutorLink(prepare.user, self.end_flood, self.kernel.tell)
        self._outputs = SessionOutputs(settings, share, self.log)
        self.cells = SessionCells()
        self.shutdown = ExecutorShutdown(self.executor, self._outputs, self.cells)
        self._stopper = CellStopper(self.executor, settings, self.log, self.shutdown.begin)
        self._results = ResultTransfer(
            self.executor, self.kernel, settings, share, self._outputs, self._close_cell, self._evict_if_wanted
        )
        self._delivery = OutputDelivery(self.kernel, self._outputs, self._results)
        self._return_deadline = ReturnDeadline(self._results, self.shutdown.begin)
        #: When the executor was up; 0 before that.
        self.ready_ms = 0
        #: Somebody waits for its slots: it goes after this cell.
        self.is_wanted = False
        #: The executor has ended.
        self._is_over = False

    def held_lease(self) -> wire.HeldLease:
        """Describe the lease to a broker that was restarted and must learn it anew."""
        held = session_reports.held_lease(self.prepare, self.cells.running, self._started_ms)
        return self._keep_watch.add_to(held)

    async def tell_cell_began(self, cell: AgentCell) -> None:
        """Tell the broker that a cell runs."""
        await self._to_broker(session_reports.cell_began(self.prepare, cell))

    @property
    def is_evictable(self) -> bool:
        """Whether the executor may be ended for somebody who waits."""
        return self.cells.running is None and (self.cells.last is None or self._results.is_settled(self.cells.last))

    @property
    def memory_bytes(self) -> int:
        """About how much of the agent's memory is what its cells have said and handed back."""
        return self._outputs.late_memory_bytes + self.cells.memory_bytes

    # --- what the executor says

    async def run(self) -> str:
        """Pass on what the executor says until it is gone and its slots are empty. The reason, in words."""
        await self.executor.open()
        if self.shutdown.reason is not None:  # it was evicted before there was anything to end
            self.executor.hang_up()
        try:
            while True:
                await self._outputs.wait_for_room(self.cells.running)
                await self._from_executor(*await self.executor.read())
        except (EOFError, OSError):
            pass  # the executor has ended; why comes below
        except MalformedMessage as error:
            self.log.warning("the executor sent junk and is ended", problem=error.problem)
            self.shutdown.end_spoiled()
        return await self._reap()

    async def _from_executor(self, message: wire.FromExecutor, blobs: Sequence[Blob]) -> None:
        if isinstance(message, wire.Ready):
            if not self.ready_ms:  # user code can say it again and again, and the broker would hear each
                await self.executor.wait_joined()
                await self._keep_watch.begin_at_once(self.prepare)
                self.ready_ms = now_ms()
                await self._to_broker(wire.Prepared(lease=self.prepare.lease))
            return
        cell, known = self.cells.find_running(message.cell), self.cells.find(message.cell)
        if isinstance(message, wire.Output):  # where no such cell runs, of one that is over
            await self._delivery.pass_on(cell, message, blobs)
        elif isinstance(message, wire.Chunk | wire.Ended):
            if known is not None and known.results is not None:
                await self._results.receive(known, message, blobs)
            elif known is not None and isinstance(message, wire.Ended):
                await self._end_cell(known, message, blobs)
        elif cell is not None and isinstance(message, wire.Noticed):
            cell.has_noticed, cell.question = True, None
        elif cell is not None and isinstance(message, wire.Asked):
            await self.kernel.tell(cell.ask(message))
        elif cell is not None and cell.take_chunk():  # what the executor took in of its state
            await self.kernel.tell(message, blobs)

    async def _end_cell(self, cell: AgentCell, message: wire.Ended, blobs: Sequence[Blob]) -> None:
        """Sum up what a cell used whose code is over, stop its timers, and begin to pass its results on."""
        self._results.check(message, blobs)  # before any of it is believed: a cell can forge it
        await self._inventory.sample(self.prepare.slots, cell.load)  # a short cell may have had no sample yet
        outcome = CellOutcome.WALLTIME if cell.is_overdue else CellOutcome(message.outcome)
        usage = session_reports.cell_usage(self.prepare, cell, outcome, message, now_ms())
        cell.cancel_timers()  # no walltime ends it any more
        cell.ended, cell.question = structs.replace(message, usage=usage), None
        await self._results.begin(cell, cell.ended, blobs)

    async def _close_cell(self, cell: AgentCell, outcome: CellOutcome | None = None) -> None:
        """Close a cell that is over in every respect: report its usage once, and let the session be hot.

        `outcome` is given where its results will never come.
        """
        if self.cells.running is not cell:
            return
        self.cells.close(cell)
        done = session_reports.cell_closed(self.prepare, cell, outcome, self.kernel.heard_ms)
        self.is_wanted = self.is_wanted or self._keep_watch.is_over
        if not self._is_over and self.shutdown.reason is None and not self.is_wanted:
            await self._keep_watch.begin(self.prepare, cell.id)
        await self._to_broker(done)
        if self.is_evictable:  # or a notebook that runs cell after cell would never give way
            self._evict_if_wanted()

    def _evict_if_wanted(self) -> None:
        if self.is_wanted and self.cells.running is None:
            self.shutdown.begin(LeaseEnd.EVICTED)

    # --- what the kernel says

    async def attach(self, route: bytes, message: wire.Attach) -> None:
        """Reach the kernel by this connection, which has shown the ticket, and send it what it has missed."""
        self.kernel.attach(route)
        cell = self.cells.latest
        await self.kernel.tell(session_reports.attached(self.prepare, cell))
        await self._delivery.attach(cell, message)

    async def from_kernel(self, message: wire.KernelToAgent, blobs: Sequence[Blob]) -> None:
        """Do what the kernel says, or pass it on."""
        self.kernel.mark_heard()
        match message:
            case wire.Run():
                await self._run_cell(message, blobs)
            case wire.Chunk():
                if (cell := self.cells.find_running(message.cell)) is not None:
                    cell.note_chunk(message.size)
                    self.executor.write(message, blobs)
            case wire.Took():
                cell = self.cells.find(message.cell)
                if cell is not None:
                    await self._results.acknowledge(cell, message)
                    if cell is self.cells.last:
                        self._results.release(cell)
            case wire.Answer():
                cell = self.cells.find_running(message.cell)
                if cell is not None and cell.question is not None:
                    cell.question = None
                    self.executor.write(message, blobs)
            case wire.Seen(late=True):
                await self._delivery.mark_late_seen(message.seq)
            case wire.Seen():
                await self._mark_seen(message)
            case wire.Stop():
                if (cell := self.cells.find_running(message.cell)) is not None:
                    self._stopper.stop(cell, hard=message.hard)
            case wire.Leave(keeps_cell=keeps_cell):
                self._leave(keeps_cell=keeps_cell)
            case wire.Ping():
                await self.kernel.tell(wire.Pong())
            case wire.Attach():
                pass  # the agent's own business; it has happened

    def _leave(self, *, keeps_cell: bool) -> None:
        """End the session that its kernel gives back, or with `keeps_cell` let its cell go on for another kernel."""
        cell = self.cells.latest
        if not keeps_cell or cell is None:
            self.shutdown.begin(LeaseEnd.LEFT)
            return
        self.kernel.leave()
        cell.outlives_kernel = True

    async def _mark_seen(self, message: wire.Seen) -> None:
        cell = self.cells.find(message.cell)
        if cell is None:
            return
        await self._delivery.mark_seen(cell, message.seq, self.cells.latest)
        if message.is_done and cell is self.cells.last:
            self._forget_last()
            if self._is_over:
                await self._tell_over()
            elif self.is_wanted:
                self.shutdown.begin(LeaseEnd.EVICTED)

    def _forget_last(self) -> None:
        cell = self.cells.drop_last()
        if cell is not None:
            self.executor.write(wire.Seen(cell=cell.id, seq=0, is_done=True))

    async def _run_cell(self, message: wire.Run, blobs: Sequence[Blob]) -> None:
        if self.cells.find(message.cell) is not None:
            return  # said twice
        self.cells.drop_last()  # its kernel has all of it, or would not go on; executors take that from the Run, too
        try:
            bulk.check(message.parcel, self._settings.parcel_limit_bytes)
        except MalformedMessage as error:
            sentence = f"What the cell needs was not accepted ({error.problem}). Nothing was run."
            lost = wire.Lost(cell=message.cell, code=CellOutcome.STATE_TOO_LARGE, sentence=sentence)
            await self.kernel.tell(lost)
            return
        is_ending = self.shutdown.reason is not None or self._is_over
        if (refusal := self.cells.refusal(message.cell, is_ending=is_ending)) is not None:
            await self.kernel.tell(refusal)
            return
        cell = AgentCell(message, self.prepare.label, self._share, self._settings.output_buffer_bytes)
        self.cells.start(cell)
        self._delivery.begin()
        self.executor.write(message, blobs)
        self._stopper.start_walltime(cell, self._keep_watch.walltime_ms, self._keep_watch.more_ms)
        if self._keep_watch.is_keeping:  # the broker hears of it at once, or the slots would seem to be free
            await self._keep_watch.pass_on(self.prepare, cell)
        else:
            cell.timers.append(asyncio.get_running_loop().call_later(_TOLD_AFTER_S, self._tell_began_soon, cell))
        if self._inventory.visible(self.prepare.slots):
            cell.tasks.append(asyncio.create_task(self._inventory.watch(self.prepare.slots, cell.load)))

    def _tell_began_soon(self, cell: AgentCell) -> None:
        cell.tasks.append(asyncio.create_task(self.tell_cell_began(cell)))

    async def check_time(self) -> None:
        """Do, once a second, what is due because time has passed."""
        self._return_deadline.check(self.cells.latest)
        self._check_silence()
        await self._keep_watch.check(self.kernel, self.shutdown, is_evictable=self.is_evictable)
        if self.is_evictable and not self.cells.is_unused and self.shutdown.reason is None:
            self.executor.freeze_when_idle()

    def fail(self) -> None:
        """End the session, and no other: something went wrong with it that nobody expected."""
        self.shutdown.begin(LeaseEnd.CANNOT_START)

    def _check_silence(self) -> None:
        """Do what is due while the kernel says nothing: it may not be there for what its cell says."""
        cell = self.cells.latest
        self._outputs.set_has_reader(cell, has_reader=not self.kernel.is_silent_for(_UNREAD))
        if cell is None or not self.kernel.is_silent_for(1):
            return
        # What lacks some of its state will not begin: a kernel that comes back sends all of it anew, to any session.
        is_alone = not cell.outlives_kernel and self.kernel.is_silent_for(_ALONE)
        if self.cells.running is not None and (cell.missing_bytes or is_alone):
            self.shutdown.begin(LeaseEnd.KERNEL_GONE)
        elif cell.results is not None and cell.lost is None and not self._is_over:
            self._results.keep(cell)

    # --- another kernel

    def cell_note(self) -> wire.CellNote | None:
        """Describe the session's latest cell to its user; None without one, or while part of its state is to come."""
        cell = self.cells.latest
        if cell is None or cell.missing_bytes:
            return None
        return session_reports.cell_note(cell, is_attended=self.kernel.is_attended)

    def hand_over(self, message: wire.HandOver) -> str:
        """Let another kernel of the same user have the cell. Or a sentence why not."""
        is_attended = self.kernel.is_attended
        refused = session_reports.refuse_hand_over(
            self.prepare, self.cells.latest, message, is_attended=is_attended, is_over=self._is_over
        )
        if refused:
            return refused
        self.prepare = structs.replace(
            self.prepare, session=message.session, kernel=message.kernel, ticket=message.ticket
        )
        self.kernel.replace()
        return ""

    # --- the end

    async def reclaim(self, message: wire.Reclaim) -> None:
        """End the session for who has more right to its slots, with its cell, which has its grace to end."""
        cell, self.is_wanted = self.cells.running, True
        if cell is None:
            self.shutdown.begin(LeaseEnd.EVICTED)
            return
        self._stopper.start_reclaim(cell, message.grace_ms, NODE_LEFT if message.is_node_leaving else "")
        if message.grace_ms:
            await self.kernel.tell(wire.Notice(cell=cell.id, sentence=say_reclaim(message)))

    async def leave_node(self, grace_ms: int) -> None:
        """End the session with its node: at once where it may, else when its results are safe, or after the grace."""
        self.shutdown.note_node_leaves()
        if self.cells.running is not None:
            await self.reclaim(wire.Reclaim(lease=self.prepare.lease, grace_ms=grace_ms, is_node_leaving=True))
        elif self.is_evictable:
            self.shutdown.begin(LeaseEnd.EVICTED)
        else:
            self.is_wanted = True

    async def extend(self, message: wire.ExtendCell) -> None:
        """Give the cell more time, if it still runs and its walltime is not over; or the place, if it is kept."""
        cell, is_news = self.cells.running, self._keep_watch.extend(message.more_ms)
        if cell is not None and (is_news or cell.id == message.cell):
            is_news |= self._stopper.extend_walltime(cell, self.prepare.walltime_ms, message.more_ms)
        if is_news and (told := self._keep_watch.before if cell is None else cell.id) is not None:
            await self.kernel.tell(wire.Notice(cell=told, sentence=message.sentence))

    async def cancel(self, sentence: str, *, hard: bool) -> None:
        """Stop the cell for somebody with the right to it; if it has not come yet, it never begins."""
        cell = self.cells.running
        if cell is not None:
            await self.kernel.tell(wire.Notice(cell=cell.id, sentence=sentence))
            self._stopper.stop(cell, hard=hard)
        elif self.cells.is_unused or self._keep_watch.is_keeping:
            self.shutdown.begin(LeaseEnd.CANCELLED, sentence if self._keep_watch.is_keeping else "")

    def end_flood(self) -> None:
        """End the session: its kernel says more than an honest one does."""
        self.log.warning("the kernel sends more than its window allows; the session is ended")
        self.shutdown.begin(LeaseEnd.FLOOD)

    async def _reap(self) -> str:
        """Make sure that the executor is gone, tell the kernel why, and wait until its slots are empty.

        Return the sentence that says why.
        """
        self._is_over = True
        await self.shutdown.reap()
        await self._keep_watch.end(self.prepare)
        cell = self.cells.running
        sentence = self.shutdown.describe(self.prepare.walltime_ms + (cell.more_ms if cell is not None else 0))
        if cell is not None:
            await self._delivery.pass_on_texts(cell, await self.executor.unsent.read())
            await self._lose(cell, self.shutdown.lease_end.outcome, sentence)
            await self._close_cell(cell, self.shutdown.lease_end.outcome)
        elif self.cells.last is None:
            await self._tell_over()
        elif not (self._results.is_settled(self.cells.last) if self.kernel.is_joined else self.cells.last.is_safe):
            await self._lose(self.cells.last, CellOutcome.EXECUTOR_DIED, sentence)
        while not await self._inventory.wait_empty(self.prepare.slots):  # nobody else gets the GPU before
            self.log.error("memory of a GPU is still in use after its executor has gone", slots=self.prepare.slots)
        self.executor.close()
        return sentence

    async def _lose(self, cell: AgentCell, code: CellOutcome, sentence: str) -> None:
        cell.lost = wire.Lost(cell=cell.id, code=code, sentence=sentence)
        await self.kernel.tell(cell.lost)

    async def _tell_over(self) -> None:
        """Tell the kernel that the session is over, unless it ended the session itself or the broker tells it."""
        untold = (LeaseEnd.LEFT,) if self._keep_watch.was_keeping else (LeaseEnd.LEFT, LeaseEnd.CANCELLED)
        if self.shutdown.reason not in untold:
            sentence = self.shutdown.describe(self.prepare.walltime_ms)
            await self.kernel.tell(wire.Lost(cell=None, code=self.shutdown.lease_end.outcome, sentence=sentence))

    def forget(self) -> None:
        """Forget all that its cells have left: nobody will ask for it."""
        self._outputs.close()
        self.cells.drop_last()
