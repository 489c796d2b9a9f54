"""What the scheduler knows: tables, and indexes over them. Only this file changes either.

A *lane* is the kind of slot that a request would use: GPUs and MIG slices, CPU slots, or what users have brought for
themselves. A request for GPUs uses CPU slots only in a pool that has shown no GPU since it started. CPUs and host
memory of a node are of all lanes: whatever a lease asked for of them is its own until it ends.
"""

from typing import Literal

import msgspec

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.coverage import Coverage
from gpu_worker.scheduler.accounts.held_amounts import count_held
from gpu_worker.scheduler.accounts.node_pools import NodePools
from gpu_worker.scheduler.estimate_cache import EstimateCache
from gpu_worker.scheduler.leases.leases import IDLE, USING, Lease, Request, RequestHold
from gpu_worker.scheduler.leases.life import Phase, RequestStatus, moved, stood
from gpu_worker.scheduler.leases.reclaimed_ages import ReclaimedAges
from gpu_worker.scheduler.leases.resources import LANES, Lane
from gpu_worker.scheduler.leases.shapes import QueueEntry, QueueKey
from gpu_worker.scheduler.nodes.capacity import available, kinds_in_use
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.nodes.own_nodes import OwnNodes, shape_of
from gpu_worker.scheduler.nodes.planned_drains import PlannedDrains
from gpu_worker.scheduler.nodes.room_index import RoomIndex
from gpu_worker.scheduler.nodes.slot_catalog import SlotCatalog
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from gpu_worker.scheduler.queue.boosts import Boosts
from gpu_worker.scheduler.queue.patience import Patience, as_waited
from gpu_worker.scheduler.queue.request_queue import RequestQueue
from gpu_worker.scheduler.wakeups import Wakeups


