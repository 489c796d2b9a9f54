"""How a cell ends without results: refused, revoked, lost, or not understood."""

import pytest

from bulletin.codes import CellOutcome, LeaseEnd, RefusalCode
from bulletin.errors import CannotStart, CellLost, MalformedMessage, NoPool, NotAllowed, Refused
from bulletin.ids import LeaseId, RequestId
from bulletin.wire import messages as say
from bulletin_magic.connection.deliveries import CellFinished, RequestFailed
from bulletin_magic.connection.session_events import MessageGarbled, StopPressed

from .stage import CELL, HELLO, LEASE, Stage, cell, ended, failure, submit


def test_leases_that_come_to_nothing_are_not_asked_for_for_ever() -> None:
    stage = Stage()
    stage.queue()
    for attempt in ("r-c1", "r-c1-2", "r-c1-3"):
        stage.grant(attempt)
        stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="No process could be started."))
    assert isinstance(failure(stage), CannotStart)
    assert stage.session.phase is None


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (say.Refusal(code=RefusalCode.QUEUE_FULL, sentence="No.", request=RequestId("r-c1")), Refused),
        (say.Refusal(code=RefusalCode.NOT_ALLOWED, sentence="Who?"), NotAllowed),
        (say.Refusal(code=RefusalCode.VERSION_MISMATCH, sentence="Old."), Refused),
        (say.Malformed(problem="eh"), MalformedMessage),
    ],
)
def test_a_refusal_of_the_broker_ends_the_cell(message: say.ToKernel, error: type[Exception]) -> None:
    stage = Stage()
    stage.queue()
    stage.broker(message)
    assert type(failure(stage)) is error
    assert stage.session.phase is None


def test_a_refused_ticket_ends_the_cell() -> None:
    stage = Stage()
    stage.queue()
    stage.grant()
    stage.agent(say.Refusal(code=RefusalCode.VERSION_MISMATCH, sentence="Old."))
    assert type(failure(stage)) is Refused
    assert stage.has_dropped()


def test_a_broker_that_never_answers_is_no_pool() -> None:
    stage = Stage()
    stage.do(cell())
    stage.wait(9_999)
    assert stage.delivered() == []
    stage.wait(1)
    assert isinstance(failure(stage), NoPool)
    stage.do(cell("c2"))
    assert stage.said_to_broker()[-1] == HELLO


def test_only_the_first_cell_waits_long_for_a_broker_that_does_not_answer() -> None:
    """Each says hello again; one that is back is waited for as at first, once it has been heard."""
    stage = Stage()
    for name, wait_ms in (("c1", 10_000), ("c2", 1_500), ("c3", 1_500)):
        stage.do(cell(name))
        assert stage.said_to_broker()[-1] == HELLO
        stage.wait(wait_ms - 1)
        assert not [told for told in stage.delivered() if isinstance(told, RequestFailed)]
        stage.wait(1)
        assert isinstance(failure(stage), NoPool)
    stage.broker(say.Unknown())
    stage.do(cell("c4"))
    stage.wait(9_999)
    assert not [told for told in stage.delivered() if isinstance(told, RequestFailed)]


def test_a_broker_that_comes_back_late_takes_the_next_cell_at_once() -> None:
    stage = Stage()
    stage.do(cell())
    stage.wait(10_000)
    stage.seen()
    stage.welcome()
    stage.do(cell("c2"))
    assert stage.said_to_broker() == [submit("r-c2")]


def test_a_dead_executor_is_a_lost_cell_with_its_cause() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Lost(cell=CELL, code=CellOutcome.EXECUTOR_DIED, sentence="It was killed."))
    assert str(failure(stage)).startswith("It was killed. Your variables are as before")
    stage.do(cell("c2"))
    assert stage.said_to_broker() == [submit("r-c2")]


def test_a_revoked_lease_is_a_lost_cell_once_the_cell_runs() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Pong())
    stage.broker(say.Revoked(lease=LeaseId("another"), code=LeaseEnd.NODE_LOST, sentence="Not ours."))
    assert stage.seen() == []
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.SUPERSEDED, sentence="It went on elsewhere."))
    assert isinstance(failure(stage), CellLost)


def test_a_cell_whose_node_the_pool_no_longer_hears_goes_on_while_its_notebook_does() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Pong())
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.NODE_LOST, sentence="The node was lost."))
    stage.wait(5_000)
    stage.agent(ended(sizes=(2000,)))
    stage.agent(say.Chunk(cell=CELL, size=2000), bytes(2000))
    assert isinstance(stage.delivered()[-1], CellFinished)


