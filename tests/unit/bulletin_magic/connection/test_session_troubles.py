"""A session whose peers fall silent, are restarted, or lose the connection."""

import pytest
from msgspec import structs

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.errors import CellLost
from bulletin.ids import CellId, RequestId
from bulletin.wire import messages as say
from bulletin.wire.frames import Blob
from bulletin_magic.connection.cell_phase import CellPhase
from bulletin_magic.connection.deliveries import CellFinished, OutputMessage, QuestionAsked
from bulletin_magic.connection.session_events import QuestionAnswered, StopPressed, Tick

from .stage import CELL, HELLO, LARGE, LEASE, SMALL, Stage, attach, cell, ended, failure, granted, submit

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
    assert isinstance(stage.delivered()[-1], CellFinished)


@pytest.mark.parametrize(("is_running", "what"), [(True, "goes on"), (False, "waits")])
def test_a_broker_that_was_only_not_reached_is_not_said_to_be_restarted(is_running: bool, what: str) -> None:
    stage = Stage()
    (stage.start if is_running else stage.queue)()
    stage.wait(1_000)
    stage.broker(say.Pong())
    stage.broker(say.Unknown())
    stage.welcome(is_known=True)
    assert stage.notes()[-1] == f"The connection to the pool's broker was cut, and is there again; your cell {what}."


def test_nobody_is_said_to_be_silent_whom_a_notebook_that_stood_still_did_not_hear() -> None:
    """As when its host was suspended, with all that runs on it or alone."""
    stage = Stage()
    stage.start()
    for _ in range(2):
        stage.wait(1_000)
        stage.broker(say.Pong())
        stage.agent(say.Pong())
    stage.seen()
    stage.now_ms += 60_000
    stage.do(Tick())
    assert stage.notes() == []
    stage.wait(8_000)
    assert len(stage.notes()) == 2, "both say nothing, though it listens"


def test_a_broker_restarted_long_before_the_cell_is_nothing_to_tell() -> None:
    stage = Stage()
    stage.hot()
    stage.agent(say.Lost(cell=None, code=CellOutcome.EVICTED, sentence="x"))
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
    assert stage.notes() == ["The node of your cell (node1) does not answer; waiting for it. Press stop to leave it."]


def test_after_a_broken_link_the_outputs_go_on_where_they_were() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"one")
    stage.seen()
    stage.agent(say.Unknown())
    assert stage.said_to_agent() == [attach(seen=1)]
    stage.agent(say.Attached(lease=LEASE, cell=CELL))
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"one")
    stage.agent(say.Output(cell=CELL, type="stream", seq=2), b"two")
    assert stage.delivered() == [OutputMessage("stream", b"two")]
    stage.finish()
    assert isinstance(stage.delivered()[-1], CellFinished)


def test_a_hot_session_whose_link_broke_while_idle_takes_the_cell_in_the_end() -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2"))
    stage.seen()
    stage.agent(say.Unknown())
    stage.agent(say.Attached(lease=LEASE))
    assert [type(message) for message in stage.said_to_agent()] == [say.Attach, say.Run]
    stage.finish("c2")
    assert isinstance(stage.delivered()[-1], CellFinished)


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
    stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="The node's agent was restarted."))
    assert str(failure(stage)).startswith("The node's agent was restarted.")


def test_a_link_that_breaks_while_state_goes_out_means_another_lease() -> None:
    stage = Stage()
    stage.start(cell(parts=LARGE))
    assert stage.session.phase is CellPhase.SHIPPING
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
    assert isinstance(finished, CellFinished)
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


def test_a_cell_that_a_broken_connection_swallowed_is_sent_again_as_the_same_cell() -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2"))
    (first,) = stage.said_to_agent()
    stage.agent(say.Unknown())
    stage.agent(say.Attached(lease=LEASE, cell=CELL))
    assert stage.said_to_agent() == [attach(CellId("c2")), first]
    assert stage.said_to_broker() == []
    stage.finish("c2")
    assert isinstance(stage.delivered()[-1], CellFinished)


def test_a_cell_that_did_arrive_is_not_sent_twice() -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2"))
    stage.agent(say.Unknown())
    stage.said_to_agent()
    stage.agent(say.Attached(lease=LEASE, cell=CellId("c2")))
    assert stage.said_to_agent() == []
    stage.finish("c2")
    assert isinstance(stage.delivered()[-1], CellFinished)


@pytest.mark.parametrize("parts", [SMALL, LARGE])
def test_a_session_that_is_gone_after_a_broken_connection_means_another_lease(parts: tuple[Blob, ...]) -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2", parts=parts))
    stage.agent(say.Unknown())
    stage.seen()
    stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="It is not here."))
    assert stage.said_to_broker() == [submit("r-c2-2")]
    assert stage.delivered() == []


