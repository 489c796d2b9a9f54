"""Requests and leases between kernels, the scheduler and agents. The scheduler decides; this carries it out."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, assert_never

import msgspec

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, RequestId, SessionId
from bulletin.wire import keys, messages as wire
from gpu_worker.broker import recall, translate
from gpu_worker.broker.identity import Person
from gpu_worker.broker.journal import Journal
from gpu_worker.broker.metering import Metering, Stretch
from gpu_worker.broker.writer import Then, Writer
from gpu_worker.scheduler import actions, events, explain
from gpu_worker.scheduler.leases import Lease
from gpu_worker.scheduler.machine import Scheduler

#: After each telling of what is new the broker does other things for so long: at least, and in times of what it took.
_LEAST_PAUSE_S, _PAUSES = 0.02, 4


class Wish(msgspec.Struct):
    """A request in the queue, and whose it is."""

    session: SessionId
    kernel: KernelId
    person: Person
    message: wire.Submit
    since_ms: int
    told: wire.Queued | None = None

    @property
    def project(self) -> ProjectId:
        """Who pays."""
        return self.message.project or self.person.project


class Deal(msgspec.Struct):
    """A lease that was granted, and what its kernel must hear when its executor is up.

    Without `granted` and `prepare` it was learned again from its agent, after a restart.
    """

    session: SessionId
    agent: AgentId
    granted: wire.Granted | None = None
    prepare: wire.Prepare | None = None
    #: Somebody cancelled its cell: which one, where that is known, and what its kernel hears of it.
    cancelled: CellId | None = None
    farewell: str = ""


#: Both may lose a message: a kernel or an agent may be gone. What matters is said again when it comes back.
TellSession = Callable[[SessionId, wire.Message], Awaitable[None]]
TellAgent = Callable[[AgentId, wire.Message], Awaitable[None]]


class Leases:
    """Owns the scheduler, the wishes that wait and the deals that hold."""

    def __init__(
        self,
        scheduler: Scheduler,
        metering: Metering,
        writer: Writer,
        now_ms: Callable[[], int],
        tell: TellSession,
        tell_agent: TellAgent,
        journal: Journal | None = None,
    ) -> None:
        self.scheduler, self._now_ms, self._journal = scheduler, now_ms, journal
        self._metering, self._writer = metering, writer
        self._tell, self._tell_agent = tell, tell_agent
        self.wishes: dict[RequestId, Wish] = {}
        self.deals: dict[LeaseId, Deal] = {}
        #: The nodes that may be granted, as they introduced themselves.
        self.nodes: dict[AgentId, wire.Register] = {}
        self._stepping = asyncio.Lock()
        self._news = asyncio.Event()  #: places in line may have changed

    async def step(self, event: events.Event, why: LeaseEnd | None = None) -> None:
        """Let the scheduler note a fact, and do what it says, in its order and before the next fact.

        `why` says for the ledger why a lease ended, where the event is its end.
        """
        async with self._stepping:
            await self._step(event, why)
            await self._refund(self._metering.take_refunded())
            if isinstance(event, events.Tick | events.AgentJoined):
                await self._tell_unseen()

    async def _tell_unseen(self) -> None:
        unseen = self._metering.take_unseen()
        if unseen:
            await self._step(recall.unseen(unseen, self.scheduler.state.accounts, self._now_ms()))

    async def _refund(self, stretches: Sequence[Stretch]) -> None:
        if stretches:
            await self._tell_unseen()  # it may be of the same cell
            await self._step(recall.refunded(stretches, self.scheduler.state.accounts, self._now_ms()))

    async def _step(self, event: events.Event, why: LeaseEnd | None = None) -> None:
        now_ms = self._now_ms()
        if self._journal is not None:  # first, so that a step that fails is in it
            self._journal.note(event, now_ms)
        if isinstance(event, events.AgentJoined):
            self._metering.reported({held.lease: held.held_ms for held in event.held})
        said = self.scheduler.step(event, now_ms)
        ends = {
            action.lease: translate.LEASE_ENDS[action.why] for action in said if isinstance(action, actions.EndLease)
        }
        if isinstance(event, events.LeaseEnded) and why is not None:
            ends[event.lease] = why
        self._writer.keep(self._metering.stepped(ends, now_ms))
        for action in said:
            await self._perform(action)

    @property
    def capacity_milli(self) -> int | None:
        """What the connected nodes have together, as projects are accounted; None while there is none."""
        return self.scheduler.state.capacity or None

    # --- requests

    async def submit(self, request: RequestId, wish: Wish) -> None:
        """Take a request in. The same one again changes nothing, and is answered again."""
        wish = self.wishes.setdefault(request, wish)
        lease = LeaseId(f"l-{keys.make_id()}")
        person = wish.person
        await self.step(translate.submitted(wish.message, request, lease, wish.session, person.user, wish.project))
        if request not in self.scheduler.state.pending:  # said again after its cell began
            self.wishes.pop(request, None)
        self._news.set()

    async def withdraw(self, request: RequestId) -> None:
        """The kernel no longer wants it, or is gone."""
        self.wishes.pop(request, None)
        await self.step(events.RequestWithdrawn(request))

    async def cancel_request(self, request: RequestId, sentence: str) -> bool:
        """Withdraw a request that waits, and tell its kernel. False: it has just been granted."""
        wish = self.wishes.get(request)
        if wish is None or request not in self.scheduler.state.pending:
            return False
        await self.withdraw(request)
        await self._tell(wish.session, translate.cancelled(wish.message.request, sentence))
        self._news.set()
        return True

    async def cancel_cell(self, lease: LeaseId, sentence: str) -> Literal["withdrawn", "interrupted", "ended"]:
        """Have the cell of a lease interrupted, or its process ended where that was asked before. Its agent does it."""
        deal, cell = self.deals[lease], self.scheduler.state.leases[lease].cell
        is_hard = cell is not None and deal.cancelled == cell
        deal.cancelled, deal.farewell = cell, sentence
        await self._tell_holder(lease, wire.CancelCell(lease=lease, sentence=sentence, hard=is_hard))
        return "withdrawn" if cell is None else "ended" if is_hard else "interrupted"

    def waiting(self, request: RequestId, now_ms: int) -> explain.WaitExplanation | None:
        """Where a request stands; None if it does not wait. Many are cheap if they are asked for as of one time."""
        if request not in self.scheduler.state.pending:
            return None
        return explain.waiting(self.scheduler.state, request, now_ms)

    async def tell_news(self) -> None:
        """Say where requests stand as soon as that changes; with a long line not each time, for it is much work."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._news.wait()
            began_s = clock()
            await self.tell_queue(everybody=False)
            await asyncio.sleep(max(_LEAST_PAUSE_S, (clock() - began_s) * _PAUSES))

    async def tell_queue(self, *, everybody: bool) -> None:
        """Say where requests stand: to everybody, or to whom something is new."""
        self._news.clear()
        now_ms = self._now_ms()
        told = []
        for request, wish in self.wishes.items():  # all of it before anything else can happen
            waiting = self.waiting(request, now_ms)
            if waiting is not None:
                news = translate.queued(wish.message.request, waiting)
                if everybody or news != wish.told:
                    wish.told = news
                    told.append((wish.session, news))
        for session, news in told:
            await self._tell(session, news)

    # --- what agents report

    async def joined(self, node: wire.Register) -> None:
        """A node is there, with what it holds."""
        self.nodes[node.agent] = node
        for held in node.held:
            self.deals.setdefault(held.lease, Deal(held.session, node.agent))
        await self.step(translate.joined(node))

    async def lost(self, agent: AgentId) -> None:
        """A node has been silent for too long."""
        self.nodes.pop(agent, None)
        await self.step(events.AgentLost(agent))

    async def prepared(self, lease: LeaseId) -> None:
        """The executor is up: its kernel may come."""
        deal = self.deals.get(lease)
        if deal is not None and deal.granted is not None:
            await self._tell(deal.session, deal.granted)

    async def done(self, message: wire.CellDone, node: wire.Register, written: Then) -> None:
        """A cell is over. When the ledger has it, do `written`."""
        now_ms = self._now_ms()
        record = translate.record(message, node, now_ms)
        told = self._metering.done(record, max(0, message.ended_ago_ms), now_ms)
        refunded = self._metering.take_refunded()
        if told is None:
            self._writer.keep_stray(record, written)
        else:
            self._writer.keep(told, written)
        await self.step(events.CellEnded(message.lease, message.cell))
        if refunded:  # now that all of it was counted
            async with self._stepping:
                await self._refund(refunded)

    async def over(self, message: wire.LeaseOver) -> None:
        """The slots are free again."""
        deal = self.deals.pop(message.lease, None)
        if deal is not None and message.code is LeaseEnd.CANNOT_START:
            revoked = wire.Revoked(lease=message.lease, code=message.code, sentence=message.sentence)
            await self._tell(deal.session, revoked)
        if deal is not None and message.code is LeaseEnd.CANCELLED and deal.granted is not None:  # before its cell ran
            await self._tell(deal.session, translate.cancelled(deal.granted.request, deal.farewell))
        await self.step(events.LeaseEnded(message.lease), message.code)
        self._news.set()

    # --- what the scheduler asks for

    async def _perform(self, action: actions.Action) -> None:
        match action:
            case actions.Grant():
                await self._grant(action)
            case actions.Refuse():
                wish = self.wishes.pop(action.request, None)
                if wish is not None:
                    refused = translate.refused(wish.message.request, action.reason)
                    await self._tell(wish.session, refused)
            case actions.Evict():
                await self._tell_holder(action.lease, wire.Evict(lease=action.lease))
            case actions.Reclaim():
                await self._tell_holder(
                    action.lease,
                    wire.Reclaim(lease=action.lease, grace_ms=action.grace_ms, is_for_share=action.is_for_share),
                )
            case actions.Pause():
                await self._tell_holder(action.lease, wire.Pause(lease=action.lease, grace_ms=action.grace_ms))
            case actions.EndLease():
                deal = self.deals.get(action.lease)
                if deal is not None:
                    await self._tell(deal.session, translate.revoked(action))
                    await self._tell_holder(action.lease, wire.Evict(lease=action.lease, force=True))
                    if deal.agent not in self.nodes or action.why is actions.Why.NOT_HELD:
                        del self.deals[action.lease]
            case _:
                assert_never(action)

    async def _tell_holder(self, lease: LeaseId, message: wire.Message) -> None:
        deal = self.deals.get(lease)
        if deal is not None and deal.agent in self.nodes:
            await self._tell_agent(deal.agent, message)

    async def _grant(self, action: actions.Grant) -> None:
        wish = self.wishes.pop(action.request, None)
        node = self.nodes.get(action.agent)
        if node is None:
            return  # it was lost in this instant; the scheduler hears of it next
        if action.lease not in self.deals and wish is not None:
            self.deals[action.lease] = _deal(
                action, wish, node, is_in_quota=self._quota_to_say(action.lease), sizes=self._sizes()
            )
        deal = self.deals.get(action.lease)
        if deal is not None and deal.prepare is not None:  # granted again: the agent answers once more
            await self._tell_agent(action.agent, deal.prepare)

    def is_in_quota(self, lease: Lease) -> bool:
        """Whether a guarantee covers it now, as the ledger has it."""
        return self._metering.is_in_quota(lease)

    def _quota_to_say(self, name: LeaseId) -> bool | None:
        """The same of a new lease; None where nothing is guaranteed to anybody, and nobody need hear of it."""
        state = self.scheduler.state
        has_guarantees = any(account.most for account in state.accounts.by_id.values())
        return self.is_in_quota(state.leases[name]) if has_guarantees and name in state.leases else None

    def _sizes(self) -> tuple[int, ...]:
        """The memory that slots of the pool have."""
        sizes = {slot.memory_bytes for node in self.nodes.values() for slot in node.slots}
        return tuple(sorted(size for size in sizes if size))


def _deal(
    action: actions.Grant, wish: Wish, node: wire.Register, *, is_in_quota: bool | None, sizes: tuple[int, ...]
) -> Deal:
    ticket = keys.make_secret()
    offers = {slot.slot: slot for slot in node.slots}
    held = [offers[slot] for slot in action.slots if slot in offers]
    prepare = wire.Prepare(
        lease=action.lease,
        session=action.session,
        kernel=wish.kernel,
        user=wish.person.user,
        project=wish.project,
        qos=wish.message.qos,
        slots=action.slots,
        walltime_ms=action.walltime_ms,
        ticket=ticket,
        environment=wish.message.environment,
        label=wish.message.label,
        cpus=wish.message.cpus,
        memory_bytes=wish.message.memory_bytes,
    )
    granted = wire.Granted(
        request=wish.message.request,
        lease=action.lease,
        session=action.session,
        agent=node.address,
        ticket=ticket,
        node=node.node,
        slots=tuple(offers[slot].name if slot in offers else slot for slot in action.slots),
        walltime_ms=action.walltime_ms,
        in_quota=is_in_quota,
        memory_bytes=min((offer.memory_bytes for offer in held), default=0),
        sizes=sizes,
    )
    return Deal(action.session, action.agent, granted, prepare)
