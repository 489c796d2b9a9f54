"""Which cells a guarantee covers, and who is covered whatever else waits: what is not covered can be taken back."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, keeps_all
from tests.scheduler.promises.giving_back import LAB, LONG, borrows, gone
from tests.scheduler.promises.seen import HOUR_S, Seen, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG as BATCH, ask, join, left, look, quotas, waits

FIXED = '[qos.fixed]\nwalltime = "1 d"\npreemption = "never"\n'
RUNS = at(0.5, notebook("lab-runs", "lab", LONG, qos="batch"))


def test_cells_are_covered_in_the_order_in_which_they_began() -> None:
    text = LAB + "[projects.p]\nguaranteed = 1\n"
    assert gone(RUNS, borrows(1, "first", "p"), borrows(100, "second", "p"), size=3, text=text) == ["second"]


def test_what_fits_is_covered_also_behind_a_cell_that_does_not() -> None:
    text = LAB + "[projects.p]\nguaranteed = 1\n"
    happenings = RUNS, borrows(1, "two", "p", gpus=2), borrows(100, "one", "p")
    assert gone(*happenings, size=4, text=text) == ["two"]


def test_what_is_never_taken_back_is_covered_first() -> None:
    text = LAB + "[projects.p]\nguaranteed = 1\n" + FIXED
    happenings = RUNS, borrows(1, "batch", "p"), borrows(100, "fixed", "p", qos="fixed")
    assert gone(*happenings, size=3, text=text) == ["batch"]


def test_the_users_of_a_department_take_no_more_inside_it_than_their_part() -> None:
    text = '[projects.dep]\nguaranteed = 2\n[projects.in]\nparent = "dep"\n'
    text += '[projects.lab]\nparent = "dep"\nguaranteed = 2\n'
    seen = look(
        quotas(text + FIXED),
        nodes(1, 2),
        borrows(1, "far", qos="fixed"),
        borrows(2, "in"),
        at(600, notebook("own", "dep", 60, qos="batch")),
        last=710,
    )
    assert left(seen, "in") == 0


def test_where_nodes_are_down_everybody_has_their_part() -> None:
    seen = look(
        quotas("[projects.a]\nguaranteed = 2\n[projects.b]\nguaranteed = 2\n"),
        at(0, hi.Joins(AgentId("stays"), hi.gpus(2))),
        borrows(1, "a0", "a"),
        borrows(2, "a1", "a"),
        at(50, hi.Joins(AgentId("goes"), hi.gpus(2))),
        at(100, hi.GoesSilent(AgentId("goes"))),
        at(200, notebook("b", "b", 60)),
        last=400,
    )
    assert seen.wait("b") <= 32


def test_who_is_covered_inside_a_department_is_next_though_that_is_guaranteed_no_more() -> None:
    text = '[projects.dep]\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n[projects.in]\nparent = "dep"\n'
    seen = look(
        quotas(text),
        nodes(1, 2),
        typing(1, "in", "in"),
        typing(2, "ends", "far", 43, closes_ms=0),
        typing(5, "x", "x"),
        typing(25, "lab", "lab"),
        last=50,
    )
    assert seen.granted("lab") == 45


def typing(second: float, session: str, project: str, run_s: float = 1500, **more: object) -> hi.At:
    return at(second, notebook(session, project, run_s, **more))


def crowded(first: list[hi.At], projects: str, *asks: hi.At, young: int = 1) -> Seen:
    """Play: whoever asks from 132 s on finds a node with old cells, and others with young ones, which nobody takes."""
    text = "".join(
        f"[projects.{name}]\nguaranteed = {gpus}\n" for name, gpus in (one.split("=") for one in projects.split())
    )
    late = [at(130, hi.Joins(AgentId(name), hi.gpus(2))) for name in ("n1", "n2")]
    fill = [typing(131 + 0.1 * n, f"young{n}", "guests", gpus=young) for n in range(4 // young)]
    return look(quotas(text), nodes(1, 2), first, late, fill, list(asks), last=400)


def test_what_is_guaranteed_comes_although_others_wait_in_vain_for_what_is_guaranteed_to_them() -> None:
    seen = crowded(
        [typing(1, "old", "guests"), typing(2, "kim", "choir")],
        "lab=2 club=2 school=1 choir=1",
        typing(132, "bob", "lab", gpus=2),
        typing(133, "dan", "club", gpus=2),
        typing(134, "ann", "school"),
    )
    assert seen.wait("ann") <= 30
    assert seen.asked_to_leave("old") == [134]


def test_what_is_being_freed_for_one_is_given_to_nobody_else_who_is_covered() -> None:
    seen = crowded(
        [typing(1, "old", "guests")],
        "lab=2 club=2 school=1",
        typing(132, "bob", "lab", gpus=2),
        typing(133, "dan", "club", gpus=2),
        typing(134, "ann", "school"),
        young=2,
    )
    assert seen.wait("bob") <= 30
    assert seen.granted("ann") > seen.granted("bob")


def test_who_may_take_back_nothing_keeps_nobody_from_what_they_may() -> None:
    inside = '[projects.school]\nguaranteed = 2\n[projects.maths]\nparent = "school"\n'
    inside += '[projects.physics]\nparent = "school"\nguaranteed = 2\n[projects.lab]\nguaranteed = 2\n'
    seen = look(
        quotas(inside),
        nodes(1, 2),
        [typing(1 + n, f"maths{n}", "maths") for n in range(2)],
        at(130, hi.Joins(AgentId("n1"), hi.gpus(2))),
        [typing(131 + n / 10, f"young{n}", "guests") for n in range(2)],
        typing(132, "bob", "lab", gpus=2),
        typing(133, "dan", "physics", gpus=2),
        last=180,
    )
    assert [seen.asked_to_leave(f"maths{n}") for n in range(2)] == [[133], [133]]


def test_all_that_is_guaranteed_is_freed_at_once_and_borrowers_are_served_beside() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 5\n[scheduler]\nlook_ahead = 4\n"),
        nodes(1, 6),
        [borrows(1 + n, f"guest{n}", "guests") for n in range(5)],
        at(10, notebook("ends", "guests", 295)),
        [at(300, notebook(f"lab{n}", "lab", 1000)) for n in range(5)],
        at(301, notebook("borrows", "other", 60)),
        last=400,
    )
    waits = sorted(seen.wait(f"lab{n}") for n in range(5))
    assert (left(seen, "guest"), waits[0], waits[-1], seen.granted("borrows")) == (5, 5, 30, 330)


def test_what_an_outer_guarantee_alone_covers_is_not_taken_by_those_outside() -> None:
    text = '[projects.school]\nguaranteed = 2\n[projects.maths]\nparent = "school"\n[projects.lab]\nguaranteed = 1\n'
    seen = look(
        quotas(text),
        nodes(1, 3),
        typing(1, "kim", "guests"),
        [typing(60 + n, f"maths{n}", "maths") for n in range(2)],
        typing(200, "lab", "lab"),
        last=240,
    )
    assert seen.asked_to_leave("kim") == [200]


def test_what_is_guaranteed_comes_although_several_larger_requests_wait_before_it() -> None:
    """Three and two GPUs are asked for on a node of which one is free, and the others are in use for hours."""
    stays = '[qos.stays]\nwalltime = "1 d"\npreemption = "never"\n'
    seen = look(
        quotas(f"[projects.a]\nguaranteed = 3\n[projects.b]\nguaranteed = 2\n[projects.c]\nguaranteed = 1\n{stays}"),
        [*nodes(1, 3), at(0, hi.Joins(AgentId("other"), hi.gpus(4)))],
        ask(0.1, 1, "guests", 10 * HOUR_S, name="all", gpus=4, qos="stays"),
        ask(1, 2, "guests", 10 * HOUR_S, qos="stays", walltime_ms=36_000_000),
        ask(100, 1, "a", 900, gpus=3),
        ask(110, 1, "b", 900, gpus=2),
        ask(120, 1, "c", BATCH_S, **BATCH),
        last=HOUR_S,
    )
    assert waits(seen, "c") == [0]
    keeps_all(seen)


def test_what_the_department_alone_is_guaranteed_is_given_back_to_nobody_outside() -> None:
    """The cells of the lab have run for less time than that of the guests."""
    seen = look(
        quotas('[projects.dep]\nguaranteed = 2\n[projects.lab]\nparent = "dep"\n[projects.owner]\nguaranteed = 1\n'),
        nodes(1, 3),
        ask(1, 1, "guests", BATCH_S, **BATCH),
        ask(300, 2, "lab", BATCH_S, **BATCH),
        ask(700, 1, "owner", 900),
        last=HOUR_S,
    )
    assert left(seen, "lab") == 0
    assert waits(seen, "owner") <= [SOON_S]
    keeps_all(seen)


@pytest.mark.parametrize("limit", ["", "limit = 2\n"])
def test_a_larger_request_that_waits_for_running_cells_uses_nothing_of_what_its_project_is_guaranteed(
    limit: str,
) -> None:
    """The lab's large request needs both GPUs, of which one is in use for hours."""
    stays = '[qos.stays]\nwalltime = "1 d"\npreemption = "never"\n'
    seen = look(
        quotas(f"[projects.lab]\nguaranteed = 2\n{limit}{stays}"),
        nodes(1, 2),
        ask(1, 1, "guests", 10 * HOUR_S, name="stays", qos="stays"),
        ask(2, 1, "guests", BATCH_S, **BATCH),
        ask(600, 1, "lab", 900, name="large", gpus=2),
        ask(700, 1, "lab", 900, name="small"),
        last=HOUR_S,
    )
    assert waits(seen, "small") <= [SOON_S]
    keeps_all(seen)


@pytest.mark.parametrize(("department", "lab", "gpus"), [(4, 3, 2), (2.5, 1, 1)])
def test_what_the_users_of_a_department_are_guaranteed_is_theirs_whatever_all_of_it_covers_beside(
    department: float, lab: int, gpus: int
) -> None:
    """Both cells of its own are of a class that never borrows: the first one fits their part, the other does not."""
    calm = '[qos.calm]\npriority = 50\nwalltime = "1 h"\nmust_be_in_quota = true\n'
    inside = f'[projects.lab]\nparent = "department"\nguaranteed = {lab}\n'
    seen = look(
        quotas(f"{calm}[projects.department]\nguaranteed = {department}\n{inside}"),
        join(3, 1),
        ask(1, 1, "department", 3000, name="first", qos="calm", gpu_type="L4"),
        ask(2, 1, "department", 3000, name="beside", qos="calm", gpu_type="H100", gpus=gpus),
        ask(300, 1, "lab", 600, gpu_type="L4"),
        last=HOUR_S / 2,
    )
    assert left(seen, "first") == 0
    keeps_all(seen)
