"""Asking for more than the rules give: who asks, who decides, within which bounds, and what is kept of it."""

import asyncio
import shlex

import msgspec
import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import KernelId, ProjectId, RequestId, SessionId, UserName
from bulletin.units import DAY_MS
from bulletin.wire import messages as wire
from bulletin.wire.messages.allowance_requests import (
    AllowanceQuestion,
    AllowanceReport,
    AllowanceRow,
    AskAllowances,
    DecideAllowance,
    RequestAllowance,
)
from bulletin_magic.commands.allowance_line import describe_request
from gpu_worker.broker.active_lease import PendingRequest
from gpu_worker.broker.allowance_book import ASKED
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.console.layout import plain_lines
from gpu_worker.console.request_sentences import show_requests
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, HOUR_MS, BrokerParts

LEA = Person(user=UserName("lea"), groups=("maths",), may_be_named_lead=True)
LEO = Person(user=UserName("leo"), groups=("guests",), leads=(ProjectId("guests"),))
BEA = Person(user=UserName("bea"), groups=("maths",))
SERVICE = Person(user=UserName(""), is_admin=True)  # a token of the hub that is of no user
MORE_TIME = RequestAllowance(walltime_ms=4 * HOUR_MS, why="my thesis\nruns\x1b[2J long")
PROJECTS = (
    Project(id=ProjectId("school"), limit_milli=4000, walltime_ms=12 * HOUR_MS),
    Project(id=ProjectId("maths"), parent=ProjectId("school"), user_limit_milli=1000, leads=(UserName("lea"),)),
    Project(id=ProjectId("guests"), gpus_per_cell=1),
)


def parts(ledger: Ledger, *projects: Project) -> BrokerParts:
    made = BrokerParts(ledger, projects or PROJECTS)
    made.now_ms = 1_000 * DAY_MS
    return made


@pytest.fixture
def pool(ledger: Ledger) -> BrokerParts:
    return parts(ledger)


def row(broker: BrokerParts, person: Person, question: AllowanceQuestion) -> AllowanceRow:
    [found] = broker.ask(person, question).rows
    assert isinstance(found, AllowanceRow)
    return found


def listed(broker: BrokerParts, person: Person, *, is_all: bool = False) -> list[tuple[str, str]]:
    return [(one.user, one.state) for one in broker.ask(person, AskAllowances(is_all=is_all)).rows]


def text(report: AllowanceReport) -> str:
    """What a command line shows of it."""
    return "\n".join(plain_lines(show_requests(report)))


def refusal_of_cell(broker: BrokerParts, person: Person, project: str | None = None, **how: int) -> str:
    """Submit a cell, and return what its notebook reads where it is refused; empty where it is not."""
    broker.to_sessions.clear()
    message = wire.Submit(request=RequestId("c"), project=ProjectId(project) if project else None, **how)
    pending = PendingRequest(SessionId("s"), KernelId("k"), person, message, broker.now_ms, "")
    asyncio.run(broker.shell.submit(RequestId("s/c"), pending))
    return next((told.sentence for _, told in broker.to_sessions if isinstance(told, wire.Refusal)), "")


def allowed_ms(broker: BrokerParts, project: str = "maths", user: str = "ann") -> int:
    accounts = broker.shell.scheduler.state.accounts
    return accounts.allowances.walltime_ms(accounts.of(ProjectId(project)).project, UserName(user))


def test_what_somebody_asks_for_is_seen_by_who_decides_and_holds_when_granted_until_it_is_over(
    pool: BrokerParts,
) -> None:
    asked = row(pool, ANN, MORE_TIME)
    assert (asked.state, asked.project, asked.why) == ("open", "maths", "my thesis runs [2J long")
    assert (asked.is_own, asked.may_decide, asked.leads) == (True, False, ("lea",))
    assert allowed_ms(pool) == 0
    assert listed(pool, ANN) == listed(pool, LEA) == listed(pool, ADMIN) == [("ann", "open")]
    assert listed(pool, EVE) == listed(pool, LEO) == []
    granted = row(pool, LEA, DecideAllowance(id=asked.id, is_granted=True, for_ms=2 * DAY_MS, sentence="good luck"))
    assert (granted.state, granted.by, granted.sentence, granted.left_ms) == ("granted", "lea", "good luck", 2 * DAY_MS)
    assert allowed_ms(pool) == 4 * HOUR_MS
    pool.now_ms += 2 * DAY_MS
    assert listed(pool, ANN) == [("ann", "over")]
    assert [note["state"] for note in pool.ledger.event_payloads(ASKED)] == ["open", "granted"]
    pool.now_ms += 30 * DAY_MS
    assert listed(pool, ADMIN) == []
    assert listed(pool, ADMIN, is_all=True) == [("ann", "over")]


