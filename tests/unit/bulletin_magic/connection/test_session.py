"""One cell's way through a session: queue, attach, ship, run, return; and the next cell's shorter one."""

import mmap

import msgspec
import pytest

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.errors import IllegalMove
from bulletin.ids import CellId, LeaseId, RequestId
from bulletin.wire import messages as say
from bulletin.wire.blobs import CHUNK, WINDOW
from bulletin_magic.connection.agent_side import DONE_MS
from bulletin_magic.connection.cell_phase import CellPhase
from bulletin_magic.connection.deliveries import (
    CellFinished,
    CellSent,
    LeaseChanged,
    LeaseReleased,
    OutputMessage,
    QuestionAsked,
    QueuePosition,
)
from bulletin_magic.connection.resource_spec import LeaseInfo, ResourceSpec
from bulletin_magic.connection.session_events import (
    AgentConnected,
    CellListAsked,
    ConnectAgent,
    QuestionAnswered,
    ReleaseAsked,
    SendToAgent,
    ShowLateOutput,
    Tick,
)

from .stage import ADDRESS, CELL, HELLO, LARGE, LEASE, SMALL, Stage, attach, cell, ended, granted, submit

LEASE_INFO = LeaseInfo(lease_id=LEASE, node="node1", slots=("GPU-0",), slot_word="GPU")


def test_a_first_cell_greets_queues_attaches_and_runs() -> None:
    stage = Stage()
    stage.do(cell())
    assert stage.said_to_broker() == [HELLO]
    stage.welcome()
    assert stage.said_to_broker() == [submit()]
    stage.grant()
    assert stage.said_to_agent() == [say.Attach(protocol=say.PROTOCOL, lease=LEASE, ticket="ticket")]
    stage.now_ms = 400
    stage.agent(say.Attached(lease=LEASE))
    run = say.Run(cell=CELL, source="1", number=7, parcel=say.Parcel(sizes=(6, 6)), label="")
    assert SendToAgent(run, SMALL) in stage.actions
    assert stage.delivered() == [CellSent(LEASE_INFO)]
    stage.finish()
    assert stage.delivered() == [
        CellFinished(
            ended=ended(), parts=(bytearray(b"abc"),), lease=LEASE_INFO, waited_ms=400, sent_bytes=12, returned_bytes=3
        )
    ]
    assert stage.session.phase is None


def test_what_a_lease_counts_for_is_what_was_heard_last() -> None:
    stage = Stage()
    stage.do(cell())
    stage.welcome()
    stage.grant()
    stage.broker(say.LeaseCost(lease=LeaseId("another"), in_quota=True))
    stage.agent(say.Attached(lease=LEASE))
    stage.broker(say.LeaseCost(lease=LEASE, in_quota=False, price_percent=400))
    stage.finish()
    (finished,) = (one for one in stage.delivered() if isinstance(one, CellFinished))
    assert finished.lease == msgspec.structs.replace(LEASE_INFO, is_in_quota=False, price_percent=400)
    assert stage.session.lease == finished.lease


def test_a_cell_goes_on_with_the_same_agent_at_another_address_and_with_no_other_agent() -> None:
    stage = Stage()
    stage.start()
    stage.seen()
    moved = msgspec.structs.replace(ADDRESS, address="tcp://10.77.0.21:9003")
    stranger = msgspec.structs.replace(moved, public_key="another's")
    stage.broker(say.NodeMoved(lease=LEASE, agent=ADDRESS))
    stage.broker(say.NodeMoved(lease=LEASE, agent=stranger))
    stage.broker(say.NodeMoved(lease=LeaseId("another"), agent=moved))
    assert stage.seen() == []
    stage.broker(say.NodeMoved(lease=LEASE, agent=moved))
    assert stage.seen() == [ConnectAgent(moved, "ticket", goes_on=True), SendToAgent(attach())]
    stage.agent(say.Attached(lease=LEASE, cell=CELL))
    stage.finish()
    assert any(isinstance(one, CellFinished) for one in stage.delivered())


