"""Who may have a cell whose notebook is gone: the same user, by a new ticket; nobody while the notebook is there."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.session import Session
from gpu_worker.agent.spool import DiskShare
from gpu_worker.config import Pool

CELL = CellId("c1")
PREPARE = wire.Prepare(
    lease=LeaseId("l1"),
    session=SessionId("s1"),
    kernel=KernelId("k1"),
    user=UserName("ada"),
    project=ProjectId("p"),
    qos="interactive",
    slots=(SlotId("cpu-0"),),
    walltime_ms=60_000,
    ticket="old",
)
HAND_OVER = wire.HandOver(
    query="q", cell=CELL, user=UserName("ada"), session=SessionId("s2"), kernel=KernelId("k2"), ticket="new"
)
RUN = wire.Run(cell=CELL, source="# a comment\n%matplotlib inline\nfit(x)\n", number=1, parcel=wire.Parcel())


async def _nobody(_route: bytes, _message: wire.Message, _blobs: Sequence[Blob]) -> None:
    pass


async def _no_broker(_message: wire.Message) -> None:
    pass


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session with a cell, whose kernel was not heard for a minute."""

    async def make() -> Session:
        share = DiskShare(tmp_path)
        settings = Pool(folder=str(tmp_path), slots=1).settings()
        made = Session(PREPARE, settings, Inventory(1, use_gpus=False), _nobody, _no_broker, share)
        made.cells.running = AgentCell(RUN, "", share, 10**6)
        made.kernel.heard_ms -= 60_000
        return made

    return asyncio.run(make())


def test_it_is_known_by_its_first_line_of_code(session: Session) -> None:
    note = session.cell_note()
    assert note is not None
    assert (note.cell, note.line, note.state, note.is_attended) == (CELL, "fit(x)", "running", False)
    session.executor.close()


def test_the_same_user_gets_it_and_the_old_ticket_is_void(session: Session) -> None:
    session.kernel.route = b"old"
    assert session.hand_over(HAND_OVER) == ""
    assert (session.prepare.ticket, session.prepare.kernel) == ("new", KernelId("k2"))
    assert session.kernel.route is None
    session.executor.close()


@pytest.mark.parametrize(
    "change", [{"user": UserName("eve")}, {"cell": CellId("c2")}], ids=["another user", "another cell"]
)
def test_nobody_else_gets_it_or_hears_more_than_that(session: Session, change: dict[str, str]) -> None:
    assert session.hand_over(structs.replace(HAND_OVER, **change)) == "There is no such cell of yours any more."
    assert session.prepare.ticket == "old"
    session.executor.close()


def test_a_notebook_that_is_there_keeps_its_cell(session: Session) -> None:
    session.kernel.heard_ms += 60_000
    assert "is still there" in session.hand_over(HAND_OVER)
    assert session.prepare.ticket == "old"
    session.executor.close()


def test_the_same_kernel_started_again_need_not_wait(session: Session) -> None:
    session.kernel.heard_ms += 60_000
    assert session.hand_over(structs.replace(HAND_OVER, kernel=KernelId("k1"))) == ""
    session.executor.close()


def test_a_cell_that_never_had_all_it_needs_is_not_offered(session: Session) -> None:
    assert session.cells.running is not None
    session.cells.running.missing_bytes = 1
    assert session.cell_note() is None
    assert session.hand_over(HAND_OVER) != ""
    session.executor.close()