def test_who_has_left_the_project_reads_that_what_was_granted_there_is_over_for_them(pool: BrokerParts) -> None:
    asked = row(pool, ANN, MORE_TIME)
    row(pool, LEA, DecideAllowance(id=asked.id, is_granted=True))
    left = msgspec.structs.replace(ANN, groups=("guests",))
    [told] = pool.ask(left, AskAllowances()).rows
    assert (told.state, told.left_ms) == ("over", None)
    said = describe_request(told, "GPU")
    assert said == "Over: cells of up to 4 h in project 'maths': you are not in the project any more."
    assert "for another" not in text(pool.ask(left, AskAllowances()))
    assert listed(pool, LEA) == listed(pool, ANN) == [("ann", "granted")]
    assert row(pool, left, DecideAllowance(id=asked.id, is_granted=False)).state == "over"
    assert listed(pool, LEA) == [("ann", "over")]


@pytest.mark.parametrize("person", [ANN, EVE, LEO], ids=["who asked", "a stranger", "the lead of another project"])
def test_nobody_else_decides(pool: BrokerParts, person: Person) -> None:
    asked = row(pool, ANN, MORE_TIME)
    answer = pool.ask(person, DecideAllowance(id=asked.id, is_granted=True))
    assert answer.code in (RefusalCode.NOT_ALLOWED, RefusalCode.UNKNOWN_ID)
    if person is not ANN:
        assert pool.ask(person, DecideAllowance(id=asked.id, is_granted=False)).code is RefusalCode.UNKNOWN_ID
    assert listed(pool, ADMIN) == [("ann", "open")]
    assert allowed_ms(pool) == 0


def test_a_lead_does_not_decide_their_own(pool: BrokerParts) -> None:
    asked = row(pool, LEA, MORE_TIME)
    assert "a lead of the project or an admin decides" in pool.refusal(
        LEA, DecideAllowance(id=asked.id, is_granted=True)
    )
    assert row(pool, ADMIN, DecideAllowance(id=asked.id, is_granted=True)).state == "granted"


def test_a_token_that_may_not_be_named_as_lead_decides_nothing(pool: BrokerParts) -> None:
    asked = row(pool, ANN, MORE_TIME)
    server = msgspec.structs.replace(LEA, may_be_named_lead=False)  # that of her notebook server
    assert pool.ask(server, DecideAllowance(id=asked.id, is_granted=True)).code is RefusalCode.UNKNOWN_ID


def test_nobody_asks_in_a_project_that_they_are_not_in(pool: BrokerParts) -> None:
    answer = pool.ask(EVE, msgspec.structs.replace(MORE_TIME, project=ProjectId("maths")))
    assert answer.code is RefusalCode.NOT_YOUR_PROJECT


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (RequestAllowance(why="x"), "Say what you need"),
        (RequestAllowance(gpus=2, why=" \n\x00"), "Say what you need it for"),
        (RequestAllowance(gpus=5, why="x"), "'school' may use 4 GPUs at most"),
        (RequestAllowance(walltime_ms=31 * DAY_MS, why="x"), "No cell runs for longer"),
        (RequestAllowance(gpus=2, for_ms=400 * DAY_MS, why="x"), "366 days"),
    ],
)
def test_what_nobody_could_grant_is_refused_at_once(pool: BrokerParts, asked: RequestAllowance, problem: str) -> None:
    assert problem in pool.refusal(ANN, asked)
    assert listed(pool, ADMIN) == []


def test_a_lead_grants_no_more_than_the_projects_around_have_and_an_admin_may(pool: BrokerParts) -> None:
    asked = row(pool, ANN, RequestAllowance(walltime_ms=20 * HOUR_MS, why="x"))
    said = pool.refusal(LEA, DecideAllowance(id=asked.id, is_granted=True))
    assert "more than the 12 h that project 'maths' has from those around it. An admin decides" in said
    assert "31 days" in pool.refusal(LEA, DecideAllowance(id=asked.id, is_granted=True, for_ms=60 * DAY_MS))
    assert row(pool, ADMIN, DecideAllowance(id=asked.id, is_granted=True)).state == "granted"
    assert allowed_ms(pool) == 20 * HOUR_MS


