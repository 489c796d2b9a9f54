# ruff: noqa: E501  # settings and histories in one line each
"""Room that is made for somebody is theirs, whoever comes meanwhile; and it counts for their project once."""

import math

from tests.scheduler.promises.crowds import SOON_S, crowd, keeps_all, promised
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, look, quotas, waits


def test_who_comes_later_in_a_higher_class_has_cells_of_their_own_leave() -> None:
    """The owner's room is free after 30 s; the course, which asked 15 s later, has the next one."""
    seen = look(
        promised(owner=1, course=1),
        nodes(1, 2),
        ask(1, 2, "guests", BATCH_S, **LONG),
        ask(700, 1, "owner", 900, **LONG),
        ask(715, 1, "course", 900),
        last=HOUR_S,
    )
    assert waits(seen, "owner") <= [SOON_S]
    assert waits(seen, "course") <= [SOON_S]
    keeps_all(seen)


def test_a_larger_request_of_its_project_takes_no_room_that_is_made_for_a_small_one() -> None:
    seen = look(
        promised(lab=4),
        nodes(1, 4),
        ask(1, 2, "lab", BATCH_S, name="its", **LONG),
        ask(1, 2, "guests", BATCH_S, **LONG),
        ask(700, 1, "lab", 900, name="small", **LONG),
        ask(715, 1, "lab", 900, name="large", gpus=2),
        last=HOUR_S,
    )
    assert waits(seen, "small") <= [SOON_S]
    keeps_all(seen)


def test_a_cell_that_goes_for_one_of_a_department_counts_against_no_other_of_it() -> None:
    """The cell of the guests is young for 60 s. Meanwhile the lab takes one of the borrowers in its department."""
    text = '[projects.dep]\nguaranteed = 4\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n[projects.group]\nparent = "dep"\n'
    seen = look(
        quotas(text),
        nodes(1, 4),
        ask(1, 3, "group", BATCH_S, **LONG),
        ask(100, 1, "guests", BATCH_S, **LONG),
        ask(110, 1, "dep", 900),
        ask(120, 1, "lab", 900),
        last=HOUR_S,
    )
    assert waits(seen, "dep") <= [50 + SOON_S]
    assert waits(seen, "lab") <= [SOON_S]
    keeps_all(seen)


def test_nobody_counts_on_the_place_of_a_cell_that_goes_for_its_own_project() -> None:
    seen = look(
        promised(lab=1, owner=1),
        nodes(1, 2),
        ask(1, 1, "lab", BATCH_S, name="batch", **LONG),
        ask(1, 1, "guests", BATCH_S, **LONG),
        ask(700, 1, "lab", 900, name="typed"),
        ask(715, 1, "owner", 900, **LONG),
        last=HOUR_S,
    )
    assert waits(seen, "typed") <= [SOON_S]
    assert waits(seen, "owner") <= [SOON_S]
    keeps_all(seen)


def test_what_is_free_beside_those_who_leave_for_a_large_request_is_used_meanwhile() -> None:
    """Two cells of the lab leave for its large one, in 30 s. One of the guests ends before, and the next one begins there."""
    seen = look(
        promised(lab=4),
        nodes(1, 4),
        ask(1, 2, "lab", BATCH_S, name="its", **LONG),
        ask(1, 1, "guests", BATCH_S, name="stays", **LONG),
        ask(1, 1, "guests", 709, name="ends", closes_ms=0, **LONG),
        ask(700, 1, "lab", 900, name="large", gpus=2, qos="interactive"),
        ask(705, 1, "guests", 900, name="next"),
        last=HOUR_S,
    )
    assert waits(seen, "large") <= [SOON_S]
    keeps_all(seen)


def test_a_session_that_never_borrows_leaves_when_a_project_inside_takes_up_its_guarantee() -> None:
    """The department has no more than its lab is guaranteed: its own users had that while the lab did not want it."""
    seen = look(
        quotas('[projects.dep]\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'),
        nodes(1, 4),
        at(1, notebook("lab", "lab", 2, 900, think_s=600)),
        at(30, notebook("dep", "dep", 2, 900, think_s=605, qos="reserved")),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("dep")[0] <= 604
    keeps_all(seen)


def test_what_a_lending_limit_keeps_is_not_lent_because_its_owner_is_about_to_have_some_of_it() -> None:
    """The lab keeps two of three GPUs, and one while a cell of it runs: so two for the guests are never free."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 3\nlending_limit = 1\nuser_limit = 1\n"),
        [*nodes(1, 1), *[at(0, one.what) for one in nodes(2, 2)[1:]]],
        ask(1, 1, "guests", 20, gpus=2),
        at(160, notebook("first", "lab", 600, user="ann")),
        at(490, notebook("second", "lab", 600, user="ann", qos="batch")),
        last=HOUR_S,
    )
    assert waits(seen, "guests") == [math.inf]
    keeps_all(seen)


def test_who_is_left_something_of_a_departments_guarantee_borrows_nothing_that_others_keep() -> None:
    """A group uses all that its department is guaranteed, and its own users are guaranteed that."""
    seen = look(
        quotas(
            '[projects.dep]\nguaranteed = 2\n[projects.group]\nparent = "dep"\n[projects.lab]\nguaranteed = 2\nlending_limit = 0\n'
        ),
        nodes(1, 4),
        ask(1, 2, "group", BATCH_S, **LONG),
        ask(600, 1, "dep", 900),
        last=HOUR_S,
    )
    assert waits(seen, "dep") <= [SOON_S]
    keeps_all(seen)


def test_who_may_borrow_may_so_although_their_department_is_guaranteed_it() -> None:
    """The lab keeps its four of the department's guarantee; of eight GPUs enough is free beside them."""
    seen = look(
        quotas('[projects.dep]\n[projects.lab]\nparent = "dep"\nguaranteed = 4\nlending_limit = 0\n'),
        nodes(2, 4),
        ask(1, 1, "dep", 900),
        last=HOUR_S,
    )
    assert waits(seen, "dep") <= [SOON_S]
    keeps_all(seen)


def test_who_takes_back_waits_for_what_lenders_keep_as_everybody_does() -> None:
    """Cells of the lab leave for its large one; what asks again for them stands behind it, and it leaves one GPU free."""
    seen = look(
        quotas("[projects.keeps]\nguaranteed = 1\nlending_limit = 0\n[projects.lab]\nguaranteed = 2\n"),
        nodes(1, 4),
        ask(1, 2, "lab", BATCH_S, name="its", **LONG),
        ask(700, 1, "lab", 900, name="large", gpus=3),
        last=HOUR_S,
        evict_ms=5000,
    )
    keeps_all(seen)


def test_crowds_of_owners_who_come_one_after_the_other_are_each_in_time() -> None:
    seen = look(
        promised(a=2, b=2, c=2),
        nodes(2, 3),
        ask(1, 6, "guests", BATCH_S, **LONG),
        [
            at(700 + 7 * n, one)
            for n, one in enumerate(crowd(2, "a", 900, qos="long") + crowd(2, "b", 900, qos="batch"))
        ],
        ask(728, 2, "c", 900),
        last=HOUR_S,
    )
    for name in "abc":
        assert waits(seen, name)[-1] <= SOON_S
    keeps_all(seen)
