"""A class and its hours, told step by step: what it gets, what others may use of it, and what is said to whom."""

from datetime import date

import msgspec

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, Reclaim
from gpu_worker.scheduler.policy.projects import Project
from tests.scheduler.bench import MINUTE, SETTINGS, evicted, granted, project, refused, slots
from tests.scheduler.coverage_watch import Watched
from tests.scheduler.timetable import hours, utc

HOUR = 60 * MINUTE
PATIENT = tuple(msgspec.structs.replace(one, share_after_ms=168 * HOUR) for one in SETTINGS.qos)
#: A Monday; clocks in Berlin are an hour ahead.
MONDAY = (2026, 1, 5)


class Week(Watched):
    """A pool at a time of the week, under watch."""

    def at(self, *when: int) -> list[Action]:
        """Let the time come, with a tick at each deadline before it."""
        until_ms, actions = utc(*when), list[Action]()
        while (due_ms := self.scheduler.deadline()) is not None and due_ms < until_ms:
            actions += self.later(due_ms - self.now_ms)
        return actions + self.later(until_ms - self.now_ms)


def week(*projects: Project, gpus: int = 2) -> Week:
    """A pool at midnight, UTC, before a Monday, where nothing is taken for a share alone."""
    pool = Week(*projects, qos=PATIENT)
    pool.now_ms = utc(*MONDAY)
    pool.join("a", slots(gpus))
    return pool


def reclaimed(actions: list[Action]) -> list[str]:
    return [one.lease for one in actions if isinstance(one, Reclaim)]


def test_when_class_hours_begin_who_waits_in_class_takes_its_gpu_back() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=2),)))
    pool.at(*MONDAY, 8, 50)
    pool.busy("guests.eve1", "guests.eve2")
    assert pool.wants("class.ann") == []
    assert pool.why("class.ann/1").in_quota is False
    assert reclaimed(pool.at(*MONDAY, 8, 59, 59)) == []
    assert pool.scheduler.deadline() == utc(*MONDAY, 9)
    assert reclaimed(pool.at(*MONDAY, 9)) == ["guests.eve1:1"]
    assert pool.why("class.ann/1").in_quota is True
    assert granted(pool.free("guests.eve1:1")) == ["class.ann:1"]
    assert pool.borrowed == ["guests.eve2:1"]
    pool.replay()


def test_what_a_class_does_not_use_of_its_hours_is_lent_and_comes_back_when_somebody_types() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=2),)))
    pool.at(*MONDAY, 9, 5)
    pool.busy("guests.eve1", "guests.eve2")
    assert reclaimed(pool.at(*MONDAY, 9, 10)) == []
    assert reclaimed(pool.ask("class.ann", project="class", user="ann")) == ["guests.eve1:1"]
    pool.replay()


def test_when_class_hours_end_what_runs_goes_on_as_borrowed_and_others_may_take_theirs_back() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=2),)), project("lab", guaranteed_milli=1000))
    pool.at(*MONDAY, 10, 50)
    pool.busy("class.ann", "class.bob")
    assert pool.borrowed == ["class.bob:1"]  # both together are guaranteed 3 of 2 GPUs, so each 2 thirds of it
    assert pool.wants("lab.eve") == []
    actions = pool.at(*MONDAY, 11)
    assert pool.borrowed == ["class.ann:1", "class.bob:1"]
    assert reclaimed(actions) == ["class.ann:1"]
    pool.replay()


def test_two_classes_have_the_same_gpus_one_after_the_other() -> None:
    pool = week(
        project("first", class_hours=(hours("Mon", "10:00", "12:00"),)),
        project("second", class_hours=(hours("Mon", "12:00", "14:00"),)),
    )
    pool.at(*MONDAY, 10, 50)
    pool.busy("first.ann", "first.bob")
    assert pool.wants("second.eve") == []
    assert pool.wants("second.tom") == []
    assert sorted(reclaimed(pool.at(*MONDAY, 11))) == ["first.ann:1", "first.bob:1"]
    assert granted([*pool.free("first.ann:1"), *pool.free("first.bob:1")]) == ["second.eve:1", "second.tom:1"]
    assert pool.borrowed == []
    assert pool.wants("first.ann", n=2) == []
    assert reclaimed(pool.at(*MONDAY, 12, 59, 59)) == []
    pool.replay()


def test_nothing_is_emptied_before_class_hours_and_what_is_hot_goes_first_in_them() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=2),)))
    pool.at(*MONDAY, 8, 50)
    pool.busy("guests.eve1", "guests.eve2")
    pool.end("guests.eve1:1")
    assert pool.at(*MONDAY, 9) == []
    assert evicted(pool.ask("class.ann", project="class", user="ann")) == ["guests.eve1:1"]


