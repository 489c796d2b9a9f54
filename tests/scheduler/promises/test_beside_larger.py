"""What is used, and by whom, of a node on which a larger request waits for running cells: it is not put off by that."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.one_gpu import ask
from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

#: The larger request is of `b`, and before the others in line; nobody takes a share.
FIRST = '[projects.b]\npriority = 5\n[qos.plain]\nwalltime = "1 d"\npatience = "1 d"\nshare_after = "1 d"\n'
#: When what it waits for is over, by its walltime.
OVER_S = 601


def cell(second: float, session: str, walltime_s: float, project: str = "a", **more: object) -> hi.At:
    """A cell that runs for its whole walltime."""
    more = {"qos": "plain"} | more
    return ask(second, session, project, walltime_s, walltime_ms=round(walltime_s * 1000), **more)


def larger(gpus: int = 2, second: float = 10, **more: object) -> hi.At:
    return ask(second, "large", "b", 100, gpus=gpus, qos="plain", **more)


def play(gpus: int, *happenings: hi.At, text: str = FIRST) -> Seen:
    return look(quotas(text), nodes(1, gpus), *happenings, last=3 * HOUR_S)


@pytest.mark.parametrize(
    ("second", "walltime_s", "passes"),
    [(241, 300, True), (242, 300, False), (350, 299, False), (500, 10 * HOUR_S, False)],
)
@pytest.mark.parametrize("is_hot", [False, True])
def test_who_is_over_before_it_can_start_passes_it_and_nobody_else(
    second: float, walltime_s: float, *, passes: bool, is_hot: bool
) -> None:
    """It has a minute to begin; and what is hot there leaves for it."""
    hot = [at(2, notebook("hot", "c", 5, walltime_ms=30_000))] if is_hot else []
    seen = play(2, cell(1, "runs", 600), *hot, larger(), cell(second, "small", walltime_s, "c"))
    assert (seen.wait("small") <= 1) == passes
    assert seen.granted("large") == OVER_S
    if is_hot and not passes:
        assert seen.asked_to_leave("hot")[0] == OVER_S - 30, "a cell that it began then would be over in time"


@pytest.mark.parametrize("is_hot", [False, True])
def test_what_it_does_not_need_of_its_node_is_for_everybody(*, is_hot: bool) -> None:
    """It needs all but two, of which one is used for longer."""
    gpus = 7 if is_hot else 5
    hot = [at(4 + n, notebook(f"hot{n}", "c", 5, walltime_ms=30_000)) for n in range(2 * is_hot)]
    seen = play(
        gpus,
        cell(0.5, "stays", 2 * HOUR_S),
        *(cell(1, f"runs{n}", 600) for n in range(gpus - 3)),
        *hot,
        larger(gpus - 2, 20),
        cell(30, "small", HOUR_S, "c"),
        cell(40, "more", HOUR_S, "d"),
    )
    assert seen.granted("large") == OVER_S
    assert seen.wait("small") <= 1
    assert seen.granted("more") > OVER_S


def test_it_waits_on_the_node_where_it_can_start_first() -> None:
    seen = look(
        quotas(FIRST),
        nodes(2, 3),
        cell(1, "first", 600, gpus=2),
        cell(2, "second", 5000, gpus=2),
        larger(3),
        cell(20, "small", 5000, "c"),
        last=3 * HOUR_S,
    )
    assert seen.granted("large") == OVER_S
    assert seen.wait("small") == 0


def test_what_is_hot_beside_it_leaves_before_a_cell_there_could_put_it_off() -> None:
    hot = notebook("hot", "c", 5, 300, think_s=390, qos="plain", walltime_ms=300_000)
    seen = play(2, cell(1, "runs", 600), at(2, hot), larger())
    assert seen.granted("large") == OVER_S
    assert 240 < seen.asked_to_leave("hot")[0] <= 301


def test_who_is_covered_takes_back_on_another_node_meanwhile() -> None:
    seen = look(
        quotas(FIRST + "[projects.lab]\nguaranteed = 1\n"),
        nodes(2, 2),
        cell(1, "one", 5000),
        cell(2, "two", 5000, gpus=2),
        larger(second=100),
        cell(101, "small", 4900, "c", gpus=1),
        at(200, notebook("lab", "lab", 100)),
        last=HOUR_S,
    )
    assert seen.wait("lab") <= 32


def test_who_needs_much_memory_of_a_gpu_keeps_nobody_from_a_smaller_one() -> None:
    seen = look(
        quotas(FIRST),
        at(0, hi.Joins(AgentId("n0"), (*hi.gpus(1, "NVIDIA H100", 80 * hi.GB),))),
        at(0, hi.Joins(AgentId("n1"), (*hi.gpus(2, "NVIDIA L4", 24 * hi.GB),))),
        cell(1, "runs", 5000, gpu_type="H100"),
        cell(2, "half", 5000, gpu_type="L4"),
        larger(1, gpu_memory_bytes=70 * hi.GB),
        cell(100, "small", 5000, "c"),
        last=HOUR_S,
    )
    assert seen.wait("small") == 0


def test_who_is_over_in_time_passes_it_also_behind_one_who_is_not() -> None:
    hot = at(2, notebook("hot", "c", 5, walltime_ms=30_000))
    seen = play(
        2,
        cell(1, "runs", 600),
        hot,
        larger(),
        cell(25, "long", 5000, "b"),
        cell(100, "small", 300, "d"),
    )
    assert seen.wait("small") <= 1


def test_who_takes_a_lower_class_of_its_project_does_so_on_another_node_meanwhile() -> None:
    seen = look(
        quotas(FIRST),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2))),
        [at(1 + n, notebook(f"guest{n}", "guests", 1700)) for n in range(2)],
        at(10, hi.Joins(AgentId("n1"), hi.gpus(2))),
        [ask(11 + n, f"batch{n}", "lab", 5000) for n in range(2)],
        at(130, notebook("large", "b", 100, gpus=2)),
        at(135, notebook("lab", "lab", 100)),
        last=400,
    )
    assert seen.wait("lab") <= 30


def test_it_takes_back_what_it_is_guaranteed_beside_batch_of_its_project_that_borrows_then() -> None:
    """It is of a class that never borrows: the cell of others and the batch cell go at once, and it needs both."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 3\n"),
        nodes(1, 3),
        ask(1, "batch", "lab", 10 * HOUR_S, qos="batch"),
        ask(2, "guest", "guests", 10 * HOUR_S, qos="batch"),
        ask(3, "large", "lab", 600, gpus=3, qos="reserved"),
        ask(5, "small", "others", 600, qos="batch", walltime_ms=600_000),
        last=HOUR_S / 2,
    )
    assert seen.granted("large") == 2 + 60 + 30
    assert seen.granted("small") >= seen.granted("large") + 600