def test_a_connection_that_breaks_while_idle_is_mended_before_the_next_cell() -> None:
    stage = Stage()
    stage.hot()
    stage.wait(10_000)
    assert stage.said_to_agent() == [say.Ping()]
    stage.agent(say.Unknown())
    assert stage.said_to_agent() == [attach(None)]
    stage.do(cell("c2"))
    assert stage.said_to_agent() == []
    stage.agent(say.Attached(lease=LEASE, cell=CELL))
    assert [type(message) for message in stage.said_to_agent()] == [say.Run]


def test_a_hello_that_is_answered_twice_asks_for_one_lease() -> None:
    stage = Stage()
    stage.do(cell())
    stage.wait(5_000)
    assert stage.said_to_broker() == [HELLO, HELLO]
    stage.welcome()
    stage.welcome()
    assert stage.said_to_broker() == [submit()]


def test_a_connection_whose_hello_was_superseded_says_hello_again_and_keeps_its_request() -> None:
    stage = Stage()
    stage.queue()
    stage.said_to_broker()
    stage.wait(1_000)
    stage.broker(say.Unknown())
    stage.broker(granted())
    stage.welcome()
    assert stage.said_to_broker() == [say.Ping(), HELLO]
    assert stage.session.phase is CellPhase.ATTACHING


def test_state_of_which_only_the_acknowledgment_was_lost_is_not_sent_again() -> None:
    stage = Stage()
    stage.start(cell(parts=LARGE))
    stage.agent(say.Unknown())
    stage.seen()
    stage.agent(say.Attached(lease=LEASE, cell=CELL, lacks=0))
    assert stage.said_to_agent() == []
    stage.finish()
    assert isinstance(stage.delivered()[-1], CellFinished)


def test_state_that_was_lost_on_the_way_means_another_lease_and_no_lost_cell() -> None:
    stage = Stage()
    stage.start(cell(parts=LARGE))
    for _ in range(5):
        stage.agent(say.Took(cell=CELL))
    assert stage.session.phase is CellPhase.RUNNING
    stage.agent(say.Unknown())
    stage.seen()
    stage.agent(say.Attached(lease=LEASE, cell=CELL, lacks=1_000_000))
    assert stage.said_to_agent() == [say.Leave()]
    assert stage.said_to_broker() == [submit("r-c1-2")]


def test_chunks_of_two_sendings_of_the_results_are_not_mixed() -> None:
    stage = Stage()
    stage.start()
    stage.agent(ended(sizes=(2000,)))
    stage.agent(say.Chunk(cell=CELL, size=1000), b"x" * 1000)
    again = structs.replace(ended(sizes=(2000,)), round=1)
    stage.agent(again)
    stage.agent(say.Chunk(cell=CELL, size=1000), b"x" * 1000)
    stage.seen()
    for _ in range(2):
        stage.agent(say.Chunk(cell=CELL, size=1000, round=1), b"y" * 1000)
    finished = stage.delivered()[-1]
    assert isinstance(finished, CellFinished)
    assert finished.parts == (bytearray(b"y" * 2000),)
    assert stage.said_to_agent()[:2] == [say.Took(cell=CELL, round=1)] * 2


@pytest.mark.parametrize(("is_heard", "said"), [(False, [say.Stop(cell=CELL)]), (True, [])])
def test_a_stop_that_was_lost_with_the_connection_is_said_again(is_heard: bool, said: list[say.Stop]) -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Pong())
    stage.do(StopPressed())
    stage.agent(say.Unknown())
    stage.seen()
    stage.agent(say.Attached(lease=LEASE, cell=CELL, lacks=0, is_stopped=is_heard))
    assert stage.said_to_agent() == said


def test_an_answer_that_was_lost_with_the_connection_is_said_again_and_not_asked_for() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Asked(cell=CELL, prompt="name? ", number=1))
    stage.do(QuestionAnswered("ada"))
    stage.agent(say.Unknown())
    stage.agent(say.Attached(lease=LEASE, cell=CELL, lacks=0))
    stage.seen()
    stage.agent(say.Asked(cell=CELL, prompt="name? ", number=1))
    assert stage.said_to_agent() == [say.Answer(cell=CELL, text="ada")]
    assert stage.delivered() == []
    stage.agent(say.Asked(cell=CELL, prompt="again? ", number=2))
    assert stage.delivered() == [QuestionAsked("again? ", password=False)]


def test_a_question_after_one_that_was_interrupted_is_asked() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Asked(cell=CELL, prompt="one? ", number=1))
    stage.do(StopPressed())
    stage.seen()
    stage.agent(say.Asked(cell=CELL, prompt="two? ", number=2))
    assert stage.delivered() == [QuestionAsked("two? ", password=False)]
