"""What the page allows, and the referee once called a broken promise."""

from bulletin.ids import AgentId
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, join, look, mixed, quotas, waits

RUNS = {"qos": "batch", "closes_ms": 0}


def test_a_user_limit_is_of_the_projects_own_users_so_a_larger_request_may_wait_beside_what_they_use_inside_it() -> (
    None
):
    seen = look(
        quotas('[projects.dep]\npriority = 5\nuser_limit = 2\n[projects.inner]\nparent = "dep"\n'),
        nodes(1, 3),
        at(1, notebook("inside", "inner", HOUR_S, user="ann", **RUNS)),
        at(2, notebook("ends", "guests", 600, walltime_ms=600_000, closes_ms=0)),
        at(10, notebook("large", "dep", 600, user="ann", gpus=2, closes_ms=0)),
        at(20, notebook("guest", "guests", HOUR_S, closes_ms=0)),
        last=60,
    )
    assert seen.granted("large") > 60
    assert seen.granted("guest") > 60


def test_who_is_covered_by_a_department_alone_waits_as_much_longer_where_a_cell_goes_for_a_project_inside_it() -> None:
    text = '[projects.dep]\n[projects.cs]\nparent = "dep"\nguaranteed = 2\n[qos.interactive]\npatience = "1 d"\n'
    seen = look(
        quotas(text),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2), cpus=32, memory_bytes=256 << 30)),
        at(1, notebook("guest", "guests", HOUR_S, **RUNS)),
        at(4, notebook("own", "dep", HOUR_S, closes_ms=0)),
        at(5, notebook("large", "cs", 600, gpus=2, cpus=16, closes_ms=0)),
        at(61.2, notebook("more", "dep", HOUR_S, cpus=4, closes_ms=0)),
        last=120,
    )
    assert seen.asked_to_leave("guest") == [61.2]
    assert seen.granted("large") <= 64 + 30 + 2


def test_who_is_owed_something_by_a_lab_waits_for_the_cell_that_borrows_once_a_class_that_never_does_has_its_gpu() -> (
    None
):
    text = '[projects.dep]\nguaranteed = 2\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'
    text += '[qos.batch]\nwalltime = "1 d"\nmin_runtime = "5 min"\n[qos.long]\ngrace = "2 min"\n'
    seen = look(
        quotas(text),
        nodes(1, 2),
        at(1, notebook("first", "dep", HOUR_S, **RUNS)),
        at(2, notebook("second", "dep", HOUR_S, **RUNS | {"qos": "long"})),
        at(3, notebook("firm", "dep", HOUR_S, qos="reserved", closes_ms=0)),
        at(98, notebook("mine", "lab", HOUR_S, **RUNS)),
        last=400,
    )
    assert seen.asked_to_leave("second")[0] <= 63
    assert seen.granted("mine") <= 301 + 30 + 2


def test_a_larger_request_is_not_covered_for_sure_while_room_is_made_for_another_one_of_its_project() -> None:
    """With `small` the lab has one of two GPUs: `large` could not have the guest's back, and keeps its node from it."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\n[projects.owner]\nguaranteed = 1\n"),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2))),
        at(0.1, hi.Joins(AgentId("n1"), hi.gpus(1))),
        at(1, notebook("borrows", "others", HOUR_S, closes_ms=0)),
        at(2, notebook("owner", "owner", HOUR_S, walltime_ms=1_200_000, closes_ms=0)),
        at(3, notebook("ends", "lab", 197, closes_ms=0)),
        at(50, notebook("guest", "guests", HOUR_S, closes_ms=0)),
        at(100, notebook("large", "lab", HOUR_S, gpus=2, **RUNS)),
        at(200.1, notebook("small", "lab", HOUR_S, **RUNS)),
        last=220,
        evict_ms=500,
    )
    assert seen.granted("guest") > 220
    assert seen.asked_to_leave("borrows") != []


def test_who_would_not_fit_a_limit_beside_one_inside_their_department_for_whom_a_cell_goes_waits_for_them() -> None:
    """The department lets two GPUs be used: both are for `large` once `own` has gone, also the one that is free."""
    seen = look(
        quotas('[projects.dep]\nlimit = 2\n[projects.cs]\nparent = "dep"\nguaranteed = 2\n'),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(1))),
        at(0, hi.Joins(AgentId("n1"), hi.gpus(4))),
        at(1, notebook("own", "dep", HOUR_S, **RUNS)),
        at(50, hi.Drains(AgentId("n0"), is_drained=True)),
        at(100, notebook("large", "cs", 600, gpus=2, walltime_ms=600_000, closes_ms=0)),
        at(105, notebook("more", "dep", HOUR_S, closes_ms=0)),
        last=800,
    )
    assert seen.granted("large") <= 100 + 30 + 2
    assert seen.granted("more") >= seen.granted("large") + 600


def test_what_has_come_pays_what_was_owed_for_the_longest_time() -> None:
    """While `large` counts of the limit, the lab is owed one GPU; for `second` it is owed another one from 130 on."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\nlimit = 3\n"),
        nodes(1, 2),
        ask(1, 2, "guests", BATCH_S, **LONG),
        ask(100, 1, "lab", 900, name="first"),
        ask(102, 1, "lab", 900, name="large", gpus=2, **LONG),
        ask(103, 1, "lab", 900, name="second", **LONG),
        last=200,
    )
    assert waits(seen, "first") == waits(seen, "second") == [30]


