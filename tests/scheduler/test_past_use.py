"""Who used much before comes after who used little, and what was used long ago counts less."""

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler import events as ev
from tests.scheduler.bench import MINUTE, granted, slots
from tests.scheduler.quota_bench import Quotas


def test_a_user_with_many_requests_does_not_delay_another_users_one() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("course.ann0")
    for number in range(1, 4):
        assert pool.wants(f"course.ann{number}") == []
    assert pool.wants("course.bob") == []
    assert pool.why("course.bob/1").position == 1
    assert granted(pool.free("course.ann0:1")) == ["course.bob:1"]
    pool.replay()


def test_who_used_less_before_comes_first() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    for user, minutes in (("ann", 20), ("bob", 5)):
        pool.busy(f"course.{user}")
        pool.later(minutes * MINUTE)
        pool.free(f"course.{user}:1")
    pool.busy("course.cem")
    assert pool.wants("course.ann", n=2) == pool.wants("course.bob", n=2) == []
    assert granted(pool.free("course.cem:1")) == ["course.bob:2"]
    pool.replay()


def test_use_that_a_ledger_recalls_counts_by_its_age() -> None:
    pool = Quotas()
    for user, minutes in (("ann", 30), ("bob", 20)):
        past = ev.PastUse(ProjectId("course"), UserName(user), 1000 * minutes * MINUTE)
        assert pool.say(ev.UseRecalled((past,))) == []
        pool.later(7 * 24 * 60 * MINUTE)  # what ann used counts for half of it
    pool.join("a", slots(1))
    pool.busy("course.cem")
    assert pool.wants("course.bob") == pool.wants("course.ann") == []
    assert granted(pool.free("course.cem:1")) == ["course.ann:1"]
    pool.replay()


def test_who_used_much_is_put_back_but_not_for_ever() -> None:
    pool = Quotas()
    pool.join("a", slots(1))
    pool.busy("course.ann")
    pool.later(20 * 60 * MINUTE)
    pool.free("course.ann:1")
    pool.busy("course.bob")
    assert pool.wants("course.ann", n=2) == []
    pool.later(5 * MINUTE)
    assert pool.wants("course.cem") == []
    pool.later(6 * MINUTE)
    assert pool.wants("course.dan") == []
    assert pool.order(["course.bob:1", "course.cem:1", "course.ann:2"]) == [
        "course.cem:1", "course.ann:2", "course.dan:1",
    ]  # fmt: skip
    pool.replay()
