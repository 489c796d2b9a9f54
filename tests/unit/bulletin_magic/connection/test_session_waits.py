"""How long a cell waits, where it says so."""

from msgspec import structs

from bulletin.codes import CellOutcome
from bulletin.errors import WaitedTooLong
from bulletin.ids import LeaseId, RequestId
from bulletin.wire import messages as say
from bulletin_magic.connection.deliveries import RequestFailed

from .stage import CELL, LEASE, Stage, cell, failure

_PATIENT = structs.replace(cell(), max_wait_ms=60_000)


def test_a_cell_leaves_the_queue_when_it_has_waited_for_as_long_as_it_would() -> None:
    stage = Stage()
    stage.queue(_PATIENT)
    stage.wait(59_999)
    assert not any(isinstance(told, RequestFailed) for told in stage.delivered())
    stage.seen()
    stage.wait(1)
    assert say.Withdraw(request=RequestId("r-c1")) in stage.said_to_broker()
    error = failure(stage)
    assert isinstance(error, WaitedTooLong)
    assert str(error).startswith("No GPU came free within 60 s. Nothing was run")


def test_a_cell_that_got_its_gpu_in_time_runs_for_as_long_as_it_likes() -> None:
    stage = Stage()
    stage.queue(_PATIENT)
    stage.wait(59_000)
    stage.grant()
    stage.agent(say.Attached(lease=LEASE))
    stage.seen()
    for _ in range(10):
        stage.wait(1_000)
        stage.agent(say.Pong())
        stage.broker(say.Pong())
    assert stage.delivered() == []


def test_a_cell_that_is_to_run_again_waits_on() -> None:
    stage = Stage()
    stage.start(_PATIENT)
    stage.agent(say.Lost(cell=CELL, code=CellOutcome.RECLAIMED, sentence="The class wants its GPU back."))
    stage.seen()
    stage.wait(120_000)
    assert all("came free" not in str(told) for told in stage.delivered())
    stage.grant("r-c1-2", LeaseId("l2"))
