"""What is reserved for a project, or for some of its people: from its beginning on, until its end, and nothing else."""

import msgspec

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Reclaim, Right
from gpu_worker.scheduler.estimates.window_words import show_class_hours
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.projects import Project
from gpu_worker.scheduler.policy.reserved_projects import with_reservations
from tests.scheduler.bench import MINUTE, SETTINGS, held, project, slots
from tests.scheduler.quota_bench import Quotas, changed, taken
from tests.scheduler.timetable import place

HOUR = 60 * MINUTE
LAB = project("lab")


def exam(
    *users: str, gpus: int = 2, begin: int = 60, end: int = 120, of: str = "lab", name: str = "exam"
) -> Reservation:
    """From one in the morning until two, where no time is said."""
    return Reservation(
        name=name,
        project=ProjectId(of),
        users=tuple(map(UserName, users)),
        guaranteed_milli=1000 * gpus,
        from_minute=begin,
        until_minute=end,
        zone=place("UTC"),
    )


def reserved(*reservations: Reservation, projects: tuple[Project, ...] = (LAB,), gpus: int = 2) -> Quotas:
    pool = Quotas(*with_reservations(projects, reservations))
    pool.join("a", slots(gpus))
    return pool


def counts(pool: Quotas, name: str) -> int:
    return pool.scheduler.state.accounts.of(ProjectId(name)).used


def test_a_person_has_the_gpus_within_the_grace_from_the_beginning_whoever_borrowed() -> None:
    pool = reserved(exam("ann"))
    pool.busy("guests.eve", "lab.bob")
    pool.later(50 * MINUTE)
    assert pool.wants("lab.ann1") == pool.wants("lab.ann2") == []
    assert taken(pool.later(10 * MINUTE - 1)) == [], "nothing happens before it begins"
    actions = pool.later(1)
    assert sorted(taken(actions)) == ["guests.eve:1", "lab.bob:1"]
    assert {one.right for one in actions if isinstance(one, Reclaim)} == {Right.GUARANTEE}
    assert pool.order(["guests.eve:1", "lab.bob:1"]) == ["lab.ann1:1", "lab.ann2:1"]
    assert (counts(pool, "exam in lab"), counts(pool, "lab")) == (2000, 2000)
    pool.replay()


def test_nobody_idles_for_it_before_it_begins_while_it_is_on_or_after_it_ends() -> None:
    pool = reserved(exam("ann"))
    pool.later(59 * MINUTE)
    pool.busy("guests.a", "guests.b", walltime_ms=30 * MINUTE)
    pool.later(2 * MINUTE)
    pool.end("guests.a:1")
    assert pool.order(["guests.a:1"]) == []
    assert pool.wants("guests.c") == ["guests.c:1"], "what she does not use is lent"
    pool.start("guests.c:1")
    pool.later(59 * MINUTE)
    assert pool.wants("lab.ann") == []
    assert taken(pool.later(MINUTE)) == [], "it is over"


def test_what_runs_stays_where_it_is_and_what_waits_counts_there_from_the_beginning() -> None:
    pool = reserved(exam("ann", gpus=1))
    pool.busy("lab.ann1", walltime_ms=30 * MINUTE)
    pool.later(59 * MINUTE)
    pool.busy("guests.eve")
    assert pool.wants("lab.ann2") == []
    assert pool.scheduler.state.pending["lab.ann2/1"].project == "lab"  # type: ignore[index]
    assert taken(pool.later(MINUTE)) == ["guests.eve:1"]
    assert pool.scheduler.state.pending["lab.ann2/1"].project == "exam in lab"  # type: ignore[index]
    assert counts(pool, "exam in lab") == 0
    pool.end("lab.ann1:1")
    assert pool.scheduler.state.leases["lab.ann1:1"].project == "exam in lab", "its next cell counts there"  # type: ignore[index]


def test_what_runs_at_its_end_counts_in_the_project_again_and_is_borrowed() -> None:
    pool = reserved(exam("ann"), projects=(LAB, project("class", guaranteed_milli=1000)))
    pool.later(HOUR)
    pool.busy("lab.ann1", "lab.ann2")
    pool.later(58 * MINUTE)
    assert pool.wants("class.tom") == []
    assert taken(pool.later(MINUTE)) == []
    assert len(taken(pool.later(MINUTE))) == 1
    assert (counts(pool, "exam in lab"), counts(pool, "lab")) == (0, 2000)
    users = pool.scheduler.state.accounts.of(ProjectId("lab")).users
    assert users[UserName("ann")].used == 2000


def test_others_are_told_for_whom_and_until_when() -> None:
    pool = reserved(exam("ann"))
    pool.later(HOUR)
    pool.busy("lab.ann1", "lab.ann2")
    assert pool.wants("guests.eve") == []
    told = pool.why("guests.eve/1")
    assert "2 GPUs are reserved for 'exam' until 02:00 UTC" in told.reason
    assert pool.wants("lab.bob") == []
    assert "2 GPUs are reserved for 'exam' until 02:00 UTC" in pool.why("lab.bob/1").reason
    pool.later(HOUR)
    assert "reserved" not in pool.why("guests.eve/1").reason


def test_who_it_is_for_is_told_before() -> None:
    pool = reserved(exam("ann"))
    pool.busy("guests.a", "guests.b", qos="batch")
    pool.later(30 * MINUTE)
    assert pool.wants("lab.ann") == []
    assert "the reservation 'exam' begins at 01:00 UTC, in 30 min" in pool.why("lab.ann/1").reason
    assert pool.wants("lab.bob") == []
    assert "exam" not in pool.why("lab.bob/1").reason


