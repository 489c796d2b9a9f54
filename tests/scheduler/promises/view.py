"""One moment as the promises see it: who uses what, who is covered, who may run, and where room can be had."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from bulletin.ids import AgentId, LeaseId, SlotId
from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.promises.books import Books, Machine, Tenancy, Waiting
from tests.scheduler.promises.budget_book import BudgetBook, budgets_of
from tests.scheduler.promises.coverage import covered_by, covering, is_borrowed_for
from tests.scheduler.promises.keep_time import is_kept_from, kept_sessions
from tests.scheduler.promises.shared_again import may_share
from tests.scheduler.promises.tree import Side

#: What is over so long before a planned drain is surely in time, with all graces; walltimes count in steps.
_SURELY_MS = 600_000
_Asked, _Answer = ParamSpec("_Asked"), TypeVar("_Answer")


def once(
    question: Callable[Concatenate["View", _Asked], _Answer],
) -> Callable[Concatenate["View", _Asked], _Answer]:
    """Have each view answer a question once: it is of one moment, and rules ask the same of it many times."""

    @functools.wraps(question)
    def answer(view: "View", /, *about: _Asked.args, **how: _Asked.kwargs) -> _Answer:
        key = (question, about, *how.items()) if how else (question, about)
        if key not in view.answers:
            view.answers[key] = question(view, *about, **how)
        found: _Answer = view.answers[key]
        return found

    return answer


class Place(NamedTuple):
    """A node on which a request can have its slots, and who would have to go."""

    agent: AgentId
    slots: tuple[SlotId, ...]
    leaving: tuple[Tenancy, ...]


class View:
    """Computed anew after each step. All amounts are in thousandths of a GPU."""

    def __init__(self, books: Books, budgets: BudgetBook) -> None:
        self.books, self.budgets, self.tree = books, budgets, books.tree
        self.answers: dict[object, Any] = {}  #: to what was asked `once`
        self.now_ms = books.now_ms
        self.used = books.used()
        self.there = books.there_milli()
        self.nominal = books.tree.guarantees(books.now_ms)
        self.guaranteed = books.tree.shrunk(books.now_ms, self.there)

    @functools.cached_property
    def covers(self) -> dict[LeaseId, Side]:
        """Whose guarantee covers each cell, with guarantees as they are in force."""
        return covering(self.books, self.guaranteed)

    @functools.cached_property
    def covers_nominally(self) -> dict[LeaseId, Side]:
        """Whose guarantee covers each cell, if guarantees never shrink."""
        return covering(self.books, self.nominal)

    @once
    def covered(self, request: Waiting) -> Side | None:
        """Find what covers a request; None is: it would borrow."""
        cost = self.books.most_cost(request.event)
        return covered_by(self.tree, request.event.project, cost, self.used, self.guaranteed)

    @once
    def covered_soon(self, request: Waiting, *, of_any: bool = False) -> Side | None:
        """Find what covers a request once cells of its own project have left that are being taken back; or `of_any`."""
        used = dict(self.used)
        for lease in self.books.leases.values():
            is_counted = of_any or lease.project == request.event.project
            if lease.is_using and lease.is_reclaimed and is_counted:
                for side in self.tree.chain(lease.project):
                    used[side] -= lease.cost
        return covered_by(self.tree, request.event.project, self.books.most_cost(request.event), used, self.guaranteed)

    def _covered_without_lower(self, request: Waiting) -> Side | None:
        """Find what would cover a request if cells of lower classes of its project borrowed, or were given back."""
        used, priority = dict(self.used), self.tree.qos[request.event.qos].priority
        for lease in self.books.leases.values():
            qos = self.tree.qos.get(lease.qos)
            is_lower = qos is not None and qos.priority < priority and qos.preemption is not Preemption.NEVER
            if lease.is_using and lease.project == request.event.project and is_lower:
                for side in self.tree.chain(lease.project):
                    used[side] -= lease.cost
        return covered_by(self.tree, request.event.project, self.books.most_cost(request.event), used, self.guaranteed)

    @once
    def may_be_covered(self, request: Waiting) -> Side | None:
        """Find what may cover a request by then: of a class that never borrows, beside lower ones that do (3)."""
        qos, covers = self.tree.qos.get(request.event.qos), self.covered_soon(request)
        if covers is None and qos is not None and qos.must_be_in_quota:
            return self._covered_without_lower(request)
        return covers

    @functools.cached_property
    def _users(self) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for lease in self.books.leases.values():
            if lease.is_using:
                for side in self.tree.chain(lease.project):
                    if not side.own_users:
                        key = (lease.user, side.project)
                        found[key] = found.get(key, 0) + lease.cost
        return found

    @functools.cached_property
    def _tenants(self) -> dict[AgentId, list[Tenancy]]:
        found: dict[AgentId, list[Tenancy]] = {}
        for lease in self.books.leases.values():
            found.setdefault(lease.agent, []).append(lease)
        return found

    def on_node(self, agent: AgentId) -> list[Tenancy]:
        """List the tenants of a node."""
        return self._tenants.get(agent, [])

    @functools.cached_property
    def kept(self) -> frozenset[LeaseId]:
        """Find the hot sessions that keep their GPUs from those who borrow."""
        return kept_sessions(self)

    @functools.cached_property
    def _sessions(self) -> set[str]:
        return {lease.session for lease in self.books.leases.values()}

    def user_use(self, user: str, project: str) -> int:
        """Compute what a user uses in a project with all inside it."""
        return self._users.get((user, project), 0)

    def _use_of_own(self, user: str, project: str) -> int:
        """Compute what a user uses in a project itself: projects inside it are sides of their own."""
        return self._own_uses.get((user, project), 0)

    @functools.cached_property
    def _own_uses(self) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for lease in self.books.leases.values():
            if lease.is_using:
                found[lease.user, lease.project] = found.get((lease.user, lease.project), 0) + lease.cost
        return found

    @functools.cached_property
    def _running(self) -> dict[tuple[str, str], int]:
        """How many leases each user has in a class."""
        found: dict[tuple[str, str], int] = {}
        for lease in self.books.leases.values():
            if lease.is_using:
                found[lease.user, lease.qos] = found.get((lease.user, lease.qos), 0) + 1
        return found

    @once
    def what_holds(self, request: Waiting, *, surely: bool = False, soon: bool = False) -> str | None:
        """Say which limit keeps the request from running now, hot sessions aside; None is: it may run.

        Where the page can be read in two ways, it may not run; if `surely`, it is held only where both ways say so.
        `soon` asks it of a class that never borrows once cells have left that are being taken back.
        """
        at = request.event
        if at.request in self.books.on_hold:
            return "it is held"
        qos = self.tree.qos.get(at.qos)
        if qos is None:
            return f"there is no class {at.qos!r}"
        if at.session in self._sessions:
            return "its session has a lease"
        mine = self._running.get((at.user, at.qos), 0)
        if qos.running_per_user is not None and mine >= qos.running_per_user:
            return f"{at.user} has {mine} leases in class {at.qos!r}"
        cost = self.books.most_cost(at)
        if cost == 0:
            return None
        if qos.must_be_in_quota and self.covered(request) != self.tree.chain(at.project)[0]:
            covers = self._covered_without_lower(request)
            if covers is None and soon:
                covers = self.covered_soon(request, of_any=True)
            if covers is None or not surely:
                return f"class {at.qos!r} never borrows"
        for side in self.tree.chain(at.project):
            project = self.tree.projects.get(side.project)
            if side.own_users or project is None:
                continue
            limit = self.tree.limit(side, self.nominal if surely else self.guaranteed)
            if limit is not None and (0 if surely else self.used.get(side, 0)) + cost > limit:
                return f"the limit of {side.project!r}"
            if surely and side.project != at.project:
                continue
            theirs = self._use_of_own(at.user, side.project) if surely else self.user_use(at.user, side.project)
            most = self.books.user_limit(side.project, at.user)
            if most is not None and theirs + cost > most:
                return f"the user limit of {side.project!r}"
        inside = {side.project for side in self.tree.chain(at.project)}
        for name in () if surely else budgets_of(self.tree):
            if name in inside and self.budgets.left(name) < cost * (request.walltime_ms + 60_000):
                return f"the budget of {name!r}"
        return None

    @once
    def why_taken(self, victim: Tenancy, request: Waiting, covers: Side | None) -> str | None:
        """Say by which promise the victim's slots can be had for the request; None is: they cannot."""
        if victim.is_hot:
            return None if is_kept_from(self, victim, request) else "hot"
        if victim.is_reclaimed or victim.is_over:
            return "leaves"
        qos, asked = self.tree.qos.get(victim.qos), self.tree.qos.get(request.event.qos)
        if qos is None or asked is None or qos.preemption is Preemption.NEVER:
            return None
        by = self.covers.get(victim.lease)
        if covers is not None and is_borrowed_for(self.tree, victim, by, request.event.project, covers):
            return "borrowed"
        if victim.project != request.event.project:
            return None
        if self.books.is_boosted(victim.project, victim.user) and not self.books.is_put_first(request):
            return None
        if qos.priority < asked.priority:
            return "lower class"
        if qos.priority == asked.priority and victim.user != request.event.user:
            cost = self.books.most_cost(request.event)
            theirs = self._use_of_own(victim.user, victim.project) - victim.cost
            has_waited = self.now_ms - request.since_ms >= asked.share_after_ms
            has_waited = has_waited and may_share(self.books, victim, request.event)
            if has_waited and theirs >= self._use_of_own(request.event.user, victim.project) + cost:
                return "fair part"
        return None

    def machines(self) -> list[Machine]:
        """List the nodes that may be given."""
        every = self.books.machines.values()
        return [machine for machine in every if machine.is_connected and machine.agent not in self.books.drained]

    @functools.cached_property
    def may_run_together(self) -> tuple[Waiting, ...]:
        """List requests that may run now, all of them at once, whoever else has the GPUs.

        Those that are covered come first to what a limit leaves, then the oldest.
        """
        used, users, classes = dict(self.used), dict[tuple[str, str], int](), dict[tuple[str, str], int]()
        budgets = {name: self.budgets.left(name) for name in budgets_of(self.tree)}
        found = []
        for request in sorted(self.books.waiting.values(), key=lambda one: self.covered(one) is None):
            if self.what_holds(request) is not None:
                continue
            at, cost = request.event, self.books.most_cost(request.event)
            qos = self.tree.qos[at.qos]
            mine = self._running.get((at.user, at.qos), 0) + classes.get((at.user, at.qos), 0)
            fits = qos.running_per_user is None or mine < qos.running_per_user
            needed = cost * (request.walltime_ms + 60_000)
            for side in self.tree.chain(at.project) if cost else ():
                limit = self.tree.limit(side, self.guaranteed)
                project = self.tree.projects.get(side.project)
                is_whole = project is not None and not side.own_users
                theirs = self.books.user_limit(side.project, at.user) if is_whole else None
                others = users.get((at.user, side.project), 0)
                fits &= limit is None or used.get(side, 0) + cost <= limit
                fits &= theirs is None or self.user_use(at.user, side.project) + others + cost <= theirs
                fits &= side.own_users or side.project not in budgets or budgets[side.project] >= needed
            if not fits:
                continue
            found.append(request)
            classes[at.user, at.qos] = classes.get((at.user, at.qos), 0) + 1
            for side in self.tree.chain(at.project):
                used[side] = used.get(side, 0) + cost
                if not side.own_users:
                    users[at.user, side.project] = users.get((at.user, side.project), 0) + cost
                    if side.project in budgets:
                        budgets[side.project] -= needed
        return tuple(found)

    @property
    def is_one_project(self) -> bool:
        """Whether all that run and wait are of one project."""
        names = {lease.project for lease in self.books.leases.values()}
        return len(names | {request.event.project for request in self.books.waiting.values()}) <= 1

    def demand(self, requests: Sequence[Waiting]) -> int:
        """Count the slots that covered requests want together, of each side no more than it is owed.

        Those of a class that never borrows want theirs, too, where cells of lower classes of their project borrow then.
        """
        wanted: dict[Side, int] = {}
        for request in requests:
            side = self.covered(request)
            if side is not None:
                wanted[side] = wanted.get(side, 0) + self.books.most_cost(request.event)
        owed = sum(
            -(-min(amount, self.guaranteed.get(side, 0) - self.used.get(side, 0)) // 1000)
            for side, amount in wanted.items()
        )
        return owed + sum(-(-self.books.most_cost(request.event) // 1000) for request in self._displacing)

    @functools.cached_property
    def _displacing(self) -> list[Waiting]:
        """List requests of classes that never borrow that may run since cells of lower classes borrow then."""
        classes = [(self.tree.qos.get(request.event.qos), request) for request in self.books.waiting.values()]
        firm = [request for qos, request in classes if qos is not None and qos.must_be_in_quota]
        return [one for one in firm if self.what_holds(one) is not None and self.what_holds(one, surely=True) is None]

    def slots_for(
        self, request: Waiting, machine: Machine, promises: tuple[str, ...], covers: Side | None
    ) -> tuple[tuple[SlotId, ...], tuple[Tenancy, ...]]:
        """Find what serves the request on a node, one by one, if those leave that one of the promises names."""
        at_ms = self.books.planned.get(machine.agent)
        if at_ms is not None and self.now_ms + 2 * request.walltime_ms + _SURELY_MS > at_ms:
            return (), ()
        if not self.books.is_of_size(request.event, machine):
            return (), ()
        tenants = self.on_node(machine.agent)
        taken: dict[SlotId, Tenancy] = {slot: lease for lease in tenants for slot in lease.slots}
        going = [lease for lease in tenants if self.why_taken(lease, request, covers) in promises]
        slots = tuple(
            name
            for name, slot in machine.slots.items()
            if self.books.matches(request.event, slot) and (name not in taken or taken[name] in going)
        )
        return slots, tuple(going)

    def place(self, request: Waiting, machine: Machine, promises: tuple[str, ...], covers: Side | None) -> Place | None:
        """Find what the request can have on a node, if those leave that one of the promises names, and only they."""
        at = request.event
        at_ms = self.books.planned.get(machine.agent)
        if at_ms is not None and self.now_ms + 2 * request.walltime_ms + _SURELY_MS > at_ms:
            return None  # it may be too late there by now
        slots, going = self.slots_for(request, machine, promises, covers)
        staying = [lease for lease in self.on_node(machine.agent) if lease not in going]
        has_cpus = not at.cpus or sum(lease.cpus for lease in staying) + at.cpus <= machine.cpus
        memory = sum(lease.memory_bytes for lease in staying) + at.memory_bytes
        has_memory = not at.memory_bytes or memory <= machine.memory_bytes
        if len(slots) < self.books.number(at) or not has_cpus or not has_memory:
            return None
        return Place(machine.agent, slots, going)
