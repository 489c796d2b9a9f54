"""Which cells a guarantee covers, and who is covered whatever else waits: what is not covered can be taken back."""

import pytest

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import left, look, quotas
from tests.scheduler.promises.test_who_gives_back import LAB, LONG, borrows, gone

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


def test_what_only_the_department_covers_is_not_taken_by_others() -> None:
    text = LAB + '[projects.dep]\nguaranteed = 2\n[projects.in]\nparent = "dep"\n'
    happenings = RUNS, borrows(1, "far"), borrows(100, "in-one", "in"), borrows(101, "in-two", "in")
    assert gone(*happenings, size=4, text=text) == ["far"]


def test_the_users_of_a_department_take_no_more_inside_it_than_their_part() -> None:
    text = '[projects.dep]\nguaranteed = 2\n[projects.in]\nparent = "dep"\n[projects.lab]\nparent = "dep"\nguaranteed = 2\n'
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


def test_who_is_covered_inside_a_department_is_next_though_that_uses_more_than_it_is_guaranteed() -> None:
    text = '[projects.dep]\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n[projects.in]\nparent = "dep"\n[projects.x]\npriority = 5\n'
    seen = look(
        quotas(text + FIXED),
        nodes(1, 3),
        borrows(1, "in0", "in", qos="fixed"),
        borrows(2, "in1", "in", qos="fixed"),
        at(3, notebook("ends", "far", 600, qos="fixed", closes_ms=0)),
        borrows(10, "x"),
        at(20, notebook("lab", "lab", 60)),
        last=700,
    )
    assert seen.granted("lab") == 603


@pytest.mark.parametrize("others", [1, 2])
def test_who_is_covered_does_not_wait_for_larger_ones_that_are_covered_too(others: int) -> None:
    """Those wait for a cell that is never taken back."""
    names = ["b", "c"][:others]
    text = "[projects.lab]\nguaranteed = 1\n" + "".join(f"[projects.{one}]\nguaranteed = 3\n" for one in names)
    seen = look(
        quotas(text + FIXED),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(3))),
        at(0, hi.Joins(AgentId("n1"), hi.gpus(6, "NVIDIA L4", 24 * hi.GB))),
        borrows(1, "fixed", "far", qos="fixed", gpu_type="A100"),
        *(borrows(2 + n, f"y{n}", "y", gpu_type="A100") for n in range(2)),
        *(at(600 + n, notebook(one, one, HOUR_S / 4, gpus=3, gpu_type="A100")) for n, one in enumerate(names)),
        at(620, notebook("lab", "lab", 60, gpu_type="A100")),
        last=900,
    )
    assert seen.wait("lab") <= 32