def test_what_no_lead_may_grant_is_said_to_be_an_admins_when_it_is_asked_for(pool: BrokerParts) -> None:
    more = row(pool, ANN, RequestAllowance(walltime_ms=13 * HOUR_MS, why="x"))
    assert "more than a lead of the project may grant: an admin decides. (a-" in describe_request(more, "GPU")
    assert "(which takes an admin), or decline" in text(pool.ask(LEA, AskAllowances()))
    by_person = {person.user: pool.ask(person, AskAllowances()).rows[0] for person in (ANN, LEA, ADMIN)}
    assert {user: (one.may_decide, one.may_grant) for user, one in by_person.items()} == {
        ANN.user: (False, False),
        LEA.user: (True, False),
        ADMIN.user: (True, True),
    }
    assert "An admin decides this" in pool.refusal(LEA, DecideAllowance(id=more.id, is_granted=True))
    long = row(pool, ANN, msgspec.structs.replace(MORE_TIME, for_ms=40 * DAY_MS))
    assert "lea, who leads the project, or an admin decides." in describe_request(long, "GPU")
    assert [one.may_grant for one in pool.ask(LEA, AskAllowances()).rows if one.id == long.id] == [True]
    assert row(pool, LEA, DecideAllowance(id=long.id, is_granted=True, for_ms=DAY_MS)).state == "granted"


def test_a_limit_that_was_lowered_since_bounds_what_is_granted(pool: BrokerParts) -> None:
    asked = row(pool, ANN, RequestAllowance(gpus=4, why="x"))
    lower = msgspec.structs.replace(PROJECTS[0], limit_milli=2000)
    settings = msgspec.structs.replace(pool.shell.scheduler.settings, projects=(lower, *PROJECTS[1:]))
    pool.step(events.SettingsChanged(settings))
    assert "may use 2 GPUs" in pool.refusal(ADMIN, DecideAllowance(id=asked.id, is_granted=True))


def test_who_asks_takes_it_back_and_who_granted_ends_it(pool: BrokerParts) -> None:
    asked = row(pool, ANN, MORE_TIME)
    assert row(pool, ANN, DecideAllowance(id=asked.id[:8], is_granted=False)).state == "withdrawn"
    assert "not open" in pool.refusal(LEA, DecideAllowance(id=asked.id, is_granted=True))
    again = row(pool, ANN, MORE_TIME)
    assert again.id != asked.id
    row(pool, LEA, DecideAllowance(id=again.id, is_granted=True))
    ended = row(pool, ADMIN, DecideAllowance(id=again.id, is_granted=False, sentence="the exam"))
    assert (ended.state, ended.by, ended.left_ms) == ("over", "root", None)
    assert allowed_ms(pool) == 0
    declined = row(pool, ANN, MORE_TIME)
    assert row(pool, LEA, DecideAllowance(id=declined.id, is_granted=False, sentence="use batch")).state == "declined"


def test_one_user_fills_nobodys_list(pool: BrokerParts) -> None:
    first = row(pool, ANN, RequestAllowance(gpus=2, why="x"))
    assert row(pool, ANN, RequestAllowance(gpus=2, why="x again")).id == first.id
    row(pool, ANN, RequestAllowance(gpus=3, why="x"))
    row(pool, ANN, RequestAllowance(gpus=4, why="x"))
    assert pool.ask(ANN, MORE_TIME).code is RefusalCode.TOO_FAST
    for number in range(7):
        one = pool.ask(ADMIN, AskAllowances()).rows[0]
        row(pool, ANN, DecideAllowance(id=one.id, is_granted=False))
        row(pool, ANN, RequestAllowance(gpus=1 + number % 4, walltime_ms=HOUR_MS + number, why="x"))
    row(pool, ANN, DecideAllowance(id=pool.ask(ANN, AskAllowances()).rows[0].id, is_granted=False))
    assert "10 times within a day" in pool.refusal(ANN, MORE_TIME)
    for _ in range(3000):
        assert pool.ask(ANN, MORE_TIME).code is RefusalCode.TOO_FAST
    assert len({note["id"] for note in pool.ledger.event_payloads(ASKED)}) == 10
    pool.now_ms += DAY_MS + 1
    assert row(pool, ANN, MORE_TIME).state == "open"


