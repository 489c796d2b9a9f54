"""Asking for more of a budget: whose it is, who grants it, that it counts once, and that it ends."""

import asyncio

import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import KernelId, ProjectId, RequestId, SessionId, UserName
from bulletin.units import DAY_MS
from bulletin.wire import messages as wire
from bulletin.wire.messages.allowance_requests import (
    AllowanceReport,
    AllowanceRow,
    AskAllowances,
    DecideAllowance,
    RequestAllowance,
)
from bulletin_magic.commands.allowance_line import parse_request
from gpu_worker.broker import reports
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.projects import Budget, Project, SchedulerSettings
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, HOUR_MS, BrokerParts

LEA = Person(user=UserName("lea"), groups=("maths",), may_be_named_lead=True)
SUE = Person(user=UserName("sue"), groups=("school",), may_be_named_lead=True)
PROJECTS = (
    Project(id=ProjectId("school"), budget=Budget(20 * HOUR_MS, "week"), leads=(UserName("sue"),)),
    Project(
        id=ProjectId("maths"), parent=ProjectId("school"), budget=Budget(2 * HOUR_MS, "day"), leads=(UserName("lea"),)
    ),
    Project(id=ProjectId("free")),
)
MORE = RequestAllowance(budget_ms=2 * HOUR_MS, why="the deadline")


def parts(ledger: Ledger) -> BrokerParts:
    broker = BrokerParts(ledger, PROJECTS)
    broker.now_ms = 1_000 * DAY_MS + 20 * HOUR_MS  # at 20:00 UTC
    broker.join()
    asyncio.run(broker.console.recall())
    return broker


@pytest.fixture
def pool(ledger: Ledger) -> BrokerParts:
    return parts(ledger)


def row(broker: BrokerParts, person: Person, question: RequestAllowance | DecideAllowance) -> AllowanceRow:
    report = broker.ask(person, question)
    assert isinstance(report, AllowanceReport), report
    return report.rows[0]


def grant(broker: BrokerParts, person: Person, asked: AllowanceRow) -> AllowanceRow:
    return row(broker, person, DecideAllowance(id=asked.id, is_granted=True))


def budget(broker: BrokerParts, project: str = "maths") -> tuple[float, float]:
    """The budget that people are told, and what is left of it, in GPU-hours."""
    broker.step(events.Tick())
    state = broker.shell.scheduler.state
    told = reports.project(state.accounts.of(ProjectId(project)), state)
    assert told.budget_ms is not None
    assert told.budget_left_ms is not None
    return told.budget_ms / HOUR_MS, told.budget_left_ms / HOUR_MS


def refusal(broker: BrokerParts, hours: int) -> str:
    """Submit a cell of so many hours, and return what its notebook reads where it is refused; empty where it is not."""
    broker.to_sessions.clear()
    message = wire.Submit(request=RequestId("c"), walltime_ms=hours * HOUR_MS, qos="batch")
    pending = PendingRequest(SessionId("s"), KernelId("k"), ANN, message, broker.now_ms, "")
    asyncio.run(broker.shell.submit(RequestId("s/c"), pending))
    return next((told.sentence for _, told in broker.to_sessions if isinstance(told, wire.Refusal)), "")


def test_who_lacks_budget_reads_how_to_ask_and_runs_once_the_lead_has_granted_it(pool: BrokerParts) -> None:
    said = refusal(pool, 4)
    assert "is more than the 2 GPU-hours that project 'maths' has each day" in said
    assert 'To ask for it: `%gpu request --budget 2 --budget-of maths --why "..."`.' in said
    asked = row(pool, ANN, MORE)
    assert (asked.state, asked.budget_of, asked.leads) == ("open", "maths", ("lea", "sue"))
    granted = grant(pool, LEA, asked)
    assert (granted.state, granted.by) == ("granted", "lea")
    assert granted.left_ms == 4 * HOUR_MS, "until the day of the budget is over, however long was asked for"
    assert budget(pool) == (4, 4)
    assert refusal(pool, 4) == ""


