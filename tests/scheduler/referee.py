"""Knows what the scheduler promises and nothing of how it works: it sees each event and the actions that followed.

It keeps books of its own, and raises AssertionError with a sentence at the first promise that is broken.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction

from bulletin.ids import ProjectId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.projects import Project, SchedulerSettings
from tests.scheduler.age_book import AgeBook
from tests.scheduler.credit_book import LATE, CreditBook
from tests.scheduler.head_book import may_pass, see_first, see_pass
from tests.scheduler.hours_book import best_guarantee, own_guarantee
from tests.scheduler.lending_book import leaves_what_is_kept

LEAVING = ("leaving", "ending", "reclaiming")
HOLDING = ("granted", "busy", "hot", *LEAVING)
DAY_MS = 86_400_000
#: When a period began; months are not played.
PERIOD = {
    "day": lambda now_ms: now_ms // DAY_MS * DAY_MS,
    "week": lambda now_ms: ((now_ms // DAY_MS + 3) // 7 * 7 - 3) * DAY_MS,
}


def weight(now_ms: int) -> int:
    """What use at a time counts for, by the hour: twice as much as a week before."""
    weeks, hours = divmod(now_ms // 3_600_000, 168)
    return round(65_536 * 2 ** (hours / 168)) << weeks


@dataclass
class Wish:
    """A request that has not ended."""

    event: ev.RequestSubmitted
    order: tuple[int, int]
    walltime_ms: int = 0
    due: int = 0
    since_ms: int = 0


@dataclass
class Tenancy:
    """A lease as the world knows it."""

    session: str
    agent: str
    slots: tuple[str, ...]
    state: str  # granted, busy, reclaiming, hot, leaving, ending
    since_ms: int
    project: str
    user: str
    qos: str
    busy_ms: int = 0
    request: str | None = None
    cell: str | None = None
    hot_since: int = 0
    asked_ms: int = 0
    grant: act.Grant | None = None
    begun_ms: int = 0
    is_pausing: bool = False
    age: tuple[int, int] | None = None  # when it was due, and its number
    cpus: int = 0
    memory_bytes: int = 0
    gpu_type: str = ""  # what was asked for, as far as it is known
    gpu_memory_bytes: int = 0
    walltime_ms: int = 0


@dataclass
class Referee:
    settings: SchedulerSettings
    nodes: dict[str, dict[str, str]] = field(default_factory=dict)  # agent -> slot -> lane
    offers: dict[str, ev.AgentJoined] = field(default_factory=dict)  # what each agent there has
    shown: list[ev.AgentJoined] = field(default_factory=list)  # what any agent ever had
    wishes: dict[str, Wish] = field(default_factory=dict)
    leases: dict[str, Tenancy] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    largest: dict[str, int] = field(default_factory=lambda: {"gpu": 0, "cpu": 0})
    count: int = 0
    past: dict[tuple[str, ...], list[tuple[Fraction | int, int]]] = field(
        default_factory=dict
    )  # who -> amounts, each with its time
    spent: dict[str, int] = field(default_factory=dict)  # of budgets, in this period
    backoff: dict[str, tuple[int, int]] = field(default_factory=dict)  # project -> may borrow from, how often in a row
    credits: CreditBook = field(default_factory=CreditBook)
    ages: AgeBook = field(default_factory=AgeBook)
    drained: set[str] = field(default_factory=set)  # agents
    took: dict[str, set[str]] = field(default_factory=dict)  # request -> sessions it took from for a share
    now_ms: int = 0
    hopes: bool = False  # whether all class hours that are still to come count

    # Books

    def qos(self, name: str):
        return next((qos for qos in self.settings.qos if qos.name == name), None)

    def lane(self, gpus: int) -> str:
        return "gpu" if gpus and self.largest["gpu"] else "cpu"

    def capacity(self, agent: str, lane: str) -> int:
        return sum(kind == lane for kind in self.nodes[agent].values())

    def taken(self, agent: str) -> dict[str, str]:
        return {slot: name for name, lease in self.leases.items() if lease.agent == agent for slot in lease.slots}

    def free(self, agent: str, lane: str) -> int:
        taken = self.taken(agent)
        return sum(kind == lane and slot not in taken for slot, kind in self.nodes[agent].items())

    def in_state(self, agent: str, lane: str, *states: str) -> int:
        return sum(
            self.nodes[agent].get(slot) == lane
            for lease in self.leases.values()
            if lease.agent == agent and lease.state in states
            for slot in lease.slots
        )

    def eligible(self, lane: str) -> list[tuple[Wish, int]]:
        """Those that wait for slots of the lane, in order, with their need.

        Not those behind their own lease, nor those that a limit holds back. Who comes later is decided as it will be
        when all before have what they want.
        """
        tenants = {lease.session for lease in self.leases.values()}
        waiting = [
            wish
            for wish in self.wishes.values()
            if self.lane(wish.event.gpus) == lane and wish.event.session not in tenants
        ]
        order: list[Wish] = []
        used, held = self.amounts("granted", "busy", "reclaiming"), self.amounts(*HOLDING)
        while waiting:
            allowed = [wish for wish in waiting if self.may_run(wish, used)]
            if not allowed:
                break
            order.append(self.first(allowed, used, 0))
            waiting.remove(order[-1])
            if any(self.could_hold(agent, order[-1].event) for agent in self.nodes if agent not in self.drained):
                self.add(used, self.who(order[-1].event), self.cost(order[-1].event), 1)
        return [(wish, max(1, wish.event.gpus)) for wish in order if self.is_below_limits(wish, held)]

    # What a request may use: the referee's own reading

    def names_a_slice(self, asked: ev.RequestSubmitted) -> bool:
        return re.search(r"\bmig\b|\b\d+g\b", asked.gpu_type.lower()) is not None

    def serves(self, slot: ev.Slot, asked: ev.RequestSubmitted) -> bool:
        lane = "cpu" if slot.kind == "cpu" else "gpu"
        words = re.split(r"[^a-z0-9]+", asked.gpu_type.lower().strip())
        if lane != self.lane(asked.gpus) or slot.memory_bytes < asked.gpu_memory_bytes:
            return False
        name = re.split(r"[^a-z0-9]+", f"{slot.name} {slot.kind}".lower())
        if not all(word in name for word in words if word):
            return False
        if slot.kind == "mig":
            has_whole = any(one.kind == "gpu" for offer in self.shown for one in offer.slots)
            return self.names_a_slice(asked) or not has_whole
        return not self.names_a_slice(asked)

    def serving(self, offer: ev.AgentJoined, asked: ev.RequestSubmitted) -> set[str]:
        return {slot.id for slot in offer.slots if self.serves(slot, asked)}

    def holds(self, offer: ev.AgentJoined, asked: ev.RequestSubmitted) -> bool:
        enough = len(self.serving(offer, asked)) >= max(1, asked.gpus)
        return enough and asked.cpus <= offer.cpus and asked.memory_bytes <= offer.memory_bytes

    def could_hold(self, agent: str, asked: ev.RequestSubmitted) -> bool:
        return self.holds(self.offers[agent], asked)

    def would_fit(self, agent: str, asked: ev.RequestSubmitted, *gone: str, without: tuple[str, ...] = ()) -> bool:
        """Whether it fits what is free there, once leases in these states and these leases are gone."""
        offer = self.offers[agent]
        here = [
            lease
            for name, lease in self.leases.items()
            if lease.agent == agent and lease.state not in gone and name not in without
        ]
        free = self.serving(offer, asked) - {slot for lease in here for slot in lease.slots}
        cpus, memory = sum(lease.cpus for lease in here), sum(lease.memory_bytes for lease in here)
        enough = len(free) >= max(1, asked.gpus)
        return enough and asked.cpus + cpus <= offer.cpus and asked.memory_bytes + memory <= offer.memory_bytes

    def are_rivals(self, agent: str, one: ev.RequestSubmitted, other: ev.RequestSubmitted) -> bool:
        """Whether both could use the same slot, CPUs or memory of the node."""
        offer = self.offers[agent]
        slots = self.serving(offer, one) & self.serving(offer, other)
        return bool(slots or (one.cpus and other.cpus) or (one.memory_bytes and other.memory_bytes))

    def uses_nothing_special(self, asked: ev.RequestSubmitted) -> bool:
        return not (asked.gpu_type or asked.gpu_memory_bytes or asked.cpus or asked.memory_bytes)

    def is_alike(self, agent: str) -> bool:
        return all(slot.kind != "mig" for slot in self.offers[agent].slots)

    # Who pays: the referee's own reading of the projects

    def project(self, name: str) -> Project:
        return next((one for one in self.settings.projects if one.id == name), Project(id=ProjectId(name)))

    def path(self, name: str) -> list[str]:
        """A project, and what it is in, from the outside in."""
        parent = self.project(name).parent
        return [*(self.path(parent) if parent else []), name]

    def guaranteed(self, name: str) -> int:
        inside = sum(self.guaranteed(one.id) for one in self.settings.projects if one.parent == name)
        own = (best_guarantee if self.hopes else own_guarantee)(self.project(name), self.now_ms)
        return max(own, inside)

    def has_a_usual_guarantee(self, name: str) -> bool:
        inside = [one.id for one in self.settings.projects if one.parent == name]
        return self.project(name).guaranteed_milli > 0 or any(map(self.has_a_usual_guarantee, inside))

    def limit(self, name: str) -> int | None:
        project = self.project(name)
        return project.limit_milli if project.can_borrow else self.guaranteed(name)

    def cost(self, asked: ev.RequestSubmitted) -> int:
        each = [slot.milli for offer in self.shown for slot in offer.slots if self.serves(slot, asked)]
        return self.worth(self.lane(asked.gpus), max(1, asked.gpus) * max(each, default=1000))

    def worth(self, lane: str, milli: int) -> int:
        return milli if lane == "gpu" or not self.largest["gpu"] else 0

    def offered(self) -> int:
        """What may be used now, in thousandths of a GPU: of nodes that are drained, what still is."""
        slots = [slot for agent, offer in self.offers.items() if agent not in self.drained for slot in offer.slots]
        using = [lease for lease in self.leases.values() if lease.state in ("granted", "busy", "reclaiming")]
        there = sum(self.worth("cpu" if slot.kind == "cpu" else "gpu", slot.milli) for slot in slots)
        return there + sum(self.cost_of(lease) for lease in using if lease.agent in self.drained)

    def who(self, of: ev.RequestSubmitted | Tenancy) -> list[tuple[str, ...]]:
        """Whose amounts it counts for: projects, the user in the project, the user in the QoS."""
        projects = [("project", name) for name in self.path(of.project)]
        return [*projects, ("user", of.project, of.user), ("qos", of.qos, of.user)]

    def add(self, amounts: dict[tuple[str, ...], int], who: list[tuple[str, ...]], cost: int, number: int) -> None:
        for one in who:
            amounts[one] = amounts.get(one, 0) + (number if one[0] == "qos" else cost)

    def amounts(self, *states: str) -> dict[tuple[str, ...], int]:
        amounts: dict[tuple[str, ...], int] = {}
        for lease in self.leases.values():
            if lease.state in states:
                self.add(amounts, self.who(lease), self.cost_of(lease), 1)
        return amounts

    def cost_of(self, lease: Tenancy) -> int:
        lanes = {self.nodes[lease.agent][slot] for slot in lease.slots}
        milli = sum(slot.milli for slot in self.offers[lease.agent].slots if slot.id in lease.slots)
        return self.worth(lanes.pop() if lanes else "cpu", milli)

    def is_below_limits(self, wish: Wish, amounts: dict[tuple[str, ...], int]) -> bool:
        asked = wish.event
        qos = self.qos(asked.qos)
        for one in self.who(asked):
            now = amounts.get(one, 0)
            if one[0] == "project":
                limit, cost = self.limit(one[1]), self.cost(asked)
            elif one[0] == "user":
                limit, cost = self.project(asked.project).user_limit_milli, self.cost(asked)
            else:
                limit, cost = qos.running_per_user, 1
            if limit is not None and now + cost > limit:
                return False
        return True

    def is_allowed(self, wish: Wish, used: dict[tuple[str, ...], int]) -> bool:
        """Whether it may run by its limits and its QoS, once hot sessions have made room."""
        if not self.is_below_limits(wish, used):
            return False
        names = self.path(wish.event.project)
        if self.cost(wish.event) and any(map(self.is_spent, names)):
            return False
        if self.cost(wish.event) and any(
            self.now_ms < self.backoff.get(name, (0, 0))[0] and not self.is_covered(name, wish, used) for name in names
        ):
            return False
        must = [name for name in names if self.has_a_usual_guarantee(name) or name == names[0]]
        return not self.qos(wish.event.qos).must_be_in_quota or all(self.is_covered(name, wish, used) for name in must)

    def may_run(self, wish: Wish, used: dict[tuple[str, ...], int]) -> bool:
        return self.is_allowed(wish, used) and leaves_what_is_kept(self, wish, used)

    def could_be_allowed(self, wish: Wish) -> bool:
        """Whether it might run if nobody else did, nothing was spent, and its class hours had come."""
        books = self.spent, self.backoff
        self.spent, self.backoff, self.hopes = {}, {}, True
        try:
            return self.is_allowed(wish, {})
        finally:
            self.spent, self.backoff = books
            self.hopes = False

    def is_covered(self, name: str, wish: Wish, used: dict[tuple[str, ...], int]) -> bool:
        return used.get(("project", name), 0) + self.cost(wish.event) <= self.guaranteed(name)

    def use_before(self, who: tuple[str, ...]) -> Fraction:
        """What was used in the past: half of it after a week, by the hour. Histories begin at 0."""
        return Fraction(sum(amount * weight(at_ms) for amount, at_ms in self.past.get(who, [])), weight(self.now_ms))

    def first(self, wishes: list[Wish], used: dict[tuple[str, ...], int], depth: int) -> Wish:
        """Who is next of these, which are in the same project down to this depth."""
        groups: dict[str, list[Wish]] = {}
        for wish in wishes:
            names = self.path(wish.event.project)
            groups.setdefault(names[depth] if depth < len(names) else "", []).append(wish)
        ranked = []
        for name, members in groups.items():
            if name:
                best = self.first(members, used, depth + 1)
                ranked.append((self.rank(name, best, used), best))
            else:
                best = min(members, key=lambda wish: self.rank_of_user(wish, used))
                ranked.append((self.rank_of_members(best, used), best))
        head = min(rank for rank, _ in ranked)
        for number, (rank, wish) in enumerate(ranked):
            if head[0] == 1 and rank[:3] == head[:3] and self.now_ms // 10_000 - wish.due >= LATE:
                ranked[number] = ((*head[:4], *rank[4:]), wish)  # long due: behind nobody for their credits
        return min(ranked, key=lambda one: one[0])[1]

    def rank_of_user(self, wish: Wish, used: dict[tuple[str, ...], int]) -> tuple[object, ...]:
        asked = wish.event
        who = ("user", asked.project, asked.user)
        return wish.order[0], used.get(who, 0), wish.due, wish.walltime_ms, wish.order[1]

    def rank(self, name: str, wish: Wish, used: dict[tuple[str, ...], int]) -> tuple[object, ...]:
        project, promised = self.project(name), self.guaranteed(name)
        would = used.get(("project", name), 0) + self.cost(wish.event)
        rest = (int(self.use_before(("project", name)) / project.weight), wish.due, wish.walltime_ms, wish.order[1])
        if would <= promised:
            return 0, wish.order[0], 0, 0, Fraction(would, max(1, promised)), *rest
        credit = self.credits.steps(self, ("project", name))
        return 1, wish.order[0], -project.priority, -credit, Fraction(would - promised, project.weight), *rest

    def rank_of_members(self, wish: Wish, used: dict[tuple[str, ...], int]) -> tuple[object, ...]:
        """The users of a project stand beside the projects inside it, with what those leave of its guarantee."""
        name = wish.event.project
        inside = [one.id for one in self.settings.projects if one.parent == name]
        promised = self.guaranteed(name) - sum(map(self.guaranteed, inside))
        would = used.get(("project", name), 0) - sum(used.get(("project", one), 0) for one in inside)
        would += self.cost(wish.event)
        past = self.use_before(("project", name)) - sum(self.use_before(("project", one)) for one in inside)
        rest = (int(past), wish.due, wish.walltime_ms, wish.order[1])
        if would <= promised:
            return 0, wish.order[0], 0, 0, Fraction(would, max(1, promised)), *rest
        return 1, wish.order[0], 0, -self.credits.steps(self, ("members", name)), Fraction(would - promised), *rest

    def count_budgets(self, now_ms: int) -> None:
        """What running cells have used of budgets up to now: afresh in each period."""
        used = self.amounts("granted", "busy", "reclaiming")
        for project in self.settings.projects:
            if project.budget is not None:
                began_ms = PERIOD[project.budget.period](now_ms)
                if self.now_ms < began_ms:
                    self.spent[project.id] = 0
                passed_ms = now_ms - max(began_ms, self.now_ms)
                now = self.spent.get(project.id, 0) + used.get(("project", project.id), 0) * passed_ms
                self.spent[project.id] = now

    def is_spent(self, name: str) -> bool:
        budget = self.project(name).budget
        return budget is not None and self.spent.get(name, 0) >= 1000 * budget.gpu_ms

    def note_use(self, lease: Tenancy) -> None:
        """A cell is over."""
        if lease.state in ("busy", "reclaiming"):
            percent = self.qos(lease.qos).usage_percent if self.qos(lease.qos) else 100
            amount = self.cost_of(lease) * (self.now_ms - lease.busy_ms) * percent // 100
            for who in self.who(lease):
                self.past.setdefault(who, []).append((amount, self.now_ms))
        lease.busy_ms = self.now_ms

    # The game

    def see(self, event: ev.Event, actions: list[act.Action], now_ms: int) -> None:
        due = self.note(event, now_ms)
        hot_before = {name: lease.hot_since for name, lease in self.leases.items() if lease.state == "hot"}
        for action in actions:
            match action:
                case act.Grant():
                    due.discard(("repeat", action.request))
                    self.see_grant(event, action, now_ms)
                case act.Refuse():
                    self.see_refuse(event, action, due)
                case act.Evict():
                    self.see_evict(event, action, now_ms)
                case act.Reclaim() | act.Pause():
                    self.see_reclaim(action, due, now_ms)
                case act.EndLease():
                    self.see_end(action, due)
        assert not due, f"these things had to be said and were not: {due}"
        evicted = [a.lease for a in actions if isinstance(a, act.Evict) and a.lease in hot_before]
        self.after(now_ms, evicted, hot_before)

    def note(self, event: ev.Event, now_ms: int) -> set[tuple[str, str]]:
        """Take the fact into the books. What comes back must be said by the actions."""
        due: set[tuple[str, str]] = set()
        self.count += 1
        self.count_budgets(now_ms)
        self.credits.count(self, now_ms)
        self.now_ms = now_ms
        if any(one.class_hours for one in self.settings.projects):  # the last ones may be over
            due |= {("refuse", name) for name, wish in self.wishes.items() if not self.could_be_allowed(wish)}
        match event:
            case ev.AgentJoined():
                held = {h.lease: h for h in event.held}
                before = {name: lease for name, lease in self.leases.items() if lease.agent == event.agent}
                for name in before:
                    self.note_use(self.leases[name])
                    if name not in held:
                        due.add(("end", name))
                    del self.leases[name]
                self.offers[event.agent] = event
                self.shown.append(event)
                self.nodes[event.agent] = {s.id: "cpu" if s.kind == "cpu" else "gpu" for s in event.slots}
                for lane in self.largest:
                    self.largest[lane] = max(self.largest[lane], self.capacity(event.agent, lane))
                for name, h in held.items():
                    alive = any(o.session == h.session and o.state != "ending" for o in self.leases.values())
                    was = before.get(name)
                    state = "busy" if h.cell else "hot"
                    if was and was.state == "granted" and not h.cell:
                        state = "granted"
                    if alive or (was and was.state == "ending"):
                        state = "ending"
                        due.add(("end", name))
                    self.leases[name] = Tenancy(
                        h.session, event.agent, h.slots, state, now_ms, h.project, h.user, h.qos, now_ms,
                        was.request if was else None, h.cell,
                    )  # fmt: skip
                    self.leases[name].begun_ms = now_ms - h.running_ms
                    self.leases[name].cpus, self.leases[name].memory_bytes = h.cpus, h.memory_bytes
                    self.leases[name].walltime_ms = h.walltime_ms
                    self.leases[name].hot_since = was.hot_since if was and was.hot_since else self.count
                    if was:
                        self.leases[name].age = was.age
                        self.leases[name].gpu_type = was.gpu_type
                        self.leases[name].gpu_memory_bytes = was.gpu_memory_bytes
                        self.leases[name].since_ms, self.leases[name].grant = was.since_ms, was.grant
                for request, wish in self.wishes.items():
                    if self.never_fits(wish.event) or not self.could_be_allowed(wish):
                        due.add(("refuse", request))
            case ev.AgentLost():
                for name in [name for name, lease in self.leases.items() if lease.agent == event.agent]:
                    due.add(("end", name))
                    self.note_use(self.leases[name])
                    del self.leases[name]
                self.nodes.pop(event.agent, None)
                self.offers.pop(event.agent, None)
            case ev.NodeDrained():
                self.drained = (self.drained | {event.agent}) if event.is_drained else self.drained - {event.agent}
            case ev.RequestSubmitted():
                due |= self.note_submit(event)
            case ev.SettingsChanged():
                self.settings = event.settings
                for name, wish in self.wishes.items():
                    qos, asked_ms = self.qos(wish.event.qos), wish.event.walltime_ms
                    if qos is None or (asked_ms or 0) > qos.walltime_ms or not self.could_be_allowed(wish):
                        due.add(("refuse", name))
                self.spent = {name: spent for name, spent in self.spent.items() if self.project(name).budget}
                self.credits.forget(self)
            case ev.UseRecalled():
                for use in event.uses:
                    projects = [("project", name) for name in self.path(use.project)]
                    for who in [*projects, ("user", use.project, use.user)]:
                        self.past.setdefault(who, []).append((use.amount, now_ms))
                for name, amount in event.spent.items():
                    if self.project(name).budget is not None:
                        self.spent[name] = self.spent.get(name, 0) + amount
                for past in event.credits:
                    self.credits.recall(self, past)
            case ev.UseRefunded():
                for use in event.uses:
                    user = "user", use.project, use.user
                    taken = min(Fraction(use.amount), self.use_before(user))
                    for who in [user, *[("project", name) for name in self.path(use.project)]]:
                        less = min(taken, self.use_before(who))
                        self.past.setdefault(who, []).append((-less, now_ms))
                for name, amount in event.spent.items():
                    if self.project(name).budget is not None:
                        self.spent[name] = max(0, self.spent.get(name, 0) - amount)
            case ev.RequestWithdrawn():
                if self.wishes.pop(event.request, None):
                    self.ended.add(event.request)
            case ev.CellStarted():
                lease = self.leases.get(event.lease)
                if lease and lease.state != "ending" and lease.cell != event.cell:
                    self.note_use(lease)
                    if lease.state == "reclaiming":
                        return due
                    self.ages.started(lease, now_ms, self.count)
                    lease.state, lease.cell, lease.begun_ms = "busy", event.cell, now_ms
            case ev.CellEnded():
                lease = self.leases.get(event.lease)
                if lease:
                    self.ages.ended(lease, event.cell)
                if lease and lease.state == "reclaiming" and lease.cell == event.cell:
                    self.note_use(lease)
                    lease.state, lease.asked_ms = "leaving", now_ms
                elif lease and ((lease.state == "busy" and lease.cell == event.cell) or lease.state == "granted"):
                    self.note_use(lease)
                    lease.state, lease.cell, lease.hot_since = "hot", None, self.count
            case ev.PauseDeclined():
                lease = self.leases.get(event.lease)
                if lease and lease.state == "reclaiming" and lease.is_pausing:
                    lease.is_pausing = False
                    due.add(("reclaim", event.lease))
            case ev.LeaseEnded():
                if event.lease in self.leases:
                    self.note_use(self.leases.pop(event.lease))
        return due

    def note_submit(self, event: ev.RequestSubmitted) -> set[tuple[str, str]]:
        if event.request in self.wishes:
            return set()
        for lease in self.leases.values():
            if lease.session == event.session and lease.request == event.request:
                return {("repeat", event.request)} if lease.state == "granted" else set()
        earlier = next((name for name, wish in self.wishes.items() if wish.event.session == event.session), None)
        qos = self.qos(event.qos)
        mine = [
            name
            for name, wish in self.wishes.items()
            if (wish.event.user, wish.event.qos) == (event.user, event.qos) and name != earlier
        ]
        if (
            qos is None
            or (event.walltime_ms or 0) > qos.walltime_ms
            or self.never_fits(event)
            or not self.could_be_allowed(Wish(event, (0, 0)))
            or len(mine) >= qos.queued_per_user
        ):
            self.wishes[event.request] = Wish(event, (0, 0))
            return {("refuse", event.request)}
        used_ms = int(self.use_before(("user", event.project, event.user))) // 1000
        user = ("user", event.project, event.user)
        number = self.amounts("granted", "busy").get(user, 0) // 1000 + sum(
            (wish.event.project, wish.event.user) == user[1:] and name != earlier
            for name, wish in self.wishes.items()
            if wish.event.session not in {lease.session for lease in self.leases.values()}
        )
        due = (self.now_ms + min(10 * 60_000, used_ms // 60) + number * self.settings.apart_ms) // 10_000
        due, number = self.ages.asked(event, self.now_ms) or (due, self.count)
        walltime_ms = event.walltime_ms or qos.walltime_ms
        self.wishes[event.request] = Wish(event, (-qos.priority, number), walltime_ms, due, self.now_ms)
        return {("refuse", earlier)} if earlier else set()

    def never_fits(self, asked: ev.RequestSubmitted) -> bool:
        return any(self.largest.values()) and not any(self.holds(offer, asked) for offer in self.shown)

    def see_grant(self, event: ev.Event, grant: act.Grant, now_ms: int) -> None:
        if grant.request not in self.wishes:
            lease = self.leases.get(grant.lease)
            asked_again = isinstance(event, ev.RequestSubmitted) and event.request == grant.request
            assert asked_again, f"{grant} for a request that has ended"
            assert lease is not None, f"{grant} repeated for a lease that is over"
            assert lease.grant == grant, f"{grant} repeated, but changed"
            assert lease.state == "granted", f"{grant} repeated although its cell has begun"
            return
        wish = self.wishes[grant.request]
        asked, qos = wish.event, self.qos(wish.event.qos)
        need, lane = max(1, asked.gpus), self.lane(asked.gpus)
        assert qos is not None
        assert grant.walltime_ms == (asked.walltime_ms or qos.walltime_ms) <= qos.walltime_ms
        assert (grant.lease, grant.session) == (asked.lease, asked.session)
        assert grant.agent in self.nodes, f"{grant} on a node that is not there"
        assert grant.agent not in self.drained, f"{grant} on a node that is being drained"
        assert len(set(grant.slots)) == len(grant.slots) == need, f"{grant} is not what was asked for"
        taken = self.taken(grant.agent)
        for slot in grant.slots:
            assert slot in self.serving(self.offers[grant.agent], asked), f"{grant}: {slot} is not what was asked for"
            assert slot not in taken, f"{slot} has two tenants: {taken[slot]} and {grant.lease}"
        assert self.would_fit(grant.agent, asked), f"{grant}: CPUs or memory have two tenants"
        owners = [name for name, lease in self.leases.items() if lease.session == grant.session]
        assert not owners, f"session {grant.session} has {owners} and gets another lease"
        line = self.eligible(lane)
        assert any(one is wish for one, _ in line), f"{grant.request} may not run: a limit, or a QoS that never borrows"
        before = [other for other, _ in line]
        before = before[: next(n for n, other in enumerate(before) if other is wish)]
        before += [other for other, _ in self.eligible("gpu")] if lane == "cpu" else []
        new = Tenancy(
            grant.session, grant.agent, grant.slots, "granted", now_ms, asked.project, asked.user, asked.qos, now_ms,
            grant.request, grant=grant, age=(wish.due, wish.order[1]), cpus=asked.cpus, memory_bytes=asked.memory_bytes,
            gpu_type=asked.gpu_type, gpu_memory_bytes=asked.gpu_memory_bytes, walltime_ms=grant.walltime_ms,
        )  # fmt: skip
        passes = [one.event for one in before if self.is_in_the_way(grant.agent, asked, one.event)]
        if passes:
            see_pass(self, new, grant, passes[0], [one.event for one, _ in line])
        del self.wishes[grant.request]
        self.ended.add(grant.request)
        self.leases[grant.lease] = new

    def is_in_the_way(self, agent: str, asked: ev.RequestSubmitted, other: ev.RequestSubmitted) -> bool:
        return self.could_hold(agent, other) and self.are_rivals(agent, asked, other)

    def see_refuse(self, event: ev.Event, refuse: act.Refuse, due: set[tuple[str, str]]) -> None:
        assert refuse.request in self.wishes, f"{refuse} of a request that has ended"
        assert ("refuse", refuse.request) in due, f"{refuse} without a cause"
        due.discard(("refuse", refuse.request))
        assert str(refuse.reason).endswith("."), "a reason is a sentence"
        del self.wishes[refuse.request]
        self.ended.add(refuse.request)

    def see_evict(self, event: ev.Event, evict: act.Evict, now_ms: int) -> None:
        lease = self.leases.get(evict.lease)
        assert lease is not None, f"{evict} of a lease that is over"
        asks_itself = any(wish.event.session == lease.session for wish in self.wishes.values())
        match lease.state:
            case "granted":
                overdue = now_ms >= lease.since_ms + self.settings.start_ms
                withdrawn = isinstance(event, ev.RequestWithdrawn) and event.request == lease.request
                assert overdue or withdrawn or asks_itself, f"{evict} before its first cell could begin"
            case "hot":
                somebody = any(
                    self.could_hold(lease.agent, one.event) and self.frees(lease, one.event)
                    for lane in self.largest
                    for one, _ in self.eligible(lane)
                )
                is_drained = lease.agent in self.drained
                assert (
                    asks_itself or is_drained or somebody or self.fills_a_limit(lease) or self.has_no_budget(lease)
                ), f"{evict} although nobody waits"
            case "leaving":
                assert now_ms >= lease.asked_ms + self.settings.ask_again_ms, f"{evict} asked twice at once"
            case _:
                raise AssertionError(f"{evict} of a lease that is {lease.state}")
        lease.state, lease.asked_ms = "leaving", now_ms

    def frees(self, lease: Tenancy, asked: ev.RequestSubmitted) -> bool:
        """Whether the lease has anything that the request may use."""
        slots = set(lease.slots) & self.serving(self.offers[lease.agent], asked)
        return bool(slots or (lease.cpus and asked.cpus) or (lease.memory_bytes and asked.memory_bytes))

    def has_no_budget(self, lease: Tenancy) -> bool:
        return self.cost_of(lease) > 0 and any(map(self.is_spent, self.path(lease.project)))

    def see_reclaim(self, reclaim: act.Reclaim | act.Pause, due: set[tuple[str, str]], now_ms: int) -> None:
        lease = self.leases.get(reclaim.lease)
        assert lease is not None, f"{reclaim} of a lease that is over"
        qos = self.qos(lease.qos)
        if ("reclaim", reclaim.lease) in due:  # it could not be paused
            assert isinstance(reclaim, act.Reclaim), f"{reclaim} asked again, and was declined"
            assert reclaim.grace_ms == (qos.grace_ms if qos else 0), f"{reclaim} without the whole grace"
            due.discard(("reclaim", reclaim.lease))
            lease.asked_ms = now_ms + reclaim.grace_ms
            return
        if lease.state == "reclaiming":
            assert isinstance(reclaim, act.Reclaim), f"{reclaim} asked twice"
            lease.is_pausing = False
            assert now_ms >= lease.asked_ms + self.settings.ask_again_ms, f"{reclaim} asked twice at once"
            assert reclaim.grace_ms == 0, f"{reclaim} gives another grace"
            lease.asked_ms = now_ms
            return
        assert lease.state == "busy", f"{reclaim} of a lease that is {lease.state}"
        assert qos is not None
        assert qos.preemption.value != "never", f"{reclaim} of a QoS that is never preempted"
        assert now_ms >= lease.begun_ms + qos.min_runtime_ms, f"{reclaim} of a cell that has just begun"
        assert reclaim.grace_ms == qos.grace_ms
        lease.is_pausing = isinstance(reclaim, act.Pause)
        assert lease.is_pausing == (qos.preemption.value == "pause"), f"{reclaim} in QoS {qos.name}"
        assert lease.agent not in self.drained, f"{reclaim} on a node that is being drained"
        lanes = {self.nodes[lease.agent][slot] for slot in lease.slots}
        owners = [
            wish
            for lane in lanes
            for wish, _ in self.eligible(lane)
            if self.could_hold(lease.agent, wish.event) and self.frees(lease, wish.event)
        ]
        if not any(self.may_take(wish, lease) for wish in owners):
            takers = [wish.event for wish in owners if self.may_share(wish, lease, now_ms)]
            assert takers, f"{reclaim} for nobody who is guaranteed it, or has less of the surplus"
            before = self.took.get(lease.request or "", set())
            assert any(one.session not in before for one in takers), f"{reclaim} for those from whom it was taken"
            if len(takers) == 1:
                self.took.setdefault(takers[0].request, set()).add(lease.session)
        lease.state, lease.asked_ms = "reclaiming", now_ms + qos.grace_ms
        self.ages.reclaimed(lease, now_ms)
        free_from, number = self.backoff.get(lease.project, (0, 0))
        number = number + 1 if now_ms < free_from + self.settings.longest_wait_ms else 1
        wait_ms = min(self.settings.longest_wait_ms, self.settings.borrow_again_ms * 2 ** (number - 1))
        self.backoff[lease.project] = (now_ms + wait_ms, number)

    def is_old(self, lease: Tenancy, now_ms: int) -> bool:
        qos = self.qos(lease.qos)
        is_preemptible = qos is not None and qos.preemption.value != "never"
        return is_preemptible and now_ms >= lease.begun_ms + qos.min_runtime_ms

    def may_take(self, wish: Wish, lease: Tenancy) -> bool:
        """Whether the wish's side is within its guarantee, and the lease's side above it at each level.

        A guarantee is of GPUs: what costs nothing takes nothing, and is not taken.
        """
        if not self.cost(wish.event) or not self.cost_of(lease):
            return False
        mine, theirs = self.levels(wish.event.project), self.levels(lease.project)
        while mine and theirs and mine[0] == theirs[0]:
            mine, theirs = mine[1:], theirs[1:]
        if not mine or not theirs:
            return False
        used, kept = self.amounts("granted", "busy", "reclaiming"), self.amounts("granted", "busy")
        if self.at_level(used, mine[0]) + self.cost(wish.event) > self.promised_at(mine[0]):
            return False
        return all(
            self.at_level(kept, level) - self.cost_of(lease) > self.promised_at(level) - min(1000, self.cost_of(lease))
            for level in theirs
        )

    def may_share(self, wish: Wish, lease: Tenancy, now_ms: int) -> bool:
        """Whether the wish has waited, and its side would have no more of the surplus than the lease's keeps."""
        asked, qos, its = wish.event, self.qos(wish.event.qos), self.qos(lease.qos)
        cost, price = self.cost(asked), self.cost_of(lease)
        if not cost or not price or now_ms < wish.since_ms + qos.share_after_ms or qos.priority < its.priority:
            return False
        mine, theirs = self.levels(asked.project), self.levels(lease.project)
        while mine and theirs and mine[0] == theirs[0]:
            mine, theirs = mine[1:], theirs[1:]
        if not mine or not theirs:
            return False
        used, kept = self.amounts("granted", "busy", "reclaiming"), self.amounts("granted", "busy")
        if any(self.at_level(kept, one) - price <= self.promised_at(one) - min(1000, price) for one in theirs):
            return False
        mine_above = self.at_level(used, mine[0]) + cost - max(0, self.promised_at(mine[0]))
        its_above = self.at_level(kept, theirs[0]) - price - max(0, self.promised_at(theirs[0]))
        (priority, weight, credit), (its_priority, its_weight, its_credit) = map(self.terms, (mine[0], theirs[0]))
        if its_above < 0 or priority != its_priority:
            return its_above >= 0 and priority > its_priority
        return credit >= its_credit and Fraction(mine_above, weight) <= Fraction(its_above, its_weight)

    def terms(self, level: tuple[str, bool]) -> tuple[int, int, int]:
        """Priority, weight and credits of those on a level."""
        name, are_members = level
        if are_members:
            return 0, 1, self.credits.steps(self, ("members", name))
        project = self.project(name)
        return project.priority, project.weight, self.credits.steps(self, ("project", name))

    def levels(self, name: str) -> list[tuple[str, bool]]:
        """The projects from the outside in, and at last, where there are others inside, the users of its own."""
        has_children = any(one.parent == name for one in self.settings.projects)
        return [(one, False) for one in self.path(name)] + ([(name, True)] if has_children else [])

    def at_level(self, amounts: dict[tuple[str, ...], int], level: tuple[str, bool]) -> int:
        inside = [one.id for one in self.settings.projects if one.parent == level[0]] if level[1] else []
        return amounts.get(("project", level[0]), 0) - sum(amounts.get(("project", one), 0) for one in inside)

    def promised_at(self, level: tuple[str, bool]) -> int:
        inside = [one.id for one in self.settings.projects if one.parent == level[0]] if level[1] else []
        return self.guaranteed(level[0]) - sum(map(self.guaranteed, inside))

    def fills_a_limit(self, lease: Tenancy) -> bool:
        """Whether somebody who may run waits for a limit that this lease counts for."""
        used, held = self.amounts("granted", "busy", "reclaiming"), self.amounts(*HOLDING)
        return any(
            set(self.who(lease)) & set(self.who(wish.event))
            and self.may_run(wish, used)
            and not self.is_below_limits(wish, held)
            for wish in self.wishes.values()
        )

    def see_end(self, end: act.EndLease, due: set[tuple[str, str]]) -> None:
        if ("end", end.lease) not in due:
            lease = self.leases.get(end.lease)
            assert lease is not None, f"{end} without a cause"
            assert lease.state == "ending", f"{end} without a cause"
        due.discard(("end", end.lease))

    def after(self, now_ms: int, evicted: list[str], hot_before: dict[str, int]) -> None:
        """What must hold when the actions have been done."""
        for name, lease in self.leases.items():
            late = lease.state == "granted" and now_ms >= lease.since_ms + self.settings.start_ms
            assert not late, f"{name} was granted long ago, has no cell, and keeps its slots"
            assert lease.state != "hot" or not self.has_no_budget(lease), f"{name} is hot, and its budget is spent"
            assert lease.state != "hot" or lease.agent not in self.drained, f"{name} is hot on a node that is drained"
            if lease.state in ("hot", "granted"):
                asks = any(wish.event.session == lease.session for wish in self.wishes.values())
                assert not asks, f"{name} is kept although its session asks for another lease"
        for lane in self.largest:
            self.after_lane(lane, evicted, hot_before, now_ms)

    def after_lane(self, lane: str, evicted: list[str], hot_before: dict[str, int], now_ms: int) -> None:
        waiting = self.eligible(lane)
        agents = [agent for agent in self.nodes if self.capacity(agent, lane) and agent not in self.drained]
        others = [one.event for one, _ in self.eligible("gpu")] if lane == "cpu" else []
        for agent in agents:
            before = [one for one in others if self.could_hold(agent, one)]
            for wish, _ in waiting:
                asked = wish.event
                if self.could_hold(agent, asked):
                    if self.would_fit(agent, asked):
                        rivals = [one for one in before if self.are_rivals(agent, asked, one)]
                        may = not rivals or (not others and self.may_pass(agent, wish, rivals, waiting))
                        assert not may, f"{asked.request} is next on {agent}, fits what is free, and waits"
                    before.append(asked)
        head = next((w for w, _ in waiting if any(self.could_hold(agent, w.event) for agent in agents)), None)
        if head is not None and not any(one.cpus or one.memory_bytes for one in others):
            asked = head.event
            see_first(self, asked)
            could = any(self.would_fit(a, asked, *LEAVING, "hot") for a in agents)
            does = any(self.would_fit(a, asked, *LEAVING) for a in agents)
            assert does or not could, f"hot sessions could make room for {asked.request}, and nobody was asked"
            is_simple = asked.gpus < 2 and not (asked.cpus or asked.memory_bytes)
            if is_simple and not does and head is waiting[0][0]:  # who is ahead counts as served
                for name, lease in self.leases.items():
                    able = lease.state == "busy" and lease.agent not in self.drained and self.is_old(lease, now_ms)
                    able = able and self.may_take(head, lease)
                    able = able and self.would_fit(lease.agent, asked, *LEAVING, "hot", without=(name,))
                    assert not able, f"{name} could be reclaimed for {asked.request}, and was not asked"
        for name in evicted:
            lease = self.leases[name]
            if {self.nodes[lease.agent][slot] for slot in lease.slots} == {lane}:
                self.after_eviction(lane, name, lease, waiting, evicted, hot_before)
        is_simple = all(self.uses_nothing_special(one.event) for one in self.wishes.values())
        is_simple = is_simple and all(map(self.is_alike, agents))
        if evicted and waiting and is_simple and all(need == 1 for _, need in waiting):
            room = sum(self.free(a, lane) + self.in_state(a, lane, *LEAVING) for a in agents)
            one_each = all(len(lease.slots) == 1 for lease in self.leases.values())
            lane_evicted = [
                n for n in evicted if lane in {self.nodes[self.leases[n].agent][s] for s in self.leases[n].slots}
            ]
            own = [n for n in lane_evicted if self.is_for_its_own(n)]
            if one_each and lane_evicted != own:
                assert room <= len(waiting) + len(own), f"{room} slots are being freed for {len(waiting)} requests"

    def may_pass(
        self, agent: str, wish: Wish, rivals: list[ev.RequestSubmitted], waiting: list[tuple[Wish, int]]
    ) -> bool:
        taken = self.taken(agent)
        free = [slot for slot in sorted(self.serving(self.offers[agent], wish.event)) if slot not in taken]
        new = Tenancy("", agent, tuple(free[: max(1, wish.event.gpus)]), "granted", self.now_ms, "", "", "")
        return may_pass(self, agent, new, wish, rivals, waiting)

    def asks(self, name: str) -> bool:
        return any(wish.event.session == self.leases[name].session for wish in self.wishes.values())

    def is_for_its_own(self, name: str) -> bool:
        """Whether its own session, a limit, a budget or a drain made it go, and not who waits for slots."""
        lease = self.leases[name]
        drained = lease.agent in self.drained
        return self.asks(name) or self.fills_a_limit(lease) or self.has_no_budget(lease) or drained

    def after_eviction(self, lane, name, lease, waiting, evicted, hot_before) -> None:
        if self.is_for_its_own(name):
            return
        agent = lease.agent
        if not self.is_alike(agent) or not all(map(self.uses_nothing_special, (w.event for w in self.wishes.values()))):
            return
        room = self.free(agent, lane) + self.in_state(agent, lane, *LEAVING) - len(lease.slots)
        wanted = sum(need for _, need in waiting if need <= self.capacity(agent, lane))
        assert room < wanted, (
            f"{name} was evicted, and {room} slots of its node were free or leaving for {wanted} wanted"
        )
        for other, since in hot_before.items():
            twin = self.leases.get(other)
            is_alike = twin and twin.agent == agent and len(twin.slots) == len(lease.slots)
            if is_alike and twin.state == "hot" and {self.nodes[agent][slot] for slot in twin.slots} == {lane}:
                # Those of one report are of one age.
                assert since >= hot_before[name], f"{name} was evicted, although {other} was used longer ago"
