"""No cell goes for a larger request where its guarantee then covers somebody else, whose place it would be."""

import pytest

from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

RUNS = {"qos": "batch", "closes_ms": 0}
LAB = '[projects.lab]\nparent = "dep"\nguaranteed = 1\n'


@pytest.mark.parametrize("limit", [2, 4])
def test_a_cell_goes_for_a_larger_request_only_once_who_would_have_its_place_has_one(limit: int) -> None:
    """Be it one of the department's limit, or the GPU."""
    seen = look(
        quotas(f"[projects.dep]\nlimit = {limit}\n" + LAB),
        nodes(1, 3 if limit == 2 else 2),
        at(1, notebook("batch", "lab", HOUR_S, **RUNS)),
        at(2, notebook("busy", "dep", 598, closes_ms=0)),
        at(100, notebook("next", "dep", 900, **RUNS)),
        at(110, notebook("large", "lab", 600, gpus=2, closes_ms=0)),
        last=2000,
    )
    assert seen.granted("next") <= 600 + 2
    assert seen.asked_to_leave("batch") == [1500]
    assert seen.granted("large") <= 1500 + SOON_S
    keeps_all(seen)


def test_it_goes_where_nobody_else_waits() -> None:
    seen = look(
        quotas("[projects.dep]\nlimit = 2\n" + LAB),
        nodes(1, 3),
        at(1, notebook("batch", "lab", HOUR_S, **RUNS)),
        at(2, notebook("busy", "dep", 598, closes_ms=0)),
        at(110, notebook("large", "lab", 600, gpus=2, closes_ms=0)),
        last=2 * HOUR_S,
    )
    assert seen.asked_to_leave("batch") == [600]
    assert seen.granted("large") <= 600 + SOON_S
