"""A broker that is started again knows that its pool has GPUs before the first one is back."""

from bulletin.ids import AgentId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.invariants import check
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.played import SOON_S, Day, Do, at, node, opens, play

#: For so long nodes are waited for that were there before.
AWAITED_S = 300
CPUS = at(1, hi.Joins(AgentId("cpus"), hi.cpu_slots(4)))


def awaits(*nodes: str, has_gpus: bool = True) -> list[Do]:
    def expect(day: Day) -> None:
        day.tell(ev.NodesAwaited(nodes, day.now_ms + AWAITED_S * 1000, has_gpus))

    return [(0, expect)]


def test_who_asks_for_a_gpu_is_not_given_a_cpu_slot_because_that_is_back_first() -> None:
    """Slots that match serve the cell: in a pool with GPUs a CPU slot is none of them (quotas)."""
    day = play("", CPUS, opens(2, "x", "a", 30), node("n", 1, second=60), last=400, does=awaits("cpus", "n"))
    assert (day.wait("x"), day.nodes("x")) == (58, {"n"})
    check(day.driver.scheduler.state)


def test_nobody_reads_how_long_they_wait_for_a_node_that_may_come_back() -> None:
    """The reason, and the longest wait are true (17): when a node is back nobody knows."""
    day = play(
        "", CPUS, opens(2, "x", "a", 30), node("n", 1, second=60), last=400, does=awaits("cpus", "n"),
        asks=lambda second: second < 60,
    )  # fmt: skip
    assert {answer.wait_ms for _, answer in day.told["x"]} == {None}
    assert {"is awaited for" in answer.reason for _, answer in day.told["x"]} == {True}


def test_where_no_gpu_comes_back_cpu_slots_stand_in_for_them_and_count_as_such() -> None:
    """In a pool without a GPU, a CPU slot counts as one GPU does (quotas)."""
    day = play(
        "[projects.a]\nlimit=1\n", CPUS, opens(2, "c", "a", 900, gpus=0, closes_ms=0), opens(3, "x", "a", 30),
        last=1500, does=awaits("cpus", "n"),
    )  # fmt: skip
    assert day.wait("c") == 0
    assert 902 <= day.grants("x")[0] <= 902 + SOON_S
    check(day.driver.scheduler.state)


def test_a_cell_that_asks_for_no_gpu_costs_nothing_meanwhile() -> None:
    """A cell that costs nothing, one on a CPU in a pool with GPUs, waits for no quota (11)."""
    cells = [opens(2 + n, f"c{n}", "a", 900, gpus=0) for n in range(2)]
    day = play("[projects.a]\nlimit=1\n", CPUS, cells, node("n", 1, second=60), last=400, does=awaits("cpus", "n"))
    assert day.waits("c0", "c1") == 0
    check(day.driver.scheduler.state)


def test_a_pool_that_had_no_gpu_waits_for_none() -> None:
    """In a pool without a GPU CPU slots stand in for them (quotas)."""
    day = play("", CPUS, opens(2, "x", "a", 30), last=400, does=awaits("cpus", "other", has_gpus=False))
    assert day.wait("x") == 0
