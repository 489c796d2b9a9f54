"""The kernel ends while a cell is under way: the cell goes on without it where it can, and a stop waits for that."""

import pytest
from msgspec import structs

from bulletin.errors import CellStopped
from bulletin.ids import RequestId
from bulletin.wire import messages as say
from bulletin_magic.connection.deliveries import LeaseReleased
from bulletin_magic.connection.session_events import ReleaseAsked, StopPressed

from .stage import CELL, LARGE, Stage, cell, ended, failure

ENDS = ReleaseAsked(keeps_cell=True)
#: A cell of a kernel that presses stop when it is restarted.
PATIENT = structs.replace(cell(), stop_after_ms=200)


@pytest.mark.parametrize("is_returning", [True, False])
def test_a_cell_that_runs_or_has_run_is_left_to_go_on(is_returning: bool) -> None:
    stage = Stage()
    stage.start()
    if is_returning:
        stage.agent(ended(sizes=(2000,)))
    stage.do(ENDS)
    assert stage.said_to_agent() == [say.Leave(keeps_cell=True)]
    error = failure(stage)
    assert isinstance(error, CellStopped)
    assert "`%gpu attach c1` in the next kernel" in str(error)
    assert stage.has_dropped()
    assert stage.session.phase is None


def test_a_cell_whose_state_is_on_its_way_cannot_go_on() -> None:
    stage = Stage()
    stage.start(cell(parts=LARGE))
    stage.do(ENDS)
    assert stage.said_to_agent() == [say.Leave()]
    assert "before it ran" in str(failure(stage))


def test_a_cell_in_the_queue_leaves_it() -> None:
    stage = Stage()
    stage.queue()
    stage.seen()
    stage.do(ENDS)
    assert stage.said_to_broker() == [say.Withdraw(request=RequestId("r-c1"))]
    assert "before it ran" in str(failure(stage))


def test_a_session_without_a_cell_is_given_back() -> None:
    stage = Stage()
    stage.hot()
    stage.do(ENDS)
    assert stage.said_to_agent() == [say.Leave()]
    assert [type(told) for told in stage.delivered()] == [LeaseReleased]


def test_a_stop_is_held_back_until_the_kernel_has_had_the_time_to_say_that_it_ends() -> None:
    stage = Stage()
    stage.start(PATIENT)
    stage.do(StopPressed())
    stage.wait(199)
    assert stage.said_to_agent() == []
    stage.wait(1)
    assert stage.said_to_agent() == [say.Stop(cell=CELL)]
    stage.wait(1_999)
    assert stage.notes() == []
    stage.wait(1)
    assert len(stage.notes()) == 1


def test_a_stop_that_was_held_back_does_not_reach_a_cell_that_goes_on() -> None:
    stage = Stage()
    stage.start(PATIENT)
    stage.do(StopPressed())
    stage.do(ENDS)
    stage.wait(60_000)
    assert stage.said_to_agent() == [say.Leave(keeps_cell=True)]


def test_a_stop_that_was_held_back_is_nothing_to_a_cell_that_has_ended() -> None:
    stage = Stage()
    stage.start(PATIENT)
    stage.do(StopPressed())
    stage.agent(ended(sizes=(2000,)))
    stage.wait(200)
    assert say.Stop(cell=CELL) not in stage.said_to_agent()


def test_whoever_presses_twice_means_it() -> None:
    stage = Stage()
    stage.start(PATIENT)
    stage.do(StopPressed())
    stage.do(StopPressed())
    stage.wait(200)
    assert [said for said in stage.said_to_agent() if isinstance(said, say.Stop)] == [say.Stop(cell=CELL, hard=True)]
