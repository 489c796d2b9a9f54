"""What a person's notebook server is told: all that is the person's, and of others no more than how many wait."""

import asyncio

import msgspec
import pytest

from bulletin.codes import CellOutcome
from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import messages as wire
from bulletin.wire.messages.own_cells import MOST_ENDED, AskOwn, OwnReport
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import CellRecord
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ANN, EVE, HOUR_MS, BrokerParts
from tests.unit.gpu_worker.broker.node_reports import held


def _write_ended(broker: BrokerParts, user: str, name: str) -> None:
    record = CellRecord(
        lease=LeaseId(f"lease-{name}"),
        session=SessionId("s"),
        user=UserName(user),
        project=ProjectId("maths"),
        qos="interactive",
        node="n1",
        slots=(SlotId("gpu-0"),),
        kind="gpu",
        cell=CellId(name),
        gpus=1,
        started_at_ms=1_000,
        ended_at_ms=2_000,
        held_ms=1_000,
        ran_ms=900,
        outcome=CellOutcome.RAISED,
        label=f"label-{name}",
    )
    broker.ledger.record_cells([record], 0)


async def _finish_aside() -> None:
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))


def test_a_person_is_told_what_is_free_what_waits_and_runs_and_how_the_project_stands(broker: BrokerParts) -> None:
    broker.join(slots=3)
    broker.now_ms = 5_000
    lease = broker.run(ANN, "cell-a")
    broker.now_ms = 7_000
    report = broker.ask(ANN, AskOwn())
    assert (report.slot_word, report.total, report.free, report.ready) == ("GPU", 3, 2, 0)
    (row,) = report.running
    assert (row.lease, row.cell, row.kernel, row.node, row.state) == (lease, "cell-a", "k", "n1", "busy")
    assert (row.for_ms, row.in_quota) == (2_000, True)
    project = report.project
    assert (project.project, project.used_milli, project.guaranteed_milli) == ("maths", 1000, 1000)


def test_where_nothing_is_guaranteed_to_anybody_nothing_is_called_borrowed(ledger: Ledger) -> None:
    broker = BrokerParts(ledger, projects=())
    broker.join()
    broker.run(ANN, "cell-a")
    assert broker.ask(ANN, AskOwn()).running[0].in_quota is None


def test_a_cell_that_waits_has_its_place_its_reason_and_how_long_it_has_waited(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    lease = broker.submit(ANN, "cell-a")
    broker.now_ms = 3_000
    report = broker.ask(ANN, AskOwn())
    (row,) = report.waiting
    assert (row.lease, row.kernel, row.position, row.gpus, row.waited_ms) == (lease, "k", 1, 1, 3_000)
    assert row.reason
    assert (report.own_waiting_count, report.waiting_count, report.free) == (1, 1, 0)


def test_nothing_of_others_is_told_but_that_they_wait(broker: BrokerParts) -> None:
    broker.join()
    theirs, also = broker.run(EVE, "cell-e"), broker.submit(EVE, "cell-f")
    _write_ended(broker, "eve", "cell-g")
    report = broker.ask(ANN, AskOwn(ended=MOST_ENDED))
    assert (report.waiting, report.running, report.ended, report.waiting_count) == ((), (), (), 1)
    assert [word for word in (theirs, also, "eve", "cell-", "guests") if word in repr(report)] == []


def test_cells_that_ended_are_told_where_they_are_asked_for(broker: BrokerParts) -> None:
    broker.join()
    _write_ended(broker, "ann", "cell-1")
    assert broker.ask(ANN, AskOwn()).ended == ()
    (row,) = broker.ask(ANN, AskOwn(ended=5)).ended
    assert (row.cell, row.lease, row.label, row.outcome) == ("cell-1", "lease-cell-1", "label-cell-1", "raised")


def test_a_node_that_is_drained_has_nothing_free(broker: BrokerParts) -> None:
    broker.join(slots=2)
    broker.step(events.NodeDrained(next(iter(broker.agents.known))))
    report = broker.ask(ANN, AskOwn())
    assert (report.total, report.free) == (2, 0)


def test_a_cell_has_its_own_label_also_where_an_earlier_one_was_given_the_lease(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ANN, "cell-a")
    for label, shown in [("sec\x1bond", "sec ond"), (None, "sec ond"), ("", "")]:
        broker.report("n1", wire.CellBegan(lease=lease, cell=CellId("cell-b"), label=label))
        assert broker.ask(ANN, AskOwn()).running[0].label == shown


def test_a_broker_that_was_restarted_learns_whose_notebook_a_cell_is_of_and_what_it_is_called(
    broker: BrokerParts,
) -> None:
    hers = held(kernel=KernelId("thesis"), cell=CellId("cell-a"), label="training")
    broker.report("n1", msgspec.structs.replace(broker.registration("n1"), held=(hers,)))
    (row,) = broker.ask(ANN, AskOwn()).running
    assert (row.lease, row.kernel, row.label, row.state) == ("l", "thesis", "training", "busy")


def test_what_is_told_of_one_person_is_bounded(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    for number in range(20):  # as many as one may have there
        broker.submit(ANN, f"cell-{number}")
    report = broker.ask(ANN, AskOwn())
    assert (len(report.waiting), report.own_waiting_count) == (10, 20)
    assert report.waiting[0].position == 1


def test_a_server_that_asks_keeps_no_pool_alive(broker: BrokerParts) -> None:
    """A pool of one's own ends when nobody has used it: a page that is left open is no use."""
    hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token="token", kernel=KernelId("page"))

    async def talk() -> None:
        await broker.kernels.take(b"r", hello)
        await _finish_aside()
        broker.now_ms = HOUR_MS
        await broker.kernels.take(b"r", AskOwn())
        await _finish_aside()

    asyncio.run(talk())
    assert isinstance(broker.to_routes[-1][1], OwnReport)
    assert broker.kernels.active_ms < HOUR_MS


def test_nobody_asks_for_more_than_there_is_in_an_answer() -> None:
    frame = msgspec.msgpack.encode({"kind": "ask-own", "ended": MOST_ENDED + 1})
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(frame, type=AskOwn)