def test_of_very_many_all_are_told_a_part_at_a_time(ledger: Ledger) -> None:
    pool = parts(ledger)
    for number in range(250):
        person = Person(user=UserName(f"u{number}"), groups=("guests",))
        row(pool, person, RequestAllowance(gpus=2, why="x"))
        pool.now_ms += number % 2
    told: list[AllowanceRow] = []
    has_more = True
    while has_more:
        report = pool.ask(ADMIN, AskAllowances(is_all=True, behind=told[-1].id if told else ""))
        told += report.rows
        has_more = report.has_more
    assert len({one.id for one in told}) == len(told) == 250
    assert [one.user for one in pool.ask(EVE, AskAllowances(is_all=True)).rows] == []


AUTO = (
    Project(id=ProjectId("school"), limit_milli=2000, auto_grant_walltime_ms=8 * HOUR_MS, auto_grant_gpus=9),
    Project(id=ProjectId("maths"), parent=ProjectId("school"), auto_grants_per_week=2, auto_grant_for_ms=2 * DAY_MS),
    Project(id=ProjectId("guests")),
)


def test_the_projects_rules_grant_at_once_what_is_within_them(ledger: Ledger) -> None:
    pool = parts(ledger, *AUTO)
    granted = row(pool, ANN, MORE_TIME)
    assert (granted.state, granted.by, granted.left_ms) == ("granted", "", 2 * DAY_MS)
    assert allowed_ms(pool) == 4 * HOUR_MS
    assert row(pool, ANN, RequestAllowance(walltime_ms=9 * HOUR_MS, why="x")).state == "open"
    assert row(pool, ANN, msgspec.structs.replace(MORE_TIME, for_ms=3 * DAY_MS)).state == "open"
    assert row(pool, ANN, RequestAllowance(walltime_ms=2 * HOUR_MS, gpus=2, why="x")).state == "granted"
    assert row(pool, ANN, RequestAllowance(walltime_ms=HOUR_MS, why="x")).state == "open", "the third of a week"
    assert "may use 2 GPUs" in pool.refusal(ANN, RequestAllowance(gpus=3, why="x"))
    pool.now_ms += 7 * DAY_MS
    assert row(pool, ANN, MORE_TIME).state == "granted"
    assert row(pool, EVE, MORE_TIME).state == "open", "her project has no such rule"


def test_what_was_granted_at_once_counts_also_when_its_user_takes_it_back(ledger: Ledger) -> None:
    pool = parts(ledger, *AUTO)
    for _ in range(2):
        granted = row(pool, ANN, MORE_TIME)
        assert granted.state == "granted"
        assert row(pool, ANN, DecideAllowance(id=granted.id, is_granted=False)).state == "over"
        pool.now_ms += HOUR_MS
    assert row(pool, ANN, MORE_TIME).state == "open", "the third of a week"


@pytest.mark.parametrize("person", [LEA, SERVICE], ids=["a lead", "a service of the hub"])
def test_who_ended_it_decides_whether_its_user_has_it_again(ledger: Ledger, person: Person) -> None:
    project = msgspec.structs.replace(AUTO[1], leads=(LEA.user,))
    pool = parts(ledger, AUTO[0], project, AUTO[2])
    row(pool, person, DecideAllowance(id=row(pool, ANN, MORE_TIME).id, is_granted=False))
    assert allowed_ms(pool) == 0
    asked = row(pool, ANN, RequestAllowance(walltime_ms=3 * HOUR_MS, why="x"))
    assert asked.state == "open"
    assert row(pool, BEA, MORE_TIME).state == "granted", "of others it says nothing"
    row(pool, ANN, DecideAllowance(id=asked.id, is_granted=False))
    pool.now_ms += 7 * DAY_MS
    assert row(pool, ANN, MORE_TIME).state == "granted"


