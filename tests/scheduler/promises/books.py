"""Who holds what, who waits, what there is: as events and actions tell it, and nothing else."""

import dataclasses
from collections.abc import Iterable

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.allowances import Allowance
from tests.scheduler.promises.tree import Side, Tree


@dataclasses.dataclass(slots=True, eq=False)
class Tenancy:
    """A lease: some slots of a node, and who has them."""

    lease: LeaseId
    session: SessionId
    user: UserName
    project: ProjectId
    qos: str
    agent: AgentId
    slots: tuple[SlotId, ...]
    cost: int  #: thousandths of a GPU
    cpus: int
    memory_bytes: int
    walltime_ms: int
    granted_ms: int
    order: tuple[int, int]  #: of beginning: of the grant, then of each cell
    request: RequestId | None = None
    cell: CellId | None = None
    began_ms: int = 0  #: the cell, if one runs
    has_begun: bool = False  #: any cell of it
    hot_ms: int = 0  #: since when no cell has run on it, where one has
    is_asked: bool = False  #: to leave, by whatever action
    asked_ms: int = 0
    grace_ms: int = 0  #: that it was told when it was taken back
    is_reclaimed: bool = False
    shared: int = 0  #: how often this cell went for somebody's share before
    is_requeued: bool = False  #: an admin wants its cell to run again
    more_ms: int = 0  #: an admin gave its cell, or all of them in a place that is kept
    is_kept: bool = False  #: between its cells, too (`--keep`): they are one cell that goes on
    is_over: bool = False  #: for everybody but its node, which has not let go of the slots yet

    @property
    def is_using(self) -> bool:
        """Whether a cell runs on it or is about to begin."""
        return not self.is_over and (self.cell is not None or (not self.has_begun and not self.is_asked))

    @property
    def is_hot(self) -> bool:
        """Whether its session is kept without a cell."""
        return not self.is_over and not self.is_using

    def __str__(self) -> str:
        what = "hot" if self.is_hot else "over" if self.is_over else "running" if self.cell else "about to begin"
        return f"{self.session} of {self.user} in {self.project!r} ({self.qos}, {len(self.slots)} slots, {what})"


@dataclasses.dataclass(slots=True, eq=False)
class Waiting:
    """A request that waits."""

    event: ev.RequestSubmitted
    since_ms: int
    walltime_ms: int

    def __str__(self) -> str:
        at = self.event
        kind = f" of type {at.gpu_type!r}" if at.gpu_type else ""
        return f"request {at.request} of {at.user} in {at.project!r} ({at.qos}, {at.gpus} GPUs{kind})"


@dataclasses.dataclass(slots=True, eq=False)
class Machine:
    """A node, as its agent told of it."""

    agent: AgentId
    slots: dict[SlotId, ev.Slot]
    cpus: int
    memory_bytes: int
    is_connected: bool = True


