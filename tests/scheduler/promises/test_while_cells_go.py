"""While cells have their grace for somebody, others get what they may have, and nobody takes what that one needs."""

import pytest

from tests.scheduler.promises.seen import HOUR_S, nodes
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, join, left, look, quotas, waits

#: All of the department may use what one inside it does not.
DEPARTMENT = (
    '[projects.dep]\nguaranteed = 4\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'
    '[projects.group]\nparent = "dep"\n[projects.course]\nparent = "dep"\n'
)


def test_however_many_wait_for_what_is_guaranteed_a_hot_gpu_leaves_at_once_for_who_borrows() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 16\n"),
        join(16, 1),
        ask(1, 1, "near", 309, gpu_type="L4", **LONG),
        ask(2, 16, "far", BATCH_S, gpu_type="H100", **LONG),
        ask(300, 16, "lab", 1000, gpu_type="H100"),
        ask(305, 1, "other", 100, gpu_type="L4", **LONG),
        last=900,
    )
    assert waits(seen, "lab") == [30] * 16
    assert seen.granted("other0") == 310


def test_a_cell_that_goes_for_one_of_a_department_counts_against_no_other_of_it() -> None:
    """With three GPUs of the group, one of which goes for the lab, the department has one left for the course."""
    seen = look(
        quotas(DEPARTMENT),
        join(3, 2),
        ask(1, 3, "group", BATCH_S, gpu_type="H100", **LONG),
        ask(2, 2, "far", BATCH_S, gpu_type="L4", **LONG),
        ask(300, 1, "lab", 1000, gpu_type="H100"),
        ask(310, 1, "course", 1000, gpu_type="L4"),
        last=900,
    )
    assert waits(seen, "lab") == waits(seen, "course") == [30]


def test_what_a_higher_class_takes_back_is_not_given_to_a_lower_one_that_is_covered() -> None:
    """The large one needs what is free, too, and one GPU more than is guaranteed to the lab."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 3\n"),
        nodes(1, 4),
        ask(1, 3, "lab", BATCH_S, name="batch", **LONG),
        ask(300, 1, "lab", 600, name="large", gpus=4),
        ask(310, 1, "lab", 60, name="late", **LONG),
        last=HOUR_S,
    )
    assert waits(seen, "large") == [30]
    assert seen.granted("late0") >= seen.granted("large0") + 600


def test_who_waits_for_a_hot_session_to_leave_has_that_one_and_whoever_waits_for_a_grace_another() -> None:
    """Two cells are taken back, one of which ends in its grace. Then a third one ends, and leaves its GPU hot."""
    seen = look(
        quotas("[projects.club]\nguaranteed = 0\n"),
        nodes(1, 3),
        ask(1, 1, "club", BATCH_S, name="old", **LONG),
        ask(50, 1, "club", 656, name="third"),
        ask(100, 1, "club", 605, name="a", **LONG),
        ask(700, 1, "club", 900, name="first"),
        ask(701, 1, "club", 900, name="second"),
        last=1000,
        evict_ms=5000,
    )
    assert seen.asked_to_leave("third0") == [706]
    assert waits(seen, "second") <= [10]


def test_a_hot_session_leaves_that_would_begin_with_what_a_class_that_never_borrows_is_to_have() -> None:
    """Its next cell began while one of Ann's two went, and had that one's part of the guarantee: Ann lost both."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n"),
        nodes(1, 5),
        ask(1, 2, "lab", BATCH_S, name="ann", user="ann"),
        ask(2, 1, "lab", 60, 1000, think_s=175, name="bob"),
        ask(100, 1, "lab", 600, name="firm", qos="reserved"),
        last=HOUR_S,
    )
    assert waits(seen, "firm") == [150]
    assert (left(seen, "ann"), seen.asked_to_leave("bob0")) == (1, [220])


@pytest.mark.parametrize("number", [1, 2, 3])
def test_only_so_many_hot_sessions_leave_as_would_be_in_its_way(number: int) -> None:
    """One of Ann's two cells on two GPUs goes: one hot session, that used last, may begin beside who asks."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 4\n"),
        nodes(1, 8),
        ask(1, 2, "lab", BATCH_S, name="ann", user="ann", gpus=2),
        *(ask(2 + n, 1, "lab", 60, 1000, think_s=HOUR_S, name=f"bob{n}-") for n in range(number)),
        ask(100, 1, "lab", 600, name="firm", qos="reserved"),
        last=900,
    )
    assert waits(seen, "firm") == [150]
    assert [seen.asked_to_leave(f"bob{n}-0") for n in range(number)] == [[220]] * (number - 1) + [[]]