def test_the_resources_of_the_cell_goes_into_the_request() -> None:
    stage = Stage()
    stage.queue(cell(resources=ResourceSpec(gpus=2, qos="batch", walltime_ms=5, label="x")))
    request = say.Submit(request=RequestId("r-c1"), gpus=2, qos="batch", walltime_ms=5, label="x")
    assert stage.said_to_broker()[-1] == request


def test_a_cell_that_names_no_class_asks_for_the_usual_one_and_says_so() -> None:
    stage = Stage()
    stage.queue(cell(resources=ResourceSpec(usual_qos="batch")))
    assert stage.said_to_broker()[-1] == say.Submit(request=RequestId("r-c1"), qos="batch", is_qos_asked=False)


def test_where_the_cell_stands_in_the_queue_is_told() -> None:
    stage = Stage()
    stage.queue()
    stage.broker(say.Queued(request=RequestId("r-c1"), position=2, reason="Busy.", wait_ms=9))
    stage.broker(say.Queued(request=RequestId("another"), position=1, reason="Late."))
    assert stage.delivered() == [
        QueuePosition(position=2, reason="Busy.", wait_ms=9, in_quota=True, gpus=1, slot_word="GPU")
    ]


def test_what_is_announced_to_a_cell_that_waits_is_noted_once_also_by_a_broker_that_was_restarted() -> None:
    stage = Stage()
    stage.queue()
    told = say.Queued(request=RequestId("r-c1"), position=2, reason="Busy.")
    for said in ("", "Announcement by root: it ends at six", "", "Announcement by root: it ends at six"):
        stage.broker(msgspec.structs.replace(told, announcement=said))
    assert stage.notes() == ["Announcement by root: it ends at six"]


def test_a_hot_session_runs_the_next_cell_without_the_broker() -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2"))
    assert stage.said_to_broker() == []
    assert [type(message) for message in stage.said_to_agent()] == [say.Run]


@pytest.mark.parametrize("is_sent", [True, False])
def test_who_wants_to_be_told_hears_that_a_place_is_gone_before_another_is_asked_for(*, is_sent: bool) -> None:
    stage = Stage()
    stage.hot()
    asked = msgspec.structs.replace(cell("c2"), lease_id=LEASE)
    told = msgspec.structs.replace(asked, is_told_of_loss=True)
    if is_sent:
        stage.do(told)
    stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="Somebody else needs it."))
    if not is_sent:
        stage.do(told)
    assert [one for one in stage.delivered() if isinstance(one, LeaseChanged)] == [LeaseChanged(0, has_place=False)]
    assert not any(isinstance(one, say.Submit) for one in stage.said_to_broker())
    stage.do(asked)
    assert submit("r-c2") in stage.said_to_broker(), "others have it asked for them"


@pytest.mark.parametrize(
    "resources", [ResourceSpec(gpus=2), ResourceSpec(qos="batch"), ResourceSpec(walltime_ms=1_000)]
)
def test_a_hot_session_that_does_not_fit_the_request_is_given_back(resources: ResourceSpec) -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2", resources=resources))
    assert stage.said_to_agent() == [say.Leave()]
    assert [type(message) for message in stage.said_to_broker()] == [say.Submit]
    assert stage.has_dropped()


def test_a_hot_session_that_is_gone_is_replaced_unseen() -> None:
    stage = Stage()
    stage.hot()
    stage.do(cell("c2"))
    stage.seen()
    stage.agent(say.Gone(code=RefusalCode.UNKNOWN_SESSION, sentence="It was idle."))
    assert stage.said_to_broker() == [submit("r-c2-2")]
    assert stage.delivered() == []
    stage.grant("r-c2-2", LeaseId("l2"))
    stage.agent(say.Attached(lease=LeaseId("l2")))
    assert [type(message) for message in stage.said_to_agent()] == [say.Attach, say.Run]
    stage.finish("c2")
    assert isinstance(stage.delivered()[-1], CellFinished)


def test_a_session_that_ends_while_idle_is_forgotten() -> None:
    stage = Stage()
    stage.hot()
    stage.agent(say.Lost(cell=None, code=CellOutcome.EVICTED, sentence="Its place was needed."))
    assert stage.has_dropped()
    stage.do(cell("c2"))
    assert stage.said_to_broker() == [submit("r-c2")]