class State:
    """Tables: nodes, leases, pending. The rest are indexes, which `invariants.check` computes afresh and compares."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self.settings, self.qos = settings, {qos.name: qos for qos in settings.qos}
        self.nodes: dict[AgentId, Node] = {}
        self.leases: dict[LeaseId, Lease] = {}
        self.pending: dict[RequestId, Request] = {}
        self.drained: dict[AgentId, None] = {}  #: whether they are connected or not
        self.slot_catalog, self.accounts = SlotCatalog(settings.prices), Accounts(settings.projects, settings.qos)
        self.pools = NodePools(settings.node_pools, settings.projects, settings.qos)
        self.accounts.homes = self.pools or None
        self.queue = RequestQueue(self.accounts, self.pools)
        self.asking: dict[SessionId, RequestId] = {}  #: the pending request of a session
        self.held: dict[SessionId, RequestId] = {}  #: those that wait for their own session's lease
        self.on_hold: dict[RequestId, None] = {}  #: those that wait until a person releases them
        self.queued: dict[tuple[UserName, str], int] = {}  #: pending requests by user and QoS
        self.leases_of: dict[SessionId, dict[LeaseId, None]] = {}
        self.granted: dict[RequestId, LeaseId] = {}  #: leases with no cell yet, by their request
        #: Nodes that are not drained: with free or leaving slots, and with hot leases.
        self.roomy: dict[Lane, dict[AgentId, None]] = {lane: {} for lane in LANES}
        self.warm: dict[Lane, dict[AgentId, None]] = {lane: {} for lane in LANES}
        self.wakeups, self.estimate_cache, self.coverage = Wakeups(), EstimateCache(), Coverage()
        self.patience, self.boosts, self.planned_drains = Patience(), Boosts(), PlannedDrains(self.nodes)
        self.room_index, self.reclaimed_ages, self.own_nodes = RoomIndex(), ReclaimedAges(), OwnNodes()
        self.alarms: dict[LeaseId, int] = {}  #: when to look again at a lease that should move
        self.touched: dict[LeaseId, None] = {}  #: leases that came, moved or ended in the last step
        self.reclaimable: dict[Lane, set[LeaseId]] = {}  #: what `reclaim.reclaimable` found in this step
        self._seq = 0

    def next_seq(self) -> int:
        """Give out a number above all given out before: what came later has the higher one."""
        self._seq += 1
        return self._seq

    def end_ms(self, lease: Lease) -> int:
        """When a lease is over at the latest, by its walltime; 0 where it would go, or goes, at once."""
        return lease.end_ms(self.alarms.get(lease.id, 0))

    def begin_step(self, now_ms: int) -> None:
        """Forget what held in the step before, and which leases it touched."""
        self.estimate_cache.forget()
        self.touched.clear()
        self.reclaimable.clear()
        self.wakeups.begin(now_ms)
        self.pools.begin_step(now_ms)
        self.planned_drains.limit(now_ms, self.settings.start_ms)

    def ends_ms(self, node: Node, lane: Lane) -> list[int]:
        """Of each slot of a lane, when its lease is over at the latest; the first one first."""
        counts = node.lanes[lane]
        if counts.ends_ms is None:
            leases = map(self.leases.__getitem__, node.leases)
            taken = [self.end_ms(lease) for lease in leases if lease.lane == lane for _ in lease.slots]
            counts.ends_ms = sorted(taken + [0] * (counts.capacity - len(taken)))
        return counts.ends_ms

    def change_settings(self, settings: SchedulerSettings) -> None:
        """From now on these hold. Leases and lines are as before, each in its new account."""
        for lease in (leases := sorted(self.leases.values(), key=lambda lease: lease.used)):
            self._count(lease, -1)
        before, self.slot_catalog.prices = self.accounts, settings.prices
        self.settings, self.qos = settings, {qos.name: qos for qos in settings.qos}
        self.accounts = Accounts(settings.projects, settings.qos, before.now_ms)
        self.accounts.inherit(before)
        self.pools = NodePools(settings.node_pools, settings.projects, settings.qos, before.now_ms)
        self.accounts.homes = self.pools or None
        self.queue = RequestQueue(self.accounts, self.pools)
        self._note_capacity()
        for node in self.nodes.values():
            self._offer_pools(node)
        for lease in leases:
            lease.pool = self._pool_of(lease)
        for request in self.pending.values():
            request.project = self.accounts.place_of(request.home, request.user)
            request.entry = as_waited(request, self.qos[request.qos].patience_ms, before.now_ms)
            if request.standing is RequestStatus.QUEUED:
                self.queue.enter(request.project, request.entry)
            self.patience.note_late(self.accounts, request)
        for lease in leases:
            lease.project = self.accounts.place_lease(lease)
            if lease.phase in IDLE:
                self._charge_anew(lease)
            self._count(lease, +1)
        for account in self.accounts.by_id.values():
            for user in account.users:
                self.patience.watch(self.accounts, self.pending, (account.project.id, user))

    # Nodes

    def join(self, node: Node) -> None:
        """Add a node with all of its slots free."""
        node.is_drained = node.agent in self.drained
        self.nodes[node.agent] = node
        self.own_nodes.note(node)
        self._offer_pools(node)
        self.planned_drains.limit(self.accounts.now_ms, self.settings.start_ms)
        had_gpus, is_new = self.slot_catalog.has_gpus, self.slot_catalog.show(node)
        for lane in LANES:
            self._note_room(node, lane)
        self.count_anew(costs=self.slot_catalog.has_gpus != had_gpus, shapes=is_new)

    def count_anew(self, *, costs: bool, shapes: bool) -> None:
        """Work out anew what leases count, once CPU slots stand in for GPUs or no longer do, and what is asked for."""
        for lease in self.leases.values() if costs else ():
            self._count(lease, -1)
            lease.cost = self.slot_catalog.cost_on(self.nodes[lease.agent], lease.lane, lease.slots)
            self._charge_anew(lease)
            self._count(lease, +1)
        for request in self.pending.values() if shapes else ():
            self.reshape(request)
        self._note_capacity()

    def reshape(self, request: Request, lane: Lane | None = None) -> None:
        """Work out a waiting request's shape and key anew: the pool or its class may serve it in another way now.

        From now on it waits for nodes of its user's own where `lane` is that one, else for the pool; None is as before.
        """
        old, qos = request.entry, self.qos[request.qos]
        shape = shape_of(request, lane or request.lane, qos, self.slot_catalog, self.own_nodes)
        key = old.key._replace(priority=-qos.priority, walltime_ms=request.walltime_ms)
        entry = msgspec.structs.replace(old, key=key, shape=shape)
        if entry == old:
            return
        request.lane, entry = shape.lane, self.patience.change_lane(self.accounts, request, entry)
        self._set_entry(request, entry)
        self.patience.note_late(self.accounts, request)

    def part(self, agent: AgentId) -> list[Lease]:
        """Take a node away, and its leases, which are handed back."""
        node = self.nodes[agent]
        leases = [self.leases[lease] for lease in node.leases]
        for lease in leases:
            self.end(lease)
        del self.nodes[agent]
        self.own_nodes.forget(node, self.accounts.now_ms)
        self.pools.offer(agent, node.name, (), self.accounts)
        node.is_drained = True  # nobody is given anything of it
        for lane in LANES:
            self._note_room(node, lane)
        self._note_capacity()
        return leases

    def drain(self, agent: AgentId, *, is_drained: bool) -> None:
        """From now on the node is given nothing more; or it is again. What was planned for it is off."""
        self.planned_drains.plan(agent, None)
        if is_drained:
            self.drained[agent] = None
        else:
            self.drained.pop(agent, None)
        if agent in self.nodes:
            node = self.nodes[agent]
            node.is_drained = is_drained
            self._offer_pools(node)
            for lane in LANES:
                self._note_room(node, lane)
            self._note_capacity()

    def _offer_pools(self, node: Node) -> None:
        self.pools.offer(node.agent, node.name, () if node.is_drained else node.slots.values(), self.accounts)

    def _pool_of(self, lease: Lease) -> str:
        node = self.nodes[lease.agent]
        return self.pools.find(node.name, map(node.slots.__getitem__, lease.slots))

    def _note_capacity(self) -> None:
        self.accounts.kinds = kinds_in_use(self.nodes.values())
        self.accounts.set_capacity(available(self.nodes.values(), self.slot_catalog))

    # Requests

    def submit(self, request: Request) -> None:
        """Put a request in line, or aside while its session has a lease."""
        self.pending[request.id] = request
        self.asking[request.session] = request.id
        owner = (request.user, request.qos)
        self.queued[owner] = self.queued.get(owner, 0) + 1
        self.queue.enter(request.project, request.entry)
        self._place(request.session)
        self.patience.expect_request(self.accounts, request)

    def promote(self, request: Request) -> None:
        """Let a request that is in line stand first among its like: it has waited for its patience."""
        self.set_key(request, request.entry.key._replace(is_early=False, since_ms=request.since_ms))
        self.patience.note_late(self.accounts, request)

    def put_first(self, request: Request) -> None:
        """Let a request stand first of its project, before others that were put first."""
        self.set_key(request, request.entry.key._replace(turn=-self.next_seq()))

    def hold(self, request: Request, hold: RequestHold | None) -> None:
        """Put a request aside, and let it keep nothing from others; None: it waits again, as long as it has."""
        request.hold = hold
        self._place(request.session)
        if hold is not None and not request.entry.key.is_early:
            self.patience.forget_late(self.accounts, request, is_granted=False)
            self.set_key(request, request.entry.key._replace(is_early=True, since_ms=0))
        self.patience.watch(self.accounts, self.pending, (request.project, request.user))

    def set_key(self, request: Request, key: QueueKey) -> None:
        """Let a request stand elsewhere among its like, now or once it is in line."""
        self._set_entry(request, msgspec.structs.replace(request.entry, key=key))

    def _set_entry(self, request: Request, entry: QueueEntry) -> None:
        """Let a request stand elsewhere, now or once it is in line."""
        if request.standing is RequestStatus.QUEUED:
            self.queue.leave(request.project, request.entry)
        request.entry = entry
        if request.standing is RequestStatus.QUEUED:
            self.queue.enter(request.project, request.entry)

    def drop(self, request: Request, to: RequestStatus) -> None:
        """End a request: it is granted, refused or withdrawn."""
        if request.standing is RequestStatus.QUEUED:
            self.queue.leave(request.project, request.entry)
        self.held.pop(request.session, None)
        self.on_hold.pop(request.id, None)
        request.standing = stood(request.standing, to)
        if not request.entry.key.is_early:
            self.patience.forget_late(self.accounts, request, is_granted=to is RequestStatus.GRANTED)
        del self.pending[request.id]
        del self.asking[request.session]
        owner = (request.user, request.qos)
        self.queued[owner] -= 1
        if not self.queued[owner]:
            del self.queued[owner]
        if not request.entry.key.is_early or not self.accounts.user_of(request.project, request.user).lines:
            self.patience.watch(self.accounts, self.pending, (request.project, request.user))

    def _place(self, session: SessionId) -> None:
        """Put a session's request where it waits: aside while that has a lease or a person holds it, else in line."""
        if session not in self.asking:
            return
        request = self.pending[self.asking[session]]
        is_free = RequestStatus.QUEUED if request.hold is None else RequestStatus.ON_HOLD
        to = RequestStatus.HELD if session in self.leases_of else is_free
        if to is request.standing:
            return
        if request.standing is RequestStatus.QUEUED:
            self.queue.leave(request.project, request.entry)
        self.held.pop(session, None)
        self.on_hold.pop(request.id, None)
        if to is RequestStatus.HELD:
            self.held[session] = request.id
        elif to is RequestStatus.ON_HOLD:
            self.on_hold[request.id] = None
        else:
            self.queue.enter(request.project, request.entry)
        request.standing = stood(request.standing, to)
        self.patience.expect_request(self.accounts, request)

    # Leases

    def add(self, lease: Lease, alarm_ms: int | None) -> None:
        """Seat a lease on slots that are free."""
        self.nodes[lease.agent].seat(lease)
        lease.pool = self._pool_of(lease)
        self.leases[lease.id] = lease
        lease.counted_ms = self.accounts.now_ms
        self.leases_of.setdefault(lease.session, {})[lease.id] = None
        self._place(lease.session)
        self._count(lease, +1)
        self.set_alarm(lease, alarm_ms)

    def move(
        self, lease: Lease, to: Phase, now_ms: int, cell: CellId | None = None, alarm_ms: int | None = None
    ) -> None:
        """Take a lease to its next phase."""
        phase = moved(lease.phase, to)
        self._count(lease, -1)
        self._remember(lease)
        lease.phase, lease.cell, lease.since_ms, lease.counted_ms = phase, cell, now_ms, self.accounts.now_ms
        if to in IDLE:
            lease.project = self.accounts.place_lease(lease)
            self._charge_anew(lease)
        if to is not Phase.RECLAIMING and not (lease.is_kept and to is Phase.BUSY):
            lease.more_ms = 0
        if to is Phase.HOT:
            lease.used = self.next_seq()
        self._count(lease, +1)
        self.set_alarm(lease, alarm_ms)

    def change(self, lease: Lease, *, project: ProjectId | None = None, more_ms: int = 0) -> None:
        """Let a lease count in another account from now on, or let its cell take so much longer."""
        self._count(lease, -1)
        lease.project, lease.more_ms = project or lease.project, lease.more_ms + more_ms
        self._count(lease, +1)

    def end(self, lease: Lease) -> None:
        """Remove a lease that is over: its slots are free, and its session's next request comes into the line."""
        node, phase = self.nodes[lease.agent], moved(lease.phase, Phase.ENDED)
        self._count(lease, -1)
        self._remember(lease)
        lease.phase = phase
        node.unseat(lease)
        self._note_room(node, lease.lane)
        del self.leases[lease.id]
        del self.leases_of[lease.session][lease.id]
        if not self.leases_of[lease.session]:
            del self.leases_of[lease.session]
        self._place(lease.session)
        self.set_alarm(lease, None)

    def _charge_anew(self, lease: Lease) -> None:
        """Charge a lease by the prices in force: its next cell, where it runs none."""
        lease.charged = self.slot_catalog.charge_on(self.nodes[lease.agent], lease.slots)

    def set_alarm(self, lease: Lease, alarm_ms: int | None) -> None:
        """When to look at the lease again; None is never."""
        if alarm_ms is None:
            self.alarms.pop(lease.id, None)
        else:
            self.alarms[lease.id] = alarm_ms

    def _remember(self, lease: Lease) -> None:
        """Count what a cell that is over has used."""
        if lease.phase in {Phase.BUSY, Phase.RECLAIMING}:
            percent = self.qos[lease.qos].usage_percent if lease.qos in self.qos else 100
            amount = lease.charged * (self.accounts.now_ms - lease.counted_ms) * percent // 100
            self.accounts.remember(lease.home, lease.user, amount)

    def _count(self, lease: Lease, sign: Literal[1, -1]) -> None:
        """Add or take a lease in its present phase to or from the indexes by phase."""
        self.touched[lease.id] = None
        if lease.phase is Phase.BUSY and sign > 0:
            self.reclaimable.clear()
        self.reclaimable.get(lease.lane, set()).discard(lease.id)
        count_held(self.accounts, self.leases, lease, sign)
        if lease.phase in USING:
            self.queue.use(lease.project, lease.user, lease.qos, lease.cost, sign, charged=lease.charged)
        self.pools.count(self.accounts, lease, sign)
        node = self.nodes[lease.agent]
        node.count(lease, sign, self.leases)
        if lease.phase in USING and node.is_drained:
            self._note_capacity()
        if lease.phase is Phase.GRANTED and lease.request is not None:
            if sign > 0:
                self.granted[lease.request] = lease.id
            else:
                del self.granted[lease.request]
        self._note_room(node, lease.lane)

    def follow_coverage(self) -> None:
        """Work out which leases a guarantee covers, as far as this step has changed that."""
        self.coverage.follow(self.accounts, self.leases, self.touched, self.pools)

    def is_covered(self, request: Request) -> bool:
        """Whether a guarantee covers a request that costs something, of any GPUs or of those of a node pool."""
        at, one = self.accounts.of(request.project), request.entry
        return one.shape.cost > 0 and (self.accounts.is_covered(at, one) or self.pools.cover(at, one.shape, one))

    def grace_ms(self, lease: Lease) -> int:
        """Find how long a cell of the lease has to end when it is reclaimed."""
        return self.qos[lease.qos].grace_ms if lease.qos in self.qos else 0

    def _note_room(self, node: Node, lane: Lane) -> None:
        counts = node.lanes[lane]
        counts.ends_ms = node.soon = node.supplies = None
        node.changes += 1
        self.room_index.note(node.agent)
        for index, belongs in ((self.roomy[lane], counts.free + counts.leaving > 0), (self.warm[lane], counts.hot > 0)):
            if belongs and not node.is_drained:
                index[node.agent] = None
            else:
                index.pop(node.agent, None)