def test_a_gpu_is_kept_for_whom_a_guarantee_is_being_freed_that_a_class_needs_which_never_borrows() -> None:
    """The batch cell ends in its grace; for its place in the guarantee another user's cell has its own."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 3\n"),
        mixed(1, 4),
        ask(1, 1, "lab", BATCH_S, name="batch", gpu_type="H100", **LONG),
        ask(2, 1, "lab", BATCH_S, name="firm", gpu_type="L4", qos="reserved"),
        ask(3, 2, "lab", 900, name="typed", gpu_type="L4", user="ann"),
        ask(300, 1, "lab", 900, name="asks", gpu_type="H100", qos="reserved"),
        ask(301, 1, "guests", 900, gpu_type="H100"),
        last=600,
        early_percent=100,
    )
    assert 440 < seen.granted("asks0") < 450


def test_gpus_are_kept_for_all_who_may_have_what_one_cell_gives_back_of_a_limit() -> None:
    seen = look(
        quotas(
            '[projects.dep]\nlimit = 2\n[projects.lab]\nparent = "dep"\nguaranteed = 1\n'
            '[projects.group]\nparent = "dep"\n'
        ),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2) + hi.slices(2))),
        ask(1, 1, "group", BATCH_S, name="large", gpus=2, **LONG),
        ask(100, 2, "lab", 900, gpu_type="MIG 1g.10gb"),
        ask(101, 1, "guests", 900, gpu_type="MIG"),
        last=600,
    )
    assert waits(seen, "lab") == [30, 30]


def test_a_larger_request_waits_once_more_where_somebody_has_what_was_free_for_it_beside_what_leaves() -> None:
    """A session asks again while it leaves for the guest's three GPUs, and has one that another one left."""
    seen = look(
        quotas("[projects.lab]\nlimit = 2\n[projects.group]\npriority = 5\n"),
        nodes(1, 5),
        ask(1, 1, "lab", 100, name="first", gpus=2),
        ask(2, 1, "group", 103.5, name="bw", walltime_ms=600_000),
        ask(2, 1, "group", 102, 100, name="by", think_s=0.1),
        ask(3, 1, "lab", 900, name="next"),
        ask(4, 1, "guests", 900, name="guest", gpus=3),
        last=600,
        evict_ms=5000,
    )
    assert seen.asked_to_leave("by0")[0] + 4 < seen.asked_to_leave("bw0")[0] < seen.granted("guest0") - 4


def test_a_gpu_is_kept_for_whom_a_hot_session_leaves_a_limit() -> None:
    """Both H100 are free at 105.3; the lab's session leaves for its next one, which has one of them then."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\nborrow = false\n"),
        join(2, 1),
        ask(1, 1, "guests", 100, name="by", gpus=2, gpu_type="H100"),
        ask(2, 1, "lab", 103, name="byy", gpu_type="L4"),
        ask(4, 1, "lab", 900, name="next", gpu_type="H100"),
        ask(5, 1, "others", 900, name="large", gpus=2, gpu_type="H100"),
        last=600,
        evict_ms=5000,
    )
    assert seen.granted("next0") > 108


def test_a_node_is_kept_for_a_larger_request_that_can_start_once_a_cell_is_over_for_which_another_one_goes() -> None:
    """The lab has the young cell's GPU at 185, and is over half an hour later: two hours are too long beside that."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\n[projects.club]\npriority = 5\n"),
        mixed(1, 1),
        ask(1, 1, "guests", 100, name="ends", gpu_type="H100"),
        ask(95, 1, "guests", BATCH_S, name="young", gpu_type="L4", **LONG),
        ask(96, 1, "club", 600, name="large", gpus=2, walltime_ms=600_000, **LONG),
        ask(97, 1, "lab", 900, gpu_type="L4"),
        ask(98, 1, "others", 2 * HOUR_S, walltime_ms=7_200_000, **LONG),
        last=HOUR_S,
    )
    assert seen.granted("large0") == 1085


def test_a_gpu_is_kept_for_whom_what_others_lend_is_being_freed() -> None:
    """The club keeps half a GPU: the lab's batch cell goes, so that so much is free beside the one who types."""
    seen = look(
        quotas(
            "[projects.lab]\nguaranteed = 2\npriority = 5\nlending_limit = 0\n"
            "[projects.club]\nguaranteed = 0.5\nlending_limit = 0\n"
        ),
        mixed(1, 2),
        ask(1, 1, "lab", BATCH_S, name="batch", gpu_type="L4", **LONG),
        ask(2, 1, "lab", 900, name="typed", gpu_type="L4"),
        ask(3, 1, "club", 117, name="ends", gpu_type="H100", closes_ms=0),
        ask(98, 1, "lab", 900, name="asks", gpu_type="H100"),
        ask(118, 1, "club", 900, name="next", gpu_type="H100", **LONG),
        last=200,
    )
    assert seen.asked_to_leave("batch0") == [120]
    assert seen.granted("asks0") == 150
