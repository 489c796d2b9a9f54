"""The stop button in each phase of a cell."""

import pytest

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.errors import CellLost, CellStopped
from bulletin.ids import LeaseId, RequestId, SessionId
from bulletin.wire import messages as say
from bulletin_magic.connection.deliveries import CellFinished, RequestFailed
from bulletin_magic.connection.session_events import StopPressed

from .stage import CELL, LARGE, LEASE, Stage, cell, ended, failure


def test_stop_while_greeting_or_queued_withdraws() -> None:
    stage = Stage()
    stage.do(cell())
    stage.do(StopPressed())
    assert isinstance(failure(stage), CellStopped)
    stage.do(cell("c2"))
    stage.welcome()
    stage.seen()
    stage.do(StopPressed())
    assert stage.said_to_broker() == [say.Withdraw(request=RequestId("r-c2"))]
    assert isinstance(failure(stage), CellStopped)


def test_a_grant_that_crosses_a_withdrawal_is_not_taken() -> None:
    stage = Stage()
    stage.queue()
    stage.do(StopPressed())
    stage.seen()
    stage.broker(
        say.Granted(
            request=RequestId("r-c1"),
            lease=LeaseId("l"),
            session=SessionId("s"),
            agent=say.AgentAddress(address="", public_key=""),
            ticket="",
            node="",
            slots=(),
            walltime_ms=1,
        )
    )
    assert stage.seen() == []


@pytest.mark.parametrize("is_shipping", [True, False])
def test_stop_while_attaching_or_shipping_gives_the_session_back(is_shipping: bool) -> None:
    stage = Stage()
    stage.queue(cell(parts=LARGE))
    stage.grant()
    if is_shipping:
        stage.agent(say.Attached(lease=LEASE))
    stage.seen()
    stage.do(StopPressed())
    assert stage.said_to_agent() == [say.Leave()]
    assert isinstance(failure(stage), CellStopped)
    assert stage.has_dropped()


def test_stop_is_an_interrupt_whose_result_is_delivered() -> None:
    stage = Stage()
    stage.start()
    stage.do(StopPressed())
    assert stage.said_to_agent() == [say.Stop(cell=CELL)]
    stage.agent(ended(outcome="interrupted"), b"abc")
    stage.wait(60_000)
    assert [type(told) for told in stage.delivered()] == [CellFinished]


def test_a_cell_that_does_not_stop_is_explained_and_then_ended() -> None:
    stage = Stage()
    stage.start()
    stage.do(StopPressed())
    stage.wait(1_999)
    assert stage.notes() == []
    stage.wait(1)
    (note,) = stage.notes()
    assert note.startswith("The cell has not stopped yet. Press stop again")
    stage.said_to_agent()
    stage.do(StopPressed())
    assert stage.said_to_agent() == [say.Stop(cell=CELL, hard=True)]
    stage.agent(say.Lost(cell=CELL, code=CellOutcome.STOPPED, sentence="The cell was stopped by ending its process."))
    assert isinstance(failure(stage), CellLost)


@pytest.mark.parametrize("is_pressed_again", [True, False])
def test_a_node_that_does_not_answer_a_hard_stop_is_left(is_pressed_again: bool) -> None:
    stage = Stage()
    stage.start()
    stage.do(StopPressed())
    stage.do(StopPressed())
    assert not [told for told in stage.delivered() if isinstance(told, RequestFailed)]
    if is_pressed_again:
        stage.wait(2_000)
        stage.do(StopPressed())
    else:
        stage.wait(10_000)
    assert isinstance(failure(stage), CellStopped)
    assert say.Leave() in stage.said_to_agent()
    assert stage.session.phase is None


def test_who_presses_many_times_at_once_ends_the_cell_as_two_presses_do() -> None:
    stage = Stage()
    stage.start()
    for _ in range(6):
        stage.do(StopPressed())
    assert stage.said_to_agent() == [say.Stop(cell=CELL), say.Stop(cell=CELL, hard=True)]
    assert not [told for told in stage.delivered() if isinstance(told, RequestFailed)]
    stage.agent(say.Lost(cell=CELL, code=CellOutcome.STOPPED, sentence="The cell was stopped by ending its process."))
    assert isinstance(failure(stage), CellLost)


def test_stop_while_results_come_in_leaves_them_only_when_pressed_twice() -> None:
    stage = Stage()
    stage.start()
    stage.agent(ended(sizes=(2000,)))
    stage.do(StopPressed())
    assert stage.notes() == [
        "The cell has ended and its results are on their way. Press stop again to leave them behind."
    ]
    stage.do(StopPressed())
    assert isinstance(failure(stage), CellStopped)


def test_stop_without_a_cell_is_nothing() -> None:
    stage = Stage()
    stage.hot()
    stage.do(StopPressed())
    assert stage.seen() == []


def test_a_stopped_cell_does_not_look_for_another_lease() -> None:
    stage = Stage()
    stage.start()
    stage.do(StopPressed())
    stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="It is gone."))
    assert isinstance(failure(stage), CellStopped)