def test_it_counts_once_whatever_is_said_again_and_is_taken_back_at_its_end(pool: BrokerParts, ledger: Ledger) -> None:
    grant(pool, LEA, row(pool, ANN, MORE))
    assert budget(pool) == (4, 4)
    assert row(pool, ANN, MORE).state == "granted", "asked again, it is the one that is there"
    pool.step(events.SettingsChanged(SchedulerSettings(projects=PROJECTS)))
    assert budget(pool) == (4, 4)
    assert budget(pool, "school") == (20, 20), "what is around keeps its own"
    again = parts(ledger)
    assert budget(again) == (4, 4), "a broker that is started again has it once"
    again.now_ms += 4 * HOUR_MS
    assert budget(again) == (2, 2)
    assert [(one.state, one.budget_ms) for one in again.ask(ANN, AskAllowances()).rows] == [("over", 2 * HOUR_MS)]
    states = [note["state"] for note in ledger.event_payloads("allowance")]
    assert states == ["open", "granted"]


def test_what_is_ended_early_is_taken_back_and_who_waits_for_it_is_refused(pool: BrokerParts) -> None:
    asked = row(pool, ANN, MORE)
    grant(pool, LEA, asked)
    pool.run(LEA, "cell-l")
    assert refusal(pool, 3) == ""
    row(pool, LEA, DecideAllowance(id=asked.id, is_granted=False))
    assert budget(pool)[0] == 2
    assert any("is more than the 2 GPU-hours" in told.sentence for _, told in pool.to_sessions if hasattr(told, "code"))


def test_a_lead_grants_as_much_again_as_there_is_and_an_admin_more(pool: BrokerParts) -> None:
    first, more = row(pool, ANN, MORE), RequestAllowance(budget_ms=HOUR_MS, why="and more")
    grant(pool, LEA, first)
    second = row(pool, ANN, more)
    assert second.needs_admin
    problem = pool.refusal(LEA, DecideAllowance(id=second.id, is_granted=True))
    assert "beside the 2 GPU-hours that are granted already" in problem
    assert grant(pool, ADMIN, second).state == "granted"
    assert budget(pool) == (5, 5)


def test_the_budget_that_leaves_least_is_asked_for_and_who_leads_it_decides(pool: BrokerParts) -> None:
    pool.step(events.UseRecalled((), {ProjectId("school"): 19 * HOUR_MS * 1000}))
    asked = row(pool, ANN, MORE)
    assert asked.budget_of == "school"
    assert "the budget of project 'school'" in pool.refusal(LEA, DecideAllowance(id=asked.id, is_granted=True))
    assert grant(pool, SUE, asked).state == "granted"
    assert budget(pool, "school") == (22, 3)


def test_the_line_of_a_refusal_asks_for_the_budget_that_refused_and_not_for_the_one_that_leaves_less(
    pool: BrokerParts,
) -> None:
    pool.step(events.UseRecalled((), {ProjectId("school"): 19 * HOUR_MS * 1000}))
    said = refusal(pool, 4)
    words = said.partition("`%gpu request ")[2].partition("`")[0]
    question = parse_request(words.replace("...", "the deadline")).question
    assert isinstance(question, RequestAllowance)
    asked = row(pool, ANN, question)
    assert asked.budget_of == "maths"
    grant(pool, LEA, asked)
    assert refusal(pool, 4) == ""
    other = row(pool, ANN, RequestAllowance(budget_ms=2 * HOUR_MS, budget_of="school", why="the deadline"))
    assert (other.state, other.budget_of) == ("open", "school"), "as much of another budget is another request"


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (RequestAllowance(budget_ms=HOUR_MS, budget_of="free", why="x"), "Of these they use one: 'maths', 'school'."),
        (RequestAllowance(budget_ms=HOUR_MS, gpus=2, why="x"), "alone"),
        (RequestAllowance(budget_ms=HOUR_MS, why=" "), "--why"),
    ],
)
def test_what_makes_no_sense_is_refused(pool: BrokerParts, asked: RequestAllowance, problem: str) -> None:
    assert problem in pool.refusal(ANN, asked)


def test_where_nothing_has_a_budget_there_is_nothing_to_ask_for(pool: BrokerParts) -> None:
    answer = pool.ask(Person(user=UserName("fay"), groups=("free",)), MORE)
    assert (answer.code, "has no budget" in answer.sentence) == (RefusalCode.OVER_LIMIT, True)
