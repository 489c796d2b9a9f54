# ruff: noqa: E501  # settings and histories in one line each
"""What time alone changes is seen at its time, and what is on its way out is counted where it is."""

import math

import pytest

from bulletin.ids import AgentId, SessionId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, keeps_all, promised
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, H100, LONG, POOL, ask, left, look, quotas, waits

#: A class whose cells are never taken back, also from who borrows.
STAYS = '[qos.stays]\nwalltime = "1 d"\npreemption = "never"\n'


def test_guarantees_shrink_when_a_planned_drain_begins_whatever_else_happens() -> None:
    """From then on each project is guaranteed one of the two GPUs that are left, on which cells of one run."""
    seen = look(
        promised(a=2, b=2),
        nodes(2, 2),
        at(1, hi.PlansDrain(AgentId("n1"), 3600_000)),
        ask(10, 2, "a", BATCH_S, **LONG),
        ask(100, 1, "b", BATCH_S, **LONG),
        last=2 * HOUR_S,
    )
    assert 3601 <= seen.granted("b0") <= 3601 + SOON_S
    keeps_all(seen)


def test_a_user_has_their_part_as_soon_as_a_boost_is_over() -> None:
    quick = '[qos.quick]\nwalltime = "1 h"\npriority = 200\nshare_after = "10 s"\ngrace = "0 s"\nmin_runtime = "0 s"\n'
    seen = look(
        quotas(f"[projects.p]\nguaranteed = 2\n{quick}"),
        nodes(1, 2),
        [at(1 + n, notebook(f"its{n}", "p", 3000, user="ann", qos="quick", closes_ms=0)) for n in range(2)],
        at(90, hi.ByHand(SessionId("its0"), "boost")),
        at(91, notebook("waits", "p", 60, user="ann", qos="reserved", closes_ms=0)),
        ask(100, 1, "p", 60, name="other", qos="quick"),
        last=HOUR_S,
    )
    assert 690 <= seen.granted("other0") <= 692
    keeps_all(seen)


def test_a_home_takes_nothing_that_another_guarantee_covers_from_who_has_as_much_right_there() -> None:
    """The department is guaranteed two H100. The lab needs the CPUs of the first node, where the group's cell runs."""
    seen = look(
        quotas(
            POOL
            + "[projects.dep]\nguaranteed = 4\nnode_pools = { h100 = 2 }\n"
            + '[projects.lab]\nparent = "dep"\nguaranteed = 1\n[projects.group]\nparent = "dep"\nguaranteed = 1\n'
        ),
        at(0, hi.Joins(AgentId("many"), hi.gpus(1, H100), 32, 0)),
        at(0, hi.Joins(AgentId("few"), hi.gpus(3, H100), 4, 0)),
        ask(1, 1, "group", BATCH_S, gpu_type="H100", cpus=16, **LONG),
        ask(700, 1, "lab", 900, gpu_type="H100", cpus=32, **LONG),
        last=HOUR_S,
    )
    assert left(seen, "group") == 0
    assert waits(seen, "lab") == [math.inf]


@pytest.mark.parametrize("project", ["guests", "c"])
def test_who_comes_later_does_not_put_off_a_larger_request_that_takes_a_young_cell_back(project: str) -> None:
    """The cell of the guests may be taken after ten minutes, the other one is over after five."""
    text = '[qos.slow]\nwalltime = "1 d"\nmin_runtime = "10 min"\npatience = "1 min"\nshare_after = "1 d"\n'
    seen = look(
        quotas(
            f"[projects.a]\nguaranteed = 2\n[projects.b]\nguaranteed = 1\n[projects.c]\nguaranteed = 1\n{text}{STAYS}"
        ),
        [*nodes(1, 2), at(0, hi.Joins(AgentId("other"), hi.gpus(2)))],
        ask(0.5, 1, "others", 10 * HOUR_S, gpus=2, qos="stays"),
        ask(1, 1, "b", 300, qos="slow", walltime_ms=300_000, closes_ms=0),
        ask(2, 1, "guests", 10 * HOUR_S, name="young", qos="slow"),
        ask(10, 1, "a", 900, gpus=2, qos="slow"),
        ask(100, 1, project, 3000, name="small", qos="slow", walltime_ms=3_600_000),
        last=2 * HOUR_S,
    )
    assert seen.granted("a0") <= 602 + SOON_S
    keeps_all(seen)


def test_who_waits_for_a_cell_of_their_own_to_be_gone_keeps_a_free_gpu_from_nobody() -> None:
    """A cell of the lab leaves for another one, since its limit is full; beside them a larger request waits for hours."""
    text = "[projects.lab]\nguaranteed = 1\nlimit = 1\n[projects.large]\nguaranteed = 3\n[projects.small]\nguaranteed = 1\n"
    seen = look(
        quotas(text + STAYS),
        [*nodes(1, 3), at(0, hi.Joins(AgentId("other"), hi.gpus(4)))],
        ask(0.1, 1, "others", 10 * HOUR_S, name="all", gpus=4, qos="stays"),
        ask(1, 1, "others", 3 * HOUR_S, name="one", qos="stays", walltime_ms=3 * 3_600_000),
        ask(2, 1, "lab", BATCH_S, name="batch", **LONG),
        ask(690, 1, "large", 900, gpus=3),
        ask(700, 1, "lab", 900, name="typed"),
        ask(705, 1, "small", 900, **LONG),
        last=HOUR_S,
    )
    assert waits(seen, "small") == [0]
    assert waits(seen, "typed") <= [SOON_S]
    keeps_all(seen)


def test_a_free_gpu_is_kept_for_who_waits_for_a_cell_of_their_own_to_be_gone() -> None:
    """The lab's large cell needs the GPU that its batch cell leaves, and the one that is free; a hot one is on another node."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\nlimit = 2\n"),
        [*nodes(1, 2), at(0.9, hi.Joins(AgentId("other"), hi.gpus(1)))],
        ask(0.1, 1, "lab", BATCH_S, name="batch", **LONG),
        ask(1, 1, "guests", 10, name="hot", gpus=1),
        ask(700, 1, "lab", 900, name="large", gpus=2),
        ask(705, 1, "guests", BATCH_S, **LONG),
        last=HOUR_S,
    )
    assert waits(seen, "large") <= [SOON_S]
    keeps_all(seen)