def test_a_class_has_its_hours_at_the_same_time_of_day_when_clocks_are_set_forward() -> None:
    pool = Week(project("class", class_hours=(hours("Sun Mon", "10:00", "11:00", 1),)))
    pool.now_ms = utc(2026, 3, 28, 12)
    pool.join("a", slots(1))
    turns = []
    for _ in range(4):
        due_ms = pool.scheduler.deadline()
        assert due_ms is not None
        pool.later(due_ms - pool.now_ms)
        turns.append(due_ms)
    assert turns == [utc(2026, 3, 29, 8), utc(2026, 3, 29, 9), utc(2026, 3, 30, 8), utc(2026, 3, 30, 9)]


def test_where_windows_overlap_the_larger_one_is_in_force() -> None:
    two = (hours("Mon", "10:00", "12:00", 1, name="lecture"), hours("Mon", "11:00", "13:00", 2, name="lab"))
    pool = week(project("class", guaranteed_milli=1500, class_hours=two))
    promised = []
    for hour in (8, 9, 10, 11, 12):
        pool.at(*MONDAY, hour, 30)
        promised.append(pool.scheduler.state.accounts.by_id["class"].guaranteed)  # type: ignore[index]
    assert promised == [1500, 1500, 2000, 2000, 1500]


def test_a_department_is_guaranteed_what_its_classes_have_in_their_hours() -> None:
    pool = week(project("school"), project("class", "school", class_hours=(hours("Mon", gpus=2),)))
    pool.at(*MONDAY, 8, 50)
    pool.busy("guests.eve1", "guests.eve2")
    assert pool.wants("class.ann") == []
    assert reclaimed(pool.at(*MONDAY, 9)) == ["guests.eve1:1"]
    assert pool.scheduler.state.accounts.by_id["school"].guaranteed == 2000  # type: ignore[index]


def test_what_may_never_borrow_waits_for_class_hours_and_is_told_when_they_begin() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=1),)))
    assert pool.wants("class.ann", qos="reserved") == []
    assert pool.why("class.ann/1").wait_ms == 9 * HOUR
    assert pool.why("class.ann/1").reason == (
        "QoS 'reserved' never borrows, and the class hours of project 'class' begin at 10:00 Europe/Berlin, in 9 h"
    )
    assert refused(pool.ask("class.bob", project="class", qos="reserved", gpus=2)) == {
        "class.bob/1": "2 GPUs were asked for in QoS 'reserved', which never borrows, and project 'class' has "
        "1 GPU guaranteed. Choose another QoS with --qos, or another project with --project."
    }
    assert granted(pool.at(*MONDAY, 9)) == ["class.ann:1"]
    pool.replay()


def test_a_static_quota_may_be_for_class_hours_alone() -> None:
    pool = week(project("class", can_borrow=False, class_hours=(hours("Wed", gpus=1),)))
    assert pool.wants("class.ann") == []
    assert pool.why("class.ann/1").reason == (
        "project 'class' uses 0 of 0 GPUs that it may use; the class hours of project 'class' begin on Wed at 10:00 "
        "Europe/Berlin, in 2 days"
    )
    assert granted(pool.at(2026, 1, 7, 9)) == ["class.ann:1"]
    pool.start("class.ann:1")
    assert evicted(pool.at(2026, 1, 7, 11)) == []
    assert pool.borrowed == ["class.ann:1"]
    assert pool.wants("class.bob") == []


def test_what_waits_for_class_hours_that_never_come_again_is_refused() -> None:
    last = hours("Mon", gpus=1, last=date(*MONDAY))
    pool = week(project("class", class_hours=(last,)))
    pool.at(*MONDAY, 9, 30)
    pool.busy("class.ann", qos="reserved")
    assert pool.wants("class.bob", qos="reserved") == []
    assert refused(pool.at(*MONDAY, 10, 59, 59)) == {}
    told = refused(pool.at(*MONDAY, 11))
    assert told == {
        "class.bob/1": "1 GPU was asked for in QoS 'reserved', which never borrows, and project 'class' has "
        "0 GPUs guaranteed. Choose another QoS with --qos, or another project with --project."
    }
    assert list(refused(pool.ask("class.tom", project="class", qos="reserved"))) == ["class.tom/1"]
    assert pool.scheduler.state.accounts.turns_ms is None


def test_who_waits_shortly_before_class_hours_is_told_of_them() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=1),)), project("club", class_hours=(hours("Wed"),)))
    pool.at(*MONDAY, 8, 30)
    pool.busy("guests.eve1", "guests.eve2")
    assert pool.wants("class.ann") == []
    assert pool.wants("club.bob") == []
    assert pool.why("class.ann/1").reason == (
        "the class hours of project 'class' begin at 10:00 Europe/Berlin, in 30 min; until then all 2 GPUs are busy"
    )
    assert pool.why("club.bob/1").reason == "all 2 GPUs are busy; 1 request is before yours"
    pool.at(*MONDAY, 9)
    assert pool.why("class.ann/1").reason == "a GPU is being freed for you"


