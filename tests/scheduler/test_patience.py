"""Who has waited for long, and who had to give something back. Each told step by step."""

import msgspec

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Pause
from gpu_worker.scheduler.deferral import LATEST_MS
from gpu_worker.scheduler.policy.projects import Preemption
from tests.scheduler.bench import MINUTE, SETTINGS, granted, project, reclaimed, slots
from tests.scheduler.quota_bench import Quotas

KEPT = msgspec.structs.replace(SETTINGS.qos[0], name="kept", preemption=Preemption.NEVER)
HOUR = 60 * MINUTE


def full(*names: str, share_after_ms: int = 2 * MINUTE, **projects: int) -> Quotas:
    """Guests run a cell that nobody takes back on each GPU; projects are guaranteed so many."""
    known = [project(name, guaranteed_milli=1000 * gpus) for name, gpus in projects.items()]
    qos = (*SETTINGS.qos, KEPT)
    pool = Quotas(*known, qos=tuple(msgspec.structs.replace(one, share_after_ms=share_after_ms) for one in qos))
    pool.join("a", slots(len(names)))
    pool.busy(*names, qos="kept")
    return pool


def test_who_has_waited_for_their_patience_stands_before_a_higher_class() -> None:
    pool = full("guests.eve")
    assert pool.wants("others.dan", qos="batch") == []
    pool.later(HOUR)
    assert pool.wants("club.ann") == []
    assert granted(pool.free("guests.eve:1")) == ["others.dan:1"]
    pool.replay()


def test_who_has_waited_and_borrows_stands_behind_who_is_in_quota() -> None:
    pool = full("guests.eve", lab=1)
    assert pool.wants("others.dan") == []
    pool.later(HOUR)
    assert pool.wants("lab.ann") == []
    assert granted(pool.free("guests.eve:1")) == ["lab.ann:1"]
    pool.replay()


def test_of_two_who_have_waited_for_their_patience_the_one_who_came_first_is_next() -> None:
    pool = full("guests.eve")
    assert pool.wants("others.dan", qos="batch") == []
    pool.later(10 * MINUTE)
    assert pool.wants("club.fay") == []
    pool.later(HOUR)
    assert granted(pool.free("guests.eve:1")) == ["others.dan:1"]
    pool.replay()


def test_who_has_waited_stands_before_other_users_of_the_project() -> None:
    pool = full("guests.eve", "lab.tom1")
    assert pool.wants("lab.tom2") == []
    pool.later(HOUR)
    assert pool.wants("lab.ann") == []
    assert granted(pool.free("guests.eve:1")) == ["lab.tom2:1"]
    pool.replay()


def test_of_a_projects_users_one_passes_other_projects_for_having_waited() -> None:
    pool = full("guests.eve", "guests.tom")
    assert pool.wants("lab.bob") == pool.wants("lab.cem") == []
    pool.later(HOUR)
    assert pool.wants("others.dan") == []
    assert pool.order(["guests.eve:1", "guests.tom:1"]) == ["lab.bob:1", "others.dan:1"]
    pool.replay()


def test_of_a_users_requests_one_passes_other_users_for_having_waited() -> None:
    pool = full("guests.eve", "guests.tom")
    assert pool.wants("lab.bob1") == pool.wants("lab.bob2") == []
    pool.later(HOUR)
    assert pool.wants("lab.cem") == []
    assert pool.order(["guests.eve:1", "guests.tom:1"]) == ["lab.bob1:1", "lab.cem:1"]
    pool.replay()


def test_who_withdraws_after_a_long_wait_has_passed_nobody() -> None:
    pool = full("guests.eve")
    assert pool.wants("lab.bob1", qos="batch") == pool.wants("lab.bob2", qos="batch") == []
    pool.later(HOUR)
    assert pool.wants("others.dan") == []
    pool.withdraw("lab.bob1/1")
    assert granted(pool.free("guests.eve:1")) == ["lab.bob2:1"]
    pool.replay()


def test_what_a_project_loses_within_a_grace_is_one_time() -> None:
    pool = Quotas(project("lab", guaranteed_milli=2000))
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    pool.later(2 * MINUTE)
    assert len(reclaimed(pool.ask("lab.ann", project="lab"))) == 1
    pool.later(1000)
    assert len(reclaimed(pool.ask("lab.bob", project="lab"))) == 1
    assert pool.wants("guests.kim") == []
    assert "stands behind others for 59 s" in pool.why("guests.kim/1").reason
    pool.replay()


