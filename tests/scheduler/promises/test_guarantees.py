"""What is guaranteed comes within the grace, whatever else stands in line. Each of these once took minutes or hours."""

import pytest

from bulletin.ids import AgentId, ProjectId
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, crowd, keeps_all, promised
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook, see
from tests.scheduler.promises.stories import BATCH_S, LONG, NEVER_MS, ask, left, look, quotas, waits


def test_a_cell_that_straddles_its_guarantee_is_taken_back() -> None:
    seen = see(
        promised(owner=8, small=1),
        nodes(1, 8),
        at(1, notebook("large", "small", 5 * HOUR_S, qos="long", gpus=8)),
        at(120, notebook("first", "owner", 600)),
        last=HOUR_S,
    )
    assert seen.wait("first") <= SOON_S
    keeps_all(seen)


def test_hot_sessions_of_a_class_that_never_borrows_do_not_borrow() -> None:
    seen = see(
        promised(A=1, B=3),
        nodes(1, 4),
        [at(70 * n, notebook(f"a{n}", "A", 60, 12 * HOUR_S, think_s=600, qos="reserved")) for n in range(4)],
        [at(1000, one) for one in crowd(3, "B", 600)],
        last=2 * HOUR_S,
    )
    assert seen.most_at_once("A") <= 1
    assert max(seen.wait(f"B{n}") for n in range(3)) <= SOON_S
    keeps_all(seen)


def test_to_have_given_back_ten_gpus_does_not_cost_an_hour() -> None:
    seen = see(
        promised(**{"class": 10, "lab": 0}),
        nodes(1, 10),
        [at(1, one) for one in crowd(10, "lab", 5 * HOUR_S, qos="batch")],
        [at(400, one) for one in crowd(10, "class", 110, closes_ms=0)],
        last=HOUR_S,
    )
    assert max(seen.wait(f"class{n}") for n in range(10)) <= SOON_S
    assert seen.idle_share(10, 400, HOUR_S) < 0.05
    keeps_all(seen)


def test_a_class_with_short_cells_and_a_lab_leave_little_idle() -> None:
    students = [notebook(f"s{n}", "class", *[120] * 40, think_s=60 + 37 * n % 300, patience_ms=None) for n in range(20)]
    seen = see(
        promised(**{"class": 16, "lab": 0}),
        nodes(2, 8),
        [at(1, one) for one in crowd(16, "lab", 20 * HOUR_S, qos="batch")],
        [at(600 + 11 * n, one) for n, one in enumerate(students)],
        last=600 + 50 * MINUTE_S,
    )
    assert seen.idle_share(16, 600, 600 + 50 * MINUTE_S) < 0.05
    keeps_all(seen)


def test_a_back_off_does_not_stand_in_the_way_of_an_outer_guarantee() -> None:
    dept = Project(id="dept", guaranteed_milli=4000)  # type: ignore[arg-type]
    course = Project(id="course", parent="dept")  # type: ignore[arg-type]
    owner = Project(id="owner", guaranteed_milli=4000)  # type: ignore[arg-type]
    seen = see(
        SchedulerSettings(projects=(dept, course, owner)),
        nodes(1, 8),
        [at(1, one) for one in crowd(8, "course", 170, closes_ms=0)],
        [at(90, one) for one in crowd(4, "owner", 3000)],
        [at(330, one) for one in crowd(4, "course", 600, name="later")],
        last=HOUR_S,
    )
    assert max(seen.wait(f"later{n}") for n in range(4)) <= SOON_S
    keeps_all(seen)


def test_a_larger_request_of_its_own_hides_no_guarantee() -> None:
    seen = see(
        promised(**{"class": 4, "lab": 0}),
        nodes(1, 8),
        [at(1, one) for one in crowd(3, "class", 1700)],
        [at(2, one) for one in crowd(5, "lab", 1700)],
        at(120, notebook("large", "class", 600, gpus=4)),
        at(125, notebook("one", "class", 600)),
        last=HOUR_S,
    )
    assert seen.wait("one") <= SOON_S
    keeps_all(seen)


def test_a_larger_request_of_others_hides_no_guarantee() -> None:
    seen = see(
        promised(A=4, B=2, C=2, D=0),
        at(0, hi.Joins("n0", hi.gpus(4))),  # type: ignore[arg-type]
        at(1, notebook("C0", "C", 1790)),
        [at(2, one) for one in crowd(3, "D", 1790)],
        at(3, hi.Joins("n1", hi.gpus(4))),  # type: ignore[arg-type]
        at(4, notebook("C1", "C", 1790)),
        [at(5, one) for one in crowd(3, "D", 1790, name="more")],
        at(120, notebook("large", "A", 600, gpus=4)),
        at(125, notebook("one", "B", 600)),
        last=HOUR_S,
    )
    assert seen.wait("one") <= SOON_S
    keeps_all(seen)


def test_one_student_who_asks_for_four_does_not_stop_the_class() -> None:
    lab = [notebook(f"lab{n}", "lab", 1790) for n in range(6)]
    seen = see(
        promised(**{"class": 6, "lab": 0}),
        nodes(2, 3),
        [at(1, one) for one in lab],
        at(120, notebook("large", "class", 600, gpus=3)),
        [at(121, one) for one in crowd(3, "class", 600)],
        last=HOUR_S,
    )
    assert max(seen.wait(f"class{n}") for n in range(3)) <= SOON_S
    keeps_all(seen)


