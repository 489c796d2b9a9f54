"""The referee's book of facts: takes each of them in, in all books, and says what the scheduler has to say then."""

import msgspec

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.age_book import AgeBook
from tests.scheduler.credit_book import CreditBook
from tests.scheduler.limit_book import LimitBook
from tests.scheduler.pool_book import PoolBook
from tests.scheduler.project_book import ProjectBook
from tests.scheduler.rule_book import RuleBook
from tests.scheduler.tenancy import Tenancy, Wish
from tests.scheduler.use_book import UseBook

#: What must be said: refuse, repeat, requeue, reclaim, evict or end, and of which request or lease.
Due = set[tuple[str, str]]


class FactBook:
    """All that the referee knows."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self.pool = PoolBook()
        self.projects = ProjectBook(settings, self.pool)
        self.rules = RuleBook(self.projects)
        self.limits = LimitBook(self.projects, self.rules)
        self.use = UseBook(self.projects)
        self.credits, self.ages = CreditBook(self.projects), AgeBook()
        self.wishes: dict[str, Wish] = {}
        self.on_hold: set[str] = set()  # requests
        self.count = 0

    def note(self, event: ev.Event, now_ms: int) -> Due:
        self.count += 1
        self.use.count_budgets(now_ms)
        self.credits.count(now_ms)
        self.projects.now_ms = now_ms
        self.projects.place_anew()
        has_hours = any(one.windows for one in self.projects.settings.projects)
        due = self.in_vain() if has_hours else set()  # the last ones may be over
        self.pool.drain_what_is_due(now_ms)
        due |= self.in_vain(of=self.rules.drop_allowances()) | self.stop_awaiting()
        match event:
            case ev.RequestSubmitted():
                due |= self.submitted(event)
            case ev.RequestWithdrawn():
                self.wishes.pop(event.request, None)
            case ev.RequestMoved():
                self.moved(event)
            case ev.RequestHeld():
                self.on_hold.add(event.request)
            case ev.RequestReleased():
                self.on_hold.discard(event.request)
            case ev.CellStarted():
                self.cell_started(event)
            case ev.CellEnded():
                due |= self.cell_ended(event)
            case ev.CellRequeued():
                lease = self.pool.leases.get(event.lease)
                if lease and lease.state == "busy" and self.projects.qos(lease.qos):
                    due.add(("requeue", event.lease))
            case ev.PauseDeclined():
                lease = self.pool.leases.get(event.lease)
                if lease and lease.state == "reclaiming" and lease.is_pausing:
                    lease.is_pausing = False
                    due.add(("reclaim", event.lease))
            case ev.LeaseEnded():
                if event.lease in self.pool.leases:
                    self.use.cell_over(self.pool.leases.pop(event.lease))
            case ev.AgentJoined():
                due |= self.agent_joined(event)
            case ev.AgentLost():
                due |= {("end", name) for name in self.leave(event.agent)}
                self.pool.offers.pop(event.agent, None)
            case ev.NodesAwaited():
                self.pool.awaited = set(event.nodes) - {offer.node for offer in self.pool.offers.values()}
                self.pool.awaited_until_ms = event.until_ms if self.pool.awaited else None
            case ev.NodeDrained():
                self.pool.drained -= {event.agent}
                self.pool.drained |= {event.agent} if event.is_drained else set()
                self.pool.planned.pop(event.agent, None)
            case ev.DrainPlanned():
                self.pool.drained -= {event.agent}
                self.pool.planned[event.agent] = event.at_ms
                self.pool.drain_what_is_due(now_ms)
            case ev.SettingsChanged():
                self.projects.settings = event.settings
                self.projects.place_anew()
                due |= self.in_vain()
                self.use.forget_budgets()
                self.credits.forget()
            case ev.AllowanceChanged():
                self.rules.allowed[event.name] = event
                due |= self.in_vain(of=self.rules.drop_allowances() | {event.user})  # it may be less than before
            case ev.UseRecalled():
                self.use.recalled(event)
                for past in event.credits:
                    self.credits.recall(past)
            case ev.UseRefunded():
                self.use.refunded(event)
        return due

    # Requests

    def in_vain(self, of: set[str] | None = None) -> Due:
        """Who waits, of these users or of all, and may never run: they are to be refused."""
        wishes = [one.event for one in self.wishes.values() if of is None or one.event.user in of]
        return {("refuse", asked.request) for asked in wishes if self.is_in_vain(asked)}

    def is_in_vain(self, asked: ev.RequestSubmitted) -> bool:
        return (
            self.projects.qos(asked.qos) is None
            or self.rules.is_too_long(asked)
            or self.pool.never_fits(asked)
            or not self.limits.could_be_allowed(asked)
        )

    def stop_awaiting(self) -> Due:
        """Once all nodes are back, or their time is over, who could run on none is to be refused."""
        until_ms = self.pool.awaited_until_ms
        if until_ms is None or (self.pool.awaited and self.projects.now_ms < until_ms):
            return set()
        self.pool.awaited_until_ms = None
        return self.in_vain()

    def submitted(self, event: ev.RequestSubmitted) -> Due:
        if event.request in self.wishes:
            return set()
        now_ms, leases = self.projects.now_ms, self.pool.leases.values()
        for lease in leases:
            if lease.session == event.session and lease.request == event.request:
                return {("repeat", event.request)} if lease.state == "granted" else set()
        earlier = next((name for name, wish in self.wishes.items() if wish.event.session == event.session), None)
        others = [wish.event for name, wish in self.wishes.items() if name != earlier]
        qos, mine = self.projects.qos(event.qos), [(one.user, one.qos) for one in others].count((event.user, event.qos))
        if self.is_in_vain(event) or (mine >= qos.queued_per_user and not self.ages.is_expected(event.session, now_ms)):
            self.wishes[event.request] = Wish(event, (0, 0))
            return {("refuse", event.request)}
        place = self.projects.place(event.project, event.user)
        user = "user", place, event.user
        used_ms = int(self.use.before(user)) // 1000
        have_leases = {lease.session for lease in leases}
        number = self.projects.amounts("granted", "busy").get(user, 0) // 1000 + sum(
            (one.project, one.user) == (event.project, event.user) and one.session not in have_leases for one in others
        )
        apart_ms = number * self.projects.settings.apart_ms
        due = (now_ms + min(10 * 60_000, used_ms // 60) + apart_ms) // 10_000
        due, number = self.ages.asked(event, now_ms) or (due, self.count)
        self.wishes[event.request] = Wish(event, (-qos.priority, number), self.rules.walltime_ms(event), due, now_ms)
        self.on_hold.discard(event.request)  # said before it came, it was of nothing
        return {("refuse", earlier)} if earlier else set()

    def moved(self, event: ev.RequestMoved) -> None:
        """It is the wish that it was, of another session and by another name."""
        wish = self.wishes.pop(event.request, None)
        if wish is not None:
            wish.event = msgspec.structs.replace(wish.event, request=event.to, session=event.session)
            self.wishes[event.to] = wish
        if event.request in self.on_hold:
            self.on_hold.add(event.to)

    # Cells

    def cell_started(self, event: ev.CellStarted) -> None:
        lease = self.pool.leases.get(event.lease)
        if not lease or lease.state == "ending" or lease.cell == event.cell:
            return
        self.use.cell_over(lease)
        if lease.state == "reclaiming":
            return
        now_ms = self.projects.now_ms
        self.ages.started(lease, now_ms, self.count)
        if lease.state != "granted":
            lease.prices = self.projects.settings.prices
        lease.state, lease.cell, lease.begun_ms = "busy", event.cell, now_ms

    def cell_ended(self, event: ev.CellEnded) -> Due:
        lease = self.pool.leases.get(event.lease)
        if not lease:
            return set()
        self.ages.ended(lease, event.cell)
        is_its_cell = lease.cell == event.cell
        if lease.state == "reclaiming" and is_its_cell:
            self.use.cell_over(lease)
            lease.state, lease.asked_ms = "leaving", self.projects.now_ms
            self.projects.place_anew()
            return (
                {("evict", event.lease)} if lease.is_pausing else set()
            )  # nobody has told its agent to free the slots
        if lease.state == "granted" or (lease.state == "busy" and is_its_cell):
            self.use.cell_over(lease)
            lease.state, lease.cell, lease.hot_since = "hot", None, self.count
            self.projects.place_anew()
        return set()

    # Agents

    def leave(self, agent: str) -> dict[str, Tenancy]:
        """Count what its leases have used up to now; they are no more."""
        gone = {name: lease for name, lease in self.pool.leases.items() if lease.agent == agent}
        for name, lease in gone.items():
            self.use.cell_over(lease)
            del self.pool.leases[name]
        return gone

    def agent_joined(self, event: ev.AgentJoined) -> Due:
        before = self.leave(event.agent)
        self.pool.joined(event)
        due = {("end", name) for name in before.keys() - {held.lease for held in event.held}}
        for held in event.held:
            was = before.get(held.lease)
            has_other = any(one.session == held.session and one.state != "ending" for one in self.pool.leases.values())
            lease = self.reported(event, held, was)
            if has_other or (was and was.state == "ending") or (was is None and self.has_asked_anew(held)):
                lease.state = "ending"
                due.add(("end", held.lease))
            self.pool.leases[held.lease] = lease
        self.pool.awaited.discard(event.node)
        return due | self.stop_awaiting() | self.in_vain()

    def has_asked_anew(self, held: ev.ReportedLease) -> bool:
        """Whether its notebook, which was told that it is over, has asked again since its cell began."""
        began_ms = self.projects.now_ms - held.running_ms
        asked = (one for one in self.wishes.values() if one.event.session == held.session)
        return held.cell is not None and any(one.since_ms > began_ms for one in asked)

    def reported(self, by: ev.AgentJoined, held: ev.ReportedLease, was: Tenancy | None) -> Tenancy:
        """What is known of a lease that an agent reports, and was known before."""
        now_ms, prices = self.projects.now_ms, self.projects.settings.prices
        lease = Tenancy(
            held.session, by.agent, held.slots, "busy" if held.cell else "hot", now_ms,
            self.projects.place_of_held(held, was), held.user, held.qos, now_ms, cell=held.cell, hot_since=self.count,
            begun_ms=now_ms - held.running_ms, cpus=held.cpus, memory_bytes=held.memory_bytes,
            walltime_ms=held.walltime_ms, prices=prices, is_exclusive=held.is_exclusive, home=held.project,
        )  # fmt: skip
        if was:
            if was.state == "granted" and not held.cell:
                lease.state = "granted"
            lease.request, lease.grant, lease.since_ms, lease.age = was.request, was.grant, was.since_ms, was.age
            lease.gpu_type, lease.gpu_memory_bytes = was.gpu_type, was.gpu_memory_bytes
            lease.is_exclusive |= was.is_exclusive
            lease.hot_since = was.hot_since or self.count
            lease.prices = was.prices if held.cell == was.cell else prices
        return lease
