"""Requests for GPUs and for CPUs alone beside one another on the same nodes."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import at
from tests.scheduler.promises.stories import LONG, ask, look, quotas


def test_who_asks_for_cpus_alone_passes_nobody_who_waits_for_cpus_with_a_gpu() -> None:
    seen = look(
        quotas(""),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2) + hi.cpu_slots(4), 32, 256 * hi.GB)),
        ask(1, 1, "a", 999, name="runs", cpus=20, closes_ms=0, **LONG),
        ask(100, 1, "b", 600, name="large", cpus=30, closes_ms=0),
        ask(200, 1, "c", 7000, name="small", gpus=0, cpus=10, closes_ms=0, **LONG),
        last=9000,
    )
    assert seen.granted("large0") == 1000
    assert seen.granted("small0") == 1600


@pytest.mark.parametrize(("runs_s", "granted"), [(2000, 2001), (60, 600)])
def test_cells_without_a_gpu_are_not_taken_back_for_cpus_beside_one_and_hot_ones_leave(
    runs_s: int, granted: int
) -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\n"),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2) + hi.cpu_slots(4), 64, 256 * hi.GB)),
        ask(1, 2, "guests", runs_s, gpus=0, cpus=30, **LONG),
        ask(600, 1, "lab", 600, cpus=32),
        last=9000,
    )
    assert seen.granted("lab0") == granted


FULL = {
    "a limit": ("[projects.lab]\nlimit = 1\n", "interactive"),
    "a budget": (
        "[qos.interactive]\nwalltime = '1 h'\n[projects.lab]\nbudget = '1.1 GPU-hours per day'\n",
        "interactive",
    ),
    "a guarantee beyond which nobody goes": ("[projects.lab]\nguaranteed = 1\n", "reserved"),
}


@pytest.mark.parametrize(("text", "qos"), FULL.values(), ids=FULL)
def test_a_hot_session_without_a_gpu_leaves_for_nothing_of_which_it_holds_nothing(text: str, qos: str) -> None:
    seen = look(
        quotas(text),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(4) + hi.cpu_slots(4), 64, 256 * hi.GB)),
        ask(1, 1, "lab", 10, name="cpu", gpus=0, qos=qos),
        ask(20, 1, "lab", 10, name="gpu", qos=qos),
        ask(100, 1, "lab", 10, name="next", qos=qos),
        last=300,
    )
    assert seen.asked_to_leave("gpu0") == [100]
    assert seen.granted("next0") < 110
    assert seen.asked_to_leave("cpu0") == []
