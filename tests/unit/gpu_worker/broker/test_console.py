"""The command line's questions: who may see what, which id is meant, what is cancelled and drained."""

import asyncio

import msgspec

from bulletin.codes import CellOutcome, LeaseEnd, RefusalCode
from bulletin.ids import CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from bulletin.wire import console, messages as wire
from gpu_worker.broker.records import CellRecord
from gpu_worker.broker.short_cells import mark
from gpu_worker.console import layout, report_sentences
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.class_hours import ClassHours, Zone
from gpu_worker.scheduler.policy.dated_reservations import Reservation
from gpu_worker.scheduler.policy.projects import Project
from gpu_worker.scheduler.policy.reserved_projects import with_reservations
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, HOUR_MS, BrokerParts


def test_the_queue_is_in_the_order_of_the_line_and_says_who_pays(broker: BrokerParts) -> None:
    broker.join()
    running = broker.run(ANN, "cell-a")
    broker.now_ms = 5_000
    borrower = broker.submit(EVE, "cell-e")
    owner = broker.submit(ANN, "cell-b", project="maths")
    broker.now_ms = 7_000
    report = broker.ask(ADMIN, console.AskQueue())
    assert [(row.lease, row.user, row.waited_ms, row.in_quota) for row in report.waiting] == [
        (borrower, "eve", 2_000, False),
        (owner, "ann", 2_000, False),  # school is guaranteed two GPUs of a pool that has one, and uses it
    ]
    assert "guests" not in report.waiting[1].reason
    (row,) = report.running
    assert (row.lease, row.cell, row.state, row.for_ms, row.in_quota) == (running, "cell-a", "busy", 7_000, True)


def test_the_queue_is_narrowed_to_a_user_or_to_a_project_with_what_is_in_it(broker: BrokerParts) -> None:
    broker.join()
    broker.run(ANN, "cell-a")
    mine, other = broker.submit(EVE, "cell-e"), broker.submit(ADMIN, "cell-p", project="physics")
    of_eve = broker.ask(ADMIN, console.AskQueue(user=UserName("eve")))
    assert ([row.lease for row in of_eve.waiting], of_eve.waiting_count, of_eve.running) == ([mine], 1, ())
    of_school = broker.ask(ADMIN, console.AskQueue(project=ProjectId("school")))
    assert [row.lease for row in of_school.waiting] == [other]
    assert [row.user for row in of_school.running] == ["ann"]


def test_others_are_places_in_line_and_nothing_else_to_who_is_no_admin(broker: BrokerParts) -> None:
    broker.join()
    theirs, also = broker.run(EVE, "cell-e"), broker.submit(ADMIN, "cell-r", project="physics")
    own = broker.submit(ANN, "cell-a")
    report = broker.ask(ANN, console.AskQueue())
    shown = repr(report)
    for secret in (theirs, also, "eve", "root", "guests", "physics", "cell-e"):
        assert secret not in shown
    assert own in shown
    assert [row.position for row in report.waiting] == [1, 2]
    assert "eve" not in broker.refusal(ANN, console.AskQueue(user=UserName("bob")))
    assert "'guests'" in broker.refusal(ANN, console.AskQueue(project=ProjectId("guests")))
    projects = broker.ask(ANN, console.AskProjects()).projects
    assert [row.project for row in projects] == ["school", "maths"]
    for name in (theirs, also, "cell-e"):
        for question in (console.AskAbout(id=name), console.Cancel(id=name)):
            assert "of yours" in broker.refusal(ANN, question)
    assert broker.to_agents[1:] == []  # the first is the executor's start


def test_projects_are_told_as_a_tree_with_what_is_left_of_budgets(broker: BrokerParts) -> None:
    broker.join(slots=2)
    broker.run(ANN, "cell-a")
    broker.submit(EVE, "cell-e")
    broker.now_ms = 2 * HOUR_MS
    broker.step(events.Tick())
    report = broker.ask(ADMIN, console.AskProjects())
    assert [(row.project, row.parent, row.used_milli, row.held_milli) for row in report.projects] == [
        ("guests", None, 0, 1000),  # its cell never began: the lease is on its way out
        ("school", None, 1000, 1000),
        ("maths", "school", 1000, 1000),
        ("physics", "school", 0, 0),
    ]
    school = report.projects[1]
    assert (school.guaranteed_milli, school.limit_milli, school.period) == (2000, 4000, "week")
    assert (school.budget_ms, school.budget_left_ms) == (10 * HOUR_MS, 8 * HOUR_MS)


