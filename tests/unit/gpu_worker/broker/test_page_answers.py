"""What the hub's page asks of the broker: nobody else may ask so, and in a reader's name it may what the reader may."""

import asyncio
import csv
import io
import threading
from typing import Any

import pytest

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.ids import CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import console, messages as wire, page_requests as page
from gpu_worker.broker import pool_report, usage_table
from gpu_worker.broker.identity import Person
from gpu_worker.broker.page_answers import PageAnswers
from gpu_worker.broker.records import CellRecord, CreditRecord
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, HOUR_MS, BrokerParts
from tests.unit.gpu_worker.broker.ledger_records import record

PAGE = Person(user=UserName("bulletin"), is_admin=True, is_page=True)
ANN_READS = page.PageReader(user=UserName("ann"), groups=("maths",))
LEAD = page.PageReader(user=UserName("liz"), groups=("physics",), leads=("school",))
#: Of another project than the cell's.
OTHER_LEAD = page.PageReader(user=UserName("max"), leads=("guests",))


def answers_of(broker: BrokerParts) -> PageAnswers:
    return PageAnswers(
        broker.shell,
        broker.agents,
        broker.ledger,
        broker.clock_ms,
        broker.console.answer,
        broker.console.drains.why,
        started_ms=0,
        serves_hub=True,
    )


def ask(broker: BrokerParts, question: page.FromPage, person: Person = PAGE) -> Any:
    return asyncio.run(answers_of(broker).answer(person, question))


def on_behalf(broker: BrokerParts, reader: page.PageReader, question: Any) -> Any:
    return ask(broker, page.OnBehalf(reader=reader, question=question))


@pytest.mark.parametrize(
    "question",
    [
        page.AskPool(),
        page.OnBehalf(reader=page.PageReader(user=UserName("root"), is_admin=True), question=console.Cancel(id="x")),
        page.AskPast(user=UserName("ann")),
        page.AskUse(project=ProjectId("school")),
        page.FindFor(user=UserName("ann")),
        page.AskUsage(since_ms=0, until_ms=HOUR_MS),
    ],
)
@pytest.mark.parametrize("person", [ANN, ADMIN], ids=["user", "admin"])
def test_nobody_but_the_page_asks_so_not_even_an_admin(
    broker: BrokerParts, person: Person, question: page.FromPage
) -> None:
    refused = ask(broker, question, person)
    assert isinstance(refused, wire.Refusal)
    assert refused.code is RefusalCode.NOT_ALLOWED


def test_the_pool_is_told_with_slots_leases_the_line_and_projects(broker: BrokerParts) -> None:
    broker.join(slots=2)
    runs = broker.run(ANN, "cell-a")
    broker.run(EVE, "cell-e")
    waits = broker.submit(EVE, "cell-f")
    report = ask(broker, page.AskPool())
    assert {slot.lease for slot in report.slots} == {lease.lease for lease in report.leases}
    assert {lease.lease: lease.user for lease in report.leases}[runs] == "ann"
    assert [(row.lease, row.position) for row in report.waiting] == [(waits, 1)]
    assert report.waiting[0].reason
    assert {"school", "maths", "guests"} <= {row.project for row in report.projects}


