"""However many sessions of a project are hot, those of a class that never borrows are decided upon as fast."""

import sys

import pytest

from bulletin.ids import SlotId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action
from tests.scheduler.bench import MINUTE, project
from tests.scheduler.quota_bench import Quotas, taken

#: Of the lab's requests, for each of which one of its batch cells goes.
FIRM = 8


def _calls_of_a_request(hot: int, guaranteed: int, parts: int) -> int:
    """Count the calls of functions while one more such request comes and so many sessions are hot."""
    calls = [0]
    inside = [project(f"part{number}", "lab") for number in range(parts)]
    pool = Quotas(project("lab", guaranteed_milli=1000 * guaranteed), *inside)
    pool.join("a", tuple(ev.Slot(SlotId(f"g{n}"), "gpu", "L4", 24 * 10**9) for n in range(hot)))
    pool.join("b", tuple(ev.Slot(SlotId(f"g{n}"), "gpu", "H100", 80 * 10**9) for n in range(FIRM)))
    sessions = [f"part{number % parts}.u{number}" if parts else f"lab.u{number}" for number in range(hot)]
    pool.busy(*sessions, qos="batch", gpu_type="L4")
    pool.busy(*(f"lab.b{number}" for number in range(FIRM)), qos="batch", gpu_type="H100")
    for session in sessions:
        pool.end(f"{session}:1")
    pool.later(2 * MINUTE)
    for number in range(FIRM - 1):
        assert len(taken(_ask(pool, number))) == 1

    def count(_frame: object, event: str, _arg: object) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        actions = _ask(pool, FIRM)
    finally:
        sys.setprofile(None)
    assert len(taken(actions)) == 1
    return calls[0]


def _ask(pool: Quotas, number: int) -> list[Action]:
    return pool.ask(f"lab.f{number}", project="lab", qos="reserved", gpu_type="H100")


@pytest.mark.parametrize(("beyond", "parts"), [(FIRM, 0), (0, 0), (0, 4)])
def test_a_request_for_which_cells_go_looks_at_no_hot_session_by_itself(beyond: int, parts: int) -> None:
    """The sessions are of its project, or of projects inside it; all fit the guarantee beside it, or not."""
    few, many = (_calls_of_a_request(hot, hot + beyond, parts) for hot in (8, 40))
    assert many - few < 500 * (40 - 8), "of each session that eight requests look at one by one there are thousands"