def test_no_rule_grants_at_once_what_somebody_asks_for_in_a_project_that_they_lead(ledger: Ledger) -> None:
    inner = Project(id=ProjectId("maths-ml"), parent=ProjectId("maths"))
    pool = parts(ledger, AUTO[0], msgspec.structs.replace(AUTO[1], leads=(LEA.user,)), inner, AUTO[2])
    asked = msgspec.structs.replace(MORE_TIME, project=inner.id)
    lea = msgspec.structs.replace(LEA, groups=("maths", "maths-ml"))
    by_role = Person(user=UserName("leo"), groups=("maths-ml",), leads=(ProjectId("maths"),))
    for person in (lea, msgspec.structs.replace(lea, may_be_named_lead=False), by_role):
        assert row(pool, person, asked).state == "open"
    for person in (msgspec.structs.replace(BEA, groups=("maths-ml",)), msgspec.structs.replace(lea, is_admin=True)):
        one = msgspec.structs.replace(asked, walltime_ms=3 * HOUR_MS)
        assert row(pool, person, one).state == "granted"


def test_what_a_service_grants_is_not_granted_by_rule(ledger: Ledger) -> None:
    pool = parts(ledger, *AUTO)
    for hours in (9, 10):
        asked = row(pool, ANN, RequestAllowance(walltime_ms=hours * HOUR_MS, why="x"))
        assert row(pool, SERVICE, DecideAllowance(id=asked.id, is_granted=True)).state == "granted"
    assert row(pool, ANN, MORE_TIME).state == "granted"


def test_what_an_older_broker_granted_at_once_counts_as_before(ledger: Ledger) -> None:
    before = parts(ledger, *AUTO)
    for hours in (4, 5):
        row(before, ANN, RequestAllowance(walltime_ms=hours * HOUR_MS, why="x"))
    for note in ledger.event_payloads(ASKED):
        del note["is_by_rule"]
        ledger.append(ASKED, note, before.now_ms)
    pool = parts(ledger, *AUTO)
    asyncio.run(pool.console.recall())
    assert row(pool, ANN, RequestAllowance(walltime_ms=6 * HOUR_MS, why="x")).state == "open", "the third of a week"


def test_what_is_asked_for_again_is_had_once_until_half_of_its_time_is_over(ledger: Ledger) -> None:
    """A notebook that is run from its top again asks again, too."""
    pool = parts(ledger, *AUTO)
    first = row(pool, ANN, MORE_TIME)
    pool.now_ms += DAY_MS
    assert row(pool, ANN, MORE_TIME).id == first.id
    pool.now_ms += 1
    again = row(pool, ANN, MORE_TIME)
    assert (again.id != first.id, again.state, again.left_ms) == (True, "granted", 2 * DAY_MS)
    assert row(pool, ANN, DecideAllowance(id=again.id, is_granted=False)).state == "over"
    pool.now_ms += DAY_MS
    assert row(pool, ANN, MORE_TIME).state == "open", "the third of a week: what is over is not had"


