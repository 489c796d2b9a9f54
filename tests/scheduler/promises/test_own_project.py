"""Classes of service of one project beside one another, and what they keep from others. Each of these once failed."""

from bulletin.ids import AgentId
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.crowds import SOON_S, crowd, keeps_all, promised
from tests.scheduler.promises.seen import HOUR_S, at, nodes, notebook, see
from tests.scheduler.promises.stories import BATCH_S, LONG, ask, left, look, quotas


def test_who_never_borrows_does_not_wait_for_batch_that_uses_the_guarantee() -> None:
    seen = see(
        promised(lab=1),
        nodes(1, 4),
        at(1, notebook("two", "lab", 1500, qos="batch", gpus=2)),
        at(2, notebook("one", "lab", 1500, qos="batch")),
        at(120, notebook("reserved", "lab", 1500, qos="reserved")),
        last=HOUR_S,
    )
    assert seen.wait("reserved") <= 2
    assert seen.asked_to_leave("one") == seen.asked_to_leave("two") == []
    keeps_all(seen)


def test_who_never_borrows_has_the_part_of_its_projects_own_users() -> None:
    dept = Project(id="dept", guaranteed_milli=2000)  # type: ignore[arg-type]
    course = Project(id="course", parent="dept")  # type: ignore[arg-type]
    seen = see(
        SchedulerSettings(projects=(dept, course)),
        nodes(1, 2),
        [at(1, one) for one in crowd(2, "course", 1700)],
        at(120, notebook("reserved", "dept", 600, qos="reserved")),
        last=HOUR_S,
    )
    assert seen.wait("reserved") <= SOON_S
    keeps_all(seen)


def test_a_hot_session_that_never_borrows_keeps_no_guarantee_from_its_own_project() -> None:
    keeps = Project(id="keeps", guaranteed_milli=3000, lending_limit_milli=0)  # type: ignore[arg-type]
    lab = Project(id="lab", guaranteed_milli=1000)  # type: ignore[arg-type]
    seen = see(
        SchedulerSettings(projects=(keeps, lab)),
        nodes(1, 4),
        at(1, notebook("reserved", "lab", 60, qos="reserved")),
        at(100, notebook("guest", "guests", 1700)),
        at(120, notebook("typed", "lab", 60)),
        last=HOUR_S,
    )
    assert seen.wait("typed") <= 2
    keeps_all(seen)


def test_who_has_room_made_on_one_node_keeps_nobody_from_another() -> None:
    seen = see(
        SchedulerSettings(),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2))),
        [at(1, one) for one in crowd(2, "lab", 5 * HOUR_S, qos="batch")],
        at(3, hi.Joins(AgentId("n1"), hi.gpus(2))),
        at(4, notebook("other", "other", 5 * HOUR_S, qos="batch")),
        at(5, hi.Joins(AgentId("n2"), hi.gpus(3))),
        at(6, notebook("others", "other", 5 * HOUR_S, gpus=3, qos="batch")),
        at(120, notebook("large", "lab", 600, gpus=2)),
        at(121, notebook("short", "other", 60, walltime_ms=120_000)),
        last=HOUR_S,
    )
    assert seen.wait("large") <= SOON_S
    assert seen.wait("short") <= 2
    keeps_all(seen)


def test_who_only_the_department_covers_takes_back_and_leaves_free_what_is_kept() -> None:
    owner = Project(id="owner", parent="dept", guaranteed_milli=2000)  # type: ignore[arg-type]
    keeps = Project(id="keeps", parent="dept", guaranteed_milli=1000, lending_limit_milli=0)  # type: ignore[arg-type]
    seen = see(
        SchedulerSettings(projects=(Project(id="dept"), owner, keeps)),  # type: ignore[arg-type]
        nodes(1, 4),
        [at(1, one) for one in crowd(2, "lab", 1700)],
        at(2, notebook("owner", "owner", 1700)),
        at(120, notebook("staff", "dept", 1700)),
        at(160, notebook("mine", "keeps", 600)),
        last=HOUR_S,
    )
    assert seen.wait("staff") <= SOON_S
    assert seen.wait("mine") <= 2
    keeps_all(seen)


def test_a_lower_class_makes_way_where_a_lending_limit_lets_no_more_run() -> None:
    keeps = Project(id="keeps", guaranteed_milli=2000, lending_limit_milli=0)  # type: ignore[arg-type]
    seen = see(
        SchedulerSettings(projects=(keeps,)),
        nodes(1, 3),
        at(1, notebook("batch", "lab", 5 * HOUR_S, qos="batch")),
        at(120, notebook("typed", "lab", 600)),
        last=HOUR_S,
    )
    assert seen.wait("typed") <= SOON_S
    keeps_all(seen)


def test_what_a_higher_class_takes_back_is_not_given_to_a_lower_one_again() -> None:
    seen = see(
        promised(lab=1),
        nodes(1, 2),
        [at(1, one) for one in crowd(3, "lab", 5 * HOUR_S, qos="batch")],
        at(120, notebook("large", "lab", 600, gpus=2)),
        last=HOUR_S,
    )
    assert seen.wait("large") <= SOON_S
    assert all(len(seen.asked_to_leave(f"lab{n}")) <= 1 for n in range(3))
    keeps_all(seen)