def test_a_large_parcel_follows_in_chunks_as_they_are_taken() -> None:
    stage = Stage()
    stage.queue(cell(parts=LARGE))
    stage.grant()
    stage.seen()
    stage.agent(say.Attached(lease=LEASE))
    said = stage.said_to_agent()
    assert [type(message) for message in said] == [say.Run] + [say.Chunk] * WINDOW
    assert stage.session.phase is CellPhase.SHIPPING
    chunks = WINDOW
    while stage.session.phase is CellPhase.SHIPPING:
        stage.agent(say.Took(cell=CELL))
        chunks += len(stage.said_to_agent())
    assert chunks == -(-sum(len(part) for part in LARGE) // CHUNK)
    assert stage.session.phase is CellPhase.RUNNING


def test_results_in_chunks_are_taken_one_by_one_and_then_delivered() -> None:
    stage = Stage()
    stage.start()
    stage.agent(ended(sizes=(1000, 2000)))
    assert stage.session.phase is CellPhase.RETURNING
    stage.agent(say.Chunk(cell=CELL, size=1500), bytes(1500))
    assert stage.delivered() == []
    stage.agent(say.Chunk(cell=CELL, size=1500), bytes(1500))
    assert stage.said_to_agent() == [say.Took(cell=CELL), say.Took(cell=CELL)]
    (finished,) = stage.delivered()
    assert isinstance(finished, CellFinished)
    assert [len(part) for part in finished.parts] == [1000, 2000]


def test_outputs_are_shown_once_and_in_order() -> None:
    stage = Stage()
    stage.start()
    for seq in (1, 2, 2, 1, 3):
        stage.agent(say.Output(cell=CELL, type="stream", seq=seq), str(seq).encode())
    assert stage.delivered() == [
        OutputMessage("stream", b"1"),
        OutputMessage("stream", b"2"),
        OutputMessage("stream", b"3"),
    ]


def test_what_ended_cells_print_is_shown_once_whatever_runs_and_forgotten_by_the_agent() -> None:
    stage = Stage()
    stage.hot()
    late = CellId("of long ago")
    for seq in (1, 2, 1, 2, 3):
        stage.agent(say.Output(cell=late, type="stream", seq=seq, late=True), str(seq).encode())
    heard = [action for action in stage.seen() if isinstance(action, ShowLateOutput)]
    assert [(one.cell, one.output.content) for one in heard] == [(late, b"1"), (late, b"2"), (late, b"3")]
    stage.do(cell("c2"))
    stage.seen()
    stage.agent(say.Output(cell=late, type="stream", seq=4, late=True), b"4")
    assert stage.said_to_agent()[-1] == say.Seen(cell=late, seq=4, late=True)
    assert stage.delivered() == []


def test_outputs_are_acknowledged_after_a_while_or_after_many() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"{}")
    assert stage.said_to_agent() == []
    stage.wait(100)
    assert stage.said_to_agent() == [say.Seen(cell=CELL, seq=1)]
    for seq in range(2, 66):
        stage.agent(say.Output(cell=CELL, type="stream", seq=seq), b"{}")
    assert stage.said_to_agent() == [say.Seen(cell=CELL, seq=65)]


def test_a_question_is_asked_once_and_its_answer_sent() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Asked(cell=CELL, prompt="name?"))
    stage.agent(say.Asked(cell=CELL, prompt="name?"))
    assert stage.delivered() == [QuestionAsked("name?", password=False)]
    stage.do(QuestionAnswered("Ada"))
    assert stage.said_to_agent() == [say.Answer(cell=CELL, text="Ada")]
    stage.agent(say.Asked(cell=CELL, prompt="age?"))
    assert stage.delivered() == [QuestionAsked("age?", password=False)]


def test_what_belongs_to_another_cell_is_dropped() -> None:
    stage = Stage()
    stage.start()
    late = CellId("c0")
    stage.agent(say.Output(cell=late, type="stream", seq=1), b"{}")
    stage.agent(say.Asked(cell=late, prompt=""))
    stage.agent(ended("c0"), b"abc")
    stage.agent(say.Took(cell=late))
    assert stage.seen() == []


