"""A person cancels the cell at the command line: what its notebook makes of it, wherever the cell is."""

from bulletin.codes import RefusalCode
from bulletin.errors import CellStopped
from bulletin.ids import RequestId
from bulletin.wire import messages as say

from .stage import LEASE, Stage, cell, failure, submit

SENTENCE = "An admin (root) cancelled this cell."


def cancelled(request: str = "r-c1") -> say.Refusal:
    return say.Refusal(code=RefusalCode.CANCELLED, sentence=SENTENCE, request=RequestId(request))


def assert_is_stopped(stage: Stage) -> None:
    error = failure(stage)
    assert isinstance(error, CellStopped)
    assert str(error) == f"{SENTENCE} Your variables are as before the cell."
    assert stage.session.phase is None


def test_a_cell_that_waits_is_stopped_as_by_its_user() -> None:
    stage = Stage()
    stage.queue()
    stage.broker(cancelled())
    assert_is_stopped(stage)


def test_a_cell_that_was_granted_and_has_not_begun_is_stopped_and_asks_for_nothing_more() -> None:
    stage = Stage()
    stage.queue()
    stage.grant()
    stage.said_to_broker()
    stage.broker(cancelled())
    assert_is_stopped(stage)
    assert stage.has_dropped()
    assert stage.said_to_broker() == []


def test_where_the_session_was_gone_first_the_request_that_followed_is_taken_back() -> None:
    stage = Stage()
    stage.queue()
    stage.grant()
    stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="It is not here."))
    assert stage.said_to_broker()[-1] == submit("r-c1-2")
    stage.broker(cancelled())
    assert_is_stopped(stage)
    assert stage.said_to_broker() == [say.Withdraw(request=RequestId("r-c1-2"))]


def test_news_of_an_earlier_cell_does_not_stop_this_one() -> None:
    stage = Stage()
    stage.queue(cell("c2"))
    stage.seen()
    stage.broker(cancelled("r-c1"))
    stage.broker(cancelled("r-c22"))
    assert stage.delivered() == []
    stage.grant("r-c2")
    stage.agent(say.Attached(lease=LEASE))
    assert stage.session.phase is not None
