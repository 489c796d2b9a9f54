"""The notebook's folder in a session: found once, answered whenever it is asked for, and found anew elsewhere."""

import msgspec

from bulletin.ids import AgentId, LeaseId
from bulletin.wire import messages as say
from bulletin_magic.connection.session_events import AnswerFolder, CellSubmitted, ReleaseAsked, ServeFolder

from .stage import LEASE, Stage, cell

FOLDER = "/home/ada/course"


def in_folder(name: str = "c1", folder: str = FOLDER) -> CellSubmitted:
    return msgspec.structs.replace(cell(name), folder=folder)


def probes(stage: Stage) -> list[say.FolderProbe | None]:
    return [message.folder for message in stage.said_to_agent() if isinstance(message, say.Run)]


def run(stage: Stage, name: str, folder: str = FOLDER) -> list[say.FolderProbe | None]:
    """Run one more cell in the session; what it probes."""
    stage.do(in_folder(name, folder))
    found = probes(stage)
    stage.agent(say.Ended(cell=cell(name).cell, outcome="returned", parcel=say.Parcel(sizes=()), ran_ms=1))
    stage.seen()
    return found


def test_a_folder_is_found_with_the_first_cell_and_not_again() -> None:
    stage = Stage()
    stage.queue(in_folder())
    stage.grant()
    stage.agent(say.Attached(lease=LEASE))
    assert probes(stage) == [say.FolderProbe(path=FOLDER, token=".bulletin-c1")]
    stage.agent(say.FolderFound(root=FOLDER, is_shared=True))
    stage.finish()
    assert run(stage, "c2") == [None]
    assert run(stage, "c3", f"{FOLDER}/inside") == [None]
    assert run(stage, "c4", f"{FOLDER}-other") == [say.FolderProbe(path=f"{FOLDER}-other", token=".bulletin-c4")]


def test_what_was_not_heard_is_asked_again() -> None:
    stage = Stage()
    stage.start(in_folder())
    stage.finish()
    assert run(stage, "c2") == [say.FolderProbe(path=FOLDER, token=".bulletin-c2")]


def test_another_executor_is_another_place() -> None:
    stage = Stage()
    stage.start(in_folder())
    stage.agent(say.FolderFound(root=FOLDER, is_shared=True))
    stage.finish()
    stage.do(ReleaseAsked())
    stage.seen()
    stage.do(in_folder("c2"))
    stage.grant("r-c2", LeaseId("l2"))
    stage.agent(say.Attached(lease=LeaseId("l2")))
    assert probes(stage) == [say.FolderProbe(path=FOLDER, token=".bulletin-c2")]


def test_a_folder_is_served_between_cells_too() -> None:
    stage = Stage()
    stage.start(in_folder())
    stage.finish()
    stage.seen()
    asked = say.ListFolder(number=1, root=FOLDER)
    stage.agent(asked)
    assert stage.seen() == [AnswerFolder(asked)]


def test_who_takes_a_cell_over_serves_its_folder_before_it_asks_for_the_cell() -> None:
    stage = Stage()
    stage.queue(msgspec.structs.replace(in_folder(), joins=AgentId("a1")))
    stage.grant()
    assert ServeFolder(FOLDER) in stage.actions
    assert stage.session.lease.lease_id == LEASE  # type: ignore[union-attr]