def test_a_class_of_64_has_its_gpus_within_the_grace() -> None:
    seen = see(
        promised(**{"class": 64, "lab": 0}),
        nodes(8, 8),
        [at(1, one) for one in crowd(64, "lab", 5 * HOUR_S, qos="batch")],
        [at(600, one) for one in crowd(64, "class", 600)],
        last=700,
    )
    assert max(seen.wait(f"class{n}") for n in range(64)) <= 35
    keeps_all(seen)


def test_when_more_is_guaranteed_than_there_is_both_get_their_part() -> None:
    seen = see(
        promised(A=8, B=1),
        nodes(1, 4),
        [at(1, one) for one in crowd(8, "A", *[600] * 100, think_s=1)],
        at(60, notebook("B0", "B", *[600] * 100, think_s=1)),
        last=12 * HOUR_S,
    )
    assert seen.wait("B0") <= HOUR_S
    part = 4 * 1 / 9 * 12 * HOUR_S
    assert 0.5 * part <= seen.gpu_seconds("B") <= 2 * part
    keeps_all(seen)


def test_the_lowest_class_is_taken_back_first() -> None:
    seen = see(
        promised(owner=1, lab=0),
        nodes(1, 2),
        at(1, notebook("batch", "lab", 5 * HOUR_S, qos="batch")),
        at(360, notebook("typed", "lab", 1700)),
        at(480, notebook("owner", "owner", 600)),
        last=600,
    )
    assert seen.asked_to_leave("batch") == [480]
    assert seen.asked_to_leave("typed") == []
    keeps_all(seen)


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        ("[projects.lab]\nguaranteed = 2\n", "lab"),
        ('[projects.dep]\nguaranteed = 2\n[projects.lab]\nparent = "dep"\n', "dep"),
        ('[projects.dep]\n[projects.lab]\nparent = "dep"\n[projects.other]\nparent = "dep"\nguaranteed = 2\n', "other"),
    ],
)
def test_who_is_covered_has_none_of_its_own_go_where_a_borrowed_cell_is_old_enough_soon(text: str, whose: str) -> None:
    """Else whoever had to go for it would ask for the borrowed one afterwards, and wait for a second grace."""
    seen = look(
        quotas(text), nodes(1, 2),
        ask(1, 1, "lab", BATCH_S, name="train", **LONG),
        ask(250, 1, "guests", BATCH_S, name="guest", **LONG),
        ask(290, 1, whose, 600, name="types"),
        last=1500,
    )  # fmt: skip
    assert seen.wait("types0") <= 20 + SOON_S  # of age at 310 s
    assert (left(seen, "train"), left(seen, "guest")) == (0, 1)
    keeps_all(seen)


def test_who_is_covered_waits_for_no_cell_that_is_too_young_for_longer_than_a_grace() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n"), nodes(1, 2),
        ask(1, 1, "lab", BATCH_S, name="train", **LONG),
        ask(250, 1, "guests", BATCH_S, name="guest", **LONG),
        ask(270, 1, "lab", 600, name="types"),
        last=1500,
    )  # fmt: skip
    assert seen.wait("types0") <= SOON_S
    assert (left(seen, "train"), left(seen, "guest")) == (1, 1)
    keeps_all(seen)


def test_cells_of_a_node_that_comes_back_began_before_those_that_began_later_elsewhere() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\n[projects.owner]\nguaranteed = 1\n"), nodes(2, 1),
        ask(1, 1, "lab", BATCH_S, name="first", **LONG),
        ask(20, 1, "lab", BATCH_S, name="second", **LONG),
        at(100, hi.GoesSilent(AgentId("n0"))),
        at(105, hi.Returns(AgentId("n0"))),
        ask(200, 1, "owner", 600),
        last=HOUR_S, ask_again_ms=NEVER_MS,  # its notebook has heard it all the time
    )  # fmt: skip
    assert waits(seen, "owner")[-1] <= SOON_S
    assert (left(seen, "first"), left(seen, "second")) == (0, 1)
    keeps_all(seen)


def test_nobody_of_the_same_department_leaves_who_would_take_a_gpu_from_a_guest_then() -> None:
    """What its department covers would be taken back, and then what nobody covers for that: two graces for one GPU."""
    projects = (
        Project(id=ProjectId("department"), guaranteed_milli=3000),
        Project(id=ProjectId("lab"), parent=ProjectId("department"), guaranteed_milli=1000),
        Project(id=ProjectId("group"), parent=ProjectId("department")),
    )
    seen = see(
        SchedulerSettings(projects=projects),
        nodes(1, 3),
        at(1, notebook("guest", "guests", HOUR_S)),
        [at(100, one) for one in crowd(2, "group", HOUR_S)],
        at(300, notebook("first", "lab", 600)),
        last=500,
    )
    assert seen.wait("first") <= SOON_S
    assert seen.asked_to_leave("guest") == [300]
    assert not seen.violations