def test_class_hours_that_come_with_new_settings_hold_at_once() -> None:
    pool = week(project("class"))
    pool.at(*MONDAY, 9, 30)
    pool.busy("guests.eve1", "guests.eve2")
    assert pool.wants("class.ann") == []
    pool.later(2 * MINUTE)
    more = (project("class", class_hours=(hours("Mon", gpus=1),)),)
    settings = msgspec.structs.replace(SETTINGS, projects=more, qos=PATIENT)
    assert reclaimed(pool.say(ev.SettingsChanged(settings))) == ["guests.eve1:1"]
    assert pool.scheduler.deadline() is not None
    pool.replay()


def test_a_lender_keeps_back_what_its_class_hours_promise() -> None:
    pool = week(project("class", lending_limit_milli=1000, class_hours=(hours("Mon", gpus=2),)))
    pool.at(*MONDAY, 8)
    pool.busy("guests.eve1")
    pool.free("guests.eve1:1")
    pool.at(*MONDAY, 9)
    pool.busy("guests.eve2")
    assert pool.wants("guests.eve3") == []
    assert pool.why("guests.eve3/1").reason == "1 GPU is kept for projects that lend no more"
    assert granted(pool.at(*MONDAY, 11)) == ["guests.eve3:1"]


def test_who_waits_until_a_lender_has_its_hours_behind_it_is_told_until_when() -> None:
    pool = week(project("class", lending_limit_milli=0, class_hours=(hours("Mon", gpus=2),)))
    pool.at(*MONDAY, 9)
    assert pool.wants("guests.eve") == []
    said = pool.why("guests.eve/1")
    assert said.reason == (
        "2 GPUs are kept for projects that lend no more; the class hours of project 'class' end at 12:00 "
        "Europe/Berlin, in 2 h"
    )
    assert said.wait_ms == 2 * HOUR
    assert granted(pool.at(*MONDAY, 11)) == ["guests.eve:1"]


def test_a_class_earns_credits_for_what_it_lends_in_its_hours_alone() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=2),)))
    pool.at(*MONDAY, 8, 50)
    pool.busy("guests.eve1", "guests.eve2", qos="batch")
    pool.at(*MONDAY, 12, 30)
    counted = pool.scheduler.state.accounts.credits(project("class").id)
    assert (counted.earned, counted.spent) == (4 * HOUR, 0)


def test_who_waits_for_class_hours_waits_no_longer_than_until_they_begin_and_the_grace() -> None:
    pool = week(project("class", class_hours=(hours("Mon", gpus=1),)))
    pool.at(*MONDAY, 8, 50)
    pool.busy("guests.eve1", "guests.eve2")
    assert pool.wants("guests.tom") == []
    assert pool.wants("class.ann") == []
    assert pool.wants("class.bob") == []
    grace_ms = 20_000
    assert pool.why("class.ann/1").wait_ms == 10 * MINUTE + grace_ms
    assert pool.why("class.bob/1").wait_ms == 30 * MINUTE  # borrows, and has less of the surplus than the guests
    assert pool.why("guests.tom/1").wait_ms == 60 * MINUTE  # who gave back asks again, and stands where it stood
    begin = "the class hours of project 'class' begin at 10:00 Europe/Berlin, in 10 min;"
    assert pool.why("class.bob/1").reason.startswith(begin)
    assert reclaimed(pool.at(*MONDAY, 9)) == ["guests.eve1:1"]


def test_who_waits_for_the_end_of_class_hours_is_told_of_it() -> None:
    pool = week(
        project("class", class_hours=(hours("Mon", gpus=2),)), project("lab", guaranteed_milli=1000), project("guests")
    )
    pool.at(*MONDAY, 10, 50)
    pool.busy("class.ann", "class.bob", qos="batch")
    assert pool.wants("lab.eve") == []
    assert pool.wants("lab.tom") == []
    said = pool.why("lab.eve/1")
    assert said.reason == (
        "the class hours of project 'class' end at 12:00 Europe/Berlin, in 10 min; until then project 'lab' uses 0 of "
        "1 guaranteed GPU, of which the pool can keep 0.666 GPUs for now; all 2 GPUs are busy"
    )
    assert said.wait_ms == 10 * MINUTE + 30_000
    assert pool.why("lab.tom/1").wait_ms == 10 * MINUTE + 30_000 + 30 * MINUTE
    assert pool.why("lab.tom/1").reason.endswith("; all 2 GPUs are busy; 1 request is before yours")
    assert [type(one).__name__ for one in pool.at(*MONDAY, 11)] == ["Pause"]
