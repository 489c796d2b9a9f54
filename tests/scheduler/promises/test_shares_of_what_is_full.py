"""Who has waited has their share, too, where a limit, what others lend, or a guarantee is full, and no node (13)."""

import pytest

from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, left, look, quotas, running

DEPARTMENT = (
    '[projects.department]\n{}\n[projects.first]\nparent = "department"\n{}[projects.late]\nparent = "department"\n'
)
KEEPER = "[projects.keeper]\nguaranteed = 4\nlending_limit = 0\n"
FIRM = '[qos.firm]\nwalltime = "10 h"\nmust_be_in_quota = true\nqueued_per_user = 9\n'
#: The time in which a share is there: two minutes, a grace, and a minute for each that is taken after the first one.
SHARED_S = 5 * MINUTE_S


def late_part(text: str, number: int = 3, qos: str = "batch") -> tuple[Seen, int]:
    """Play on eight GPUs: `first` has four, all that it may; `late` asks for so many. How many has it got then?"""
    seen = look(
        quotas(FIRM + text),
        nodes(1, 8),
        ask(1, 4, "first", BATCH_S, qos=qos),
        ask(600, number, "late", BATCH_S, qos=qos),
        last=3 * HOUR_S,
    )
    keeps_all(seen)
    assert running(seen, 600 + 2 * MINUTE_S - 1, "late") == 0, "not before they have waited for it"
    assert running(seen, 3 * HOUR_S - 1, "late") == running(seen, 600 + SHARED_S, "late"), "and no more is moved"
    return seen, running(seen, 600 + SHARED_S, "late")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (DEPARTMENT.format("limit = 4", ""), 2),
        (DEPARTMENT.format("limit = 4", "weight = 3\n"), 1),
        (DEPARTMENT.format("limit = 4", "guaranteed = 2\n"), 1),
        (DEPARTMENT.format("limit = 4", "guaranteed = 4\n"), 0),
        (DEPARTMENT.format("limit = 4", "priority = 1\n"), 0),
        (DEPARTMENT.format("guaranteed = 4\nborrow = false", ""), 2),
        (KEEPER, 2),
        (KEEPER + "[projects.first]\nweight = 3\n", 1),
        (KEEPER + '[projects.above]\n[projects.first]\nparent = "above"\n', 2),
    ],
)
def test_a_project_has_its_share_of_a_full_limit_and_of_what_others_lend(text: str, part: int) -> None:
    seen, has = late_part(text)
    assert has == left(seen, "first") == part
    assert left(seen, "late") == 0


def test_a_project_has_its_share_of_a_guarantee_in_a_class_that_never_borrows() -> None:
    seen, has = late_part(DEPARTMENT.format("guaranteed = 4", ""), qos="firm")
    assert has == left(seen, "first") == 2
    assert left(seen, "late") == 0


def test_of_higher_priority_takes_all_of_a_full_limit() -> None:
    seen, has = late_part(DEPARTMENT.format("limit = 4", "") + "priority = 1\n")
    assert has == left(seen, "first") == 3


def test_more_of_one_sibling_and_less_of_another_one_of_a_full_limit() -> None:
    text = DEPARTMENT.format("limit = 4", "") + '[projects.small]\nparent = "department"\n'
    seen = look(
        quotas(text),
        nodes(1, 8),
        ask(1, 1, "small", BATCH_S, **LONG),
        ask(2, 3, "first", BATCH_S, **LONG),
        ask(600, 2, "late", BATCH_S, **LONG),
        last=HOUR_S,
    )
    keeps_all(seen)
    assert (left(seen, "first"), left(seen, "small"), left(seen, "late")) == (1, 0, 0)
    assert 2 * MINUTE_S <= min(seen.wait(f"late{n}") for n in range(2)) <= 2 * MINUTE_S + SOON_S


@pytest.mark.parametrize(
    "text", ["[projects.lab]\nguaranteed = 4\n", '[projects.above]\nguaranteed = 4\n[projects.lab]\nparent = "above"\n']
)
def test_a_user_has_their_part_of_a_guarantee_in_a_class_that_never_borrows(text: str) -> None:
    seen = look(
        quotas(FIRM + text),
        nodes(1, 8),
        [at(1 + n, notebook(f"one{n}", "lab", BATCH_S, user="one", qos="firm")) for n in range(6)],
        [at(600, notebook(f"two{n}", "lab", BATCH_S, user="two", qos="firm")) for n in range(3)],
        last=3 * HOUR_S,
    )
    keeps_all(seen)
    assert seen.most_at_once("lab") == 4
    assert 2 * MINUTE_S <= seen.wait("two0") <= 2 * MINUTE_S + SOON_S
    assert (left(seen, "one"), left(seen, "two")) == (2, 0)
    assert running(seen, 3 * HOUR_S - 1, "two") == 2


def test_nobody_goes_for_a_user_in_a_class_that_never_borrows_whose_part_another_one_has_not() -> None:
    """Each of four users has one of the four that are guaranteed: the fifth waits."""
    seen = look(
        quotas(FIRM + "[projects.lab]\nguaranteed = 4\n"),
        nodes(1, 8),
        ask(1, 4, "lab", 3000, qos="firm", closes_ms=0),
        ask(600, 1, "lab", 600, name="fifth", qos="firm"),
        last=HOUR_S,
    )
    keeps_all(seen)
    assert seen.granted("fifth0") == 3001
    assert left(seen, "lab") == 0


def test_lower_classes_of_the_project_give_nothing_back_for_a_user_in_a_class_that_never_borrows() -> None:
    """They borrow wherever they run: by going they would leave nothing of the guarantee."""
    seen = look(
        quotas(FIRM.replace('"10 h"', '"10 h"\npriority = 150') + "[projects.lab]\nguaranteed = 2\n"),
        nodes(1, 8),
        [at(1 + n, notebook(f"firm{n}", "lab", BATCH_S, user="one", qos="firm")) for n in range(2)],
        [at(9 + n, notebook(f"batch{n}", "lab", BATCH_S, user="one", qos="batch")) for n in range(2)],
        ask(600, 2, "lab", BATCH_S, name="two", user="two", qos="firm"),
        last=2 * HOUR_S,
    )
    keeps_all(seen)
    assert 2 * MINUTE_S <= seen.wait("two0") <= 2 * MINUTE_S + SOON_S
    assert (left(seen, "firm"), left(seen, "batch"), left(seen, "two")) == (2, 0, 0)


@pytest.mark.parametrize("text", [DEPARTMENT.format("limit = 4", ""), KEEPER])
def test_what_has_gone_for_a_share_of_two_gpus_waits_for_the_other_one(text: str) -> None:
    """One of the two cells ends before its grace is over, and others of its project wait for what is free then."""
    seen = look(
        quotas(text),
        nodes(1, 8),
        ask(1, 4, "first", BATCH_S, **LONG),
        ask(2, 3, "first", BATCH_S, name="more", **LONG),
        ask(600, 1, "late", BATCH_S, gpus=2, **LONG),
        last=HOUR_S,
        early_percent=50,
    )
    keeps_all(seen)
    assert 2 * MINUTE_S <= seen.wait("late0") <= 2 * MINUTE_S + SOON_S
    assert (left(seen, "first"), left(seen, "more"), left(seen, "late")) == (2, 0, 0)
