"""What the broker tells an agent to do with leases and cells, and what the agent answers."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import structs

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId, LeaseId
from bulletin.wire import messages as wire
from gpu_worker.agent.broker_link import BrokerLink
from gpu_worker.agent.departure import Departure
from gpu_worker.agent.end_reasons import describe_exit
from gpu_worker.agent.folder_scratch import FolderScratch
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.session import Session
from gpu_worker.agent.session_kernel import ToKernel
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.agent.spool import DiskShares
from gpu_worker.config import PoolSettings
from gpu_worker.faults import Faults


class LeaseCommands:
    """Starts and ends sessions as the broker says, and runs each from its start to its end."""

    def __init__(
        self,
        agent: AgentId,
        node: str,
        settings: PoolSettings,
        inventory: Inventory,
        sessions: SessionRegistry,
        broker: BrokerLink,
        to_kernel: ToKernel,
        fork: Callable[[Session], Awaitable[None]],
        departure: Departure,
        faults: Faults,
        scratch: FolderScratch,
    ) -> None:
        """Take `fork`, which asks for a session's executor, and raises OSError or LookupError where it gets none."""
        self._scratch = scratch
        self._agent, self._node, self._settings, self._inventory = agent, node, settings, inventory
        self._sessions, self._broker, self._to_kernel, self._fork = sessions, broker, to_kernel, fork
        self._departure, self._faults = departure, faults
        self._shares = DiskShares(settings.folder, settings.user_disk_bytes)
        self._tasks: asyncio.TaskGroup | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Run sessions as tasks of this group from now on."""
        self._tasks = tasks

    async def obey(self, message: wire.ToAgent) -> None:
        """Do what the broker says."""
        match message:
            case wire.Prepare():
                await self._prepare(message)
            case wire.ListCells():
                await self._list_cells(message)
            case wire.HandOver():
                with self._faults.contain(lambda: None, cell=message.cell, user=message.user):
                    await self._hand_over(message)
            case wire.Evict() | wire.Reclaim() | wire.Pause() | wire.CancelCell() | wire.ExtendCell():
                session = self._sessions.running.get(message.lease)
                if session is None:
                    await self._broker.tell(
                        wire.LeaseOver(lease=message.lease, code=LeaseEnd.NO_SUCH_LEASE, sentence="")
                    )
                else:
                    with self._faults.contain(session.fail, **session.about):
                        await self._command(session, message)
            case wire.HostEnds():
                self._departure.move(message.leaves_in_ms)
            case wire.Unknown() | wire.Registered() | wire.Recorded() | wire.Refusal() | wire.Pong() | wire.Malformed():
                pass  # between the broker and its link

    async def _command(
        self, session: Session, message: wire.Evict | wire.Reclaim | wire.Pause | wire.CancelCell | wire.ExtendCell
    ) -> None:
        match message:
            case wire.Evict():
                await self._evict(session, message)
            case wire.Reclaim():
                if not self._departure.is_begun:  # it has its grace, and no other
                    await session.reclaim(message)
            case wire.Pause():
                await self._pause(session)
            case wire.CancelCell():
                await session.cancel(message.sentence, hard=message.hard)
            case wire.ExtendCell():
                await session.extend(message)

    async def _evict(self, session: Session, message: wire.Evict) -> None:
        if session.cells.running is not None and not message.force:
            session.is_wanted = True
            await session.tell_cell_began(session.cells.running)
        elif not session.is_evictable and not message.force:
            session.is_wanted = True  # it goes as soon as the kernel, or this agent, has the results
        else:
            session.shutdown.begin(LeaseEnd.EVICTED, message.sentence)

    async def _pause(self, session: Session) -> None:
        """Decline where a cell runs, since no session can be moved with its state yet; else let the session go.

        One that is still busy with its last cell's results goes as soon as it can be evicted.
        """
        if session.cells.running is not None:
            await self._broker.tell(wire.PauseDeclined(lease=session.prepare.lease))
        elif not session.is_evictable:
            session.is_wanted = True
        else:
            session.shutdown.begin(LeaseEnd.EVICTED)

    # --- from Prepare to LeaseOver

    async def _prepare(self, message: wire.Prepare) -> None:
        session = self._sessions.running.get(message.lease)
        if session is not None:  # asked again: the answer was lost
            if session.ready_ms:
                await self._broker.tell(wire.Prepared(lease=message.lease))
            return
        if self._departure.is_begun:
            sentence = f"The node {self._node} is being shut down."
            await self._broker.tell(wire.LeaseOver(lease=message.lease, code=LeaseEnd.CANNOT_START, sentence=sentence))
            return
        try:
            share = self._shares.find_or_add(message.user)
            session = Session(message, self._settings, self._inventory, self._to_kernel, self._broker.tell, share)
        except OSError as error:
            await self._broker.tell(_cannot_start(message.lease, error))
            return
        self._sessions.running[message.lease] = session
        assert self._tasks is not None
        self._tasks.create_task(self._run(session))

    async def _run(self, session: Session) -> None:
        """Run a session from its start to its end. Whatever happens to it happens to it alone."""
        lease = session.prepare.lease
        sentence = describe_exit(LeaseEnd.CANNOT_START, None, 0)
        over = wire.LeaseOver(lease=lease, code=LeaseEnd.CANNOT_START, sentence=sentence)
        with self._faults.contain(session.executor.kill, **session.about):
            over = await self._run_to_end(session)
        with self._faults.contain(lambda: self._sessions.running.pop(lease, None), **session.about):
            session.executor.close()
            has_left = session.shutdown.reason is LeaseEnd.LEFT
            self._sessions.finish(session, is_wanted=session.cells.last is not None and not has_left)
        session.log.info("lease over", code=over.code)
        await self._broker.tell(over)
        with self._faults.contain(lambda: None, **session.about):  # it may be much, and nobody is to wait for it
            await self._scratch.remove(lease)

    async def _run_to_end(self, session: Session) -> wire.LeaseOver:
        """Run a session; return what the broker is to be told of its end."""
        lease, sentence = session.prepare.lease, ""
        if session.shutdown.reason is None:
            try:
                await self._fork(session)
            except (OSError, LookupError) as error:
                session.log.warning("a session could not be started", problem=repr(error))
                session.executor.kill()
                return _cannot_start(lease, error)
            sentence = await session.run()
        if session.executor.process is None and session.shutdown.reason is None:
            return _cannot_start(lease, ChildProcessError(await session.executor.find_problem()))
        return wire.LeaseOver(lease=lease, code=session.shutdown.lease_end, sentence=sentence)

    # --- cells whose kernel is gone

    async def _list_cells(self, message: wire.ListCells) -> None:
        notes: list[wire.CellNote | None] = []
        for session in self._sessions.of_user(message.user):
            with self._faults.contain(session.fail, **session.about):
                notes.append(session.cell_note())
        cells = tuple(structs.replace(note, agent=self._agent, node=self._node) for note in notes if note is not None)
        await self._broker.send(wire.Listed(query=message.query, cells=cells))

    async def _hand_over(self, message: wire.HandOver) -> None:
        sentence = "There is no such cell of yours any more."
        for session in self._sessions.of_user(message.user):
            note = session.cell_note()
            if note is None or note.cell != message.cell:
                continue
            sentence = session.hand_over(message)
            if not sentence:
                self._sessions.disconnect(session)
                prepare = session.prepare
                session.log.info("cell handed over", cell=message.cell, to=message.session)
                await self._broker.send(
                    wire.HandedOver(
                        query=message.query, lease=prepare.lease, slots=prepare.slots, walltime_ms=prepare.walltime_ms
                    )
                )
                return
        await self._broker.send(wire.HandedOver(query=message.query, sentence=sentence))


def _cannot_start(lease: LeaseId, error: Exception) -> wire.LeaseOver:
    sentence = f"The pool could not start a process for your cell: {error}."
    return wire.LeaseOver(lease=lease, code=LeaseEnd.CANNOT_START, sentence=sentence)
