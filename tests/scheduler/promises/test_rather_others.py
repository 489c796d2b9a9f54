"""Who is covered has back what no guarantee covers, rather than a cell of their own project or department."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import at, nodes
from tests.scheduler.promises.stories import BATCH_S, H100, L4, LONG, ask, left, look, quotas, waits


def test_no_batch_cell_of_ones_own_goes_where_a_borrowed_one_is_old_enough_before_its_grace_is_over() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n"),
        nodes(1, 2),
        ask(1, 1, "lab", BATCH_S, name="batch", **LONG),
        ask(300, 1, "far", BATCH_S, **LONG),
        ask(345, 1, "lab", 60, name="types"),
        last=600,
    )
    assert (left(seen, "batch"), left(seen, "far")) == (0, 1)
    assert waits(seen, "types") == [15 + 30]


def test_a_guest_gives_back_before_one_whom_the_department_covers_though_the_guest_loses_more() -> None:
    seen = look(
        quotas(
            '[projects.dep]\nguaranteed = 2\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'
            '[projects.group]\nparent = "dep"\n'
        ),
        nodes(1, 2),
        ask(1, 1, "guest", BATCH_S, **LONG),
        ask(200, 1, "group", BATCH_S, **LONG),
        ask(400, 1, "lab", 60),
        last=600,
    )
    assert (left(seen, "guest"), left(seen, "group")) == (1, 0)


def test_for_a_full_limit_nobody_else_gives_back_where_a_gpu_is_free() -> None:
    """A free GPU idles for the grace of the group's cell: that is no reason for the guest to lose one."""
    seen = look(
        quotas(
            '[projects.dep]\nguaranteed = 1\nlimit = 2\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'
            '[projects.group]\nparent = "dep"\n'
        ),
        at(0, hi.Joins(AgentId("first"), hi.gpus(1, H100))),
        at(0, hi.Joins(AgentId("second"), hi.gpus(1, H100))),
        at(0, hi.Joins(AgentId("slow"), hi.gpus(2, L4))),
        ask(1, 1, "guest", BATCH_S, gpu_type="H100", **LONG),
        ask(2, 2, "group", BATCH_S, gpu_type="L4", **LONG),
        ask(300, 1, "lab", 60, gpu_type="H100"),
        last=400,
    )
    assert (left(seen, "guest"), left(seen, "group")) == (0, 1)
    assert waits(seen, "lab") == [30]
