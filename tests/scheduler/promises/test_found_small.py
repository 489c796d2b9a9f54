# ruff: noqa: E501  # settings and histories in one line each
"""What tests from the page alone have found, made small. What is open is marked so, with the reason."""

import random

import pytest

from bulletin.ids import AgentId
from gpu_worker.scheduler import events as ev
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, crowd, keeps_all
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook
from tests.scheduler.promises.stories import (
    BATCH_S,
    LONG,
    NESTED,
    POOL,
    TWO_OWNERS,
    ask,
    join,
    left,
    look,
    places,
    priced,
    quotas,
    reserve,
    taken_by_guarantee,
    waits,
)


@pytest.mark.parametrize("whose", ["group", "lab"])
@pytest.mark.parametrize("victim", ["guests", "course"])
def test_pool_of_a_department_whatever_it_uses_elsewhere(whose: str, victim: str) -> None:
    """Three of the department's four H100 are used by others, and all of its six GPUs on L4 and H100."""
    seen = look(
        quotas(NESTED), join(4, 8),
        ask(1, 6, "lab", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(2, 2, "guests", BATCH_S, gpu_type="L4", name="full", **LONG),
        ask(3, 2, victim, BATCH_S, gpu_type="H100", name="victim", **LONG),
        ask(4, 2, "group", BATCH_S, gpu_type="H100", name="there", **LONG),
        ask(600, 2, whose, 1700, gpu_type="H100", name="asks", **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "asks")[-1] <= SOON_S


@pytest.mark.parametrize("victim", ["guests", "course"])
@pytest.mark.parametrize("qos", ["interactive", "batch"])
def test_pool_of_a_department_next_to_a_lab_that_does_not_use_its_part(victim: str, qos: str) -> None:
    seen = look(
        quotas(NESTED), join(4, 4),
        ask(1, 4, "lab", *[1700] * 3, gpu_type="L4", name="away"),
        ask(3, 2, victim, BATCH_S, gpu_type="H100", name="victim", **LONG),
        ask(4, 1, "group", BATCH_S, gpu_type="H100", name="there", **LONG),
        ask(4, 1, "lab", BATCH_S, gpu_type="H100", name="its", **LONG),
        ask(600, 2, "group", 1700, gpu_type="H100", name="asks", qos=qos),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "asks")[-1] <= SOON_S


@pytest.mark.parametrize("free", [0, 4])
@pytest.mark.parametrize("number", [1, 3])
def test_department_whose_limit_is_full_of_what_a_sibling_borrows(free: int, number: int) -> None:
    seen = look(
        quotas('[projects.dep]\nlimit = 4\n[projects.lab]\nparent = "dep"\nguaranteed = 3\n[projects.sib]\nparent = "dep"\n'),
        nodes(1, 4 + free),
        ask(1, 4, "sib", BATCH_S, **LONG),
        ask(700, number, "lab", 900),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


def test_reserved_class_waits_for_no_batch_of_its_project_on_another_type_without_node_pools() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n"), join(),
        ask(1, 4, "lab", BATCH_S, gpu_type="L4", name="away", **LONG),
        ask(2, 4, "guests", BATCH_S, gpu_type="H100", **LONG),
        ask(600, 4, "lab", 1800, gpu_type="H100", qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


def test_two_owners_who_ask_for_anything_at_once_each_get_their_home() -> None:
    text = (
        POOL
        + '[node_pools.l4]\ngpu = "L4"\n[projects.a]\nnode_pools = { h100 = 2 }\n[projects.b]\nnode_pools = { l4 = 2 }\n'
    )
    seen = look(
        quotas(text), join(2, 2),
        ask(1, 4, "guests", BATCH_S, **LONG),
        ask(600, 2, "b", 1700),
        ask(600.5, 2, "a", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert set(places(seen, "b")) == {"slow"}, places(seen, "b")
    assert waits(seen, "a")[-1] <= SOON_S
    assert left(seen, "b") + left(seen, "a") == 0, "in quota at home"


def test_a_course_in_quota_does_not_get_what_was_taken_for_the_owner() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 2 }\n[projects.course]\nguaranteed = 2\n"), join(2, 2),
        ask(1, 4, "guests", BATCH_S, **LONG),
        ask(599, 2, "course", 1700),
        ask(600, 2, "lab", 1700, gpu_type="H100"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "course")[-1] <= SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "course") == 0


def test_reservation_of_four_at_once_comes_from_one_node() -> None:
    seen = look(
        quotas("[projects.cs]\nguaranteed = 2\n" + reserve("exam", "cs", 4, "09:10", "10:00", "ann") + "[projects.lab]\nguaranteed = 4\n"),
        nodes(2, 4),
        ask(1, 4, "lab", BATCH_S, gpus=1, **LONG),
        ask(2, 4, "guests", BATCH_S, **LONG),
        ask(500, 1, "cs", 1000, gpus=4, user="ann", name="ann"),
        last=HOUR_S,
    )  # fmt: skip
    assert seen.granted("ann0") <= 600 + SOON_S
    assert left(seen, "lab") == 0


def test_reservation_in_a_department_with_a_full_limit_and_a_lost_node() -> None:
    seen = look(
        quotas('[projects.dep]\nlimit = 6\nguaranteed = 2\n[projects.cs]\nparent = "dep"\n[projects.sib]\nparent = "dep"\n'
               + reserve("exam", "cs", 2, "09:10", "10:00", "ann")),
        nodes(2, 4),
        ask(1, 6, "sib", BATCH_S, **LONG),
        ask(2, 2, "guests", BATCH_S, **LONG),
        ask(610, 2, "cs", BATCH_S, user="ann", name="ann", walltime_ms=7_200_000, **LONG),
        at(900, hi.GoesSilent(AgentId("n0"))),
        at(1500, hi.Returns(AgentId("n0"))),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "ann")[0] <= SOON_S
    assert seen.gpu_seconds("cs", 1000, 3500) >= 0.95 * 2 * 2500
    assert waits(seen, "ann")[-1] <= SOON_S


def test_reservation_of_a_class_that_never_borrows_ends_before_its_session_begins_another() -> None:
    """Alone in the pool, so the session stays hot: after the end it begins nothing."""
    seen = look(
        quotas("[projects.cs]\n" + reserve("exam", "cs", 1, "09:10", "09:40", "ann")), nodes(1, 2),
        ask(700, 1, "cs", *[300] * 12, think_s=100, user="ann", name="ann", qos="reserved", walltime_ms=600_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    starts = [t for t, e, _ in seen.log if isinstance(e, ev.CellStarted) and e.cell.startswith("ann0/")]
    assert max(starts) < 2400, starts
    assert seen.refused("ann0")


@pytest.mark.parametrize("qos", ["interactive", "batch"])
@pytest.mark.parametrize("typed", ["", "H100"])
@pytest.mark.parametrize("whose", ["own", "department"])
def test_the_owner_is_not_passed_by_others_who_are_covered_of_any_gpu(whose: str, typed: str, qos: str) -> None:
    """Students in quota type all the time; what is taken for the owner is not given to them instead, again and again."""
    home = "[projects.lab]\nnode_pools = { h100 = 3 }\n"
    if whose == "department":
        home = '[projects.science]\nnode_pools = { h100 = 3 }\n[projects.lab]\nparent = "science"\n'
    seen = look(
        quotas(POOL + home + "[projects.course]\nguaranteed = 3\n"), join(3, 3),
        ask(1, 3, "guests", BATCH_S, gpu_type="L4", **LONG),
        [at(2 + 3 * n, one) for n, one in enumerate(crowd(8, "course", *[70] * 100, think_s=1, gpu_type=typed))],
        ask(600, 3, "lab", 1700, gpu_type="H100", qos=qos),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= 60 + SOON_S


@pytest.mark.parametrize("seed", range(8))
def test_any_two_owners_and_a_course_come_to_rest(seed: int) -> None:
    """Long cells alone, all guarantees together fit: ten minutes after the last came, nothing is taken for a guarantee."""
    draw = random.Random(seed)
    opened = [
        at(draw.uniform(1, 900), notebook(f"{name}{n}", name, BATCH_S, gpu_type=draw.choice(("", "", "H100", "L4")), **LONG))
        for name, number in (("a", 4), ("b", 4), ("course", 4), ("guests", 3)) for n in range(number)
    ]  # fmt: skip
    seen = look(quotas(TWO_OWNERS), join(), opened, last=3 * HOUR_S)
    assert not taken_by_guarantee(seen, after=1500)


def test_class_hours_end_for_a_hot_session_of_a_class_that_never_borrows() -> None:
    text = (
        '[projects.cs]\n[projects.cs.class_hours.lecture]\ndays = ["Thu"]\nfrom = "09:10"\nuntil = "09:40"\n'
        'guaranteed = 1\ntime_zone = "UTC"\n'
    )
    seen = look(
        quotas(text), nodes(1, 2),
        ask(700, 1, "cs", *[300] * 12, think_s=100, qos="reserved", walltime_ms=600_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    starts = [t for t, e, _ in seen.log if isinstance(e, ev.CellStarted)]
    assert max(starts) < 2400, starts


@pytest.mark.parametrize("begin", ["asks", "hot"])
def test_static_project_never_exceeds_its_guarantee_after_a_reservation(begin: str) -> None:
    seen = look(
        quotas("[projects.cs]\nborrow = false\n" + reserve("exam", "cs", 2, "09:10", "09:40", "ann")), nodes(1, 4),
        ask(700, 2, "cs", *[300] * 12, think_s=100 if begin == "hot" else 0, user="ann", name="ann", walltime_ms=600_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    starts = [t for t, e, _ in seen.log if isinstance(e, ev.CellStarted)]
    assert max(starts) < 2400, starts


def test_node_pool_by_name_while_its_node_will_be_drained_and_class_hours_begin() -> None:
    """The owner has what is over in time at home, the class its hours on what stays, and nobody in quota loses a cell."""
    text = POOL + (
        "[projects.lab]\nnode_pools = { h100 = 2 }\n[projects.course]\n[projects.course.class_hours.lecture]\n"
        'days = ["Thu"]\nfrom = "09:10"\nuntil = "10:30"\nguaranteed = 4\ntime_zone = "UTC"\n'
    )
    seen = look(
        quotas(text), join(),
        ask(1, 8, "guests", BATCH_S, **LONG),
        at(2, hi.PlansDrain(AgentId("fast"), 60 * MINUTE_S * 1000)),
        ask(500, 4, "course", 3000, walltime_ms=5_400_000, **LONG),
        ask(700, 2, "lab", 1000, gpu_type="H100", walltime_ms=1_200_000),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert max(seen.granted(f"course{n}") for n in range(4)) <= 600 + SOON_S
    assert waits(seen, "lab")[-1] <= SOON_S
    assert left(seen, "course") + left(seen, "lab") == 0


def test_reservation_of_the_never_borrowing_class_does_not_keep_an_owner_out_when_it_is_over() -> None:
    seen = look(
        quotas("[projects.cs]\n[projects.lab]\nguaranteed = 2\n" + reserve("exam", "cs", 2, "09:10", "09:40", "ann", "bob")),
        nodes(1, 2),
        [at(700 + n, notebook(f"{who}", "cs", *[580] * 12, think_s=0.001, qos="reserved", walltime_ms=600_000)) for n, who in enumerate(("ann", "bob"))],
        ask(2500, 2, "lab", 1700),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= 600 + 5, "one walltime of what is never taken back"


def test_price_zero_and_a_budget_that_is_spent() -> None:
    seen = look(
        priced("1", prices="L4 = 0\n"), join(2, 2),
        ask(1, 2, "club", 1790, gpu_type="H100", name="spend"),
        ask(2400, 2, "club", 600, gpu_type="L4", name="free"),
        ask(2500, 1, "club", 600, gpu_type="H100", name="dear"),
        last=2 * HOUR_S,
    )  # fmt: skip
    assert waits(seen, "free")[-1] <= 2
    assert waits(seen, "dear")[0] > HOUR_S


def test_boost_and_top_inside_a_project_with_a_node_pool_take_nothing_more_from_others() -> None:
    seen = look(
        quotas(POOL + "[projects.lab]\nnode_pools = { h100 = 2 }\n[projects.course]\nguaranteed = 4\n"), join(),
        ask(1, 4, "course", BATCH_S, gpu_type="H100", **LONG),
        ask(2, 4, "guests", BATCH_S, gpu_type="L4", **LONG),
        ask(300, 2, "lab", BATCH_S, gpu_type="H100", name="first", **LONG),
        ask(600, 3, "lab", BATCH_S, gpu_type="H100", name="ann", user="ann", **LONG),
        at(601, hi.ByHand("ann0", "boost")),  # type: ignore[arg-type]
        at(602, hi.ByHand("ann1", "put-first")),  # type: ignore[arg-type]
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "first")[-1] <= SOON_S
    assert left(seen, "course") == 2
    assert left(seen, "guests") == 0, "what the course lost can only run on an H100"
    assert waits(seen, "ann")[0] > 1200


def test_reserved_class_takes_back_batch_of_its_own_project() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n"), nodes(1, 8),
        ask(1, 4, "lab", BATCH_S, name="own", **LONG),
        ask(2, 4, "guests", BATCH_S, **LONG),
        ask(600, 4, "lab", 1800, qos="reserved"),
        last=HOUR_S,
    )  # fmt: skip
    assert waits(seen, "lab")[-1] <= SOON_S


def test_nobody_takes_for_a_share_who_would_stand_behind_then() -> None:
    """What two of the department's own users left would be within its guarantee for one of them, and not for two GPUs."""
    seen = look(
        quotas(
            '[projects.department]\nguaranteed = 3\n[projects.lab]\nparent = "department"\nguaranteed = 3\npriority = 5\n'
        ),
        nodes(1, 4),
        ask(1, 2, "lab", BATCH_S, name="there", **LONG),
        ask(2, 2, "department", BATCH_S, name="own", **LONG),
        ask(10, 1, "lab", 600, name="two", gpus=2, **LONG),
        last=HOUR_S,
    )  # fmt: skip
    assert not left(seen, "own")
    assert not seen.violations


def test_who_is_covered_does_not_wait_for_a_larger_one_of_the_same_limit_that_has_no_place_to_come() -> None:
    """Room was being made for the large one when its project was guaranteed less, and others had that."""
    dean = "[projects.dean]\nguaranteed = 3\n"
    seen = look(
        quotas("[projects.lab]\nguaranteed = 3\nlimit = 3\n"), join(3, 3),
        ask(1, 3, "guests", BATCH_S, name="fast", gpu_type="H100", **LONG),
        ask(1, 2, "guests", BATCH_S, name="slow", gpu_type="L4", **LONG),
        ask(100, 1, "lab", 600, name="large", gpus=3, gpu_type="H100"),
        at(105, hi.Changes(quotas("[projects.lab]\nguaranteed = 2\nlimit = 3\n" + dean))),
        ask(106, 3, "dean", BATCH_S, name="dean", gpu_type="H100"),
        ask(300, 1, "lab", 600, name="small", **LONG),
        last=900,
    )  # fmt: skip
    assert waits(seen, "small") == [0]
    assert not seen.violations


def test_who_never_borrows_and_has_lost_patience_has_the_node_once_a_lower_class_has_gone_from_it() -> None:
    """A batch cell of its project runs there, which is not in its way: so it is covered, and those behind wait."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n"),
        nodes(1, 2),
        at(1, notebook("one", "lab", 1900, qos="reserved", closes_ms=0)),
        at(1, notebook("two", "lab", 1910, qos="reserved", closes_ms=0)),
        at(10, notebook("both", "lab", 600, qos="reserved", gpus=2)),
        at(100, notebook("low", "lab", HOUR_S, qos="batch")),
        at(1915, notebook("next", "lab", 60, qos="reserved", walltime_ms=600_000)),
        last=HOUR_S,
    )
    assert seen.granted("low") == 1901
    assert seen.granted("both") <= 1901 + 60 + 32
    assert seen.granted("next") > seen.granted("both")
    keeps_all(seen)