def test_further_back_in_a_long_line_each_is_told_as_its_notebook_was_last(
    broker: BrokerParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    leases = [broker.submit(ANN, f"cell-{number}") for number in range(3)]
    asyncio.run(broker.shell.teller.tell_front(everybody=True))
    anew = ask(broker, page.AskPool()).waiting
    monkeypatch.setattr(pool_report, "MOST_EXPLAINED", 1)
    assert ask(broker, page.AskPool()).waiting == anew
    assert [row.lease for row in anew] == leases
    assert all(row.reason for row in anew)


def test_how_busy_slots_are_is_what_their_node_has_said_last(broker: BrokerParts) -> None:
    broker.join(slots=2)
    use = wire.SlotUse(slot="gpu-1", busy_percent=40, used_bytes=9, idle_ms=0)
    asyncio.run(broker.agents.take(b"n1", wire.Ping(slots=(use,))))
    slots = ask(broker, page.AskPool()).slots
    assert [(slot.busy_percent, slot.used_bytes) for slot in slots] == [(None, None), (40, 9)]


def test_in_a_users_name_the_page_stops_what_is_theirs_and_nothing_else(broker: BrokerParts) -> None:
    broker.join(slots=2)
    mine, others = broker.run(ANN, "cell-a"), broker.run(EVE, "cell-e")
    refused = on_behalf(broker, ANN_READS, console.Cancel(id=others))
    assert (refused.code, "eve" in refused.sentence) == (RefusalCode.UNKNOWN_ID, False)
    assert on_behalf(broker, ANN_READS, console.Cancel(id=mine)).what == "interrupted"
    said = broker.to_agents[-1]
    assert isinstance(said, wire.CancelCell)
    assert said.sentence == "You cancelled this cell on the hub's page."


def test_a_lead_stops_cells_of_the_project_and_of_what_is_in_it_and_no_others(broker: BrokerParts) -> None:
    broker.join(slots=2)
    inside, outside = broker.run(ANN, "cell-a"), broker.run(EVE, "cell-e")
    assert on_behalf(broker, LEAD, console.Cancel(id=outside)).code is RefusalCode.UNKNOWN_ID
    assert on_behalf(broker, OTHER_LEAD, console.Cancel(id=inside)).code is RefusalCode.UNKNOWN_ID
    assert on_behalf(broker, LEAD, console.Cancel(id=inside)).what == "interrupted"
    said = broker.to_agents[-1]
    assert isinstance(said, wire.CancelCell)
    assert said.sentence == "The lead of your project (liz) cancelled this cell."


def test_what_a_lead_holds_the_lead_or_an_admin_releases(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    waits = broker.submit(ANN, "cell-a")
    assert on_behalf(broker, LEAD, console.Hold(id=waits, why="until tonight")).what == "held"
    reason = broker.ask(ANN, console.AskAbout(id=waits)).request.reason
    assert reason == "held by the lead of your project: until tonight"
    assert "a lead or an admin" in on_behalf(broker, ANN_READS, console.Release(id=waits)).sentence
    assert on_behalf(broker, LEAD, console.Release(id=waits)).what == "released"


def test_what_an_admin_holds_no_lead_releases(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    waits = broker.submit(ANN, "cell-a")
    broker.ask(ADMIN, console.Hold(id=waits))
    assert on_behalf(broker, LEAD, console.Release(id=waits)).code is RefusalCode.NOT_ALLOWED
    assert on_behalf(broker, LEAD, console.Hold(id=waits)).code is RefusalCode.NOT_ALLOWED


def test_a_lead_puts_first_and_boosts_inside_the_project_alone(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    waits, outside = broker.submit(ANN, "cell-a"), broker.submit(EVE, "cell-f")
    assert on_behalf(broker, LEAD, console.PutFirst(id=waits)).what == "put-first"
    assert on_behalf(broker, LEAD, console.PutFirst(id=outside)).code is RefusalCode.UNKNOWN_ID
    assert on_behalf(broker, ANN_READS, console.PutFirst(id=waits)).code is RefusalCode.NOT_ALLOWED
    boost = console.Boost(user=UserName("ann"), project=ProjectId("maths"), for_ms=HOUR_MS)
    assert [row.by for row in on_behalf(broker, LEAD, boost).boosts] == ["liz"]
    assert on_behalf(broker, LEAD, console.AskBoosts()).boosts[0].project == "maths"
    assert on_behalf(broker, OTHER_LEAD, console.AskBoosts()).boosts == ()
    outside_boost = console.Boost(user=UserName("eve"), project=ProjectId("guests"), for_ms=HOUR_MS)
    assert on_behalf(broker, LEAD, outside_boost).code is RefusalCode.NOT_ALLOWED
    assert on_behalf(broker, ANN_READS, boost).code is RefusalCode.NOT_ALLOWED


def test_a_leads_own_request_is_put_first_only_where_they_lead(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    mine = broker.submit(Person(user=UserName("max"), groups=("maths",)), "cell-m")
    assert on_behalf(broker, OTHER_LEAD, console.PutFirst(id=mine)).code is RefusalCode.NOT_ALLOWED


def cell(name: str, user: str, project: str, ended_at_ms: int, held_ms: int, label: str = "") -> CellRecord:
    return CellRecord(
        cell=CellId(name),
        lease=LeaseId(f"l-{name}"),
        session=SessionId("s"),
        user=UserName(user),
        project=ProjectId(project),
        qos="interactive",
        node="n1",
        slots=(SlotId("gpu-0"),),
        kind="gpu",
        gpus=1,
        started_at_ms=ended_at_ms - held_ms,
        ended_at_ms=ended_at_ms,
        held_ms=held_ms,
        ran_ms=held_ms,
        outcome=CellOutcome.RETURNED,
        label=label,
    )


def test_what_a_project_used_counts_what_is_in_it_in_the_hour_when_it_passed(broker: BrokerParts) -> None:
    broker.now_ms = 10 * HOUR_MS
    broker.ledger.record(
        [
            cell("c1", "ann", "maths", 9 * HOUR_MS + HOUR_MS // 2, HOUR_MS, "net"),
            cell("c2", "ann", "school", 10 * HOUR_MS, HOUR_MS // 4),
            cell("c3", "eve", "guests", 10 * HOUR_MS, HOUR_MS),
            CreditRecord(credit="k", project=ProjectId("school"), gpu_ms=700, at_ms=9 * HOUR_MS + 5, cause="lent"),
        ],
        broker.now_ms,
    )
    report = ask(broker, page.AskUse(project=ProjectId("school"), stretch="hour", count=3))
    assert [(part.from_ms, part.in_quota_ms) for part in report.parts] == [
        (7 * HOUR_MS, 0),
        (8 * HOUR_MS, HOUR_MS // 2),
        (9 * HOUR_MS, HOUR_MS // 2 + HOUR_MS // 4),
    ]
    assert [part.lent_ms for part in report.parts] == [0, 0, 700]
    assert [(one.user, one.slot_ms, one.cells) for one in report.users] == [("ann", HOUR_MS * 5 // 4, 2)]
    assert [(one.name, one.slot_ms) for one in report.labels] == [("net", HOUR_MS)]
    assert [(one.project, one.lent_ms) for one in report.lenders] == [("school", 700)]


def test_a_cell_that_runs_counts_up_to_now_and_once_when_it_has_ended(broker: BrokerParts) -> None:
    broker.now_ms = 10 * HOUR_MS
    broker.join()
    broker.run(ANN, "cell-a")
    broker.now_ms += HOUR_MS // 4
    asked = page.AskUse(project=ProjectId("school"), stretch="hour", count=2)
    for _ in range(2):
        report = ask(broker, asked)
        assert [part.in_quota_ms + part.borrowed_ms for part in report.parts] == [0, HOUR_MS // 4]
        assert [(one.user, one.slot_ms, one.cells) for one in report.users] == [("ann", HOUR_MS // 4, 1)]
        assert ask(broker, page.AskUse(project=ProjectId("guests"))).users == ()
        # The ledger has it already, and the broker is about to hear that it is over.
        broker.ledger.record([cell("cell-a", "ann", "maths", broker.now_ms, HOUR_MS // 4)], broker.now_ms)


def test_past_cells_are_of_that_user_alone_the_last_one_first(broker: BrokerParts) -> None:
    records = [cell("c1", "ann", "maths", 5_000, 10), cell("c2", "eve", "guests", 6_000, 10)]
    broker.ledger.record([*records, cell("c3", "ann", "maths", 7_000, 10)], 8_000)
    past = ask(broker, page.AskPast(user=UserName("ann"), limit=10))
    assert [row.cell for row in past.cells] == ["c3", "c1"]
    assert [row.cell for row in ask(broker, page.AskPast(user=UserName("ann"), limit=1)).cells] == ["c3"]


def test_a_spreadsheet_runs_nothing_of_what_people_call_their_cells_and_many_rows_are_cut(
    broker: BrokerParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, label in enumerate(("=cmd|' /C calc'!A1", "+1", "-1", "@a", "run, 2")):
        changes = {"label": label, "held_ms": 1_000 + number, "ended_at_ms": 5_000}
        broker.ledger.record_cell(record(f"c{number}", **changes), at_ms=0)
    question = page.AskUsage(by="label", since_ms=0, until_ms=HOUR_MS)
    table = ask(broker, question)
    names = [row["of"] for row in csv.DictReader(io.StringIO(table.csv))]
    assert sorted(names) == sorted(["'=cmd|' /C calc'!A1", "'+1", "'-1", "'@a", "run, 2"])
    monkeypatch.setattr(usage_table, "MOST_ROWS", 2)
    table = ask(broker, question)
    assert (table.has_more, len(list(csv.DictReader(io.StringIO(table.csv))))) == (True, 2)


def test_of_sums_that_take_minutes_one_is_made_at_a_time_also_where_who_asked_has_gone(
    broker: BrokerParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, write = page.AskUsage(since_ms=0, until_ms=HOUR_MS), usage_table.write_table
    begun: list[object] = []
    has_begun, may_end = threading.Event(), threading.Event()

    def take_minutes(*asked: Any) -> page.UsageTable:
        begun.append(asked)
        has_begun.set()
        may_end.wait()
        return write(*asked)

    async def scenario() -> None:
        answers = answers_of(broker)
        first = asyncio.create_task(answers.answer(PAGE, question))
        try:
            await asyncio.to_thread(has_begun.wait)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            refused = await asyncio.wait_for(answers.answer(PAGE, question), 10)
            assert isinstance(refused, wire.Refusal)
            assert refused.code is RefusalCode.TOO_FAST
            assert "one such sum at a time" in refused.sentence
            assert isinstance(await answers.answer(PAGE, page.AskPast(user=UserName("ann"))), page.PastCells)
            assert len(begun) == 1
        finally:
            may_end.set()
        while isinstance(table := await answers.answer(PAGE, question), wire.Refusal):  # noqa: ASYNC110  a thread ends
            await asyncio.sleep(0.01)
        assert isinstance(table, page.UsageTable)

    monkeypatch.setattr(usage_table, "write_table", take_minutes)
    asyncio.run(scenario())


def test_where_all_are_promised_more_than_there_is_the_page_hears_of_both(broker: BrokerParts) -> None:
    broker.join("n1", 1)
    rows = {row.project: row for row in ask(broker, page.AskPool()).projects}
    school = rows[ProjectId("school")]
    assert (school.guaranteed_milli, school.promised_milli) == (1000, 2000)
    broker.join("n2", 1)
    rows = {row.project: row for row in ask(broker, page.AskPool()).projects}
    assert rows[ProjectId("school")].promised_milli is None
