"""A session whose peers fall silent, are restarted, or lose the connection; and the stop button in each phase."""

import pytest

from bulletin.errors import CellLost, CellStopped
from bulletin.ids import LeaseId, RequestId, SessionId
from bulletin.wire import messages as say
from bulletin_magic.facts import Failed, Finished, Printed, StopPressed
from bulletin_magic.trip import Phase

from .stage import CELL, HELLO, LARGE, LEASE, Stage, cell, ended
from .test_session import failure, submit


def reattach(seen: int = 0) -> say.Attach:
    return say.Attach(protocol=say.PROTOCOL, lease=LEASE, ticket="ticket", cell=CELL, seen=seen)


# --- the broker ------------------------------------------------------------------------------------------------------


def test_a_restarted_broker_gets_the_request_again() -> None:
    stage = Stage()
    stage.queue()
    stage.broker(say.Queued(request=RequestId("r-c1"), position=1, reason=""))
    stage.seen()
    stage.wait(1_000)
    assert stage.said_to_broker() == [say.Ping()]
    stage.broker(say.Unknown())
    assert stage.said_to_broker() == [HELLO]
    stage.welcome()
    assert stage.said_to_broker() == [submit()]
    assert stage.notes() == ["The pool's broker was restarted; your cell is queued again."]


def test_many_unknowns_are_answered_with_one_hello() -> None:
    stage = Stage()
    stage.queue()
    stage.said_to_broker()
    for _ in range(5):
        stage.broker(say.Unknown())
    assert stage.said_to_broker() == [HELLO]


def test_a_running_cell_goes_on_when_the_broker_is_restarted() -> None:
    stage = Stage()
    stage.start()
    stage.wait(1_000)
    stage.broker(say.Pong())
    stage.wait(1_000)
    stage.seen()
    stage.broker(say.Unknown())
    stage.welcome()
    assert stage.said_to_broker() == [HELLO]
    assert stage.notes() == ["The pool's broker was restarted; your cell goes on."]
    stage.finish()
    assert isinstance(stage.delivered()[-1], Finished)


def test_a_broker_restarted_long_before_the_cell_is_nothing_to_tell() -> None:
    stage = Stage()
    stage.hot()
    stage.agent(say.Lost(cell=None, code="x", sentence="x"))
    stage.do(cell("c2"))
    stage.broker(say.Unknown())
    stage.welcome()
    assert stage.said_to_broker() == [submit("r-c2"), HELLO, submit("r-c2")]
    assert stage.notes() == []


@pytest.mark.parametrize("is_running", [True, False])
def test_a_silent_broker_is_mentioned_once(is_running: bool) -> None:
    stage = Stage()
    (stage.start if is_running else stage.queue)()
    stage.seen()
    stage.wait(4_999)
    assert stage.notes() == []
    for _ in range(10):
        stage.wait(1_000)
        stage.agent(say.Pong())
    what = "goes on" if is_running else "waits until it does"
    assert stage.notes() == [f"The pool's broker does not answer; your cell {what}."]


def test_a_request_that_nobody_speaks_of_is_said_again() -> None:
    stage = Stage()
    stage.queue()
    stage.seen()
    for _ in range(5):
        stage.wait(1_000)
        stage.broker(say.Pong())
    assert stage.said_to_broker().count(submit()) == 1


def test_nothing_is_pinged_within_the_first_second_of_a_cell() -> None:
    stage = Stage()
    stage.hot()
    stage.wait(5_000)
    stage.seen()
    stage.do(cell("c2"))
    stage.said_to_agent()
    stage.wait(999)
    assert stage.said_to_broker() == []
    assert stage.said_to_agent() == []


# --- the agent -------------------------------------------------------------------------------------------------------


def test_a_silent_node_is_mentioned_once() -> None:
    stage = Stage()
    stage.start()
    stage.wait(7_999)
    stage.broker(say.Pong())
    stage.seen()
    for _ in range(10):
        stage.wait(1_000)
        stage.broker(say.Pong())
    assert stage.notes() == ["The node of your cell does not answer; waiting for it. Press stop to leave it."]


