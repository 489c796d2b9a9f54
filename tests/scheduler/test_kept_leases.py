"""What the tables of the scheduler have of a place that is kept between cells: one cell that goes on."""

import msgspec
import pytest

from bulletin.ids import CellId, LeaseId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import EndLease
from gpu_worker.scheduler.policy.prices import Price
from tests.scheduler.bench import MINUTE, SETTINGS, held, models, project, slots
from tests.scheduler.quota_bench import Quotas, granted

LAB = project("lab", guaranteed_milli=1000)


def kept() -> Quotas:
    """A GPU that a notebook keeps: a cell of ten minutes, then the time until the next one, of which five are over."""
    pool = Quotas(LAB)
    pool.join("a", models(1, "NVIDIA H100", 80))
    assert granted(pool.ask("ann", project="lab", qos="reserved", is_kept=True)) == ["ann:1"]
    pool.start("ann:1")
    pool.later(10 * MINUTE)
    pool.start("ann:1", "kept")
    pool.end("ann:1")
    pool.later(5 * MINUTE)
    return pool


def end_of(pool: Quotas) -> int:
    return pool.scheduler.state.end_ms(pool.scheduler.state.leases[LeaseId("ann:1")])


def test_it_is_over_at_the_same_time_whichever_cell_runs() -> None:
    pool = kept()
    assert end_of(pool) == 120 * MINUTE
    pool.start("ann:1", "c2")
    pool.end("ann:1", "kept")
    assert end_of(pool) == 120 * MINUTE
    pool.replay()


@pytest.mark.parametrize("is_between", [True, False])
def test_more_time_is_the_places_whichever_cell_was_given_it(is_between: bool) -> None:
    pool = kept()
    if not is_between:
        pool.start("ann:1", "c2")
        pool.end("ann:1", "kept")
    pool.say(ev.CellExtended(LeaseId("ann:1"), CellId("kept" if is_between else "c2"), 60 * MINUTE))
    assert end_of(pool) == 180 * MINUTE
    pool.later(20 * MINUTE)
    pool.start("ann:1", "c3")
    pool.end("ann:1", "kept" if is_between else "c2")
    assert end_of(pool) == 180 * MINUTE
    pool.later(100 * MINUTE)  # its walltime is over, and it goes on
    pool.start("ann:1", "c4")
    assert end_of(pool) == 180 * MINUTE
    pool.say(ev.CellExtended(LeaseId("ann:1"), CellId("c4"), 60 * MINUTE))
    assert end_of(pool) == 240 * MINUTE
    pool.replay()


def test_a_broker_that_is_started_again_knows_what_a_place_was_given() -> None:
    pool = Quotas(LAB)
    pool.now_ms = 180 * MINUTE
    one = msgspec.structs.replace(
        held("ann", cell="kept", running_ms=MINUTE), project="lab", qos="reserved", held_ms=150 * MINUTE, is_kept=True,
        walltime_ms=120 * MINUTE, more_ms=60 * MINUTE,
    )  # fmt: skip
    pool.join("a", slots(1), one)
    assert end_of(pool) == (180 - 150 + 120 + 60) * MINUTE
    pool.start("ann:1", "c2")
    assert end_of(pool) == (180 - 150 + 120 + 60) * MINUTE


def test_its_price_is_what_was_agreed_when_it_began() -> None:
    pool = kept()
    pool.say(ev.SettingsChanged(msgspec.structs.replace(SETTINGS, projects=(LAB,), prices=(Price("H100", 400),))))
    pool.start("ann:1", "c2")
    pool.end("ann:1", "kept")
    assert pool.scheduler.state.leases[LeaseId("ann:1")].charged == 1000
    pool.later(MINUTE)
    pool.end("ann:1", "c2")
    assert pool.scheduler.state.leases[LeaseId("ann:1")].charged == 4000, "what begins now is another one"


def test_a_node_that_joins_again_changes_nothing_about_it() -> None:
    """Its cells may have been others meanwhile; its node has held it since before its first cell."""
    pool = kept()
    lease = pool.scheduler.state.leases[LeaseId("ann:1")]
    pool.say(ev.SettingsChanged(msgspec.structs.replace(SETTINGS, projects=(LAB,), prices=(Price("H100", 400),))))
    again = msgspec.structs.replace(
        held("ann", cell="c2", running_ms=MINUTE, on=lease.slots), project="lab", qos="reserved", held_ms=16 * MINUTE,
        is_kept=True, walltime_ms=120 * MINUTE,
    )  # fmt: skip
    pool.join("a", models(1, "NVIDIA H100", 80), again)
    after = pool.scheduler.state.leases[LeaseId("ann:1")]
    assert (after.cell, after.charged, after.project) == ("c2", 1000, lease.project)
    assert (after.kept_since_ms, end_of(pool)) == (lease.kept_since_ms, 120 * MINUTE)
    pool.replay()


def test_a_broker_that_is_started_again_counts_from_the_same_moment() -> None:
    pool = Quotas(LAB)
    pool.now_ms = 60 * MINUTE
    one = msgspec.structs.replace(
        held("ann", cell="kept", running_ms=MINUTE), project="lab", qos="reserved", held_ms=20 * MINUTE, is_kept=True,
        walltime_ms=120 * MINUTE,
    )  # fmt: skip
    assert not [action for action in pool.join("a", slots(1), one) if isinstance(action, EndLease)]
    assert end_of(pool) == (60 - 20 + 120) * MINUTE
    pool.later(MINUTE)
    pool.start("ann:1", "c2")
    assert end_of(pool) == (60 - 20 + 120) * MINUTE
