"""A cell that may be paused: its agent is asked to move it, and where it cannot the cell is run again."""

from bulletin.ids import LeaseId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, Pause
from tests.scheduler.bench import MINUTE, granted, project, reclaimed, slots
from tests.scheduler.quota_bench import Quotas

GRACE = 30_000


def paused(actions: list[Action]) -> dict[LeaseId, int]:
    return {action.lease: action.grace_ms for action in actions if isinstance(action, Pause)}


def wanted() -> Quotas:
    """One GPU, guaranteed to the lab, which wants it back; a cell of guests runs there that may be paused."""
    pool = Quotas(project("lab", guaranteed_milli=1000))
    pool.join("a", slots(1))
    pool.busy("guests.eve", qos="batch")
    pool.later(5 * MINUTE)
    actions = pool.ask("lab.ann", project="lab")
    assert (paused(actions), reclaimed(actions)) == ({"guests.eve:1": GRACE}, {})
    return pool


def declined(pool: Quotas, lease: str = "guests.eve:1") -> list[Action]:
    return pool.say(ev.PauseDeclined(LeaseId(lease)))


def test_a_paused_session_frees_its_gpu_and_keeps_its_place() -> None:
    pool = wanted()
    assert granted(pool.free("guests.eve:1")) == ["lab.ann:1"]
    pool.start("lab.ann:1")
    pool.later(MINUTE)
    assert pool.wants("guests.tom", qos="batch") == pool.wants("guests.eve", n=2, qos="batch") == []
    assert granted(pool.free("lab.ann:1")) == ["guests.eve:2"]
    pool.replay()


def test_a_cell_that_cannot_be_paused_has_its_whole_grace_from_then_on_and_runs_again() -> None:
    pool = wanted()
    pool.later(5_000)
    assert reclaimed(declined(pool)) == {"guests.eve:1": GRACE}
    assert reclaimed(pool.later(GRACE + 9_999)) == {}
    assert reclaimed(pool.later(1)) == {"guests.eve:1": 0}
    assert granted(pool.free("guests.eve:1")) == ["lab.ann:1"]
    pool.replay()


def test_a_pause_is_declined_once_and_too_late_for_what_is_over() -> None:
    pool = wanted()
    assert declined(pool, "nobody:1") == []
    assert len(declined(pool)) == 1
    assert declined(pool) == []
    pool.end("guests.eve:1")
    assert declined(pool) == []
    pool.free("guests.eve:1")
    assert declined(pool) == []
    pool.replay()


def test_an_agent_that_says_nothing_of_a_pause_is_told_to_end_the_cell() -> None:
    pool = wanted()
    assert reclaimed(pool.later(GRACE + 9_999)) == {}
    assert reclaimed(pool.later(1)) == {"guests.eve:1": 0}
    assert declined(pool) == []
    pool.replay()


def test_a_project_that_was_paused_borrows_again_at_once_what_nobody_else_wants() -> None:
    pool = wanted()
    pool.free("guests.eve:1")
    pool.withdraw("lab.ann/1")
    pool.free("lab.ann:1")
    assert pool.wants("guests.eve", n=2, qos="batch") == ["guests.eve:2"]
    pool.replay()
