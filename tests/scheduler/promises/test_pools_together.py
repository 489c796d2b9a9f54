# ruff: noqa: E501  # settings and histories in one line each
"""Node pools beside all else that a pool promises, and what is done by hand beside them: from the page alone."""

import pytest

from bulletin.ids import AgentId
from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S
from tests.scheduler.promises.seen import HOUR_S, at, nodes
from tests.scheduler.promises.stories import (
    BATCH_S,
    H100,
    L4,
    LENDING,
    LONG,
    NESTED,
    POOL,
    TWO_OWNERS,
    ask,
    join,
    left,
    look,
    places,
    quotas,
    waits,
)


def test_pool_nested_lab_takes_its_h100_from_its_sibling() -> None:
    seen = look(
        quotas(NESTED), join(),
        ask(1, 4, "group", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 3, "lab", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[1] <= SOON_S
    assert left(seen, "group") == 2


def test_pool_nested_department_takes_from_course_in_quota_then_lab_from_group() -> None:
    seen = look(
        quotas(NESTED), join(),
        ask(1, 4, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(2, 2, "course", BATCH_S, **LONG),
        ask(3, 2, "guests", BATCH_S, name="more", **LONG),
        ask(600, 4, "group", BATCH_S, gpu_type="H100"),
        ask(900, 2, "lab", BATCH_S, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "group")[-1] <= SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S
    used = seen.gpu_seconds("course", 700, 3000) / 2300
    assert used >= 0.95 * 2, used


@pytest.mark.parametrize("victim", ["guests", "course"])
def test_pool_hot_sessions_leave_within_seconds(victim: str) -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 4, "third", BATCH_S, gpu_type="L4", **LONG),
        ask(2, 4, victim, 20, 20, think_s=900),
        ask(300, 4, "lab", 600, gpu_type="H100"),
        last=HOUR_S, evict_ms=3000,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= 4


def test_pool_hot_session_of_a_course_that_keeps_hot_does_not_keep_the_owner_out() -> None:
    seen = look(
        quotas(
            POOL + '[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\nkeep_hot = "20 min"\n'
        ),
        join(),
        ask(1, 4, "third", BATCH_S, gpu_type="L4", **LONG),
        ask(2, 4, "course", 20, 20, think_s=900),
        ask(300, 4, "lab", 600, gpu_type="H100"),
        last=HOUR_S, evict_ms=3000,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= 4


def test_pool_owner_keeps_hot_at_home_from_borrowers_and_goes_on_at_once() -> None:
    seen = look(
        quotas(POOL + '[projects.lab]\nnode_pools = { h100 = 2 }\nkeep_hot = "5 min"\n'), join(2, 2),
        ask(1, 2, "lab", 20, 20, 20, think_s=200, gpu_type="H100"),
        ask(60, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    starts = [t for t, e, _ in seen.log if isinstance(e, ev.CellStarted) and e.cell.startswith("lab0/")]
    assert starts[1] - starts[0] <= 222, starts
    assert waits(seen, "guests")[0] > 400


def test_pool_reserved_class_of_the_owner_with_batch_elsewhere() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n"), join(),
        ask(1, 4, "lab", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 4, "lab", 1800, gpu_type="H100", qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


def test_pool_reserved_class_of_the_owner_with_interactive_elsewhere() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n"), join(),
        ask(1, 4, "lab", *[1700] * 4, gpu_type="L4", name="away"),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 4, "lab", 1800, gpu_type="H100", qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


def test_pool_reserved_class_of_a_course_at_the_owners_home_goes_elsewhere_first() -> None:
    """`reserved` cannot be taken back, so where there is a choice it stands elsewhere."""
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 4, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(100, 4, "course", 3 * HOUR_S, qos="reserved"),
        ask(600, 4, "lab", 1800, gpu_type="H100"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "course")[-1] <= SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S, places(seen, "course")


@pytest.mark.parametrize("victim", ["guests", "course"])
def test_pool_four_gpus_at_once(victim: str) -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 4, "third", BATCH_S, gpu_type="L4", **LONG),
        ask(2, 4, victim, BATCH_S, **LONG),
        ask(600, 1, "lab", 1800, gpus=4, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    if victim == "course":
        assert seen.gpu_seconds("course", 700, 2200) >= 0.97 * 4 * 1500


def test_pool_four_gpus_at_once_whatever_the_owner_has_elsewhere() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 1, "lab", BATCH_S, gpu_type="L4", gpus=4, name="away", **LONG),
        ask(2, 1, "course", BATCH_S, gpus=4, **LONG),
        ask(600, 1, "lab", 1800, gpus=4),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab0")[-1] <= SOON_S
    assert seen.gpu_seconds("course", 720, 2300) >= 0.95 * 4 * 1580
    assert places(seen, "lab0") == ["fast"]


def test_pool_of_two_nodes_with_a_cell_that_spans_one() -> None:
    """Two H100 nodes. Who is guaranteed four there asks for four at once; both are full of others' ones, half in quota."""
    seen = look(
        quotas(
            POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"
            "[projects.other]\nnode_pools = { h100 = 4 }\n"
        ),
        [at(0, hi.Joins(AgentId(f"fast{n}"), hi.gpus(4, H100))) for n in range(2)],
        at(0, hi.Joins(AgentId("slow"), hi.gpus(4, L4))),
        [one for n in range(4) for one in [*ask(1 + n, 1, "course", BATCH_S, name=f"c{n}", gpu_type="H100", **LONG),
                                          *ask(1.5 + n, 1, "guests", BATCH_S, name=f"g{n}", gpu_type="H100", **LONG)]],
        ask(600, 1, "lab", 1800, gpus=4, gpu_type="H100"),
        ask(600, 4, "other", 1800, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert waits(seen, "other")[-1] <= SOON_S


def test_pool_of_slices() -> None:
    seen = look(
        quotas('[node_pools.slices]\ngpu = "MIG 1g"\n[projects.lab]\nnode_pools = { slices = 0.5 }\n'
               "[projects.course]\nguaranteed = 2\n"),
        at(0, hi.Joins(AgentId("cut"), hi.slices(7) + hi.gpus(2))),
        ask(1, 7, "course", BATCH_S, gpu_type="MIG", **LONG),
        ask(600, 5, "lab", 1700, gpu_type="1g.10gb"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[3] <= SOON_S
    assert waits(seen, "lab")[4] > 600
    assert left(seen, "course") == 4


def test_pool_by_node_with_slices_and_whole_gpus() -> None:
    seen = look(
        quotas('[node_pools.room]\nnodes = ["cut"]\n[projects.lab]\nguaranteed = 2\nnode_pools = { room = 2 }\n'),
        at(0, hi.Joins(AgentId("cut"), hi.slices(8) + hi.gpus(1))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(2, L4))),
        ask(1, 8, "guests", BATCH_S, gpu_type="MIG", **LONG),
        ask(2, 3, "guests", BATCH_S, name="whole", **LONG),
        ask(600, 8, "lab", 1700, gpu_type="MIG"),
        ask(601, 1, "lab", 1700, name="one"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert waits(seen, "one")[-1] <= SOON_S


def test_pool_node_lost_and_back() -> None:
    seen = look(
        quotas(POOL + "[projects.a]\nnode_pools = { h100 = 2 }\n[projects.b]\nnode_pools = { h100 = 2 }\n"
               "[projects.course]\nguaranteed = 2\n"),
        [at(0, hi.Joins(AgentId(f"f{n}"), hi.gpus(2, H100))) for n in range(2)],
        at(0, hi.Joins(AgentId("slow"), hi.gpus(2, L4))),
        ask(1, 2, "course", BATCH_S, **LONG),
        ask(2, 4, "a", BATCH_S, gpu_type="H100", **LONG),
        at(300, hi.GoesSilent(AgentId("f0"))),
        ask(400, 2, "b", 1700, 1700, gpu_type="H100"),
        at(900, hi.Returns(AgentId("f0"))),
        last=HOUR_S,
    )  # fmt: skip
    w = waits(seen, "b")
    assert w[0] <= SOON_S, w
    assert max(seen.granted(f"b{n}") for n in range(2)) <= 900 + SOON_S
    assert left(seen, "course") == 0
    assert seen.gpu_seconds("a", 1000, 3000) >= 2 * 1900


def test_pool_overcommitted_shrinks_in_proportion() -> None:
    seen = look(
        quotas(POOL + "[projects.a]\nnode_pools = { h100 = 6 }\n[projects.b]\nnode_pools = { h100 = 2 }\n"
               "[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 4, "course", BATCH_S, **LONG),
        ask(2, 4, "a", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 4, "b", BATCH_S, gpu_type="H100", **LONG),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "b")[0] <= SOON_S
    assert 0.95 <= seen.gpu_seconds("b", 700, 7000) / 6300 <= 1.05
    assert seen.gpu_seconds("course", 700, 7000) / 6300 >= 3.95, "not theirs"


def test_pool_overcommitted_with_what_is_left_over_in_turn() -> None:
    seen = look(
        quotas(POOL + "".join(f"[projects.{n}]\nnode_pools = {{ h100 = 2 }}\n" for n in "abc")), join(4, 1),
        *(ask(1 + i, 3, n, *[300] * 60, gpu_type="H100") for i, n in enumerate("abc")),
        last=5 * HOUR_S,
    )  # fmt: skip
    parts = {n: seen.gpu_seconds(n, 600, 5 * HOUR_S) / (5 * HOUR_S - 600) for n in "abc"}
    assert min(parts.values()) >= 1.1, parts


def test_pool_lending_limit_is_free_at_once_where_borrowers_take_anything() -> None:
    seen = look(
        quotas(LENDING), join(),
        ask(1, 8, "guests", BATCH_S, **LONG),
        ask(600, 3, "lab", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert seen.most_at_once("guests") == 5
    assert waits(seen, "lab")[-1] <= 2


def test_pool_lending_limit_is_free_at_once_where_borrowers_want_that_type() -> None:
    seen = look(
        quotas(LENDING), join(),
        ask(1, 8, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 3, "lab", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= 2, (waits(seen, "lab"), seen.most_at_once("guests"))


def test_pool_lending_limit_and_a_project_in_quota_on_its_nodes() -> None:
    """Who is covered is not held back; the owner has it within the grace."""
    seen = look(
        quotas(LENDING + "[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 4, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(100, 4, "course", BATCH_S, **LONG),
        ask(600, 4, "lab", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "course")[-1] <= SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S
    assert seen.gpu_seconds("course", 800, 2000) >= 0.97 * 4 * 1200


def test_pools_that_overlap_count_each_gpu_in_the_first() -> None:
    text = POOL + (
        '[node_pools.room]\nnodes = ["fast", "mixed"]\n'
        "[projects.a]\nnode_pools = { h100 = 3 }\n[projects.b]\nnode_pools = { room = 2 }\n"
        "[projects.c]\nnode_pools = { h100 = 1, room = 2 }\n"
    )
    seen = look(
        quotas(text),
        at(0, hi.Joins(AgentId("fast"), hi.gpus(4, H100))),
        at(0, hi.Joins(AgentId("mixed"), hi.gpus(4, L4))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(2, L4))),
        ask(1, 10, "guests", BATCH_S, **LONG),
        ask(600, 3, "a", 1700, gpu_type="H100"),
        ask(600, 2, "b", 1700),
        ask(600, 3, "c", 1700),
        last=HOUR_S,
    )  # fmt: skip
    assert {name: waits(seen, name)[-1] <= SOON_S for name in "abc"} == dict.fromkeys("abc", True)
    assert set(places(seen, "b")) == {"mixed"}


def test_pool_part_and_whole_guarantee_come_together() -> None:
    """Ten in all, of which four at home: all of them within the grace, from borrowers on both."""
    seen = look(
        quotas(POOL + "[projects.lab]\nguaranteed = 6\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 2\n"),
        join(),
        ask(1, 2, "course", BATCH_S, gpu_type="H100", **LONG),
        ask(2, 6, "guests", BATCH_S, **LONG),
        ask(600, 6, "lab", 1700),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S
    assert seen.gpu_seconds("course", 700, 2200) >= 0.95 * 2 * 1500


def test_pool_young_cells_have_their_min_runtime() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 4, "third", BATCH_S, gpu_type="L4", **LONG),
        ask(595, 4, "course", 1700),
        ask(600, 4, "lab", 600, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert 80 <= waits(seen, "lab")[0] <= waits(seen, "lab")[-1] <= 60 + SOON_S


def test_pool_nobody_takes_in_turn() -> None:
    """Two that own a node each and type on anything, with a course in quota between them."""
    seen = look(
        quotas(TWO_OWNERS), join(),
        ask(1, 8, "course", BATCH_S, **LONG),
        ask(300, 4, "a", BATCH_S, **LONG),
        ask(310, 4, "b", BATCH_S, **LONG),
        last=3 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "a")[2] <= SOON_S + 10
    assert waits(seen, "b")[2] <= SOON_S
    taken = left(seen, "a") + left(seen, "b") + left(seen, "course")
    assert taken <= 14, taken
    assert not [when for when, _, acts in seen.log for one in acts if isinstance(one, act.Reclaim) and when > 700]
    assert seen.gpu_seconds("course", 600, 3 * HOUR_S) >= 0.97 * 2 * (3 * HOUR_S - 600)


def test_pool_class_hours_take_nothing_from_the_owner_of_a_node() -> None:
    text = POOL + (
        "[projects.lab]\nnode_pools = { h100 = 4 }\n[projects.course]\n[projects.course.class_hours.lecture]\n"
        'days = ["Thu"]\nfrom = "09:10"\nuntil = "09:40"\nguaranteed = 4\ntime_zone = "UTC"\n'
    )
    seen = look(
        quotas(text), join(),
        ask(1, 4, "lab", BATCH_S, gpu_type="H100", **LONG),
        ask(2, 4, "guests", BATCH_S, **LONG),
        ask(300, 6, "course", 1000),
        last=HOUR_S,
    )  # fmt: skip
    assert left(seen, "lab") == 0
    granted = sorted(seen.granted(f"course{n}") for n in range(6))
    assert granted[3] <= 600 + SOON_S


def test_hold_takes_nothing_from_the_node_pool_and_release_does_at_once() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 1 }\n"), join(2, 2),
        ask(1, 4, "guests", BATCH_S, **LONG),
        ask(600, 1, "lab", 600, name="held", gpu_type="H100", gpus=1),
        at(600.01, hi.ByHand("held0", "hold")),  # type: ignore[arg-type]
        ask(700, 1, "lab", 600, name="next", gpu_type="H100"),
        at(1500, hi.ByHand("held0", "release")),  # type: ignore[arg-type]
        last=HOUR_S,
    )  # fmt: skip
    assert seen.wait("next0") <= SOON_S
    assert 1500 <= seen.granted("held0") <= 1500 + SOON_S
    assert left(seen, "guests") <= 3, "one for what it asked for before it was held"


def test_top_of_a_large_request_keeps_nobody_of_its_project_from_its_guarantee() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n"), nodes(1, 8),
        ask(1, 8, "guests", BATCH_S, **LONG),
        ask(300, 2, "lab", BATCH_S, name="runs", **LONG),
        ask(600, 1, "lab", 600, name="large", gpus=8),
        at(601, hi.ByHand("large0", "put-first")),  # type: ignore[arg-type]
        ask(700, 2, "lab", 600, name="small"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert max(seen.wait(f"small{n}") for n in range(2)) <= SOON_S


def test_top_and_boost_cost_no_other_project_its_guarantee() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n[projects.maths]\n"), nodes(1, 8),
        ask(1, 8, "maths", 600, *[600] * 10, user="ann", name="ann", **LONG),
        at(2, hi.ByHand("ann0", "boost")),  # type: ignore[arg-type]
        ask(3, 2, "maths", 600, name="more", **LONG),
        at(4, hi.ByHand("more0", "put-first")),  # type: ignore[arg-type]
        ask(200, 4, "lab", 600),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


def test_requeue_costs_a_covered_cell_its_grace_and_no_more() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 1 }\n"), join(1, 1),
        ask(1, 2, "guests", BATCH_S, **LONG),
        ask(300, 1, "lab", BATCH_S, gpu_type="H100", **LONG),
        at(900, hi.ByHand("lab0", "requeue")),  # type: ignore[arg-type]
        last=2 * HOUR_S,
    )  # fmt: skip
    assert seen.gpu_seconds("lab", 900, 2 * HOUR_S) >= 2 * HOUR_S - 900 - 2 - 100
