"""Knows what holds after each step, whoever is next: tenants, limits, refusals, and how agents are asked.

Who is next, who waits how long and what is taken back is judged in `tests/scheduler/promises`.

It keeps books of its own, and raises AssertionError with a sentence at the first promise that is broken.
"""

from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.fact_book import Due, FactBook
from tests.scheduler.tenancy import HOLDING, Tenancy


class Referee:
    def __init__(self, settings: SchedulerSettings) -> None:
        self.facts = FactBook(settings)
        self.pool, self.projects = self.facts.pool, self.facts.projects
        self.rules, self.limits = self.facts.rules, self.facts.limits

    def see(self, event: ev.Event, actions: list[act.Action], now_ms: int) -> None:
        due = self.facts.note(event, now_ms)
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

    def see_grant(self, event: ev.Event, grant: act.Grant, now_ms: int) -> None:
        if grant.request not in self.facts.wishes:
            lease = self.pool.leases.get(grant.lease)
            asked_again = isinstance(event, ev.RequestSubmitted) and event.request == grant.request
            assert asked_again, f"{grant} for a request that has ended"
            assert lease is not None, f"{grant} repeated for a lease that is over"
            assert lease.grant == grant, f"{grant} repeated, but changed"
            assert lease.state == "granted", f"{grant} repeated although its cell has begun"
            return
        wish = self.facts.wishes[grant.request]
        asked, qos = wish.event, self.projects.qos(wish.event.qos)
        need = max(1, asked.gpus)
        assert qos is not None
        assert grant.walltime_ms == self.rules.walltime_ms(asked)
        assert not self.rules.is_too_long(asked)
        assert (grant.lease, grant.session) == (asked.lease, asked.session)
        assert grant.request not in self.facts.on_hold, f"{grant} of a request that is held"
        assert grant.agent in self.pool.offers, f"{grant} on a node that is not there"
        assert grant.agent not in self.pool.drained, f"{grant} on a node that is being drained"
        over_ms = now_ms + self.projects.settings.start_ms + grant.walltime_ms
        assert over_ms <= self.pool.planned.get(grant.agent, over_ms), f"{grant} runs into a drain"
        assert len(set(grant.slots)) == len(grant.slots) == need, f"{grant} is not what was asked for"
        taken = self.pool.taken(grant.agent)
        for slot in grant.slots:
            assert slot in self.pool.serving(self.pool.offers[grant.agent], asked), (
                f"{grant}: {slot} is not what was asked for"
            )
            assert slot not in taken, f"{slot} has two tenants: {taken[slot]} and {grant.lease}"
        assert self.pool.fits(grant.agent, asked), f"{grant}: CPUs or memory have two tenants"
        owners = [name for name, lease in self.pool.leases.items() if lease.session == grant.session]
        assert not owners, f"session {grant.session} has {owners} and gets another lease"
        held = self.projects.amounts(*HOLDING)
        assert not self.pool.cost(asked) or self.limits.is_below_limits(asked, held), (
            f"{grant.request} is above a limit"
        )
        place = self.projects.place(asked.project, asked.user)
        new = Tenancy(
            grant.session, grant.agent, grant.slots, "granted", now_ms, place, asked.user, asked.qos, now_ms,
            grant.request, grant=grant, age=(wish.due, wish.order[1]), cpus=asked.cpus, memory_bytes=asked.memory_bytes,
            gpu_type=asked.gpu_type, gpu_memory_bytes=asked.gpu_memory_bytes, walltime_ms=grant.walltime_ms,
            prices=self.projects.settings.prices, home=asked.project, is_exclusive=asked.is_exclusive,
        )  # fmt: skip
        del self.facts.wishes[grant.request]
        self.pool.leases[grant.lease] = new

    def see_refuse(self, event: ev.Event, refuse: act.Refuse, due: Due) -> None:
        assert refuse.request in self.facts.wishes, f"{refuse} of a request that has ended"
        assert ("refuse", refuse.request) in due, f"{refuse} without a cause"
        due.discard(("refuse", refuse.request))
        assert str(refuse.reason).endswith("."), "a reason is a sentence"
        del self.facts.wishes[refuse.request]

    def see_evict(self, event: ev.Event, evict: act.Evict, due: Due, now_ms: int) -> None:
        lease = self.pool.leases.get(evict.lease)
        assert lease is not None, f"{evict} of a lease that is over"
        asks_itself = any(wish.event.session == lease.session for wish in self.facts.wishes.values())
        if ("evict", evict.lease) in due:
            due.discard(("evict", evict.lease))
            return
        match lease.state:
            case "granted":
                overdue = now_ms >= lease.since_ms + self.projects.settings.start_ms
                withdrawn = isinstance(event, ev.RequestWithdrawn) and event.request == lease.request
                assert overdue or withdrawn or asks_itself, f"{evict} before its first cell could begin"
            case "hot":
                at_ms = self.pool.planned.get(lease.agent, now_ms + lease.walltime_ms)
                is_drained = lease.agent in self.pool.drained or now_ms + lease.walltime_ms > at_ms
                pays = any(self.projects.project(name).budget is not None for name in self.projects.path(lease.project))
                is_wanted = asks_itself or is_drained or pays or bool(self.facts.wishes)
                assert is_wanted or not self.limits.may_be_kept(lease), f"{evict} although nobody waits"
            case "leaving":
                assert now_ms >= lease.asked_ms + self.projects.settings.ask_again_ms, f"{evict} asked twice at once"
            case _:
                raise AssertionError(f"{evict} of a lease that is {lease.state}")
        lease.state, lease.asked_ms = "leaving", now_ms
        self.projects.place_anew()

    def see_reclaim(self, reclaim: act.Reclaim | act.Pause, due: Due, now_ms: int) -> None:
        lease = self.pool.leases.get(reclaim.lease)
        assert lease is not None, f"{reclaim} of a lease that is over"
        qos = self.projects.qos(lease.qos)
        if ("reclaim", reclaim.lease) in due:  # it could not be paused
            assert isinstance(reclaim, act.Reclaim), f"{reclaim} asked again, and was declined"
            assert reclaim.grace_ms == (qos.grace_ms if qos else 0), f"{reclaim} without the whole grace"
            due.discard(("reclaim", reclaim.lease))
            lease.asked_ms = now_ms + reclaim.grace_ms
            return
        if lease.state == "reclaiming":
            assert isinstance(reclaim, act.Reclaim), f"{reclaim} asked twice"
            lease.is_pausing = False
            assert now_ms >= lease.asked_ms + self.projects.settings.ask_again_ms, f"{reclaim} asked twice at once"
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
            self.facts.ages.reclaimed(lease, now_ms)
            return
        assert qos.preemption.value != "never", f"{reclaim} of a QoS that is never preempted"
        assert now_ms >= lease.begun_ms + qos.min_runtime_ms, f"{reclaim} of a cell that has just begun"
        assert reclaim.grace_ms == qos.grace_ms
        lease.is_pausing = isinstance(reclaim, act.Pause)
        assert lease.is_pausing == (qos.preemption.value == "pause"), f"{reclaim} in QoS {qos.name}"
        assert lease.agent not in self.pool.drained, f"{reclaim} on a node that is being drained"
        assert self.facts.wishes, f"{reclaim} although nobody waits"
        lease.state, lease.asked_ms = "reclaiming", now_ms + qos.grace_ms
        self.facts.ages.reclaimed(lease, now_ms)

    def see_end(self, end: act.EndLease, due: Due) -> None:
        if ("end", end.lease) not in due:
            lease = self.pool.leases.get(end.lease)
            assert lease is not None, f"{end} without a cause"
            assert lease.state == "ending", f"{end} without a cause"
        due.discard(("end", end.lease))

    def after(self, now_ms: int) -> None:
        """What must hold when the actions have been done."""
        for name, lease in self.pool.leases.items():
            late = lease.state == "granted" and now_ms >= lease.since_ms + self.projects.settings.start_ms
            assert not late, f"{name} was granted long ago, has no cell, and keeps its slots"
            assert lease.state != "hot" or lease.agent not in self.pool.drained, (
                f"{name} is hot on a node that is drained"
            )
            if lease.state == "hot":
                assert not self.rules.is_beyond(lease), f"{name} could begin a cell that no rule and nobody allows"
                over_ms = now_ms + lease.walltime_ms
                assert over_ms <= self.pool.planned.get(lease.agent, over_ms), f"{name} may run into a drain"
            if lease.state in ("hot", "granted"):
                asks = any(wish.event.session == lease.session for wish in self.facts.wishes.values())
                assert not asks, f"{name} is kept although its session asks for another lease"
