# ruff: noqa: E501  # settings and histories in one line each
"""A whole node for who is guaranteed as much, beside short cells in quota that never stop and long ones that borrow."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, look, quotas, waits

#: What is left of a borrower's first minute, the grace, and what processes take.
RECLAIM_S = 95

TWO_NODES = [
    at(0, hi.Joins(AgentId(f"n{n}"), hi.gpus(4, f"NVIDIA A100 {name}"))) for n, name in enumerate(("left", "right"))
]


@pytest.mark.parametrize("qos", ["interactive", "batch"])
def test_comes_a_walltime_after_its_patience(qos: str) -> None:
    """Borrowers have a day, and give back at any time: it waits for who is in quota on one node, and for nobody who came later."""
    seen = look(
        quotas('[projects.lab]\nguaranteed = 4\n[projects.course]\nguaranteed = 4\n[qos.batch]\nwalltime = "1 d"\npatience = "30 min"\n'), TWO_NODES,
        ask(1, 2, "free", BATCH_S, gpu_type="left", name="left", **LONG),
        ask(1, 2, "free", BATCH_S, gpu_type="right", name="right", **LONG),
        ask(60, 6, "course", *[60] * 400, think_s=30),
        ask(900, 1, "lab", 600, gpus=4, qos=qos),
        evict_ms=3000, start_ms=2000, last=3 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[0] <= 60 * MINUTE_S + RECLAIM_S
    keeps_all(seen)


def test_who_borrows_has_the_node_until_then() -> None:
    """What begins there can be given back before those in quota have ended, so nothing idles for the whole node."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n[projects.course]\nguaranteed = 4\n"), TWO_NODES,
        ask(1, 3, "course", BATCH_S, gpu_type="left", name="left", **LONG),
        ask(1, 1, "course", 1700, gpu_type="right", name="right"),
        ask(2, 2, "free", 120, gpu_type="right", name="short"),
        ask(3, 8, "free", BATCH_S, **LONG),
        ask(60, 1, "lab", 600, gpus=4),
        last=HOUR_S,
    )  # fmt: skip
    assert 1600 <= waits(seen, "lab")[0] <= 1700 + RECLAIM_S
    assert seen.idle_share(8, 60, 1600) <= 0.01
    keeps_all(seen)
