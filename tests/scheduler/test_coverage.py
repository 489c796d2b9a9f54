"""In quota or borrowed: which leases a guarantee covers, told by hand and judged afresh after every event."""

from hypothesis import settings

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.bench import SETTINGS, project, slots
from tests.scheduler.coverage_watch import Watch, Watched
from tests.scheduler.history_machines import QUICK, ManyProjects, Pool, Timetable


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
    assert pool.watch.coverage.is_in_quota(pool.scheduler.state.accounts, hot)
    pool.busy("lab.bob")
    assert not pool.watch.coverage.is_in_quota(pool.scheduler.state.accounts, hot)


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