def test_a_project_is_told_its_credits(broker: BrokerParts) -> None:
    broker.join(slots=2)
    broker.run(EVE, "cell-e")
    broker.now_ms = 3 * HOUR_MS
    broker.step(events.Tick())
    told = {row.project: row.credits_ms for row in broker.ask(ADMIN, console.AskProjects()).projects}
    assert told == {"guests": -3 * HOUR_MS, "school": 3 * HOUR_MS, "maths": 0, "physics": 0}


#: From ten to twelve on Mondays and Thursdays; time begins on a Thursday.
LECTURE = ClassHours(
    name="lecture", days=(0, 3), from_minute=600, until_minute=720, guaranteed_milli=2000, zone=Zone("UTC")
)
COURSE = Project(id=ProjectId("maths"), class_hours=(LECTURE,))


def test_the_guarantee_of_class_hours_is_shown_while_they_are_on(broker: BrokerParts) -> None:
    broker = BrokerParts(broker.ledger, (COURSE,))
    broker.join(slots=2)
    told = []
    for hour in (9, 10, 12):  # of a Thursday
        broker.now_ms = hour * HOUR_MS
        broker.step(events.Tick())
        [row] = broker.ask(ADMIN, console.AskProjects()).projects
        told.append((row.guaranteed_milli, row.class_hours))
    assert told == [
        (0, "class hours begin at 10:00 UTC, in 60 min"),
        (2000, "class hours until 12:00 UTC, for another 2 h"),
        (0, "class hours begin on Mon at 10:00 UTC, in 4 days"),
    ]


def test_who_borrows_from_class_hours_is_told_before_they_begin_and_the_class_when_they_end(
    broker: BrokerParts,
) -> None:
    broker = BrokerParts(broker.ledger, (COURSE,))
    broker.join(slots=2)
    lent = broker.run(EVE, "cell-e")
    own = broker.run(ANN, "cell-a")
    told = []
    for hour in (9, 10, 12):
        broker.now_ms = hour * HOUR_MS
        broker.step(events.Tick())
        rows = {row.lease: row.in_quota for row in broker.ask(ADMIN, console.AskQueue()).running}
        told.append((rows[lent], rows[own]))
    assert told == [(False, False), (False, True), (False, False)]
    granted = [broker.shell.active_leases[lease].granted for lease in (lent, own)]
    assert [one.in_quota for one in granted if one is not None] == [False, False]


def test_a_waiting_request_is_explained_with_projects_and_places(broker: BrokerParts) -> None:
    broker.join("n1")
    broker.join("n2")
    broker.run(EVE, "cell-e")
    broker.ask(ADMIN, console.Drain(node="n2"))
    lease = broker.submit(ANN, "cell-a")
    for name in (lease, lease[:8], "cell-a"):
        about = broker.ask(ANN, console.AskAbout(id=name))
        assert isinstance(about, console.AboutWaiting)
        assert about.request.lease == lease
    assert [row.project for row in about.projects] == ["maths", "school"]
    assert [(row.node, row.free, row.busy, row.is_drained) for row in about.nodes] == [
        ("n1", 0, 1, False),
        ("n2", 1, 0, True),
    ]
    assert about.request.reason.endswith("node n2 is being drained")


def ended(cell: str, lease: LeaseId, user: str = "ann", *, attempt: int = 1) -> CellRecord:
    return CellRecord(
        cell=CellId(cell),
        attempt=attempt,
        lease=lease,
        session=SessionId("s"),
        user=UserName(user),
        project=ProjectId("maths"),
        qos="interactive",
        node="n1",
        slots=(SlotId("gpu-0"),),
        kind="gpu",
        gpus=1,
        started_at_ms=1_000 * attempt,
        ended_at_ms=1_000 * attempt + 500,
        held_ms=500,
        ran_ms=400,
        outcome=CellOutcome.RETURNED,
    )


def test_what_is_over_is_told_from_the_ledger_by_cell_and_by_lease(broker: BrokerParts) -> None:
    broker.ledger.record_cells([ended("cell-a", LeaseId("l-first")), ended("cell-b", LeaseId("l-first"), attempt=2)], 0)
    broker.ledger.record_cells([ended("cell-e", LeaseId("l-other"), "eve")], 0)
    about = broker.ask(ANN, console.AskAbout(id="l-first"))
    assert isinstance(about, console.AboutEnded)
    assert [(row.cell, row.in_quota_ms, row.slots) for row in about.cells] == [
        ("cell-b", 500, ("gpu-0",)),
        ("cell-a", 500, ("gpu-0",)),
    ]
    assert [row.cell for row in broker.ask(ANN, console.AskAbout(id="cell-a")).cells] == ["cell-a"]
    assert [row.cell for row in broker.ask(ADMIN, console.AskAbout(id="l-othe")).cells] == ["cell-e"]
    assert "of yours" in broker.refusal(ANN, console.AskAbout(id="l-other"))
    assert "'cell%a'" in broker.refusal(ANN, console.AskAbout(id="cell%a"))