def test_a_cell_whose_node_nobody_hears_any_more_is_lost_with_the_pools_words() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Pong())
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.NODE_LOST, sentence="The node was lost."))
    stage.wait(9_000)
    error = failure(stage)
    assert isinstance(error, CellLost)
    assert str(error).startswith("The node was lost.")


def test_a_lease_revoked_before_the_cell_started_is_asked_for_again() -> None:
    stage = Stage()
    stage.queue()
    stage.grant()
    stage.said_to_broker()
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.NODE_LOST, sentence="The node was lost."))
    assert stage.said_to_broker() == [submit("r-c1-2")]


def test_results_on_their_way_survive_a_revoked_lease() -> None:
    stage = Stage()
    stage.start()
    stage.agent(ended(sizes=(2000,)))
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.NOT_HELD, sentence="It is over."))
    stage.agent(say.Chunk(cell=CELL, size=2000), bytes(2000))
    assert isinstance(stage.delivered()[-1], CellFinished)
    stage.do(cell("c2"))
    assert stage.said_to_broker() == [submit("r-c2")]


def test_results_that_never_come_after_a_revoked_lease_are_a_lost_cell() -> None:
    stage = Stage()
    stage.start()
    stage.agent(ended(sizes=(2000,)))
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.NODE_LOST, sentence="The node was lost."))
    stage.wait(9_000)
    assert isinstance(failure(stage), CellLost)


@pytest.mark.parametrize("parcel", [say.Parcel(sizes=(5,)), say.Parcel(sizes=(-1,), inline=False)])
def test_results_that_make_no_sense_are_a_lost_cell(parcel: say.Parcel) -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Ended(cell=CELL, outcome="returned", parcel=parcel, ran_ms=1), b"abc")
    assert stage.said_to_agent() == [say.Leave()]
    assert isinstance(failure(stage), CellLost)


def test_an_agent_that_speaks_otherwise_costs_only_the_cell() -> None:
    stage = Stage()
    stage.start()
    stage.do(MessageGarbled("agent", "protocol 9"))
    assert "protocol 9" in str(failure(stage))
    stage.do(cell("c2"))
    assert stage.said_to_broker() == [submit("r-c2")]


def test_junk_of_the_broker_does_not_touch_a_running_cell() -> None:
    stage = Stage()
    stage.start()
    stage.do(MessageGarbled("broker", "junk"))
    assert stage.seen() == []
    stage.finish()
    assert isinstance(stage.delivered()[-1], CellFinished)


def test_an_executor_that_cannot_be_started_is_said_and_not_waited_for() -> None:
    stage = Stage()
    stage.queue()
    stage.seen()
    revoked = say.Revoked(lease=LEASE, code=LeaseEnd.CANNOT_START, sentence="There is no environment 'nope'.")
    stage.broker(revoked)
    assert stage.said_to_broker() == [say.Withdraw(request=RequestId("r-c1")), submit("r-c1-2")]
    stage.broker(revoked)
    stage.broker(revoked)
    problem = failure(stage)
    assert isinstance(problem, CannotStart)
    assert str(problem) == "There is no environment 'nope'. Nothing was run; your variables are unchanged."
    assert stage.session.phase is None


def lose_the_node(stage: Stage, attempt: str) -> None:
    """Send the cell to a node that is gone before it has said a word of it."""
    stage.grant(attempt)
    stage.agent(say.Attached(lease=LEASE))
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.NODE_LOST, sentence="The node was lost."))


def test_of_a_cell_whose_nodes_are_gone_as_soon_as_they_have_it_nobody_says_that_nothing_was_run() -> None:
    stage = Stage()
    stage.queue()
    for attempt in ("r-c1", "r-c1-2", "r-c1-3"):
        lose_the_node(stage, attempt)
    problem = failure(stage)
    assert isinstance(problem, CellLost), "and so it is not run in the notebook instead"
    assert str(problem).startswith("The node was lost. It was sent there and may have begun")
    assert "variables are as before" in str(problem)
    assert "Nothing was run" not in str(problem)


def test_what_was_sent_once_may_have_begun_whatever_became_of_later_tries() -> None:
    stage = Stage()
    stage.queue()
    lose_the_node(stage, "r-c1")
    for attempt in ("r-c1-2", "r-c1-3"):
        stage.grant(attempt)
        stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="No process could be started."))
    assert isinstance(failure(stage), CellLost)


def test_who_stopped_a_cell_whose_node_was_lost_is_not_told_that_it_never_ran() -> None:
    stage = Stage()
    stage.queue()
    stage.grant()
    stage.agent(say.Attached(lease=LEASE))
    stage.do(StopPressed())
    stage.broker(say.Revoked(lease=LEASE, code=LeaseEnd.NODE_LOST, sentence="The node was lost."))
    assert "may have begun" in str(failure(stage))