def test_after_a_broken_link_the_outputs_go_on_where_they_were() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"one")
    stage.seen()
    stage.agent(say.Unknown())
    assert stage.said_to_agent() == [reattach(seen=1)]
    stage.agent(say.Attached(lease=LEASE, cell=CELL))
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"one")
    stage.agent(say.Output(cell=CELL, type="stream", seq=2), b"two")
    assert stage.delivered() == [Printed("stream", b"two")]
    stage.finish()
    assert isinstance(stage.delivered()[-1], Finished)


def test_a_hot_session_whose_link_broke_while_idle_takes_the_cell_in_the_end() -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2"))
    stage.seen()
    stage.agent(say.Unknown())
    stage.agent(say.Attached(lease=LEASE))
    assert [type(message) for message in stage.said_to_agent()] == [say.Attach, say.Run]
    stage.finish("c2")
    assert isinstance(stage.delivered()[-1], Finished)


def test_a_node_that_forgot_a_running_cell_has_lost_it() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"{}")
    stage.agent(say.Unknown())
    stage.agent(say.Attached(lease=LEASE))
    assert isinstance(failure(stage), CellLost)


def test_a_node_that_forgot_the_lease_of_a_running_cell_has_lost_it() -> None:
    stage = Stage()
    stage.start()
    stage.wait(1_000)
    stage.agent(say.Pong())
    stage.agent(say.Unknown())
    stage.agent(say.Gone(code="x", sentence="The node's agent was restarted."))
    assert str(failure(stage)).startswith("The node's agent was restarted.")


def test_a_link_that_breaks_while_state_goes_out_means_another_lease() -> None:
    stage = Stage()
    stage.start(cell(parts=LARGE))
    assert stage.session.phase is Phase.SHIPPING
    stage.agent(say.Unknown())
    stage.agent(say.Attached(lease=LEASE, cell=CELL))
    assert stage.said_to_agent()[-1] == say.Leave()
    assert stage.said_to_broker() == [submit("r-c1-2")]
    assert stage.delivered() == []


def test_results_come_again_from_their_start_after_a_broken_link() -> None:
    stage = Stage()
    stage.start()
    stage.agent(ended(sizes=(2000,)))
    stage.agent(say.Chunk(cell=CELL, size=1000), b"x" * 1000)
    stage.agent(say.Unknown())
    stage.agent(say.Attached(lease=LEASE, cell=CELL))
    stage.agent(ended(sizes=(2000,)))
    stage.agent(say.Chunk(cell=CELL, size=2000), b"y" * 2000)
    finished = stage.delivered()[-1]
    assert isinstance(finished, Finished)
    assert finished.parts == (bytearray(b"y" * 2000),)


def test_an_attach_that_was_lost_is_said_again() -> None:
    stage = Stage()
    stage.queue()
    stage.grant()
    stage.said_to_agent()
    stage.wait(5_000)
    assert [type(message) for message in stage.said_to_agent()].count(say.Attach) == 1


def test_an_idle_session_is_pinged_now_and_then_and_not_for_ever() -> None:
    stage = Stage()
    stage.hot()
    stage.wait(30_000)
    assert stage.said_to_agent() == [say.Ping()] * 3
    stage.wait(3_600_000)
    assert len(stage.said_to_agent()) <= 3
    assert stage.session.deadline_ms is None


# --- the stop button -------------------------------------------------------------------------------------------------


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
    assert [type(told) for told in stage.delivered()] == [Finished]


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
    stage.agent(say.Lost(cell=CELL, code="stopped", sentence="The cell was stopped by ending its process."))
    assert isinstance(failure(stage), CellLost)


@pytest.mark.parametrize("is_pressed_again", [True, False])
def test_a_node_that_does_not_answer_a_hard_stop_is_left(is_pressed_again: bool) -> None:
    stage = Stage()
    stage.start()
    stage.do(StopPressed())
    stage.do(StopPressed())
    assert not [told for told in stage.delivered() if isinstance(told, Failed)]
    if is_pressed_again:
        stage.do(StopPressed())
    else:
        stage.wait(10_000)
    assert isinstance(failure(stage), CellStopped)
    assert say.Leave() in stage.said_to_agent()
    assert stage.session.phase is None


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
    stage.agent(say.Gone(code="x", sentence="It is gone."))
    assert isinstance(failure(stage), CellStopped)
