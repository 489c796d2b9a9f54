"""A lease's time, cut into cells and hot time: all of it, once."""

import msgspec
import pytest
from hypothesis import given

from bulletin.codes import CellOutcome, LeaseEnd
from gpu_worker.broker.meter import Meter
from gpu_worker.broker.records import CellRecord, HotRecord, LeaseRecord, Record, Span, check
from tests.unit.gpu_worker.broker.ledger_records import HOLDER, LEASE, record
from tests.unit.gpu_worker.broker.meter_histories import histories


def at(cell: str, start_ms: int, end_ms: int, **changes: object) -> CellRecord:
    """A cell that held its lease from the one to the other, in quota."""
    times = {"started_at_ms": start_ms, "ended_at_ms": end_ms, "held_ms": end_ms - start_ms}
    return record(cell, **times, ran_ms=10, spans=(Span(start_ms, end_ms),), **changes)


def hot(start_ms: int, end_ms: int) -> HotRecord:
    return HotRecord(**HOLDER, started_at_ms=start_ms, ended_at_ms=end_ms)  # type: ignore[arg-type]


def over(at_ms: int, why: LeaseEnd = LeaseEnd.LEFT) -> LeaseRecord:
    return msgspec.structs.replace(LEASE, ended_at_ms=at_ms, why=why)


def test_a_lease_is_hot_before_between_and_after_its_cells() -> None:
    meter = Meter(LEASE)
    meter.begin("c1", is_in_quota=True, at_ms=1_100)  # type: ignore[arg-type]
    assert meter.end(record("c1", ran_ms=10), at_ms=1_400) == [hot(1_000, 1_100), at("c1", 1_100, 1_400)]
    meter.begin("c2", is_in_quota=False, at_ms=1_400)  # type: ignore[arg-type]
    (two,) = meter.end(record("c2", ran_ms=10), at_ms=1_500)
    assert isinstance(two, CellRecord)
    assert (two.in_quota_ms, two.borrowed_ms, two.ran_ms) == (0, 100, 10)
    assert meter.close(LeaseEnd.LEFT, at_ms=2_000) == [hot(1_500, 2_000), over(2_000)]


def test_a_cell_that_turns_from_borrowed_to_in_quota_is_charged_for_each_part() -> None:
    meter = Meter(LEASE)
    meter.begin("c1", is_in_quota=False, at_ms=1_000)  # type: ignore[arg-type]
    meter.turn(is_in_quota=False, at_ms=1_200)
    meter.turn(is_in_quota=True, at_ms=1_500)
    under_way = meter.under_way(1_600)
    assert under_way is not None
    (cell,) = meter.end(record("c1"), at_ms=1_600)
    assert isinstance(cell, CellRecord)
    assert cell.spans == (Span(1_000, 1_500, is_in_quota=False), Span(1_500, 1_600)) == under_way.spans
    assert meter.under_way(1_700) is None
    assert (cell.borrowed_ms, cell.in_quota_ms, cell.held_ms) == (500, 100, 600)


@pytest.mark.parametrize(
    ("began_ms", "ended_ms", "spans"),
    [
        (1_000, 1_900, [(1_000, 1_500, False), (1_500, 1_800, True), (1_800, 1_900, False)]),
        (1_300, 1_700, [(1_300, 1_500, False), (1_500, 1_700, True)]),
        (900, 1_200, [(1_000, 1_200, False)]),
        (1_600, 1_700, [(1_600, 1_700, True)]),
        (1_850, 1_840, []),
    ],
)
def test_a_cell_began_and_ended_when_its_agent_says_however_it_turned_meanwhile(
    began_ms: int, ended_ms: int, spans: list[tuple[int, int, bool]]
) -> None:
    meter = Meter(LEASE)
    meter.begin("c1", is_in_quota=False, at_ms=1_200)  # type: ignore[arg-type]
    meter.turn(is_in_quota=True, at_ms=1_500)
    meter.turn(is_in_quota=False, at_ms=1_800)
    *before, cell = meter.end(record("c1", ran_ms=1), ended_ms, began_ms=began_ms)
    assert isinstance(cell, CellRecord)
    assert cell.spans == tuple(Span(*span) for span in spans)
    assert before == ([hot(1_000, began_ms)] if began_ms > 1_000 else [])
    assert meter.close(LeaseEnd.LEFT, at_ms=2_000) == [hot(max(began_ms, ended_ms), 2_000), over(2_000)]