def test_a_short_cell_that_shares_its_row_is_found_and_told_with_the_others(broker: BrokerParts) -> None:
    marks = mark(CellId("cell-b")) + mark(CellId("cell-c"))
    row = msgspec.structs.replace(ended("cell-a", LeaseId("l-first")), runs=3, marks=marks)
    broker.ledger.record_cells([row], 0)
    for name in ("cell-a", "cell-c"):
        told = "\n".join(layout.plain_lines(report_sentences.show(broker.ask(ANN, console.AskAbout(id=name)))))
        assert "2 short cells after it" in told
        assert "cell-a and 2 more" in told


def test_a_running_lease_is_told_with_the_cells_that_ran_in_it_before(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ANN, "cell-a")
    broker.ledger.record_cells([ended("cell-a", lease)], 0)
    broker.step(events.CellEnded(lease, CellId("cell-a")))
    assert isinstance(broker.ask(ANN, console.AskAbout(id="cell-a")), console.AboutEnded)
    about = broker.ask(ANN, console.AskAbout(id=lease))
    assert isinstance(about, console.AboutRunning)
    assert (about.lease.state, about.lease.in_quota, [row.cell for row in about.cells]) == ("hot", None, ["cell-a"])


def test_an_id_that_fits_several_names_them_and_one_that_is_too_short_nothing(broker: BrokerParts) -> None:
    broker.join()
    leases = [broker.submit(ANN, "cell-one"), broker.submit(ANN, "cell-two")]
    sentence = broker.refusal(ANN, console.Cancel(id="cell-"))
    assert "too short" in sentence
    sentence = broker.refusal(ANN, console.AskAbout(id="cell-ox"))
    assert "'cell-ox'" in sentence
    broker.submit(ANN, "cell-one-more")
    sentence = broker.refusal(ANN, console.AskAbout(id="cell-on"))
    assert sentence.startswith("2 ids begin with 'cell-on': ")
    assert leases[0] in sentence
    assert isinstance(broker.ask(ANN, console.AskAbout(id="cell-one")), console.AboutRunning)  # all of an id


