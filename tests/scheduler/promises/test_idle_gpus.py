"""Nothing idles for longer than a hot session needs to leave, whatever room is being made meanwhile (5)."""

from bulletin.ids import AgentId
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import crowd, keeps_all
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook, see
from tests.scheduler.promises.stories import H100, join, look, quotas


def test_what_is_more_than_room_is_made_for_is_used_at_once() -> None:
    """Two of four GPUs are given back for one of the lab, one is free: whoever asks for that has it."""
    seen = see(
        SchedulerSettings(),
        nodes(1, 4),
        at(1, notebook("batch", "lab", 5 * HOUR_S, gpus=2, qos="batch")),
        at(2, notebook("types", "class", 3000)),
        at(300, notebook("two", "lab", 60, gpus=2)),
        at(302, notebook("one", "lab", 60)),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("batch")
    assert seen.wait("one") <= 1 < seen.wait("two")
    keeps_all(seen)


def test_who_is_in_the_way_of_a_limit_and_of_a_node_leaves_at_the_same_time() -> None:
    seen = look(
        quotas("[projects.lab]\nlimit = 2\n"),
        nodes(1, 2),
        at(1, notebook("own", "lab", 30)),
        at(2, notebook("other", "class", 30)),
        at(120, notebook("both", "lab", 600, gpus=2)),
        last=HOUR_S,
        evict_ms=5000,
    )
    assert seen.asked_to_leave("own") == seen.asked_to_leave("other") == [seen.asked("both")]
    keeps_all(seen)


def test_own_users_of_a_department_are_not_kept_from_what_it_is_guaranteed_by_those_who_lend_less() -> None:
    """The group uses all that the department is guaranteed; its own users are guaranteed it before the group."""
    seen = look(
        quotas(
            "[projects.keeper]\nguaranteed = 2\nlending_limit = 1\n[projects.department]\nguaranteed = 2\n"
            '[projects.group]\nparent = "department"\n'
        ),
        nodes(1, 4),
        at(1, notebook("group1", "group", 3000)),
        at(2, notebook("group2", "group", 3000)),
        at(3, notebook("guest", "club", 3000)),
        at(300, notebook("own", "department", 60)),
        last=HOUR_S,
    )
    assert seen.wait("own") <= 1
    keeps_all(seen)


def test_who_loses_what_was_freed_to_somebody_before_them_has_the_next_one() -> None:
    """The first to leave asks again at once, before one of batch for whom it left: then the other one leaves."""
    seen = look(
        SchedulerSettings(),
        nodes(1, 2),
        at(1, notebook("first", "a", 30, 92, think_s=93)),
        at(2, notebook("second", "b", 60)),
        at(120, notebook("batch", "c", 600, qos="batch")),
        last=HOUR_S,
        evict_ms=10_000,
    )
    assert 12 < seen.wait("batch") <= 20
    assert len(seen.asked_to_leave("second")) == 1
    keeps_all(seen)


def test_a_limit_is_kept_for_whoever_has_waited_for_the_patience_of_their_class() -> None:
    """The patience of batch is ten minutes there, and the request for all of the limit came before the other."""
    seen = look(
        quotas('[projects.lab]\nlimit = 2\n[qos.batch]\npatience = "10 min"\n'),
        nodes(1, 2),
        at(1, notebook("long", "club", 3 * HOUR_S, qos="batch")),
        at(2, notebook("large", "lab", 600, gpus=2, qos="batch")),
        at(1200, notebook("small", "lab", 60)),
        last=2 * HOUR_S,
    )
    assert seen.wait("small") > HOUR_S
    keeps_all(seen)


def test_what_is_free_beside_who_waits_for_a_limit_is_used_at_once() -> None:
    """The lab may use one GPU, which a batch cell of it gives back: until then the other one is for whoever asks."""
    seen = look(
        quotas("[projects.lab]\nlimit = 1\n"),
        nodes(1, 2),
        at(1, notebook("batch", "lab", 5 * HOUR_S, qos="batch")),
        at(300, notebook("types", "lab", 60)),
        at(302, notebook("one", "club", 60, qos="batch")),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("batch")
    assert seen.wait("one") <= 1 < seen.wait("types")
    keeps_all(seen)


def test_a_short_cell_has_the_place_of_a_batch_cell_whatever_grace_others_there_have() -> None:
    """A larger request holds the node until its longest cell is over; nobody waits for the grace of that one."""
    seen = look(
        quotas('[qos.interactive]\ngrace = "10 min"\n'),
        nodes(1, 2),
        at(2, notebook("long", "lab", 1700)),
        at(100, notebook("large", "lab", 600, gpus=2)),
        at(1000, notebook("batch", "lab", 110, walltime_ms=120_000, qos="batch")),
        at(1065, notebook("short", "lab", 60, walltime_ms=300_000)),
        last=HOUR_S,
    )
    assert seen.wait("short") <= 31
    keeps_all(seen)


def test_a_hot_gpu_is_used_that_the_first_in_line_does_not_need_of_its_node() -> None:
    """It waits for the memory of a cell there, and has that one's GPU then, too."""
    seen = look(
        quotas(""),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2), 32, 64 * hi.GB)),
        at(1, notebook("large", "lab", 3000, memory_bytes=60 * hi.GB)),
        at(2, notebook("hot", "lab", 30)),
        at(100, notebook("same", "lab", 60, memory_bytes=60 * hi.GB)),
        at(110, notebook("long", "lab", 3000)),
        last=HOUR_S,
    )
    assert seen.wait("long") <= 1
    keeps_all(seen)


