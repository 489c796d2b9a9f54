"""Knows what holds after each step, whoever is next: tenants, limits, refusals, and how agents are asked.

Who is next, who waits how long and what is taken back is judged in `tests/scheduler/promises`.

It keeps books of its own, and raises AssertionError with a sentence at the first promise that is broken.
"""

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from bulletin.ids import ProjectId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from tests.scheduler.age_book import AgeBook
from tests.scheduler.credit_book import CreditBook
from tests.scheduler.hours_book import best_guarantee, own_guarantee

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
    prices: tuple[Price, ...] = ()  # those in force when it was granted, or its last cell began
    is_exclusive: bool = False
    home: str = ""  # what was named: `project` is that, or what is reserved in it


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
    credits: CreditBook = field(default_factory=CreditBook)
    ages: AgeBook = field(default_factory=AgeBook)
    drained: set[str] = field(default_factory=set)  # agents
    on_hold: set[str] = field(default_factory=set)  # requests
    planned: dict[str, int] = field(default_factory=dict)  # agents that are to be drained, and when
    allowed: dict[str, ev.AllowanceChanged] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)  # names of nodes that are to come back
    awaited_until_ms: int | None = None
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
        number = max(1, asked.gpus)
        enough = len(self.serving(offer, asked)) >= number
        if asked.is_exclusive:
            enough = enough and len(offer.slots) == number
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

    # Who pays: the referee's own reading of the projects

    def project(self, name: str) -> Project:
        return next((one for one in self.settings.projects if one.id == name), Project(id=ProjectId(name)))

    def path(self, name: str) -> list[str]:
        """A project, and what it is in, from the outside in."""
        parent = self.project(name).parent
        return [*(self.path(parent) if parent else []), name]

    def guaranteed(self, name: str) -> int:
        """What is promised or, where that is more than there is, the same part of it for everybody."""
        total = sum(self.promised(one.id) for one in self.settings.projects if one.parent is None)
        there, promised = self.offered(), self.promised(name)
        return promised * there // total if 0 < there < total else promised

    def promised(self, name: str) -> int:
        inside = sum(self.promised(one.id) for one in self.settings.projects if one.parent == name)
        own = (best_guarantee if self.hopes else own_guarantee)(self.project(name), self.now_ms)
        return max(own, inside)

    def has_a_usual_guarantee(self, name: str) -> bool:
        inside = [one.id for one in self.settings.projects if one.parent == name]
        return self.project(name).guaranteed_milli > 0 or any(map(self.has_a_usual_guarantee, inside))

    def limit(self, name: str) -> int | None:
        project = self.project(name)
        if project.can_borrow:
            return project.limit_milli
        return min(self.promised(name), self.promised(name) if project.limit_milli is None else project.limit_milli)

    def cost(self, asked: ev.RequestSubmitted) -> int:
        each = [slot.milli for slot in self.shown_for(asked)]
        return self.worth(self.lane(asked.gpus), max(1, asked.gpus) * max(each, default=1000))

    def shown_for(self, asked: ev.RequestSubmitted) -> list[ev.Slot]:
        """What may serve it; who would have a node alone has none of another size."""
        offers = [one for one in self.shown if asked.is_exclusive and self.is_alone_on(one, asked)] or self.shown
        return [slot for offer in offers for slot in offer.slots if self.serves(slot, asked)]

    def is_alone_on(self, offer: ev.AgentJoined, asked: ev.RequestSubmitted) -> bool:
        return len(self.serving(offer, asked)) == len(offer.slots) == max(1, asked.gpus)

    def worth(self, lane: str, milli: int) -> int:
        return milli if lane == "gpu" or not self.largest["gpu"] else 0

    def offered(self) -> int:
        """What may be used now, in thousandths of a GPU: of nodes that are drained, what still is."""
        slots = [slot for agent, offer in self.offers.items() if agent not in self.drained for slot in offer.slots]
        using = [lease for lease in self.leases.values() if lease.state in ("granted", "busy", "reclaiming")]
        there = sum(self.worth("cpu" if slot.kind == "cpu" else "gpu", slot.milli) for slot in slots)
        return there + sum(self.cost_of(lease) for lease in using if lease.agent in self.drained)

    def place(self, home: str, user: str) -> str:
        """Where what a user wants of a project counts now: in what is reserved for the user there, while it is on."""
        for one in self.settings.projects:
            if user in one.users and one.parent == home and own_guarantee(one, self.now_ms):
                return one.id
        return home

    def place_anew(self) -> None:
        """What runs stays in its project; what is in a reservation that is no more, or runs nothing, does not."""
        for lease in self.leases.values():
            if lease.project != lease.home or lease.state in ("hot", "leaving"):
                lease.project = self.place(lease.home, lease.user)

    def place_of_held(self, held: ev.ReportedLease, was: Tenancy | None) -> str:
        """Where a lease counts that an agent reports: what runs, where it did or where it would have begun."""
        if was and held.cell and (was.cell, was.home) == (held.cell, held.project):
            return was.project if was.project == was.home else self.place(held.project, held.user)
        place = self.place(held.project, held.user)
        began_ms = self.now_ms - held.running_ms
        return place if not held.cell or own_guarantee(self.project(place), began_ms) else held.project

    def who(self, of: ev.RequestSubmitted | Tenancy) -> list[tuple[str, ...]]:
        """Whose amounts it counts for: projects, the user in the project, the user in the QoS."""
        at = of.project if isinstance(of, Tenancy) else self.place(of.project, of.user)
        projects = [("project", name) for name in self.path(at)]
        return [*projects, ("user", at, of.user), ("qos", of.qos, of.user)]

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

    def price(self, slot: ev.Slot, prices: tuple[Price, ...]) -> Fraction:
        words = set(re.findall("[a-z0-9]+", slot.name.lower())) | {slot.kind}
        fitting = [one.percent for one in prices if set(re.findall("[a-z0-9]+", one.gpu.lower())) <= words]
        return Fraction(fitting[0] if fitting else 100, 100)

    def charge(self, asked: ev.RequestSubmitted) -> int:
        """What it would be charged on the dearest slots."""
        slots = self.shown_for(asked)
        prices, lane = self.settings.prices, self.lane(asked.gpus)
        each = [math.ceil(self.worth(lane, slot.milli) * self.price(slot, prices)) for slot in slots]
        return max(1, asked.gpus) * max(each) if each else self.cost(asked)

    def charge_of(self, lease: Tenancy) -> int:
        slots = [slot for slot in self.offers[lease.agent].slots if slot.id in lease.slots]
        lanes = {self.nodes[lease.agent][slot] for slot in lease.slots}
        lane = lanes.pop() if lanes else "cpu"
        return sum(math.ceil(self.worth(lane, slot.milli) * self.price(slot, lease.prices)) for slot in slots)

    def is_below_limits(self, wish: Wish, amounts: dict[tuple[str, ...], int]) -> bool:
        asked = wish.event
        qos = self.qos(asked.qos)
        for one in self.who(asked):
            now = amounts.get(one, 0)
            if one[0] == "project":
                limit, cost = self.limit(one[1]), self.cost(asked)
            elif one[0] == "user":
                limit, cost = self.user_limit(one[1], asked.user), self.cost(asked)
            else:
                limit, cost = qos.running_per_user, 1
            if limit is not None and now + cost > limit:
                return False
        return True

    def may_be_kept(self, lease: Tenancy) -> bool:
        """Whether a hot session may stay where nobody waits: hot ones count for limits, and keep what never borrows."""
        if self.is_beyond_rules(lease):
            return False
        held, qos = self.amounts("granted", "busy", "reclaiming", "hot"), self.qos(lease.qos)
        if qos is not None and qos.must_be_in_quota:
            payer = self.payer(self.path(lease.project))
            if held[("project", payer)] > self.promised(payer):
                return False
        limits: dict[tuple[str, ...], int | None] = {}
        for one in self.who(lease):
            if one[0] == "project":
                limits[one] = self.limit(one[1])
            elif one[0] == "user":
                limits[one] = self.user_limit(one[1], lease.user)
            else:
                limits[one] = None if qos is None else qos.running_per_user
        return all(limit is None or held[one] <= limit for one, limit in limits.items())

    def is_allowed(self, wish: Wish, used: dict[tuple[str, ...], int]) -> bool:
        """Whether it may run by its limits and its QoS, once hot sessions have made room."""
        if self.cost(wish.event) and not self.is_below_limits(wish, used):
            return False
        names = self.path(self.place(wish.event.project, wish.event.user))
        qos, cost = self.qos(wish.event.qos), self.cost(wish.event)
        if self.hopes and self.breaks_a_rule(wish.event):
            return False
        walltime_ms = self.walltime_ms(wish.event)
        budgets = [one.budget.gpu_ms * 1000 for one in map(self.project, names) if one.budget is not None]
        if cost and any(self.charge(wish.event) * walltime_ms > budget for budget in budgets):
            return False
        return not cost or not qos.must_be_in_quota or self.is_covered(self.payer(names), wish, used)

    def payer(self, path: list[str]) -> str:
        """Whose guarantee counts for a class that never borrows."""
        return [name for name in path if self.has_a_usual_guarantee(name) or name == path[0]][-1]

    def rule_of_cells(self, event: ev.RequestSubmitted, field: str) -> Any:
        """What a project says of its cells, or the one that it is in."""
        rules = (getattr(project, field) for project in map(self.project, reversed(self.path(event.project))))
        return next((rule for rule in rules if rule is not None), None)

    def walltime_ms(self, event: ev.RequestSubmitted) -> int:
        longest_ms = self.qos(event.qos).walltime_ms
        return event.walltime_ms or min(longest_ms, self.rule_of_cells(event, "walltime_ms") or longest_ms)

    def allowance(self, project: str, user: str, kind: str) -> int:
        """What the user may have there beyond the rules for everybody."""
        return max((getattr(one, kind) for one in self.allowances(project, user)), default=0)

    def allowances(self, project: str, user: str) -> list[Allowance]:
        home = self.project(project).parent if self.project(project).users else project
        mine = [one.allowance for one in self.allowed.values() if (one.project, one.user) == (home or project, user)]
        return [one for one in mine if one.until_ms > self.now_ms]

    def user_limit(self, project: str, user: str) -> int | None:
        limit = self.project(project).user_limit_milli
        return None if limit is None else max(limit, 1000 * self.allowance(project, user, "gpus"))

    def is_too_long(self, event: ev.RequestSubmitted) -> bool:
        longest_ms = max(self.qos(event.qos).walltime_ms, self.allowance(event.project, event.user, "walltime_ms"))
        return (event.walltime_ms or 0) > longest_ms

    def drop_allowances(self) -> set[tuple[str, str]]:
        """Who waits, and may not without what has ended, is to be refused."""
        over = {name: one for name, one in self.allowed.items() if one.allowance.until_ms <= self.now_ms}
        users = {one.user for one in over.values()}
        self.allowed = {name: one for name, one in self.allowed.items() if name not in over}
        mine = {name: wish for name, wish in self.wishes.items() if wish.event.user in users}
        return {
            ("refuse", name)
            for name, wish in mine.items()
            if self.is_too_long(wish.event) or not self.could_be_allowed(wish)
        }

    def breaks_a_rule(self, event: ev.RequestSubmitted) -> bool:
        """Whether its project, or its class of service, does not let a cell ask for this."""
        own = self.rule_of_cells(event, "qos")
        most = [self.rule_of_cells(event, "gpus_per_cell"), self.qos(event.qos).gpus_per_cell]
        most = [one if one is None else max(one, self.allowance(event.project, event.user, "gpus")) for one in most]
        alone = [one.gpus for one in self.allowances(event.project, event.user) if one.is_exclusive]
        if event.is_exclusive and not self.qos(event.qos).can_be_exclusive and max(alone, default=0) < event.gpus:
            return True
        longest_ms = self.rule_of_cells(event, "walltime_ms")
        if longest_ms is not None:
            longest_ms = max(longest_ms, self.allowance(event.project, event.user, "walltime_ms"))
        return (
            (own is not None and event.qos not in own)
            or any(one is not None and event.gpus > one for one in most)
            or (longest_ms is not None and (event.walltime_ms or 0) > longest_ms)
        )

    def is_beyond_rules(self, lease: Tenancy) -> bool:
        """Whether its session, if it is hot, could begin a cell that nobody may ask for now."""
        if self.qos(lease.qos) is None:
            return False
        gpus = len(lease.slots) if self.cost_of(lease) else 0
        next_one = ev.RequestSubmitted(
            "", "", lease.session, lease.user, lease.project, lease.qos, gpus, lease.walltime_ms,
            is_exclusive=lease.is_exclusive,
        )  # fmt: skip
        return self.is_too_long(next_one) or self.breaks_a_rule(next_one)

    def could_be_allowed(self, wish: Wish) -> bool:
        """Whether it might run if nobody else did, nothing was spent, and its class hours had come."""
        if self.awaited_until_ms is not None and not any(self.holds(offer, wish.event) for offer in self.shown):
            return not self.breaks_a_rule(wish.event)  # what it costs depends on nodes that are to come back
        self.hopes = True
        try:
            return self.is_allowed(wish, {})
        finally:
            self.hopes = False

    def is_covered(self, name: str, wish: Wish, used: dict[tuple[str, ...], int]) -> bool:
        return used.get(("project", name), 0) + self.cost(wish.event) <= self.promised(name)

    def use_before(self, who: tuple[str, ...]) -> Fraction:
        """What was used in the past: half of it after a week, by the hour. Histories begin at 0."""
        return Fraction(sum(amount * weight(at_ms) for amount, at_ms in self.past.get(who, [])), weight(self.now_ms))

    def count_budgets(self, now_ms: int) -> None:
        """What running cells have used of budgets up to now: afresh in each period."""
        used: dict[tuple[str, ...], int] = {}
        for lease in self.leases.values():
            if lease.state in ("granted", "busy", "reclaiming"):
                self.add(used, self.who(lease), self.charge_of(lease), 1)
        for project in self.settings.projects:
            if project.budget is not None:
                began_ms = PERIOD[project.budget.period](now_ms)
                if self.now_ms < began_ms:
                    self.spent[project.id] = 0
                passed_ms = now_ms - max(began_ms, self.now_ms)
                now = self.spent.get(project.id, 0) + used.get(("project", project.id), 0) * passed_ms
                self.spent[project.id] = now

    def note_use(self, lease: Tenancy) -> None:
        """A cell is over."""
        if lease.state in ("busy", "reclaiming"):
            percent = self.qos(lease.qos).usage_percent if self.qos(lease.qos) else 100
            amount = self.charge_of(lease) * (self.now_ms - lease.busy_ms) * percent // 100
            for who in [*(("project", name) for name in self.path(lease.home)), ("user", lease.home, lease.user)]:
                self.past.setdefault(who, []).append((amount, self.now_ms))
        lease.busy_ms = self.now_ms

    # The game

    def see(self, event: ev.Event, actions: list[act.Action], now_ms: int) -> None:
        due = self.note(event, now_ms)
        for action in actions:
            match action:
                case act.Grant():
                    due.discard(("repeat", action.request))
                    self.see_grant(event, action, now_ms)
                case act.Refuse():
                    self.see_refuse(event, action, due)
                case act.Evict():
                    self.see_evict(event, action, due, now_ms)
                case act.Reclaim() | act.Pause():
                    self.see_reclaim(action, due, now_ms)
                case act.EndLease():
                    self.see_end(action, due)
        assert not due, f"these things had to be said and were not: {due}"
        self.after(now_ms)

    def note(self, event: ev.Event, now_ms: int) -> set[tuple[str, str]]:
        """Take the fact into the books. What comes back must be said by the actions."""
        due: set[tuple[str, str]] = set()
        self.count += 1
        self.count_budgets(now_ms)
        self.credits.count(self, now_ms)
        self.now_ms = now_ms
        self.place_anew()
        if any(one.windows for one in self.settings.projects):  # the last ones may be over
            due |= {("refuse", name) for name, wish in self.wishes.items() if not self.could_be_allowed(wish)}
        self.drain_what_is_due(now_ms)
        due |= self.drop_allowances() | self.stop_awaiting()
        match event:
            case ev.NodesAwaited():
                self.awaited = set(event.nodes) - {offer.node for offer in self.offers.values()}
                self.awaited_until_ms = event.until_ms if self.awaited else None
            case ev.AllowanceChanged():
                self.allowed[event.name] = event
                due |= self.drop_allowances()
                for name, wish in self.wishes.items():  # it may be less than before
                    if wish.event.user == event.user and (
                        self.is_too_long(wish.event) or not self.could_be_allowed(wish)
                    ):
                        due.add(("refuse", name))
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
                    self.leases[name].begun_ms, self.leases[name].home = now_ms - h.running_ms, h.project
                    self.leases[name].project = self.place_of_held(h, was)
                    self.leases[name].prices = was.prices if was and h.cell == was.cell else self.settings.prices
                    self.leases[name].cpus, self.leases[name].memory_bytes = h.cpus, h.memory_bytes
                    self.leases[name].walltime_ms = h.walltime_ms
                    self.leases[name].is_exclusive = h.is_exclusive or bool(was and was.is_exclusive)
                    self.leases[name].hot_since = was.hot_since if was and was.hot_since else self.count
                    if was:
                        self.leases[name].age = was.age
                        self.leases[name].gpu_type = was.gpu_type
                        self.leases[name].gpu_memory_bytes = was.gpu_memory_bytes
                        self.leases[name].since_ms, self.leases[name].grant = was.since_ms, was.grant
                self.awaited.discard(event.node)
                due |= self.stop_awaiting() | self.hopeless()
            case ev.AgentLost():
                for name in [name for name, lease in self.leases.items() if lease.agent == event.agent]:
                    due.add(("end", name))
                    self.note_use(self.leases[name])
                    del self.leases[name]
                self.nodes.pop(event.agent, None)
                self.offers.pop(event.agent, None)
            case ev.NodeDrained():
                self.drained = (self.drained | {event.agent}) if event.is_drained else self.drained - {event.agent}
                self.planned.pop(event.agent, None)
            case ev.DrainPlanned():
                self.drained -= {event.agent}
                self.planned[event.agent] = event.at_ms
                self.drain_what_is_due(now_ms)
            case ev.RequestSubmitted():
                due |= self.note_submit(event)
            case ev.SettingsChanged():
                self.settings = event.settings
                self.place_anew()
                for name, wish in self.wishes.items():
                    qos = self.qos(wish.event.qos)
                    if qos is None or self.is_too_long(wish.event) or not self.could_be_allowed(wish):
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
            case ev.RequestHeld():
                self.on_hold.add(event.request)
            case ev.RequestReleased():
                self.on_hold.discard(event.request)
            case ev.CellRequeued():
                lease = self.leases.get(event.lease)
                if lease and lease.state == "busy" and self.qos(lease.qos):
                    due.add(("requeue", event.lease))
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
                    if lease.state != "granted":
                        lease.prices = self.settings.prices
                    lease.state, lease.cell, lease.begun_ms = "busy", event.cell, now_ms
            case ev.CellEnded():
                lease = self.leases.get(event.lease)
                if lease:
                    self.ages.ended(lease, event.cell)
                if lease and lease.state == "reclaiming" and lease.cell == event.cell:
                    self.note_use(lease)
                    lease.state, lease.asked_ms = "leaving", now_ms
                    self.place_anew()
                    if lease.is_pausing:  # nobody has told its agent to free the slots
                        due.add(("evict", event.lease))
                elif lease and ((lease.state == "busy" and lease.cell == event.cell) or lease.state == "granted"):
                    self.note_use(lease)
                    lease.state, lease.cell, lease.hot_since = "hot", None, self.count
                    self.place_anew()
            case ev.PauseDeclined():
                lease = self.leases.get(event.lease)
                if lease and lease.state == "reclaiming" and lease.is_pausing:
                    lease.is_pausing = False
                    due.add(("reclaim", event.lease))
            case ev.LeaseEnded():
                if event.lease in self.leases:
                    self.note_use(self.leases.pop(event.lease))
        return due

    def drain_what_is_due(self, now_ms: int) -> None:
        due = {agent for agent, at_ms in self.planned.items() if at_ms <= now_ms}
        self.drained |= due
        self.planned = {agent: at_ms for agent, at_ms in self.planned.items() if agent not in due}

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
            or self.is_too_long(event)
            or self.never_fits(event)
            or not self.could_be_allowed(Wish(event, (0, 0)))
            or (len(mine) >= qos.queued_per_user and not self.ages.is_expected(event.session, self.now_ms))
        ):
            self.wishes[event.request] = Wish(event, (0, 0))
            return {("refuse", event.request)}
        user = ("user", self.place(event.project, event.user), event.user)
        used_ms = int(self.use_before(user)) // 1000
        number = self.amounts("granted", "busy").get(user, 0) // 1000 + sum(
            (wish.event.project, wish.event.user) == (event.project, event.user) and name != earlier
            for name, wish in self.wishes.items()
            if wish.event.session not in {lease.session for lease in self.leases.values()}
        )
        due = (self.now_ms + min(10 * 60_000, used_ms // 60) + number * self.settings.apart_ms) // 10_000
        due, number = self.ages.asked(event, self.now_ms) or (due, self.count)
        walltime_ms = self.walltime_ms(event)
        self.wishes[event.request] = Wish(event, (-qos.priority, number), walltime_ms, due, self.now_ms)
        self.on_hold.discard(event.request)  # said before it came, it was of nothing
        return {("refuse", earlier)} if earlier else set()

    def never_fits(self, asked: ev.RequestSubmitted) -> bool:
        if self.awaited_until_ms is not None:
            return False
        return any(self.largest.values()) and not any(self.holds(offer, asked) for offer in self.shown)

    def hopeless(self) -> set[tuple[str, str]]:
        found = [
            name for name, one in self.wishes.items() if self.never_fits(one.event) or not self.could_be_allowed(one)
        ]
        return {("refuse", name) for name in found}

    def stop_awaiting(self) -> set[tuple[str, str]]:
        """Once all nodes are back, or their time is over, who could run on none is to be refused."""
        until_ms = self.awaited_until_ms
        if until_ms is None or (self.awaited and self.now_ms < until_ms):
            return set()
        self.awaited_until_ms = None
        return self.hopeless()

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
        need = max(1, asked.gpus)
        assert qos is not None
        assert grant.walltime_ms == self.walltime_ms(asked)
        assert not self.is_too_long(asked)
        assert (grant.lease, grant.session) == (asked.lease, asked.session)
        assert grant.request not in self.on_hold, f"{grant} of a request that is held"
        assert grant.agent in self.nodes, f"{grant} on a node that is not there"
        assert grant.agent not in self.drained, f"{grant} on a node that is being drained"
        over_ms = now_ms + self.settings.start_ms + grant.walltime_ms
        assert over_ms <= self.planned.get(grant.agent, over_ms), f"{grant} runs into a drain"
        assert len(set(grant.slots)) == len(grant.slots) == need, f"{grant} is not what was asked for"
        taken = self.taken(grant.agent)
        for slot in grant.slots:
            assert slot in self.serving(self.offers[grant.agent], asked), f"{grant}: {slot} is not what was asked for"
            assert slot not in taken, f"{slot} has two tenants: {taken[slot]} and {grant.lease}"
        assert self.would_fit(grant.agent, asked), f"{grant}: CPUs or memory have two tenants"
        owners = [name for name, lease in self.leases.items() if lease.session == grant.session]
        assert not owners, f"session {grant.session} has {owners} and gets another lease"
        held = self.amounts(*HOLDING)
        assert not self.cost(asked) or self.is_below_limits(wish, held), f"{grant.request} is above a limit"
        place = self.place(asked.project, asked.user)
        new = Tenancy(
            grant.session, grant.agent, grant.slots, "granted", now_ms, place, asked.user, asked.qos, now_ms,
            grant.request, grant=grant, age=(wish.due, wish.order[1]), cpus=asked.cpus, memory_bytes=asked.memory_bytes,
            gpu_type=asked.gpu_type, gpu_memory_bytes=asked.gpu_memory_bytes, walltime_ms=grant.walltime_ms,
            prices=self.settings.prices, home=asked.project, is_exclusive=asked.is_exclusive,
        )  # fmt: skip
        del self.wishes[grant.request]
        self.ended.add(grant.request)
        self.leases[grant.lease] = new

    def see_refuse(self, event: ev.Event, refuse: act.Refuse, due: set[tuple[str, str]]) -> None:
        assert refuse.request in self.wishes, f"{refuse} of a request that has ended"
        assert ("refuse", refuse.request) in due, f"{refuse} without a cause"
        due.discard(("refuse", refuse.request))
        assert str(refuse.reason).endswith("."), "a reason is a sentence"
        del self.wishes[refuse.request]
        self.ended.add(refuse.request)

    def see_evict(self, event: ev.Event, evict: act.Evict, due: set[tuple[str, str]], now_ms: int) -> None:
        lease = self.leases.get(evict.lease)
        assert lease is not None, f"{evict} of a lease that is over"
        asks_itself = any(wish.event.session == lease.session for wish in self.wishes.values())
        if ("evict", evict.lease) in due:
            due.discard(("evict", evict.lease))
            return
        match lease.state:
            case "granted":
                overdue = now_ms >= lease.since_ms + self.settings.start_ms
                withdrawn = isinstance(event, ev.RequestWithdrawn) and event.request == lease.request
                assert overdue or withdrawn or asks_itself, f"{evict} before its first cell could begin"
            case "hot":
                at_ms = self.planned.get(lease.agent, now_ms + lease.walltime_ms)
                is_drained = lease.agent in self.drained or now_ms + lease.walltime_ms > at_ms
                pays = any(self.project(name).budget is not None for name in self.path(lease.project))
                is_wanted = asks_itself or is_drained or pays or bool(self.wishes)
                assert is_wanted or not self.may_be_kept(lease), f"{evict} although nobody waits"
            case "leaving":
                assert now_ms >= lease.asked_ms + self.settings.ask_again_ms, f"{evict} asked twice at once"
            case _:
                raise AssertionError(f"{evict} of a lease that is {lease.state}")
        lease.state, lease.asked_ms = "leaving", now_ms
        self.place_anew()

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
        if ("requeue", reclaim.lease) in due:  # an admin wants it, and nobody else
            due.discard(("requeue", reclaim.lease))
            assert reclaim.grace_ms == qos.grace_ms
            lease.is_pausing = isinstance(reclaim, act.Pause)
            assert lease.is_pausing == (qos.preemption.value == "pause"), f"{reclaim} in QoS {qos.name}"
            lease.state, lease.asked_ms = "reclaiming", now_ms + qos.grace_ms
            self.ages.reclaimed(lease, now_ms)
            return
        assert qos.preemption.value != "never", f"{reclaim} of a QoS that is never preempted"
        assert now_ms >= lease.begun_ms + qos.min_runtime_ms, f"{reclaim} of a cell that has just begun"
        assert reclaim.grace_ms == qos.grace_ms
        lease.is_pausing = isinstance(reclaim, act.Pause)
        assert lease.is_pausing == (qos.preemption.value == "pause"), f"{reclaim} in QoS {qos.name}"
        assert lease.agent not in self.drained, f"{reclaim} on a node that is being drained"
        assert self.wishes, f"{reclaim} although nobody waits"
        lease.state, lease.asked_ms = "reclaiming", now_ms + qos.grace_ms
        self.ages.reclaimed(lease, now_ms)

    def see_end(self, end: act.EndLease, due: set[tuple[str, str]]) -> None:
        if ("end", end.lease) not in due:
            lease = self.leases.get(end.lease)
            assert lease is not None, f"{end} without a cause"
            assert lease.state == "ending", f"{end} without a cause"
        due.discard(("end", end.lease))

    def after(self, now_ms: int) -> None:
        """What must hold when the actions have been done."""
        for name, lease in self.leases.items():
            late = lease.state == "granted" and now_ms >= lease.since_ms + self.settings.start_ms
            assert not late, f"{name} was granted long ago, has no cell, and keeps its slots"
            assert lease.state != "hot" or lease.agent not in self.drained, f"{name} is hot on a node that is drained"
            if lease.state == "hot":
                assert not self.is_beyond_rules(lease), f"{name} could begin a cell that no rule and nobody allows"
                over_ms = now_ms + lease.walltime_ms
                assert over_ms <= self.planned.get(lease.agent, over_ms), f"{name} may run into a drain"
            if lease.state in ("hot", "granted"):
                asks = any(wish.event.session == lease.session for wish in self.wishes.values())
                assert not asks, f"{name} is kept although its session asks for another lease"