def test_who_takes_a_cell_keeps_its_place_when_that_cell_is_gone() -> None:
    seen = see(
        SchedulerSettings(),
        nodes(1, 2),
        at(1, notebook("runs", "hub", 1790)),
        at(2, notebook("batch", "hub", 5 * HOUR_S, qos="batch", user="ann", walltime_ms=6 * HOUR_S * 1000)),
        at(100, notebook("large", "hub", 600, gpus=2, user="ann")),
        at(130, notebook("typed", "hub", 600)),
        last=HOUR_S,
    )
    assert seen.wait("typed") <= SOON_S
    assert len(seen.asked_to_leave("batch")) <= 2
    keeps_all(seen)


def test_a_short_cell_takes_back_where_a_longer_one_would_be_over_too_late() -> None:
    seen = see(
        SchedulerSettings(),
        nodes(1, 2),
        at(1, notebook("runs", "hub", 1790)),
        at(2, notebook("batch", "hub", 1690, qos="batch", walltime_ms=1_700_000)),
        at(120, notebook("large", "hub", 600, gpus=2)),
        at(125, notebook("long", "hub", 1700)),
        at(130, notebook("short", "hub", 60, walltime_ms=600_000)),
        last=HOUR_S,
    )
    assert seen.wait("short") <= SOON_S
    keeps_all(seen)


def test_people_who_type_take_back_batch_of_their_project_though_another_project_stands_in_line() -> None:
    for guaranteed in (0, 2):
        seen = see(
            promised(lab=guaranteed, other=0),
            nodes(1, 2),
            [at(1, one) for one in crowd(2, "lab", 5 * HOUR_S, qos="batch", name="batch")],
            [at(300 + n, notebook(f"other{n}", "other", 600)) for n in range(3)],
            [at(310 + n, notebook(f"types{n}", "lab", 60)) for n in range(2)],
            last=HOUR_S,
        )
        assert max(seen.wait(f"types{n}") for n in range(2)) <= 4 * SOON_S  # it once was five hours


def test_what_a_higher_class_takes_of_a_limit_is_not_given_back_to_a_lower_one_before() -> None:
    """It asks for all that the limit lets through, and so for one GPU more than is guaranteed; batch is covered."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 3\nlimit = 4\n"),
        [at(0, hi.Joins(AgentId(name), hi.gpus(gpus))) for name, gpus in (("n0", 2), ("n1", 2), ("n2", 4))],
        [at(1 + n, notebook(f"batch{n}", "lab", 5 * HOUR_S, qos="batch")) for n in range(3)],
        at(300, notebook("large", "lab", 600, gpus=4)),
        at(310, notebook("batch3", "lab", 60, qos="batch")),
        last=HOUR_S,
    )
    assert seen.wait("large") <= SOON_S
    assert seen.granted("batch3") > seen.granted("large")
    assert [len(seen.asked_to_leave(f"batch{n}")) for n in range(3)] == [1, 1, 1]
    keeps_all(seen)


def test_own_project_who_has_a_cell_taken_back_has_what_was_freed_for_it_elsewhere() -> None:
    """The session that leaves for a request of two GPUs asks anew at once: the batch cell would be lost for nothing."""
    seen = look(
        quotas("[projects.club]\nguaranteed = 1\nlimit = 2\n"), nodes(1, 2),
        ask(1, 1, "guests", *[300] * 9, name="guest", walltime_ms=600_000),
        ask(5, 1, "club", BATCH_S, name="train", **LONG),
        ask(100, 1, "club", 60, gpus=2, name="two"),
        last=3000,
    )  # fmt: skip
    assert seen.granted("two0") <= 301 + 30 + SOON_S
    assert left(seen, "train") == 1
    assert seen.idle_share(2, 10, 2900) <= 0.02


def test_what_was_taken_back_for_who_cannot_start_after_all_does_not_idle() -> None:
    """The session that was to leave for it, too, asks anew at once, and is covered: it has its GPU before."""
    seen = look(
        quotas("[projects.lab]\nguaranteed = 2\nborrow = false\n[projects.other]\nguaranteed = 2\n"), nodes(1, 2),
        ask(1, 1, "other", *[1000] * 3, name="other"),
        ask(2, 1, "lab", BATCH_S, name="train", **LONG),
        at(100, notebook("large", "lab", 60, gpus=2)),
        last=1900,
    )  # fmt: skip
    assert left(seen, "train") == 1
    assert seen.idle_share(2, 1040, 1900) == 0
    keeps_all(seen)


def test_who_may_take_a_batch_cell_of_their_project_does_not_wait_for_those_of_others_who_wait() -> None:
    seen = look(
        quotas("[projects.first]\npriority = 5\n[projects.lab]\n"),
        [at(0, hi.Joins(AgentId(f"n{n}"), hi.gpus(2))) for n in range(2)],
        ask(1, 2, "far", 10 * HOUR_S, **LONG),
        ask(2, 2, "lab", 10 * HOUR_S, name="batch", **LONG),
        ask(100, 3, "first", HOUR_S, name="waits", qos="interactive"),
        ask(110, 1, "other", HOUR_S, qos="interactive"),
        ask(120, 1, "lab", 600, name="typing", qos="interactive"),
        last=220,
    )
    assert seen.wait("typing0") <= 60