class Books:
    """Change with each event and each action; they judge nothing but what cannot be written down."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.now_ms = 0
        self.machines: dict[AgentId, Machine] = {}
        self.drained: set[AgentId] = set()
        self.on_hold: set[RequestId] = set()
        self.held_by_owner: dict[RequestId, int] = {}  #: since when
        self.put_first: set[RequestId] = set()
        self.boosts: dict[tuple[str, str], int] = {}  #: users of projects, each with the end
        self.planned: dict[AgentId, int] = {}  #: nodes that are to be drained, and when
        self.leases: dict[LeaseId, Tenancy] = {}
        self.waiting: dict[RequestId, Waiting] = {}
        self.submitted: dict[RequestId, ev.RequestSubmitted] = {}
        self.ended: dict[RequestId, str] = {}  #: how each request ended
        self.has_gpus = False  #: whether any node ever showed one
        self.shared: dict[SessionId, tuple[int, int]] = {}  #: how often its cell went for a share, and when last
        self.allowances: dict[tuple[str, str], dict[str, Allowance]] = {}  #: of users of projects, by name
        self._order = 0
        self._matching: dict[tuple[object, ...], bool] = {}  # whether such a slot serves such a request
        self._costs: dict[tuple[object, ...], int] = {}  # the most that such a request may cost

    # What happened

    def note(self, event: ev.Event, now_ms: int) -> None:
        """Write one event down, before its answer is known."""
        self.now_ms = now_ms
        if isinstance(event, ev.DrainPlanned):
            self.drained.discard(event.agent)
            self.planned[event.agent] = event.at_ms
        for agent in [agent for agent, at_ms in self.planned.items() if at_ms <= now_ms]:
            del self.planned[agent]
            self.drained.add(agent)
        match event:
            case ev.AgentJoined():
                self._join(event)
            case ev.AgentLost():
                if event.agent in self.machines:
                    self.machines[event.agent].is_connected = False
                    for lease in self.on_node(event.agent):
                        del self.leases[lease.lease]
                        self.shared.pop(lease.session, None)  # what its session asks for now is as if new
            case ev.NodeDrained():
                (self.drained.add if event.is_drained else self.drained.discard)(event.agent)
                self.planned.pop(event.agent, None)
            case ev.RequestSubmitted():
                self._submit(event)
            case ev.RequestHeld():
                self._end_own_hold(event.request)
                self.on_hold |= {event.request} & self.waiting.keys()
                if event.request in self.waiting and (event.is_by_lead or not event.is_by_admin):
                    self.held_by_owner[event.request] = now_ms
            case ev.RequestReleased():
                self._end_own_hold(event.request)
                self.on_hold.discard(event.request)
            case ev.RequestPutFirst():
                self.put_first.add(event.request)
            case ev.UserBoosted():
                self.boosts[event.project, event.user] = event.until_ms
            case ev.AllowanceChanged():
                self.allowances.setdefault((event.project, event.user), {})[event.name] = event.allowance
            case ev.CellRequeued():
                known = self.leases.get(event.lease)
                if known is not None and known.cell is not None and known.qos in self.tree.qos:
                    known.is_requeued = True
            case ev.CellExtended():
                known = self.leases.get(event.lease)
                if known is not None and known.cell == event.cell and not known.is_reclaimed:
                    known.more_ms += event.more_ms
            case ev.RequestWithdrawn():
                withdrawn = self.waiting.pop(event.request, None)
                if withdrawn is not None:
                    self.ended[event.request] = "withdrawn"
                    self.shared.pop(withdrawn.event.session, None)  # what it asks for next is another cell
                for lease in self.leases.values():
                    if lease.request == event.request and not lease.has_begun and not lease.is_asked:
                        lease.is_asked, lease.asked_ms = True, now_ms  # nothing will begin there
            case ev.CellStarted():
                self._begin(event)
            case ev.CellEnded():
                known = self.leases.get(event.lease)
                if known is not None and known.cell == event.cell:
                    known.cell, known.hot_ms, known.more_ms, known.shared = None, now_ms, 0, 0
                    self.shared.pop(known.session, None)
            case ev.LeaseEnded():
                self.leases.pop(event.lease, None)
            case ev.SettingsChanged():
                self.tree = Tree(event.settings)
                for request in self.waiting.values():
                    request.walltime_ms = self._walltime_ms(request.event)

    def _end_own_hold(self, request: RequestId) -> None:
        """Let a request have waited since it came, but for as long as its own user held it."""
        held_ms = self.now_ms - self.held_by_owner.pop(request, self.now_ms)
        if request in self.waiting:
            self.waiting[request].since_ms += held_ms

    def _submit(self, event: ev.RequestSubmitted) -> None:
        if event.request in self.submitted:
            return
        self.submitted[event.request] = event
        if self.shared.get(event.session, (0, self.now_ms))[1] + 3_600_000 <= self.now_ms:
            del self.shared[event.session]  # it asks too late to be known for that
        self.waiting[event.request] = Waiting(event, self.now_ms, self._walltime_ms(event))

    def _walltime_ms(self, event: ev.RequestSubmitted) -> int:
        qos = self.tree.qos.get(event.qos)
        longest_ms = qos.walltime_ms if qos else 0
        return event.walltime_ms or min(longest_ms, self.tree.rule_of_cells(event.project, "walltime_ms") or longest_ms)

    def _begin(self, event: ev.CellStarted) -> None:
        known = self.leases.get(event.lease)
        if known is None or known.is_over:
            return
        if not known.is_reclaimed:
            known.is_asked = False  # it answered that it does not leave
        if known.cell == event.cell:
            return
        if self.is_going_on(event):  # what began with the first one goes on
            known.cell = event.cell
            return
        if known.has_begun:  # its first one began, for the order, when it was granted
            known.order = self._next_order(self.now_ms - event.running_ms)
        known.cell, known.began_ms = event.cell, self.now_ms - event.running_ms
        known.has_begun, known.is_requeued, known.more_ms = True, False, 0

    def is_going_on(self, event: ev.CellStarted) -> bool:
        """Whether this is a next cell in a place that is kept: nothing begins."""
        known = self.leases.get(event.lease)
        return known is not None and known.is_kept and known.cell is not None

    def _join(self, event: ev.AgentJoined) -> None:
        self._matching.clear()
        self._costs.clear()
        slots = {slot.id: slot for slot in event.slots}
        before = {lease.lease: lease for lease in self.on_node(event.agent)}
        for lease in before.values():
            del self.leases[lease.lease]
        self.machines[event.agent] = Machine(event.agent, slots, event.cpus, event.memory_bytes)
        self.has_gpus |= any(slot.kind != "cpu" for slot in event.slots)
        for held in event.held:
            was = before.get(held.lease)
            is_whole = held.is_kept or held.cell is None
            order = self._next_order(self.now_ms - (held.held_ms if is_whole else held.running_ms))
            is_new = was is not None and not was.has_begun and held.cell is None  # its first cell is yet to begin
            self.leases[held.lease] = Tenancy(
                held.lease, held.session, held.user, held.project, held.qos, event.agent, held.slots,
                self.cost(slots[name] for name in held.slots), held.cpus, held.memory_bytes, held.walltime_ms,
                self.now_ms - held.held_ms, was.order if was is not None else order,
                request=was.request if was is not None else None,
                cell=held.cell, began_ms=self.now_ms - (held.held_ms if held.is_kept else held.running_ms),
                has_begun=not is_new, is_kept=held.is_kept,
                shared=was.shared if was is not None and was.cell == held.cell else 0,  # a node that was away took none
            )  # fmt: skip

    def _next_order(self, began_ms: int) -> tuple[int, int]:
        """Give what begins its place among all that began: by its time, then by when that was known."""
        self._order += 1
        return began_ms, self._order

    def is_put_first(self, request: Waiting) -> bool:
        """Whether an admin wants it before others of its project."""
        at = request.event
        return at.request in self.put_first or self.is_boosted(at.project, at.user)

    def is_boosted(self, project: str, user: str) -> bool:
        """Whether an admin wants a user's requests before those of the project's others."""
        return self.boosts.get((project, user), 0) > self.now_ms

    def allowed(self, project: str, user: str, what: str) -> int:
        """Find the most that a user of a project was granted of something (a field of `Allowance`) and has now."""
        granted = self.allowances.get((project, user), {}).values()
        return max((getattr(one, what) for one in granted if one.until_ms > self.now_ms), default=0)

    def allowed_node(self, project: str, user: str) -> int:
        """Find of how many GPUs a node may be that a user of a project was granted for themselves; 0 without one."""
        granted = self.allowances.get((project, user), {}).values()
        return max((one.gpus for one in granted if one.is_exclusive and one.until_ms > self.now_ms), default=0)

    def user_limit(self, project: str, user: str) -> int | None:
        """Find what a user never exceeds in a project, in thousandths of a GPU; None is no limit."""
        limit = self.tree.projects[ProjectId(project)].user_limit_milli
        return None if limit is None else max(limit, 1000 * self.allowed(project, user, "gpus"))

    # What was decided

    def grant(self, action: act.Grant) -> Tenancy | None:
        """Write a new tenant down; None where the grant was only said again."""
        if action.lease in self.leases:
            return None
        at = self.submitted[action.request]
        self.waiting.pop(action.request, None)
        self.ended[action.request] = "granted"
        slots = self.machines[action.agent].slots
        self.leases[action.lease] = lease = Tenancy(
            action.lease, at.session, at.user, at.project, at.qos, action.agent, action.slots,
            self.cost(slots[name] for name in action.slots), at.cpus, at.memory_bytes, action.walltime_ms,
            self.now_ms, self._next_order(self.now_ms), request=action.request,
            shared=self.shared.get(at.session, (0, 0))[0], is_kept=at.is_kept,
        )  # fmt: skip
        return lease

    def refuse(self, request: RequestId) -> None:
        """Write down that a request ended so."""
        self.waiting.pop(request, None)
        self.ended[request] = "refused"

    def ask(self, lease: LeaseId, *, is_reclaim: bool, grace_ms: int = 0, is_for_share: bool = False) -> None:
        """Write down that a tenant was asked to leave."""
        known = self.leases.get(lease)
        if known is None:
            return
        asks_already = any(one.event.session == known.session for one in self.waiting.values())  # its node was away
        if is_reclaim and not asks_already and (is_for_share or not known.is_reclaimed):  # why: once it is not paused
            self.shared[known.session] = known.shared + is_for_share, self.now_ms
        if not known.is_asked or (is_reclaim and not known.is_reclaimed):
            known.asked_ms, known.grace_ms = self.now_ms, grace_ms
        known.is_asked = True
        known.is_reclaimed |= is_reclaim

    def end(self, action: act.EndLease) -> None:
        """Write down that a lease is over; of one that is superseded the slots are not free yet."""
        known = self.leases.get(action.lease)
        if known is None:
            return
        if action.why is act.Why.SUPERSEDED:
            known.is_over = True
            known.is_asked, known.asked_ms = True, self.now_ms
        else:
            del self.leases[action.lease]

    # What is so

    def cost(self, slots: Iterable[ev.Slot]) -> int:
        """Compute what slots cost, in thousandths of a GPU."""
        return sum(slot.milli if slot.kind != "cpu" else 0 if self.has_gpus else 1000 for slot in slots)

    def on_node(self, agent: AgentId) -> list[Tenancy]:
        """List the tenants of a node."""
        return [lease for lease in self.leases.values() if lease.agent == agent]

    def used(self) -> dict[Side, int]:
        """Compute what each side uses."""
        found: dict[Side, int] = {}
        for lease in self.leases.values():
            if lease.is_using:
                for side in self.tree.chain(lease.project):
                    found[side] = found.get(side, 0) + lease.cost
        return found

    def there_milli(self) -> int:
        """Compute what there is: all slots of nodes that may be given, and what still runs on drained ones."""
        total = 0
        for machine in self.machines.values():
            if machine.is_connected and machine.agent not in self.drained:
                total += self.cost(machine.slots.values())
            elif machine.is_connected:
                total += sum(lease.cost for lease in self.on_node(machine.agent) if lease.is_using)
        return total

    def is_on_cpu(self, at: ev.RequestSubmitted) -> bool:
        """Whether the request wants CPU slots: it asks for no GPU, or the pool has shown none."""
        return at.gpus == 0 or not self.has_gpus

    def number(self, at: ev.RequestSubmitted) -> int:
        """Count the slots that the request wants."""
        return max(at.gpus, 1)

    def is_of_size(self, at: ev.RequestSubmitted, machine: Machine) -> bool:
        """Whether a machine has just the slots that are asked for, where nobody else is to be on it."""
        return not at.is_exclusive or len(machine.slots) == self.number(at)

    def matches(self, at: ev.RequestSubmitted, slot: ev.Slot) -> bool:
        """Whether such a slot serves the request."""
        key = (at.gpus == 0, at.gpu_type, at.gpu_memory_bytes, slot.kind, slot.name, slot.memory_bytes)
        found = self._matching.get(key)
        if found is None:
            found = self._matching[key] = self._matches(at, slot)
        return found

    def _matches(self, at: ev.RequestSubmitted, slot: ev.Slot) -> bool:
        if self.is_on_cpu(at):
            return slot.kind == "cpu"
        if slot.kind == "cpu" or slot.memory_bytes < at.gpu_memory_bytes:
            return False
        words = at.gpu_type.lower().split()
        name = slot.name.lower().split()
        if slot.kind == "mig" and not any(word == "mig" or word.count("g.") for word in words):
            return self.shows_slices_alone() and not words
        return all(word in name for word in words)

    def shows_slices_alone(self) -> bool:
        """Whether the pool has slices and no whole GPU."""
        return not any(slot.kind == "gpu" for machine in self.machines.values() for slot in machine.slots.values())

    def most_cost(self, at: ev.RequestSubmitted) -> int:
        """Compute the most that the request may cost: of the largest slots that might serve it."""
        if at.gpus == 0 and self.has_gpus:
            return 0
        key = (at.gpus, at.gpu_type, at.gpu_memory_bytes)
        if key not in self._costs:
            self._costs[key] = self._most_cost(at)
        return self._costs[key]

    def _most_cost(self, at: ev.RequestSubmitted) -> int:
        one = max(
            (
                self.cost((slot,))
                for machine in self.machines.values()
                for slot in machine.slots.values()
                if self.matches(at, slot)
            ),
            default=1000,
        )
        return one * self.number(at)
