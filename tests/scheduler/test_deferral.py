"""Facts after which nobody can start who could not before are decided upon soon, and those that matter at once."""

import msgspec
import pytest

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.deferral import LATEST_MS, MANY
from tests.scheduler.bench import MINUTE, SETTINGS, granted, project, slots
from tests.scheduler.quota_bench import Quotas, taken


def crowd(**projects: int) -> Quotas:
    """Guests run a cell each on two GPUs, ten minutes old, and one more waits, who was decided upon."""
    qos = tuple(msgspec.structs.replace(one, share_after_ms=600 * MINUTE) for one in SETTINGS.qos)
    pool = Quotas(*(project(name, guaranteed_milli=1000 * gpus) for name, gpus in projects.items()), qos=qos)
    pool.join("a", slots(2))
    pool.busy("guests.eve", "guests.tom")
    assert pool.wants("guests.kim") == []
    pool.later(10 * MINUTE)
    return pool


def is_put_off(pool: Quotas) -> bool:
    """Whether the next tick is due when the decision is that was put off now."""
    return pool.scheduler.deadline() == pool.now_ms + LATEST_MS


def test_one_more_who_asks_for_what_is_taken_waits_half_a_second_for_a_decision() -> None:
    pool = crowd()
    assert pool.wants("guests.bob") == []
    assert is_put_off(pool)
    pool.later(LATEST_MS)
    assert not is_put_off(pool)
    pool.replay()


def test_who_asks_for_what_is_free_has_it_at_once() -> None:
    pool = crowd()
    assert granted(pool.free("guests.eve:1")) == ["guests.kim:1"]
    pool.start("guests.kim:1")
    pool.join("b", slots(1))
    assert pool.wants("guests.bob") == ["guests.bob:1"]
    pool.replay()


def test_for_whom_somebody_has_to_leave_they_are_asked_at_once() -> None:
    pool = crowd(lab=1)
    assert taken(pool.ask("lab.ann", project="lab")) != []
    pool.replay()


def test_a_free_gpu_is_granted_at_once_whatever_was_put_off_before() -> None:
    pool = crowd()
    assert pool.wants("guests.bob") == []
    pool.withdraw("guests.kim/1")
    assert granted(pool.free("guests.eve:1")) == ["guests.bob:1"]
    pool.replay()


def test_who_was_not_decided_upon_goes_without_a_decision_and_who_was_does_not() -> None:
    pool = crowd()
    assert pool.wants("guests.bob") == []
    pool.withdraw("guests.bob/1")
    assert is_put_off(pool)
    pool.later(LATEST_MS)
    pool.withdraw("guests.kim/1")
    assert not is_put_off(pool)
    pool.replay()


@pytest.mark.parametrize("early_ms", [0, 1, LATEST_MS - 1])
def test_a_tick_before_its_time_decides_nothing(early_ms: int) -> None:
    pool = crowd()
    assert pool.wants("guests.bob") == []
    due_ms = pool.scheduler.deadline()
    pool.now_ms += early_ms
    assert pool.say(ev.Tick()) == []
    assert pool.scheduler.deadline() == due_ms


def long_line(length: int, *others: str) -> tuple[Quotas, list[str]]:
    """So many labs wait for what they are guaranteed while guests, who are listed, have their grace.

    As many others are guaranteed one and ask for nothing, while guests have that.
    """
    labs = [f"lab{number}" for number in range(length)]
    pool = Quotas(*(project(name, guaranteed_milli=1000) for name in (*labs, *others)), qos=SETTINGS.qos)
    pool.join("a", slots(length + len(others)))
    pool.busy(*(f"guests.u{number}" for number in range(length + len(others))))
    pool.later(10 * MINUTE)
    going = [lease for name in labs for lease in taken(pool.ask(f"{name}.ann", project=name))]
    pool.later(1)  # what follows from the last one, in a step of its own
    return pool, going


@pytest.mark.parametrize(("length", "is_long"), [(MANY, True), (MANY - 1, False)])
def test_in_a_long_line_what_comes_free_is_given_at_once_and_what_else_follows_soon(length: int, is_long: bool) -> None:
    pool, going = long_line(length)
    assert len(going) == length
    assert granted(pool.free(going[0])) == ["lab0.ann:1"]
    assert is_put_off(pool) == is_long
    pool.replay()


def test_what_comes_free_one_after_the_other_is_given_in_order() -> None:
    pool, going = long_line(MANY)
    assert [granted(pool.free(lease)) for lease in going] == [[f"lab{number}.ann:1"] for number in range(MANY)]
    pool.replay()


def test_in_a_long_line_who_is_owed_has_others_leave_at_once_unless_many_are_before_them() -> None:
    pool, going = long_line(MANY, "late", "later")
    assert taken(pool.ask("later.ann", project="later")) == []
    assert is_put_off(pool)
    for lease in going[:4]:
        assert len(granted(pool.free(lease))) == 1
    assert taken(pool.ask("late.ann", project="late")) != []
    pool.later(LATEST_MS)
    assert {lease.id for lease in pool.scheduler.state.leases.values() if lease.reclaimed_by} >= {
        f"guests.u{MANY}:1",
        f"guests.u{MANY + 1}:1",
    }
    pool.replay()


def test_in_a_long_line_a_session_that_begins_a_cell_by_itself_is_decided_upon_soon() -> None:
    pool, going = long_line(MANY)
    pool.later(LATEST_MS)
    assert granted(pool.free(going[0])) == ["lab0.ann:1"]
    pool.start("lab0.ann:1")
    assert is_put_off(pool)
    pool.replay()


def test_what_is_noted_first_and_decided_later_is_given_with_the_next_step() -> None:
    pool, going = long_line(MANY)
    for lease in going[3:0:-1]:
        assert pool.scheduler.step(ev.LeaseEnded(lease), pool.now_ms, decides=False) == []
        assert pool.scheduler.deadline() == pool.now_ms + 1
    given = granted(pool.scheduler.step(ev.LeaseEnded(going[0]), pool.now_ms))
    assert given == [f"lab{number}.ann:1" for number in range(4)]