def test_who_waits_for_a_full_limit_leaves_what_is_free_elsewhere_to_others() -> None:
    """The batch cell that makes room in the limit makes room on its node, too: nobody needs the other node."""
    seen = look(
        quotas('[projects.lab]\nguaranteed = 1\nlimit = 1\n[qos.batch]\ngrace = "2 min"\n'),
        nodes(2, 1),
        at(0.5, notebook("before", "guests", 60, closes_ms=0)),
        at(1, notebook("works", "lab", 3000, qos="batch")),
        at(300, notebook("types", "lab", 600)),
        at(310, notebook("other", "free", 60)),
        last=HOUR_S,
    )
    assert seen.wait("other") <= 15
    assert seen.wait("types") <= 150
    keeps_all(seen)


def test_a_gpu_waits_for_whose_limit_is_being_freed_elsewhere() -> None:
    """The lab's limit is full with a cell on the other node: while that has its grace, nobody else has the H100."""
    seen = look(
        quotas("[projects.lab]\nlimit = 1\n"),
        join(1, 3),
        at(1, notebook("own", "lab", 5 * HOUR_S, gpu_type="L4", qos="batch")),
        [at(1, one) for one in crowd(2, "class", HOUR_S, gpu_type="L4")],
        at(2, notebook("before", "class", 300, gpu_type="H100", closes_ms=0)),
        at(210, notebook("first", "lab", 60, gpu_type="H100", closes_ms=0)),
        at(211, notebook("second", "class", 600, gpu_type="H100")),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("own") == [302]
    assert seen.granted("first") == 332
    assert seen.granted("second") == 392
    keeps_all(seen)


def test_what_is_free_goes_to_whom_a_session_leaves_for_where_the_other_waits_for_its_limit() -> None:
    """The first waits for the grace of a cell in its limit, the second for a hot session: that does for both."""
    seen = look(
        quotas("[projects.lab]\nlimit = 1\n"),
        join(2, 1),
        at(1, notebook("own", "lab", 5 * HOUR_S, gpu_type="L4", qos="batch")),
        at(2, notebook("hot", "class", 100, gpu_type="H100")),
        at(210, notebook("first", "lab", 60, gpu_type="H100")),
        at(215, notebook("second", "club", 600, gpu_type="H100")),
        last=HOUR_S,
        evict_ms=5000,
    )
    assert seen.wait("second") == 0
    assert seen.granted("first") <= 246
    keeps_all(seen)


def test_nobody_loses_a_cell_only_so_that_no_gpu_waits_for_whose_limit_is_being_freed() -> None:
    seen = look(
        quotas("[projects.lab]\nguaranteed = 1\nlimit = 1\n"),
        join(1, 1),
        at(0, hi.Joins(AgentId("other"), hi.gpus(1, H100))),
        at(1, notebook("own", "lab", 5 * HOUR_S, gpu_type="L4", qos="batch")),
        at(2, notebook("guest", "class", 5 * HOUR_S, gpu_type="H100")),
        at(210, notebook("first", "lab", 60, gpu_type="H100")),
        last=HOUR_S,
    )
    assert seen.asked_to_leave("own") == [210]
    assert seen.granted("first") == 240
    assert not seen.asked_to_leave("guest")
    keeps_all(seen)