def test_who_gave_way_to_its_own_project_stands_behind_nobody_for_that() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("lab.eve", qos="batch")
    pool.later(2 * MINUTE)
    assert [type(one) for one in pool.ask("lab.ann", project="lab")] == [Pause]
    assert pool.wants("lab.tom") == []
    assert "stands behind" not in pool.why("lab.tom/1").reason
    pool.replay()


def test_a_tick_is_due_when_somebody_has_waited_for_their_patience_and_when_the_next_one_may_be_first() -> None:
    pool = full("guests.eve", "guests.tom", share_after_ms=10 * HOUR)
    assert pool.wants("lab.bob") == pool.wants("lab.cem") == []
    pool.later(LATEST_MS)
    assert pool.scheduler.deadline() == HOUR
    pool.later(HOUR - LATEST_MS)
    assert granted(pool.free("guests.eve:1")) == ["lab.bob:1"]
    pool.start("lab.bob:1")
    pool.later(LATEST_MS)
    assert pool.scheduler.deadline() == 2 * HOUR
    pool.replay()


def test_a_tick_is_due_when_credits_change_who_is_next() -> None:
    pool = full("guests.eve", "guests.tom", share_after_ms=10 * HOUR, lab=2)
    assert pool.wants("guests.kim") == []
    due_ms = pool.scheduler.deadline()
    assert due_ms is not None
    assert 0 < due_ms <= 3 * MINUTE, "two GPUs are a tenth of a GPU-hour in three minutes"
    pool.replay()


def test_who_passed_others_for_having_waited_does_not_so_again_because_settings_change() -> None:
    pool = full("guests.eve", "guests.tom")
    assert pool.wants("lab.bob1") == pool.wants("lab.bob2") == []
    pool.later(HOUR)
    assert pool.wants("lab.cem") == []
    assert granted(pool.free("guests.eve:1")) == ["lab.bob1:1"]
    assert granted(pool.say(ev.SettingsChanged(pool.settings))) == []
    assert granted(pool.free("guests.tom:1")) == ["lab.cem:1"]
    pool.replay()


def test_what_a_limit_keeps_for_who_has_waited_is_kept_when_settings_change() -> None:
    pool = Quotas(project("lab", limit_milli=2000))
    pool.join("a", slots(4))
    pool.busy("lab.ann", "lab.bob")
    assert pool.wants("lab.cem", gpus=2) == []
    pool.later(HOUR)
    assert granted(pool.say(ev.SettingsChanged(pool.settings))) == []
    assert pool.wants("lab.dan") == []
    assert pool.order(["lab.ann:1", "lab.bob:1"]) == ["lab.cem:1"]
    pool.replay()


def test_whom_a_limit_is_kept_from_is_told_for_whom() -> None:
    pool = Quotas(project("dep", limit_milli=4000), project("lab", parent="dep"), project("course", parent="dep"))
    pool.join("a", slots(8))
    pool.busy("lab.ann", "lab.bob", "course.eve")
    assert pool.wants("course.cem", gpus=3, qos="batch") == []
    assert granted(pool.later(4 * HOUR)) == []
    assert pool.wants("lab.dan") == pool.wants("lab.fay", qos="batch", gpus=2) == []
    reason = "project 'dep' uses 3 of 4 GPUs that it may use"
    assert pool.why("lab.dan/1").reason == (
        f"{reason}, and keeps 1 GPU of the rest for somebody who has waited so long that nobody passes them"
    )
    assert pool.why("lab.fay/1").reason == reason
    assert granted(pool.free("lab.ann:1")) == []
    assert "keeps 2 GPUs of the rest" in pool.why("lab.dan/1").reason
    assert granted(pool.free("lab.bob:1")) == ["course.cem:1"]
    pool.replay()


def test_who_never_borrows_is_told_of_the_limit_that_is_kept_and_not_of_the_guarantee() -> None:
    pool = Quotas(project("lab", limit_milli=3000, guaranteed_milli=2000))
    pool.join("a", slots(8))
    pool.busy("lab.ann", "lab.bob")
    assert pool.wants("lab.cem", gpus=3) == []
    pool.later(HOUR)
    assert pool.wants("lab.dan", qos="batch") == pool.wants("lab.fay", qos="reserved") == []
    assert "keeps 1 GPU of the rest" in pool.why("lab.dan/1").reason
    assert pool.why("lab.fay/1").reason.startswith("project 'lab' uses 2 of 3 GPUs that it may use, and keeps")
    pool.replay()
