"""A cell that went for somebody's share is left alone for twice as long each time, and no older one goes instead."""

import itertools

import pytest

from bulletin.ids import SessionId
from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import left, look, mixed, quotas

LONG = 11 * HOUR_S


def others(number: int, every_s: float, run_s: float, first: float = 600) -> list[hi.At]:
    """Make people who come one after the other, each with a cell of the same class."""
    more = {"qos": "batch", "closes_ms": 0}
    return [at(first + n * every_s, notebook(f"other{n}", "p", run_s, **more)) for n in range(number)]


def mine(session: str, second: float, run_s: float = LONG) -> hi.At:
    return at(second, notebook(session, "p", run_s, user="ann", qos="batch"))


def lost(seen: Seen, session: str) -> list[float]:
    return seen.asked_to_leave(session)


def play(*happenings: list[hi.At] | hi.At, last: float, text: str = "[projects.p]\n") -> Seen:
    return look(quotas(text), nodes(1, 3), at(1, notebook("far", "p", LONG, qos="batch")), *happenings, last=last)


def test_a_cell_goes_for_shares_after_twice_as_long_each_time() -> None:
    """Whoever comes has a cell of three minutes, then `ann` has her second GPU again."""
    seen = play(mine("one", 1), mine("two", 2), others(60, 240, 170), last=4 * HOUR_S)
    times = lost(seen, "two")
    began = [
        when for when, _, actions in seen.log for one in actions if isinstance(one, act.Grant) and one.session == "two"
    ]
    ran = [end - begin for begin, end in zip(began[1:], times[1:], strict=False)]
    assert len(ran) > 4
    assert all(run >= min(30, 2**n) * MINUTE_S for n, run in enumerate(ran, 1))
    assert len(times) <= 11, "of sixty who came"
    assert lost(seen, "one") == [], "it began first"


def test_what_takes_half_an_hour_gets_done() -> None:
    seen = play(mine("one", 1), mine("two", 2, 30 * MINUTE_S), others(100, 200, 170), last=5 * HOUR_S)
    assert any(isinstance(event, ev.CellEnded) and seen.held[event.lease][0] == "two" for _, event, _ in seen.log)


def test_whoever_waits_meanwhile_waits_for_that_cell() -> None:
    """Until `two` may go again nobody else of `ann` does; then it goes at once."""
    seen = play(mine("one", 1), mine("two", 2), others(2, 240, 60, first=500), last=1500)
    first, second = lost(seen, "two")
    again = next(
        when
        for when, _, actions in seen.log
        for one in actions
        if isinstance(one, act.Grant) and one.session == "two" and when > first
    )
    assert second == pytest.approx(max(again + 2 * MINUTE_S, 740 + 120), abs=2)
    assert lost(seen, "one") == []


def test_another_cell_begins_anew() -> None:
    """The next cell of the same notebook went for no share yet."""
    cells = (hi.CellPlan(0, 600_000), hi.CellPlan(1000, LONG * 1000))
    two = hi.Opens(session=SessionId("two"), user="ann", project="p", qos="batch", cells=cells)  # type: ignore[arg-type]
    seen = play(mine("one", 1), at(2, two), others(30, 600, 100, first=200), last=5 * HOUR_S)
    gaps = [after - before for before, after in itertools.pairwise(lost(seen, "two"))]
    assert min(gaps) < 20 * MINUTE_S
    assert left(seen, "one") == 0


def test_who_can_use_no_gpu_of_that_cell_has_an_older_ones() -> None:
    """On a node with GPUs of two types, the cell that went lately has one of the other."""
    seen = look(
        quotas("[projects.p]\n"),
        mixed(1, 1),
        at(1, notebook("old", "p", LONG, user="ann", qos="batch", gpu_type="L4")),
        at(2, notebook("young", "p", LONG, user="ann", qos="batch", gpu_type="H100")),
        at(100, notebook("first", "p", 60, qos="batch", gpu_type="H100", closes_ms=0)),
        at(250, notebook("second", "p", LONG, qos="batch", gpu_type="L4")),
        last=HOUR_S,
    )
    assert lost(seen, "young") == [220]
    assert seen.wait("second") == 150
