"""How long each cell waited in line is in the ledger, and on its user's page with what is usual of late."""

import asyncio

import pytest

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, LeaseId, UserName
from bulletin.kept_time import make_kept_cell
from bulletin.units import DAY_MS
from bulletin.wire import messages as wire, page_requests as page
from gpu_worker.broker.active_lease import relearn_active_lease
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.page_answers import PageAnswers
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, BrokerParts
from tests.unit.gpu_worker.broker.ledger_records import record
from tests.unit.gpu_worker.broker.node_reports import held

PAGE = Person(user=UserName("bulletin"), is_admin=True, is_page=True)


def ask(broker: BrokerParts, question: page.AskPast) -> page.PastCells:
    """What the hub's page is answered."""
    answers = PageAnswers(
        broker.shell,
        broker.agents,
        broker.ledger,
        broker.clock_ms,
        broker.console.answer,
        broker.console.drains.why,
        started_ms=0,
        serves_hub=True,
    )
    answer = asyncio.run(answers.answer(PAGE, question))
    assert isinstance(answer, page.PastCells)
    return answer


async def _nothing() -> None:
    """Nobody waits for the ledger."""


def end(broker: BrokerParts, name: LeaseId, cell: str) -> None:
    """The cell of a lease ends, by its agent's word."""
    lease = broker.shell.scheduler.state.leases[name]
    done = wire.CellDone(
        lease=name,
        session=lease.session,
        cell=CellId(cell),
        user=lease.user,
        project=lease.project,
        qos=lease.qos,
        slots=lease.slots,
        usage=wire.CellUsage(outcome=CellOutcome.RETURNED, ran_ms=1_000, held_ms=1_000),
    )
    asyncio.run(broker.shell.record_cell(done, broker.registration(), 0, _nothing))


def waits(broker: BrokerParts) -> dict[str, int | None]:
    """What the ledger says of each cell of ann's, once all is written."""
    broker.writer.close()
    return {str(one.cell): one.waited_ms for one in ask(broker, page.AskPast(user=ANN.user)).cells}


def test_a_cell_that_was_in_line_says_for_how_long_and_the_next_of_its_session_waited_for_nothing(
    broker: BrokerParts,
) -> None:
    broker.join()
    first = broker.run(EVE, "cell-e")
    mine = broker.submit(ANN, "cell-a")
    broker.now_ms = 42_000
    broker.step(events.CellStarted(first, CellId("cell-e")))
    end(broker, first, "cell-e")
    broker.step(events.LeaseEnded(first))
    between = make_kept_cell()
    for number, cell in enumerate(("cell-a", "cell-b", between)):
        broker.step(events.CellStarted(mine, CellId(cell)))
        broker.now_ms += 10_000 * (number + 1)
        end(broker, mine, cell)
    assert list(waits(broker).items()) == [(str(between), None), ("cell-b", 0), ("cell-a", 42_000)]


def test_of_a_lease_that_a_broker_before_this_one_granted_it_is_not_known(broker: BrokerParts) -> None:
    active = relearn_active_lease(held(session=record("c").session), broker.registration().agent)
    assert [active.with_wait(record(cell)).waited_ms for cell in ("c1", "c2")] == [None, None]


@pytest.mark.parametrize(
    ("known", "usual"),
    [
        ([], None),
        ([(None, 1)], None),
        ([(7_000, 1)], 7_000),
        ([(1_000, 1), (9_000, 1), (5_000, 1)], 5_000),
        ([(0, 1), (9_000, 1)], 0),
        ([(8_000, 1), (9_000, 1), (None, 1)], 8_000),
        ([(60_000, 3), (50_000, 1)], 0),
        ([(60_000, 2), (50_000, 1), (70_000, 1)], 50_000),
    ],
)
def test_half_of_the_cells_waited_no_longer_than_is_said(
    ledger: Ledger, known: list[tuple[int | None, int]], usual: int | None
) -> None:
    for number, (waited_ms, runs) in enumerate(known):
        ledger.record_cell(record(f"c{number}", waited_ms=waited_ms, runs=runs), at_ms=0)
    ledger.record_cell(record("of another", user="bob", waited_ms=99_000), at_ms=0)
    assert ledger.median_wait_ms("ann", since_ms=4_000) == usual
    assert ledger.median_wait_ms("ann", since_ms=4_001) is None


def test_the_page_has_the_median_of_the_week_alone(broker: BrokerParts) -> None:
    broker.ledger.record_cell(record("old", waited_ms=90_000, ended_at_ms=10_000), at_ms=0)
    broker.ledger.record_cell(record("new", waited_ms=3_000, ended_at_ms=20_000), at_ms=0)
    broker.now_ms = 7 * DAY_MS + 15_000
    assert ask(broker, page.AskPast(user=ANN.user)).week_wait_ms == 3_000
    assert ask(broker, page.AskPast(user=ADMIN.user)).week_wait_ms is None
