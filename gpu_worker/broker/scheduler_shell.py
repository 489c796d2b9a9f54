"""Requests and leases between kernels, the scheduler and agents. The scheduler decides; this carries it out."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, assert_never

from bulletin.codes import CellOutcome, LeaseEnd, RefusalCode
from bulletin.ids import AgentId, LeaseId, RequestId, SessionId, UserName
from bulletin.kept_time import is_kept
from bulletin.wire import keys, messages as wire
from gpu_worker.broker import recall, translate
from gpu_worker.broker.active_lease import ActiveLease, PendingRequest, make_active_lease, relearn_active_lease
from gpu_worker.broker.decision_pace import DecisionPace
from gpu_worker.broker.journal_file import JournalFile
from gpu_worker.broker.metering import Metering, Stretch
from gpu_worker.broker.queue_teller import QueueTeller
from gpu_worker.broker.run_notes import RunNotes
from gpu_worker.broker.short_cells import Then
from gpu_worker.broker.wait_estimates import WaitEstimates
from gpu_worker.broker.writer import Writer
from gpu_worker.faults import FatalError, Faults
from gpu_worker.scheduler import actions, events
from gpu_worker.scheduler.estimates import explain
from gpu_worker.scheduler.leases.leases import USING, Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.nodes.capacity import capacity

#: Both may lose a message: a kernel or an agent may be gone. What matters is said again when it comes back.
TellSession = Callable[[SessionId, wire.Message], Awaitable[None]]
TellAgent = Callable[[AgentId, wire.Message], Awaitable[None]]


class StepFailed(FatalError):
    """A step of the scheduler failed, or what it said could not be done: its state may be wrong."""


class SchedulerShell:
    """Owns the scheduler, the requests that wait and the leases that hold."""

    def __init__(
        self,
        scheduler: Scheduler,
        metering: Metering,
        writer: Writer,
        now_ms: Callable[[], int],
        tell: TellSession,
        tell_agent: TellAgent,
        faults: Faults,
        journal: JournalFile | None = None,
        clock_s: Callable[[], float] = time.monotonic,
        note_wait: Callable[[PendingRequest], None] = lambda _: None,
    ) -> None:
        """Take `clock_s`, by which is seen how long decisions take, and estimates of waits.

        `note_wait` is told of each request that is granted.
        """
        self._note_wait = note_wait
        self.scheduler, self._now_ms, self._journal = scheduler, now_ms, journal
        self.metering, self._writer, self._run_notes = metering, writer, RunNotes()
        self._tell, self._tell_agent = tell, tell_agent
        self.pending_requests: dict[RequestId, PendingRequest] = {}
        self.active_leases: dict[LeaseId, ActiveLease] = {}
        #: The nodes that may be granted, as they introduced themselves.
        self.nodes: dict[AgentId, wire.Register] = {}
        self._stepping = asyncio.Lock()
        self._clock_s, self.pace = clock_s, DecisionPace(clock_s)
        self.estimates = WaitEstimates(lambda: scheduler.state, clock_s)
        self.teller = QueueTeller(
            scheduler, self.pending_requests, now_ms, tell, self.estimates, self.cancel_request, faults
        )

    async def step(self, event: events.Event, why: LeaseEnd | None = None, lost_ms: int | None = None) -> None:
        """Let the scheduler note a fact, and do what it says, in its order and before the next fact.

        For the ledger, `why` says why a lease ended, where the event is its end, and `lost_ms` when an agent was heard
        last, where the event says that it is lost, or that another process has taken its place.

        Raises StepFailed, after which nothing that the scheduler knows can be believed.
        """
        async with self._step_alone():
            await self._step(event, why, lost_ms)
            await self._refund(self.metering.take_refunded())
            if isinstance(event, events.Tick | events.AgentJoined):
                await self._tell_unseen()

    @asynccontextmanager
    async def _step_alone(self) -> AsyncIterator[None]:
        async with self._stepping:
            try:
                yield
            except Exception as error:
                raise StepFailed(f"a step of the scheduler failed: {error!r}") from error

    async def _tell_unseen(self) -> None:
        unseen = self.metering.take_unseen()
        if unseen:
            await self._step(recall.unseen(unseen, self.scheduler.state.accounts, self._now_ms()))

    async def _refund(self, stretches: Sequence[Stretch]) -> None:
        if stretches:
            await self._tell_unseen()  # it may be of the same cell
            await self._step(recall.refunded(stretches, self.scheduler.state.accounts, self._now_ms()))

    async def _step(self, event: events.Event, why: LeaseEnd | None = None, lost_ms: int | None = None) -> None:
        now_ms, began_s = self._now_ms(), self._clock_s()
        decides = isinstance(event, events.Tick) or self.pace.is_due
        if self._journal is not None:  # first, so that a step that fails is in it
            self._journal.note(event, now_ms, decides=decides)
        if isinstance(event, events.AgentJoined):
            self.metering.expect_leases({held.lease: held.held_ms for held in event.held})
        said = self.scheduler.step(event, now_ms, decides=decides)
        if decides:
            self.pace.note_decision(began_s)
        else:
            self.pace.note_fact()
        if said or not isinstance(event, events.Tick):
            self.estimates.note_change()
        ends = {
            action.lease: translate.LEASE_ENDS[action.why] for action in said if isinstance(action, actions.EndLease)
        }
        if isinstance(event, events.LeaseEnded) and why is not None:
            ends[event.lease] = why
        self._writer.keep(self.metering.follow_step(ends, now_ms, lost_ms))
        for action in said:
            await self._perform(action)
        await self._tell_costs()

    async def _tell_costs(self) -> None:
        """Tell kernels whose leases count for something else than they were told."""
        for name in self.metering.take_turned():
            lease, active = self.scheduler.state.leases.get(name), self.active_leases.get(name)
            if lease is not None and active is not None and lease.phase in USING:
                cost = self._cost_of(name)
                if cost != active.cost:
                    active.cost = cost
                    await self._tell(active.session, cost)

    def note_running(self, *, is_last: bool = False) -> None:
        """Let the ledger have which cells run. `is_last`: this broker ends, and they may go on."""
        self._writer.keep(self._run_notes.take(self.metering.running(), self._now_ms(), is_last=is_last))

    @property
    def capacity_milli(self) -> int | None:
        """Return what the connected nodes have together, as projects are accounted; None while there is none."""
        state = self.scheduler.state
        return capacity(state.nodes.values(), state.slot_catalog) or None

    # --- requests

    async def submit(self, request: RequestId, pending: PendingRequest) -> None:
        """Take a request in. The same one again changes nothing, and is answered again."""
        pending = self.pending_requests.setdefault(request, pending)
        pending.told, pending.announced = None, ""  # whatever it was told may have been lost
        lease = LeaseId(f"l-{keys.make_id()}")
        person = pending.person
        await self.step(
            translate.submitted(pending.message, request, lease, pending.session, person.user, pending.project)
        )
        if request not in self.scheduler.state.pending:  # said again after its cell began
            self.pending_requests.pop(request, None)
        self.teller.note_news()

    async def withdraw(self, request: RequestId) -> None:
        """Take a request back that its kernel no longer wants, or whose kernel is gone."""
        self.pending_requests.pop(request, None)
        await self.step(events.RequestWithdrawn(request))

    async def cancel_request(
        self, request: RequestId, sentence: str, code: RefusalCode = RefusalCode.CANCELLED
    ) -> bool:
        """Withdraw a request that waits, and tell its kernel. False: it has just been granted."""
        pending = self.pending_requests.get(request)
        if pending is None or request not in self.scheduler.state.pending:
            return False
        await self.withdraw(request)
        await self._tell(pending.session, translate.cancelled(pending.message.request, sentence, code))
        self.teller.note_news()
        return True

    async def cancel_cell(self, lease: LeaseId, sentence: str) -> Literal["withdrawn", "interrupted", "ended"]:
        """Have the cell of a lease interrupted, or its process ended where that was asked before. Its agent does it."""
        active, cell = self.active_leases[lease], self.scheduler.state.leases[lease].cell
        is_hard = cell is not None and active.cancelled == cell
        active.cancelled, active.cancel_message = cell, sentence
        await self._tell_holder(lease, wire.CancelCell(lease=lease, sentence=sentence, hard=is_hard))
        return "withdrawn" if cell is None else "ended" if is_hard or is_kept(cell) else "interrupted"

    def note_token(self, session: SessionId, token: str) -> None:
        """Learn by which token a session's kernel is known, where its lease was granted by another broker."""
        for active in self.active_leases.values():
            if active.session == session and not active.token:
                active.token = token

    async def evict(self, lease: LeaseId, sentence: str = "") -> None:
        """Have a session without a cell end, whoever waits; who kept its place is told the sentence."""
        await self._tell_holder(lease, wire.Evict(lease=lease, sentence=sentence))

    async def find_kept(self, session: SessionId, request: RequestId, asked: wire.Submit) -> bool:
        """Tell a kernel again of the place that is kept for this request of its session; False where none is.

        One that is kept, and was for another or for something else, or whose ticket nobody knows, is given up.
        """
        for lease in self._kept(session):
            active = self.active_leases.get(lease.id)
            if lease.request == request and active is not None and active.is_for(asked):
                await self.tell_granted(lease.id)
                return True
            await self._tell_holder(lease.id, wire.Evict(lease=lease.id, force=True))
        return False

    async def end_kept(self, session: SessionId, request: RequestId) -> None:
        """Have a place ended that is kept for a request which is withdrawn."""
        for lease in self._kept(session):
            if lease.request == request:
                await self._tell_holder(lease.id, wire.Evict(lease=lease.id, force=True))

    def _kept(self, session: SessionId) -> list[Lease]:
        leases = map(self.scheduler.state.leases.__getitem__, self.scheduler.state.leases_of.get(session, ()))
        return [lease for lease in leases if is_kept(lease.cell)]

    async def extend_cell(self, lease: LeaseId, more_ms: int, sentence: str) -> bool:
        """Let the cell that runs on a lease take so much longer, and tell its kernel. False: it may not, or is over."""
        known = self.scheduler.state.leases[lease]
        cell, before_ms = known.cell, known.more_ms
        if cell is None:
            return False
        await self.step(events.CellExtended(lease, cell, more_ms))
        if known.cell != cell or known.more_ms == before_ms:
            return False
        message = wire.ExtendCell(lease=lease, cell=cell, more_ms=known.more_ms, sentence=sentence)
        await self._tell_holder(lease, message)
        return True

    def waiting(self, request: RequestId, now_ms: int) -> explain.WaitExplanation | None:
        """Return where a request stands; None if it does not wait. Many are cheap if asked for as of one time."""
        if request not in self.scheduler.state.pending:
            return None
        waiting = explain.waiting(self.scheduler.state, request, now_ms, self.estimates.update(now_ms))
        return None if waiting is None else self.teller.add_words(waiting)

    async def tell_queue(self) -> None:
        """Say where requests stand: to all of the first part of the line, and to others for whom something is new."""
        await self.teller.tell_front(everybody=True)
        await self.teller.tell_others()

    # --- what agents report

    async def add_node(self, node: wire.Register, owner: UserName, lost_ms: int | None) -> None:
        """Take in a node that registered, with the leases that it holds, for all or for its owner alone.

        `lost_ms` is when an earlier process of its agent was heard last, where there was one.
        """
        self.nodes[node.agent] = node
        for held in node.held:
            self.active_leases.setdefault(held.lease, relearn_active_lease(held, node.agent))
        await self.step(translate.joined(node, owner, self.metering.agreed), lost_ms=lost_ms)

    async def drop_node(self, agent: AgentId, heard_ms: int) -> None:
        """Give up a node that has been silent for too long, since `heard_ms`."""
        self.nodes.pop(agent, None)
        await self.step(events.AgentLost(agent), lost_ms=heard_ms)

    async def tell_granted(self, lease: LeaseId) -> None:
        """Tell the kernel of a lease whose executor is up that it may come."""
        active = self.active_leases.get(lease)
        if active is not None and active.granted is not None:
            await self._tell(active.session, active.granted)
            if active.cost is not None and active.cost.in_quota != active.granted.in_quota:
                await self._tell(active.session, active.cost)

    async def record_cell(self, message: wire.CellDone, node: wire.Register, ended_ago_ms: int, written: Then) -> None:
        """Account a cell that was over so long ago. When the ledger has it, do `written`."""
        now_ms = self._now_ms()
        prices = self.scheduler.settings.prices
        record = translate.record(message, node, now_ms - ended_ago_ms, prices)
        record = active.with_wait(record) if (active := self.active_leases.get(message.lease)) is not None else record
        told = self.metering.end_cell(record, ended_ago_ms, now_ms)
        refunded = self.metering.take_refunded()
        if told is None:
            self._writer.keep_stray(record, written)
        else:
            self._writer.keep(told, written)
        if message.usage.outcome is not CellOutcome.RECLAIMED:  # that one is to run again: only its lease is over
            await self.step(events.CellEnded(message.lease, message.cell))
        if refunded:  # now that all of it was counted
            async with self._step_alone():
                await self._refund(refunded)

    async def give_up_lease(self, lease: LeaseId, sentence: str, code: LeaseEnd = LeaseEnd.CANNOT_START) -> None:
        """Have a session ended whatever it does: the pool failed at what was said of it, say. Its kernel is told."""
        active = self.active_leases.get(lease)
        if active is not None:
            await self._tell(active.session, wire.Revoked(lease=lease, code=code, sentence=sentence))
        await self._tell_holder(lease, wire.Evict(lease=lease, force=True))

    def is_unused(self, message: wire.LeaseOver) -> bool:
        """Tell whether a node has waited for a kernel in vain, and nobody else needed the slots."""
        lease = self.scheduler.state.leases.get(message.lease)
        return message.code is LeaseEnd.EVICTED and lease is not None and lease.phase is Phase.GRANTED

    async def end_lease(self, message: wire.LeaseOver) -> None:
        """Take in that a lease is over and its slots are free; tell the kernel what it waits to hear."""
        is_unused = self.is_unused(message)
        active = self.active_leases.pop(message.lease, None)
        if active is not None and is_unused:
            node = self.nodes.get(active.agent)
            name = "" if node is None else f" {node.node}"
            sentence = f"The node{name} was given to your cell, and this notebook did not reach it."
            await self._tell(active.session, wire.Revoked(lease=message.lease, code=message.code, sentence=sentence))
        if active is not None and message.code is LeaseEnd.CANNOT_START:
            revoked = wire.Revoked(lease=message.lease, code=message.code, sentence=message.sentence)
            await self._tell(active.session, revoked)
        was_cancelled_early = message.code is LeaseEnd.CANCELLED  # before its cell ran
        if active is not None and was_cancelled_early and active.granted is not None:
            await self._tell(active.session, translate.cancelled(active.granted.request, active.cancel_message))
        await self.step(events.LeaseEnded(message.lease), message.code)
        self.teller.note_news()

    # --- what the scheduler asks for

    async def _perform(self, action: actions.Action) -> None:
        match action:
            case actions.Grant():
                await self._grant(action)
            case actions.Refuse():
                pending = self.pending_requests.pop(action.request, None)
                if pending is not None:
                    refused = translate.refused(pending, action, self.scheduler.state.accounts)
                    await self._tell(pending.session, refused)
            case actions.Evict():
                await self._tell_holder(action.lease, wire.Evict(lease=action.lease))
            case actions.Reclaim():
                await self._tell_holder(
                    action.lease,
                    wire.Reclaim(
                        lease=action.lease,
                        grace_ms=action.grace_ms,
                        is_for_share=action.right is actions.Right.SHARE,
                        is_for_class=action.right is actions.Right.CLASS,
                        is_by_admin=action.right is actions.Right.ADMIN,
                    ),
                )
            case actions.Pause():
                await self._tell_holder(action.lease, wire.Pause(lease=action.lease, grace_ms=action.grace_ms))
            case actions.EndLease():
                active = self.active_leases.get(action.lease)
                if active is not None:
                    await self._tell(active.session, translate.revoked(action))
                    await self._tell_holder(action.lease, wire.Evict(lease=action.lease, force=True))
                    if active.agent not in self.nodes or action.why is actions.Why.NOT_HELD:
                        del self.active_leases[action.lease]
            case _:
                assert_never(action)

    async def _tell_holder(self, lease: LeaseId, message: wire.Message) -> None:
        active = self.active_leases.get(lease)
        if active is not None and active.agent in self.nodes:
            await self._tell_agent(active.agent, message)

    async def _grant(self, action: actions.Grant) -> None:
        pending = self.pending_requests.pop(action.request, None)
        if pending is not None:
            self.teller.note_granted(pending)
            self._note_wait(pending)
            pending.granted_ms = self._now_ms()
        node = self.nodes.get(action.agent)
        if node is None:
            return  # it was lost in this instant; the scheduler hears of it next
        if action.lease not in self.active_leases and pending is not None:
            self.active_leases[action.lease] = make_active_lease(
                action, pending, node, cost=self._cost_of(action.lease), sizes=self._sizes()
            )
        active = self.active_leases.get(action.lease)
        if active is not None and active.prepare is not None:  # granted again: the agent answers once more
            await self._tell_agent(action.agent, active.prepare)

    def is_in_quota(self, lease: Lease) -> bool:
        """Return whether a guarantee covers it now, as the ledger has it."""
        return self.metering.is_in_quota(lease)

    def _cost_of(self, name: LeaseId) -> wire.LeaseCost:
        """Say what a lease counts for now."""
        lease = self.scheduler.state.leases.get(name)
        if lease is None:
            return wire.LeaseCost(lease=name, in_quota=None)
        is_priced = lease.cost and lease.charged != lease.cost
        return wire.LeaseCost(
            lease=name,
            in_quota=self.is_in_quota(lease) if self.scheduler.state.accounts.has_guarantees else None,
            price_percent=lease.charged * 100 // lease.cost if is_priced else None,
        )

    def _sizes(self) -> tuple[int, ...]:
        """Return the memory sizes that slots of the pool have, in bytes."""
        sizes = {slot.memory_bytes for node in self.nodes.values() for slot in node.slots}
        return tuple(sorted(size for size in sizes if size))