def test_the_longest_wait_knows_when_it_begins_and_ends() -> None:
    pool = reserved(exam("ann", gpus=1), gpus=1)
    pool.busy("guests.eve", qos="batch")
    pool.later(50 * MINUTE)
    assert pool.wants("lab.ann", walltime_ms=20 * MINUTE) == []
    assert pool.wants("lab.bob", walltime_ms=20 * MINUTE) == []
    wait_ms = pool.why("lab.ann/1").wait_ms
    assert wait_ms is not None
    assert 10 * MINUTE < wait_ms <= 10 * MINUTE + 30_000
    assert (pool.why("lab.bob/1").wait_ms or 0) > wait_ms


def test_a_class_that_never_borrows_runs_in_it() -> None:
    pool = reserved(exam("ann", gpus=1))
    assert pool.wants("lab.ann", qos="reserved", walltime_ms=20 * MINUTE) == []
    assert "the reservation 'exam' begins at 01:00" in pool.why("lab.ann/1").reason
    pool.later(HOUR - 1)
    assert [one.lease for one in pool.later(1) if hasattr(one, "request")] == ["lab.ann:1"]


def test_for_a_project_it_is_a_guarantee_of_the_whole_project() -> None:
    pool = reserved(exam(gpus=1))
    pool.busy("guests.eve", "guests.tom")
    pool.later(50 * MINUTE)
    assert pool.wants("lab.bob") == []
    assert "the reservation 'exam' begins at 01:00 UTC, in 10 min" in pool.why("lab.bob/1").reason
    assert len(taken(pool.later(10 * MINUTE))) == 1
    account = pool.scheduler.state.accounts.of(ProjectId("lab"))
    assert show_class_hours(account, pool.now_ms) == "reservation 'exam' until 02:00 UTC, for another 60 min"
    assert show_class_hours(account, 30 * MINUTE) == "reservation 'exam' begins at 01:00 UTC, in 30 min"


def test_a_reservation_that_the_file_no_longer_has_ends_at_once_and_one_that_it_has_begins() -> None:
    pool = reserved()
    pool.later(HOUR + MINUTE)
    pool.busy("guests.eve", "lab.ann")
    assert pool.wants("lab.ann2") == []
    pool.later(2 * MINUTE)
    assert len(taken(changed(pool, *with_reservations((LAB,), [exam("ann")])))) == 1
    assert pool.scheduler.state.leases["lab.ann:1"].project == "lab", "what runs stays"  # type: ignore[index]
    assert pool.order(["guests.eve:1"]) == ["lab.ann2:1"]
    pool.start("lab.ann2:1")
    assert counts(pool, "exam in lab") == 1000
    changed(pool, LAB)
    assert "exam in lab" not in pool.scheduler.state.accounts.by_id
    assert counts(pool, "lab") == 2000
    pool.end("lab.ann2:1")
    pool.replay()


def test_another_name_of_a_reservation_moves_what_counts_in_it() -> None:
    pool = reserved(exam("ann"))
    pool.later(HOUR)
    pool.busy("lab.ann")
    changed(pool, *with_reservations((LAB,), [exam("ann", name="test")]))
    assert pool.scheduler.state.leases["lab.ann:1"].project == "test in lab"  # type: ignore[index]
    changed(pool, *with_reservations((LAB,), [exam("bob", name="test")]))
    assert pool.scheduler.state.leases["lab.ann:1"].project == "lab"  # type: ignore[index]


def test_after_a_restart_what_began_in_it_counts_there_and_what_began_before_does_not() -> None:
    pool = Quotas(*with_reservations((project("p"),), [exam("ann", "bob", of="p")]))
    pool.now_ms = HOUR + 10 * MINUTE
    young = held("ann", cell="c1", on=("gpu-0",), running_ms=5 * MINUTE)
    old = held("bob", cell="c1", on=("gpu-1",), running_ms=20 * MINUTE)
    pool.join("a", slots(2), young, old)
    leases = pool.scheduler.state.leases
    assert [leases[name].project for name in ("ann:1", "bob:1")] == ["exam in p", "p"]  # type: ignore[index]
    pool.join("a", slots(2), young, old)
    assert [leases[name].project for name in ("ann:1", "bob:1")] == ["exam in p", "p"]  # type: ignore[index]


def test_past_use_and_budgets_are_those_of_the_project() -> None:
    pool = reserved(exam("ann"))
    pool.later(HOUR)
    pool.busy("lab.ann")
    pool.later(10 * MINUTE)
    pool.end("lab.ann:1")
    accounts = pool.scheduler.state.accounts
    lab = accounts.of(ProjectId("lab"))
    assert lab.history.amount == lab.users[UserName("ann")].history.amount > 0
    assert accounts.of(ProjectId("exam in lab")).history.amount == 0


def test_who_waits_for_long_is_late_in_it_too_and_stays_so() -> None:
    patient = msgspec.structs.replace(SETTINGS.qos[0], patience_ms=10 * MINUTE)
    pool = Quotas(*with_reservations((LAB,), [exam("ann", begin=20, end=40)]), qos=(patient, *SETTINGS.qos[1:]))
    pool.join("a", slots(1))
    pool.busy("guests.eve")
    assert pool.wants("lab.ann", gpus=1) == []
    pool.say(ev.NodeDrained("a", True))  # type: ignore[arg-type]
    pool.later(15 * MINUTE)
    assert not pool.scheduler.state.pending["lab.ann/1"].entry.key.is_early  # type: ignore[index]
    pool.later(10 * MINUTE)
    assert pool.scheduler.state.pending["lab.ann/1"].project == "exam in lab"  # type: ignore[index]
    pool.later(20 * MINUTE)
    assert pool.scheduler.state.pending["lab.ann/1"].project == "lab"  # type: ignore[index]
    assert not pool.scheduler.state.pending["lab.ann/1"].entry.key.is_early  # type: ignore[index]