def test_what_comes_after_the_end_is_dropped() -> None:
    stage = Stage()
    stage.hot()
    stage.agent(ended(), b"abc")
    stage.agent(say.Output(cell=CELL, type="stream", seq=9), b"{}")
    stage.broker(say.Queued(request=RequestId("r-c1"), position=1, reason=""))
    stage.do(QuestionAnswered("?"))
    stage.do(Tick())
    assert stage.seen() == []


def test_leaving_gives_the_session_back() -> None:
    stage = Stage()
    stage.hot()
    stage.do(ReleaseAsked())
    assert stage.said_to_agent() == [say.Leave()]
    assert stage.delivered() == [LeaseReleased(LEASE_INFO)]
    stage.do(ReleaseAsked())
    assert stage.delivered() == [LeaseReleased(None)]


def test_leaving_while_queued_withdraws() -> None:
    stage = Stage()
    stage.queue()
    stage.said_to_broker()
    stage.do(ReleaseAsked())
    assert stage.said_to_broker() == [say.Withdraw(request=RequestId("r-c1"))]
    assert stage.session.phase is None


def test_a_second_cell_at_the_same_time_is_a_bug() -> None:
    stage = Stage()
    stage.start()
    with pytest.raises(IllegalMove):
        stage.do(cell("c2"))


def test_the_walltime_of_one_cell_is_not_left_to_the_next() -> None:
    stage = Stage()
    stage.start(cell(resources=ResourceSpec(walltime_ms=1_000)))
    stage.finish()
    stage.seen()
    stage.do(cell("c2", resources=ResourceSpec(walltime_ms=1_000, label="another name for the same")))
    assert [type(message) for message in stage.said_to_agent()] == [say.Run]
    stage.finish("c2")
    stage.wait(DONE_MS)
    stage.seen()
    stage.do(cell("c3"))
    assert stage.said_to_agent() == [say.Leave()]
    assert [type(message) for message in stage.said_to_broker()] == [say.Submit]


def test_the_executor_is_told_whether_there_are_rings() -> None:
    stage = Stage()
    stage.queue()
    stage.broker(granted())
    stage.do(AgentConnected(mmap.mmap(-1, 1), mmap.mmap(-1, 1)))
    stage.agent(say.Attached(lease=LEASE))
    (run,) = [message for message in stage.said_to_agent() if isinstance(message, say.Run)]
    assert run.has_rings


def test_the_agent_may_forget_a_cell_only_once_all_of_it_is_here() -> None:
    stage = Stage()
    stage.start()
    stage.agent(say.Output(cell=CELL, type="stream", seq=1), b"{}")
    stage.agent(ended(sizes=(2000,)))
    assert stage.said_to_agent() == []
    stage.agent(say.Chunk(cell=CELL, size=2000), bytes(2000))
    assert stage.said_to_agent() == [say.Took(cell=CELL)]
    stage.wait(DONE_MS)
    assert stage.said_to_agent() == [say.Seen(cell=CELL, seq=1, is_done=True)]


def test_a_cell_that_follows_at_once_says_itself_that_all_of_the_last_is_here() -> None:
    stage = Stage()
    stage.start()
    stage.finish()
    stage.do(cell("c2"))
    assert [type(message) for message in stage.said_to_agent()] == [say.Run]
    stage.wait(DONE_MS)
    assert stage.said_to_agent() == []


def test_who_leaves_at_once_first_says_that_all_of_the_last_cell_is_here() -> None:
    stage = Stage()
    stage.start()
    stage.finish()
    stage.do(ReleaseAsked(keeps_cell=True))
    assert stage.said_to_agent() == [say.Seen(cell=CELL, seq=0, is_done=True), say.Leave()]


def test_who_asks_for_the_cells_of_the_pool_first_says_that_all_of_the_last_is_here() -> None:
    stage = Stage()
    stage.start()
    stage.finish()
    stage.do(CellListAsked())
    assert stage.said_to_agent() == [say.Seen(cell=CELL, seq=0, is_done=True)]
    assert stage.said_to_broker() == [say.Find()]
