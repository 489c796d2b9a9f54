"""Nobody leaves, waits or gives back for somebody who gains nothing by that."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import keeps_all
from tests.scheduler.promises.played import GRACE_S, SOON_S, YOUNG_S, node, opens, play
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, join, left, look, quotas


def test_nobody_leaves_for_who_may_not_have_what_a_part_of_a_department_keeps() -> None:
    """Four GPUs are hot, and two of them are the lab's at once: so of three who borrow two have one."""
    seen = look(
        quotas('[projects.dep]\nguaranteed = 2\n[projects.lab]\nparent = "dep"\nguaranteed = 2\nlending_limit = 0\n'),
        nodes(1, 4),
        ask(1, 2, "near", 50, 50, think_s=HOUR_S, **LONG),
        ask(60, 2, "lab", 100, 100, think_s=HOUR_S, **LONG),
        ask(300, 3, "far", 10 * HOUR_S, **LONG),
        last=900,
        evict_ms=5000,
    )
    assert sum(bool(seen.asked_to_leave(session)) for session in seen.opened) == 2


def test_who_needs_more_cpus_than_a_node_has_keeps_nobody_from_the_cpus_of_that_one() -> None:
    seen = look(
        quotas(""),
        at(0, hi.Joins(AgentId("few"), (*hi.gpus(1), *hi.cpu_slots(4)), 16, 64 * hi.GB)),
        at(0, hi.Joins(AgentId("many"), hi.gpus(1), 64, 64 * hi.GB)),
        ask(1, 1, "a", 5 * HOUR_S, name="runs", cpus=64, **LONG),
        ask(100, 1, "b", 100, name="large", cpus=32, **LONG),
        ask(200, 1, "c", 100, name="small", gpus=0, cpus=4, **LONG),
        last=900,
    )
    assert seen.wait("small0") == 0


def test_two_projects_do_not_take_a_gpu_from_each_other_in_turn() -> None:
    """What one took for its share stays there, although it has more than the other one from then on."""
    seen = look(
        quotas(""),
        join(1, 3),
        ask(1, 1, "b", 5 * HOUR_S, name="loses", gpu_type="H100", **LONG),
        ask(2, 1, "b", 5 * HOUR_S, gpu_type="L4", **LONG),
        ask(100, 1, "a", 5 * HOUR_S, name="takes", gpu_type="H100", **LONG),
        ask(600, 2, "a", 5 * HOUR_S, gpu_type="L4", **LONG),
        last=HOUR_S,
    )
    assert (left(seen, "loses"), left(seen, "takes")) == (1, 0)


def test_nobody_takes_for_a_share_what_the_former_holder_would_have_back_by_a_lower_class_of_its_own() -> None:
    """Once its batch cell goes, the department's guarantee covers it, and it stands before who took its GPU."""
    text = (
        '[projects.dep]\n[projects.owner]\nparent = "dep"\nguaranteed = 3\n[projects.low]\nparent = "dep"\n'
        '[projects.high]\nparent = "dep"\npriority = 5\n'
        '[qos.interactive]\ngrace = "10 s"\nmin_runtime = "0 s"\n[qos.batch]\ngrace = "2 min"\n'
    )
    seen = look(
        quotas(text),
        [at(second, hi.Joins(AgentId(f"n{gpus}"), hi.gpus(gpus))) for second, gpus in ((0, 4), (3.5, 1))],
        ask(1, 1, "high", 1700, gpus=2),
        ask(2, 1, "dep", BATCH_S, gpu_type="A100", **LONG),
        at(3, notebook("types", "low", 1700)),
        at(4, notebook("batch", "low", BATCH_S, **LONG)),
        ask(300, 1, "high", 900, name="more", gpus=2),
        last=900,
    )
    assert len(seen.asked_to_leave("types")) <= 1
    keeps_all(seen)


@pytest.mark.parametrize(
    ("tree", "others"), [("", "guests"), ("", "lab"), ('[projects.part]\nparent = "lab"\n', "part")]
)
def test_no_cell_goes_for_who_waits_for_somebody_that_has_waited_for_their_patience(tree: str, others: str) -> None:
    """Nobody goes whose GPU is not needed (2): it would be kept for the one who asks for two, and idle (6)."""
    typing = '[qos.interactive]\npatience = "10 min"\nwalltime = "20 min"\n'
    day = play(
        f"{typing}[projects.lab]\nguaranteed = 2\n{tree}", node("n", 2), opens(1, "typing", "lab", 1150),
        opens(300, "batch", "lab", 5000, qos="batch"), opens(310, "large", "lab", 60, gpus=2, time=300),
        opens(920, "small", "lab", 600), opens(925, "other", others, 600, qos="batch"), last=4000,
    )  # fmt: skip
    (taken_s, _), *more = day.taken("batch")
    assert taken_s >= 1151, "while the one who types is there, the other GPU is of no use to it"
    assert not more
    assert day.grants("large")[0] <= 1151 + YOUNG_S + GRACE_S + SOON_S


@pytest.mark.parametrize("elsewhere", [[], [opens(1, "elsewhere", "lab", 6000, qos="batch", gpu_type="A100")]])
def test_an_owners_batch_cell_at_home_goes_for_it_also_beside_one_that_waits_for_all_of_it(
    elsewhere: list[hi.At],
) -> None:
    """The GPU is guaranteed to it in the node pool (3), whatever it has elsewhere: nobody who is late comes before."""
    text = (
        '[qos.interactive]\npatience = "10 min"\nwalltime = "20 min"\n[node_pools.h100]\ngpu = "H100"\n'
        "[projects.lab]\nguaranteed = 1\nnode_pools = { h100 = 1 }\n"
    )
    day = play(
        text, node("n", 2, "NVIDIA H100 80GB HBM3"), node("m", 1), elsewhere,
        opens(2, "typing", "guests", 1150, gpu_type="H100"),
        opens(300, "batch", "lab", 5000, qos="batch", gpu_type="H100"),
        opens(310, "large", "others", 60, gpus=2, time=300, gpu_type="H100"),
        opens(920, "small", "lab", 600, gpu_type="H100"), last=2000,
    )  # fmt: skip
    assert day.grants("small")[0] <= 920 + GRACE_S + SOON_S
