"""A session that joins a cell which another kernel has sent."""

from msgspec import structs

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.errors import CellLost, Refused as RefusedError
from bulletin.ids import AgentId, RequestId
from bulletin.wire import messages as say
from bulletin_magic.connection.deliveries import (
    CellFinished,
    CellList,
    CellSent,
    OutputMessage,
    RequestFailed,
)
from bulletin_magic.connection.session_events import CellListAsked, StopPressed
from tests.unit.bulletin_magic.connection.stage import CELL, LEASE, Stage, cell, ended, failure

AGENT = AgentId("a1")
JOINS = structs.replace(cell(parts=()), joins=AGENT)
JOIN = say.Join(request=RequestId("r-c1"), cell=CELL, agent=AGENT)


def join(stage: Stage) -> None:
    stage.queue(JOINS)
    assert stage.said_to_broker()[-1] == JOIN
    stage.grant()
    (attach,) = stage.said_to_agent()
    assert isinstance(attach, say.Attach)
    assert (attach.cell, attach.seen, attach.is_joining) == (CELL, 0, True)
    stage.agent(say.Attached(lease=LEASE, cell=CELL, lacks=0))


def test_it_shows_all_outputs_takes_the_results_and_gives_the_lease_back() -> None:
    stage = Stage()
    join(stage)
    for number in (1, 2):
        stage.agent(say.Output(cell=CELL, type="stream", seq=number), b"x")
    stage.agent(structs.replace(ended(), round=5), b"abc")
    told = stage.delivered()
    assert [type(one) for one in told] == [CellSent, OutputMessage, OutputMessage, CellFinished]
    assert stage.said_to_agent() == [say.Seen(cell=CELL, seq=2, is_done=True), say.Leave()]
    assert stage.session.lease is None


def test_a_lost_link_while_joining_is_no_new_beginning() -> None:
    stage = Stage()
    join(stage)
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"one")
    stage.seen()
    stage.agent(say.Unknown())
    (attach,) = stage.said_to_agent()
    assert isinstance(attach, say.Attach)
    assert (attach.seen, attach.is_joining) == (1, True)
    stage.agent(say.Attached(lease=LEASE, cell=CELL, lacks=0))
    stage.agent(structs.replace(ended(), round=5), b"abc")
    assert isinstance(stage.delivered()[-1], CellFinished)


def test_a_joined_cell_is_stopped_like_any_other() -> None:
    stage = Stage()
    join(stage)
    stage.do(StopPressed())
    assert stage.said_to_agent() == [say.Stop(cell=CELL)]


def test_a_lease_that_is_held_is_given_back_first() -> None:
    stage = Stage()
    stage.hot()
    stage.do(structs.replace(JOINS, request=RequestId("r-c9")))
    assert stage.said_to_agent() == [say.Leave()]
    assert stage.said_to_broker() == [structs.replace(JOIN, request=RequestId("r-c9"))]


def test_what_the_broker_refuses_is_said() -> None:
    stage = Stage()
    stage.queue(JOINS)
    stage.broker(say.Refusal(code=RefusalCode.NO_SUCH_CELL, sentence="It is gone.", request=RequestId("r-c1")))
    assert isinstance(failure(stage), RefusedError)


def test_a_node_that_has_it_no_more_is_no_reason_to_run_anything() -> None:
    stage = Stage()
    stage.queue(JOINS)
    stage.grant()
    stage.agent(say.Attached(lease=LEASE, cell=None))
    assert isinstance(failure(stage), CellLost)


def test_a_joined_cell_that_is_reclaimed_is_lost_and_not_run_again() -> None:
    stage = Stage()
    join(stage)
    stage.agent(say.Lost(cell=CELL, code=CellOutcome.RECLAIMED, sentence="Its place was needed."))
    assert isinstance(failure(stage), CellLost)
    assert not any(isinstance(said, say.Submit) for said in stage.said_to_broker())


def test_cells_are_asked_for_and_an_answer_that_does_not_come_is_an_error() -> None:
    stage = Stage()
    stage.do(CellListAsked())
    stage.welcome()
    assert stage.said_to_broker()[-1] == say.Find()
    stage.broker(say.Found(cells=()))
    assert stage.delivered() == [CellList(say.Found(cells=()))]
    stage.do(CellListAsked())
    stage.wait(5_000)
    assert isinstance(stage.delivered()[-1], RequestFailed)