def test_what_a_reclaim_made_worthless_is_refunded() -> None:
    meter = Meter(LEASE)
    meter.begin("c1", is_in_quota=False, at_ms=1_000)  # type: ignore[arg-type]
    (cell,) = meter.end(record("c1", outcome=CellOutcome.RECLAIMED), at_ms=1_700, is_refunded=True)
    assert isinstance(cell, CellRecord)
    assert (cell.held_ms, cell.refunded_ms) == (700, 700)


def test_a_cell_whose_beginning_was_not_heard_of_takes_its_part_of_the_hot_time() -> None:
    meter = Meter(LEASE)
    assert meter.add_earlier(record("c1", ran_ms=10), 1_200, 1_700, is_in_quota=True) == [
        hot(1_000, 1_200),
        at("c1", 1_200, 1_700),
    ]
    assert meter.close(LeaseEnd.LEFT, at_ms=2_000) == [hot(1_700, 2_000), over(2_000)]


def test_cells_that_ended_before_the_one_that_runs_may_be_reported_after_it_began() -> None:
    meter = Meter(LEASE)
    meter.begin("c3", is_in_quota=True, at_ms=2_000)  # type: ignore[arg-type]
    told = meter.add_earlier(record("c1", ran_ms=10), 1_200, 1_300, is_in_quota=True)
    told += meter.add_earlier(record("c2", ran_ms=10), 1_250, 2_050, is_in_quota=True)
    told += meter.end(record("c3", ran_ms=10), at_ms=2_500)
    assert told == [hot(1_000, 1_200), at("c1", 1_200, 1_300), at("c2", 1_300, 2_000), at("c3", 2_000, 2_500)]


def test_a_cell_that_gave_way_to_the_next_unheard_is_found_when_it_is_reported() -> None:
    meter = Meter(LEASE)
    meter.begin("c1", is_in_quota=True, at_ms=1_100)  # type: ignore[arg-type]
    meter.begin("c2", is_in_quota=True, at_ms=1_500)  # type: ignore[arg-type]
    assert meter.add_earlier(record("c1", ran_ms=10), 1_100, 1_400, is_in_quota=True) == [
        hot(1_000, 1_100),
        at("c1", 1_100, 1_400),
    ]
    assert meter.end(record("c2", ran_ms=10), at_ms=1_600) == [hot(1_400, 1_500), at("c2", 1_500, 1_600)]


def test_a_cell_that_nobody_is_charged_for_leaves_its_time_hot() -> None:
    meter = Meter(LEASE)
    cell = meter.without_charge(record("c1"))
    assert (cell.held_ms, cell.spans, cell.ran_ms) == (0, (), 0)
    assert meter.close(LeaseEnd.LEFT, at_ms=2_000) == [hot(1_000, 2_000), over(2_000)]


def test_a_clock_that_runs_backwards_takes_nothing_back() -> None:
    meter = Meter(LEASE)
    meter.begin("c1", is_in_quota=True, at_ms=1_500)  # type: ignore[arg-type]
    assert meter.end(record("c1", ran_ms=0), at_ms=1_400)[0] == hot(1_000, 1_500)
    assert meter.close(LeaseEnd.LEFT, at_ms=900) == [over(1_500)]


def test_after_a_restart_it_goes_on_where_the_ledger_stopped() -> None:
    meter = Meter(LEASE, accounted_until_ms=5_000)
    meter.begin("c2", is_in_quota=True, at_ms=4_000)  # type: ignore[arg-type]
    assert meter.end(record("c2", ran_ms=10), at_ms=6_000) == [at("c2", 5_000, 6_000)]
    assert Meter(LEASE, accounted_until_ms=5_000).close(LeaseEnd.NODE_LOST) == [over(5_000, LeaseEnd.NODE_LOST)]


def test_a_session_runs_one_cell_at_a_time() -> None:
    meter = Meter(LEASE)
    meter.begin("c1", is_in_quota=True, at_ms=1_000)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="the one that runs"):
        meter.end(record("c2"), at_ms=1_000)
    with pytest.raises(AssertionError, match="before its lease"):
        meter.close(LeaseEnd.LEFT, at_ms=1_000)


@given(histories())
def test_the_integral_of_a_lease_is_its_cells_and_its_hot_time(told: list[Record]) -> None:
    for one in told:
        check(one)
    for end in [one for one in told if isinstance(one, LeaseRecord) and one.ended_at_ms is not None]:
        cells = [one for one in told if isinstance(one, CellRecord) and one.lease == end.lease]
        hot = [one for one in told if isinstance(one, HotRecord) and one.lease == end.lease]
        assert end.ended_at_ms is not None
        total_ms = sum(cell.held_ms for cell in cells) + sum(one.ended_at_ms - one.started_at_ms for one in hot)
        assert total_ms == end.ended_at_ms - end.granted_at_ms