@pytest.mark.parametrize("granted_ms", [3 * DAY_MS, 14 * DAY_MS])
def test_what_was_granted_for_another_time_is_had_until_half_of_that_is_over(
    pool: BrokerParts, granted_ms: int
) -> None:
    wanted = msgspec.structs.replace(MORE_TIME, for_ms=7 * DAY_MS)
    asked = row(pool, ANN, wanted)
    row(pool, LEA, DecideAllowance(id=asked.id, is_granted=True, for_ms=granted_ms))
    pool.now_ms += granted_ms // 2
    assert row(pool, ANN, wanted).id == asked.id
    assert listed(pool, LEA) == [("ann", "granted")]
    pool.now_ms += 1
    again = row(pool, ANN, wanted)
    assert (again.id != asked.id, again.state) == (True, "open")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (RequestAllowance(walltime_ms=HOUR_MS // 2, why="x"), "may have cells of up to 30 min without asking"),
        (RequestAllowance(walltime_ms=HOUR_MS // 2 + 1, why="x"), ""),
        (RequestAllowance(gpus=1, why="x"), "may have 1 GPU without asking"),
        (RequestAllowance(gpus=2, why="x"), ""),
        (RequestAllowance(gpus=1, walltime_ms=1, why="x"), "may have cells of up to 30 min and 1 GPU without asking"),
        (RequestAllowance(gpus=1, walltime_ms=HOUR_MS, why="x"), ""),
        (RequestAllowance(gpus=2, walltime_ms=1, why="x"), ""),
    ],
)
def test_what_everybody_has_in_each_class_is_not_asked_for(
    pool: BrokerParts, asked: RequestAllowance, problem: str
) -> None:
    if problem:
        assert problem in pool.refusal(ANN, asked)
    else:
        assert row(pool, ANN, asked).state == "open"


def test_a_project_without_limits_of_its_own_asks_for_no_gpus(pool: BrokerParts, ledger: Ledger) -> None:
    free = parts(ledger, Project(id=ProjectId("maths"), limit_milli=4000))
    assert "may have 3 GPUs and more without asking" in free.refusal(ANN, RequestAllowance(gpus=3, why="x"))
    assert "may use 4 GPUs at most" in free.refusal(ANN, RequestAllowance(gpus=5, why="x"))


def test_who_decides_too_late_reads_what_became_of_it_and_by_whom(pool: BrokerParts) -> None:
    asked = row(pool, ANN, MORE_TIME)
    decide = DecideAllowance(id=asked.id, is_granted=True)
    row(pool, LEA, decide)
    assert f"{asked.id} was granted by lea already: it is not open." in pool.refusal(ADMIN, decide)
    row(pool, ADMIN, DecideAllowance(id=asked.id, is_granted=False))
    assert f"{asked.id} was ended by root already: it is not open." in pool.refusal(LEA, decide)
    assert "over: root ended it" in text(pool.ask(LEA, AskAllowances()))
    other = row(pool, ANN, RequestAllowance(gpus=2, for_ms=HOUR_MS, why="x"))
    row(pool, LEA, DecideAllowance(id=other.id, is_granted=True))
    pool.now_ms += HOUR_MS
    assert "over: it was granted by lea" in text(pool.ask(LEA, AskAllowances()))
    assert f"{other.id} was granted by lea already" in pool.refusal(LEA, DecideAllowance(id=other.id, is_granted=False))


def test_a_broker_that_is_started_again_knows_what_is_open_and_in_force(pool: BrokerParts) -> None:
    asked, other = row(pool, ANN, MORE_TIME), row(pool, EVE, MORE_TIME)
    ended = row(pool, ANN, RequestAllowance(walltime_ms=5 * HOUR_MS, why="x"))
    row(pool, LEA, DecideAllowance(id=asked.id, is_granted=True, for_ms=DAY_MS))
    row(pool, LEA, DecideAllowance(id=ended.id, is_granted=True, for_ms=DAY_MS))
    row(pool, LEA, DecideAllowance(id=ended.id, is_granted=False))
    after = parts(pool.ledger)
    after.now_ms += DAY_MS // 2
    asyncio.run(after.console.recall())
    assert allowed_ms(after) == 4 * HOUR_MS
    assert {one.id: one.state for one in after.ask(ADMIN, AskAllowances()).rows} == {
        asked.id: "granted",
        other.id: "open",
        ended.id: "over",
    }
    last = parts(pool.ledger)
    last.now_ms += DAY_MS
    asyncio.run(last.console.recall())
    assert allowed_ms(last) == 0


def test_the_refusal_of_a_cell_says_how_to_ask_and_what_is_granted_lets_it_run(pool: BrokerParts) -> None:
    pool.join(slots=4)
    said = refusal_of_cell(pool, ANN, walltime_ms=4 * HOUR_MS)
    assert said.endswith('To ask for it: `%gpu request --time 4h --why "..."`.')
    assert refusal_of_cell(pool, ANN, gpus=2).endswith('`%gpu request --gpus 2 --why "..."`.')
    assert "--project maths" in refusal_of_cell(pool, ANN, walltime_ms=90 * 60_000, project="maths")
    spaced = msgspec.structs.replace(ANN, groups=("maths", "my 'lab'"))
    line = shlex.split(refusal_of_cell(pool, spaced, walltime_ms=4 * HOUR_MS, project="my 'lab'").split("`")[1])
    assert line == ["%gpu", "request", "--time", "4h", "--project", "my 'lab'", "--why", "..."]
    assert "%gpu request" not in refusal_of_cell(pool, ANN, walltime_ms=60 * DAY_MS)
    asked = row(pool, ANN, MORE_TIME)
    row(pool, LEA, DecideAllowance(id=asked.id, is_granted=True))
    assert refusal_of_cell(pool, ANN, walltime_ms=4 * HOUR_MS) == ""
