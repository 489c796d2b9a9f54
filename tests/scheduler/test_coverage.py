"""In quota or borrowed: which leases a guarantee covers, told by hand and judged afresh after every event."""

from itertools import count

from hypothesis import settings

from bulletin.ids import LeaseId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.account import Account
from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.coverage import Coverage
from gpu_worker.scheduler.life import Phase
from gpu_worker.scheduler.projects import SchedulerSettings
from tests.scheduler.bench import SETTINGS, Bench, project, slots
from tests.scheduler.test_histories import QUICK, ManyProjects, Pool, Timetable
from tests.scheduler.test_quotas import Quotas


class Watch:
    """Follows a bench, and works out all of it again after each event."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self.borrowed: set[str] = set()  # as told, change by change
        self.starts: dict[LeaseId, tuple[int, int]] = {}
        self.numbers = count()

    def see(self, bench: Bench) -> None:
        state = bench.scheduler.state
        turned = self.coverage.follow(state)
        using = {
            lease.id: lease
            for lease in state.leases.values()
            if lease.phase in {Phase.GRANTED, Phase.BUSY, Phase.RECLAIMING} and lease.cost
        }
        assert all((name in self.borrowed) == is_in_quota for name, is_in_quota in turned.items()), "news is new"
        self.borrowed = {name for name in self.borrowed | set(turned) if name in using and not turned.get(name)}
        self.starts = {name: start for name, start in self.starts.items() if name in using}
        for name in state.touched:
            if name in using:
                self.starts.setdefault(name, (using[name].since_ms, next(self.numbers)))

        def left_over(account: Account) -> tuple[list[LeaseId], int]:
            """What stays uncovered in a project and inside it, and how much is covered there."""
            wanted = [name for name, lease in using.items() if lease.project == account.project.id]
            covered = 0
            for child in account.children.values():
                uncovered, inside = left_over(child)
                wanted += uncovered
                covered += inside
            rest = []
            for name in sorted(wanted, key=self.starts.__getitem__):
                fits = covered + using[name].cost <= account.guaranteed
                covered += using[name].cost if fits else 0
                rest += [] if fits else [name]
            assert covered <= account.guaranteed
            assert rest == [] or account.used > account.guaranteed, "who stays within a guarantee is in quota"
            return rest, covered

        expected = {name for top in state.accounts.top.values() for name in left_over(top)[0]}
        assert self.borrowed == expected
        for lease in state.leases.values():
            if lease.id in using:
                assert self.coverage.is_in_quota(state, lease) == (lease.id not in expected)


class Watched(Quotas):
    """A bench of quotas, under watch."""

    def __init__(self, *projects, **how) -> None:  # type: ignore[no-untyped-def]
        self.watch = Watch()
        super().__init__(*projects, **how)

    def say(self, event: ev.Event) -> list[Action]:
        actions = super().say(event)
        self.watch.see(self)
        return actions

    @property
    def borrowed(self) -> list[str]:
        return sorted(self.watch.borrowed)


def test_what_starts_beyond_the_guarantee_is_borrowed_until_something_before_it_ends() -> None:
    pool = Watched(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(4))
    pool.busy("lab.ann", "lab.bob", "lab.tom")
    assert pool.borrowed == ["lab.tom:1"]
    pool.end("lab.ann:1")
    assert pool.borrowed == []
    pool.start("lab.ann:1", "c2")
    assert pool.borrowed == ["lab.ann:1"]


def test_one_that_does_not_fit_leaves_the_guarantee_to_smaller_ones() -> None:
    pool = Watched(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(8))
    pool.busy("lab.ann")
    pool.busy("lab.bob", gpus=2)
    pool.busy("lab.tom")
    assert pool.borrowed == ["lab.bob:1"]


def test_the_innermost_guarantee_covers_first_and_the_rest_is_for_all_inside() -> None:
    pool = Watched(
        project("school", guaranteed_milli=3000),
        project("maths", parent="school", guaranteed_milli=1000),
        project("physics", parent="school"),
    )
    pool.join("a", slots(8))
    pool.busy("physics.eve1", "physics.eve2", "physics.eve3")
    assert pool.borrowed == []
    pool.busy("maths.ann1")
    assert pool.borrowed == ["physics.eve3:1"]
    pool.busy("maths.ann2")
    assert pool.borrowed == ["maths.ann2:1", "physics.eve3:1"]
    pool.end("physics.eve1:1")
    assert pool.borrowed == ["maths.ann2:1"]


def test_other_guarantees_hold_for_what_runs_already() -> None:
    pool = Watched(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(4))
    pool.busy("lab.ann", "lab.bob", "guests.eve")
    assert pool.borrowed == ["guests.eve:1", "lab.bob:1"]
    more = (project("lab", parent="school"), project("school", guaranteed_milli=2000))
    pool.say(ev.SettingsChanged(SchedulerSettings(qos=SETTINGS.qos, projects=more)))
    assert pool.borrowed == ["guests.eve:1"]
    pool.say(ev.SettingsChanged(SchedulerSettings(qos=SETTINGS.qos)))
    assert pool.borrowed == ["guests.eve:1", "lab.ann:1", "lab.bob:1"]


def test_a_cpu_slot_beside_gpus_is_nobodys_loan() -> None:
    pool = Watched()
    pool.join("a", slots(1) + slots(1, "cpu"))
    pool.busy("guests.eve", gpus=0)
    assert pool.borrowed == []


def test_a_hot_session_would_be_covered_where_there_is_room() -> None:
    pool = Watched(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(2))
    pool.busy("lab.ann")
    pool.end("lab.ann:1")
    (hot,) = pool.scheduler.state.leases.values()
    assert pool.watch.coverage.is_in_quota(pool.scheduler.state, hot)
    pool.busy("lab.bob")
    assert not pool.watch.coverage.is_in_quota(pool.scheduler.state, hot)


class Watching(Pool):
    """Random histories, under watch."""

    def __init__(self) -> None:
        super().__init__()
        watch, say = Watch(), self.bench.say

        def watched(event: ev.Event) -> list[Action]:
            actions = say(event)
            watch.see(self.bench)
            return actions

        self.bench.say = watched  # type: ignore[method-assign]


class WatchedPool(Watching, ManyProjects):
    """Of projects."""


class WatchedTimetable(Watching, Timetable):
    """Of projects with class hours."""


TestWatched = WatchedPool.TestCase
TestWatched.settings = settings(QUICK, max_examples=30)
TestWatchedTimetable = WatchedTimetable.TestCase
TestWatchedTimetable.settings = settings(QUICK, max_examples=30)