def test_an_admin_withdraws_a_request_and_its_kernel_hears_who_did(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    lease = broker.submit(ANN, "cell-a")
    answer = broker.ask(ADMIN, console.Cancel(id=lease))
    assert (answer.lease, answer.user, answer.what) == (lease, "ann", "withdrawn")
    sentence = "An admin (root) cancelled this cell."
    told = wire.Refusal(code=RefusalCode.CANCELLED, sentence=sentence, request=RequestId("cell-a"))
    assert broker.to_sessions[-1] == (SessionId("s-cell-a"), told)
    assert broker.ask(ADMIN, console.AskQueue()).waiting == ()
    assert "waits or runs" in broker.refusal(ADMIN, console.Cancel(id=lease))


def test_a_running_cell_is_interrupted_then_ended_and_another_cell_is_interrupted_first_again(
    broker: BrokerParts,
) -> None:
    broker.join()
    lease = broker.run(ANN, "cell-a")
    assert broker.ask(ANN, console.Cancel(id="cell-a")).what == "interrupted"
    sentence = "You cancelled this cell."
    assert broker.to_agents[-1] == wire.CancelCell(lease=lease, sentence=sentence)
    assert broker.ask(ANN, console.Cancel(id=lease)).what == "ended"
    assert broker.to_agents[-1] == wire.CancelCell(lease=lease, sentence=sentence, hard=True)
    broker.step(events.CellEnded(lease, CellId("cell-a")))
    assert "No cell runs" in broker.refusal(ANN, console.Cancel(id=lease))
    broker.step(events.CellStarted(lease, CellId("cell-b")))
    assert broker.ask(ANN, console.Cancel(id=lease)).what == "interrupted"


def test_a_cell_that_was_granted_and_has_not_begun_ends_with_its_session_and_its_kernel_is_told(
    broker: BrokerParts,
) -> None:
    broker.join()
    lease = broker.submit(ANN, "cell-a")
    assert broker.ask(ADMIN, console.Cancel(id=lease)).what == "withdrawn"
    assert isinstance(broker.to_agents[-1], wire.CancelCell)
    asyncio.run(broker.shell.end_lease(wire.LeaseOver(lease=lease, code=LeaseEnd.CANCELLED, sentence="")))
    session, told = broker.to_sessions[-1]
    assert isinstance(told, wire.Refusal)
    assert (session, told.code, told.request) == ("s-cell-a", RefusalCode.CANCELLED, "cell-a")


def test_only_admins_drain_and_only_nodes_that_there_are(broker: BrokerParts) -> None:
    broker.join()
    assert "Only admins" in broker.refusal(ANN, console.Drain(node="n1"))
    assert broker.refusal(ADMIN, console.Drain(node="n2")) == (
        "There is no node 'n2' in this pool. Connected nodes: n1."
    )


def test_a_drained_node_stays_so_for_the_next_broker_until_it_is_undone(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    drained = broker.ask(ADMIN, console.Drain(node="n1"))
    assert (drained.node, drained.agents, drained.is_drained) == ("n1", ("agent-n1",), True)
    assert [row.cell for row in drained.running] == ["cell-e"]

    after = BrokerParts(broker.ledger)
    asyncio.run(after.console.recall())
    after.join()
    lease = after.submit(ANN, "cell-a")
    about = after.ask(ANN, console.AskAbout(id=lease))
    assert about.request.reason == "node n1 is being drained"
    assert after.ask(ADMIN, console.Drain(node="agent-n1", is_undone=True)).is_drained is False
    assert isinstance(after.ask(ANN, console.AskAbout(id=lease)), console.AboutRunning)

    last = BrokerParts(broker.ledger)
    asyncio.run(last.console.recall())
    last.join()
    assert last.submit(ANN, "cell-z") in last.shell.active_leases


def test_a_reservation_is_shown_until_it_is_over_and_the_ledger_has_its_cells_under_the_project(
    broker: BrokerParts,
) -> None:
    exam = Reservation(
        name="exam", project=ProjectId("maths"), guaranteed_milli=1000, from_minute=600, until_minute=720,
        zone=Zone("UTC"), users=(UserName("ann"),),
    )  # fmt: skip
    broker = BrokerParts(broker.ledger, with_reservations((Project(id=ProjectId("maths")),), [exam]))
    broker.join(slots=2)
    told = []
    for hour in (9, 10, 12):
        broker.now_ms = hour * HOUR_MS
        broker.step(events.Tick())
        rows = broker.ask(ANN, console.AskProjects()).projects
        told.append([(row.project, row.guaranteed_milli, row.class_hours) for row in rows])
        if hour == 10:
            lease = broker.run(ANN, "cell-a")
            [row] = broker.ask(ADMIN, console.AskQueue()).running
            assert (row.project, row.in_quota) == ("maths", True)
            assert broker.shell.scheduler.state.leases[lease].project == "exam in maths"
    assert told == [
        [("maths", 0, ""), ("exam in maths", 0, "reservation 'exam' begins at 10:00 UTC, in 60 min")],
        [("maths", 1000, ""), ("exam in maths", 1000, "reservation 'exam' until 12:00 UTC, for another 2 h")],
        [("maths", 0, "")],
    ]


def test_a_node_is_drained_at_a_time_and_the_next_broker_knows(broker: BrokerParts) -> None:
    broker.join("n1")
    broker.join("n2")
    assert "Only admins" in broker.refusal(ANN, console.Drain(node="n1", in_ms=HOUR_MS))
    answer = broker.ask(ADMIN, console.Drain(node="n1", in_ms=HOUR_MS, why="new disks"))
    assert (answer.is_drained, answer.in_ms) == (True, HOUR_MS)
    broker.run(EVE, "cell-e")
    broker.ask(ADMIN, console.Drain(node="n2"))
    lease = broker.submit(ANN, "cell-a")
    nodes = broker.ask(ANN, console.AskAbout(id=lease)).nodes
    assert [(row.node, row.is_drained, row.drains_in_ms) for row in nodes] == [
        ("n1", False, HOUR_MS),
        ("n2", True, None),
    ]
    assert "First undo" in broker.refusal(ADMIN, console.Drain(node="n2", in_ms=1000))

    after = BrokerParts(broker.ledger)
    after.now_ms = HOUR_MS - 60_000
    asyncio.run(after.console.recall())
    after.join("n1")
    lease = after.submit(ANN, "cell-a")
    reason = after.ask(ANN, console.AskAbout(id=lease)).request.reason
    assert reason.endswith("node n1 is drained in 60 s, before yours could end")
    after.now_ms = HOUR_MS
    after.step(events.Tick())
    assert after.ask(ANN, console.AskAbout(id=lease)).request.reason == "node n1 is being drained"
    after.ask(ADMIN, console.Drain(node="n1", is_undone=True))
    assert isinstance(after.ask(ANN, console.AskAbout(id=lease)), console.AboutRunning)

    last = BrokerParts(broker.ledger)
    asyncio.run(last.console.recall())
    assert last.shell.scheduler.state.planned_drains.at_ms == {}
