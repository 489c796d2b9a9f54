"""Names, pipes and devices that stay on the node are said once, and cost the notebook none of its files."""

import os
import socket
from pathlib import Path

import pytest

from bulletin_magic.connection.folder_listing import FolderLimits
from tests.unit.gpu_worker.executor.both_folders import Both


@pytest.mark.parametrize(
    "name",
    [b"da\nta", b"\xff\xfe", b"\x1b[2J", b"__pycache__/data", b"a\nb/data", b"a\nb/c/data", b"big/data", b"big/a/data"],
)
@pytest.mark.parametrize("is_read", [False, True], ids=["unread", "read"])
def test_a_file_that_is_moved_to_a_name_that_does_not_travel_keeps_its_old_one(
    both: Both, name: bytes, is_read: bool
) -> None:
    both.write({"data": "content", "other": "o"})
    of_big = {f"big/{number}": "" for number in range(9)}
    both.write(of_big)
    both.limits = FolderLimits(entries=5)  # those of `big` do not follow
    both.begin()
    both.bring(*["data"][: int(is_read)])

    def cell() -> None:
        new = Path(os.fsdecode(name))
        new.parent.mkdir(parents=True, exist_ok=True)
        Path("data").rename(new)

    notes = both.run(cell)
    assert "data is kept in the notebook's folder: what the cell moved it to could not be brought." in notes
    assert both.read() == {"data": "content", "other": "o", **of_big}
    assert both.mirror.path(os.fsdecode(name)).read_text() == "content"  # nobody is to take zeros for it
    both.begin()
    assert both.run(lambda: None) == []
    assert both.read() == {"data": "content", "other": "o", **of_big}


def test_a_compiled_module_that_has_the_inode_of_what_a_cell_removed_does_not_bring_that_back(both: Both) -> None:
    both.write({"old.csv": "content"})
    both.begin()
    both.bring("old.csv")

    def cell() -> None:  # as if the file system had given the inode out again
        Path("__pycache__").mkdir()
        Path("old.csv").rename("__pycache__/module.pyc")
        Path("__pycache__/module.pyc").write_text("compiled")

    assert both.run(cell) == []
    assert both.read() == {}


def test_what_has_a_name_that_does_not_travel_is_said_once(both: Both) -> None:
    both.begin()
    (note,) = both.run(Path("a\nb\x1b[2J").touch)
    assert note == (
        r"'a\nb\x1b[2J' was not brought to the notebook's folder: its name has control characters, ends of lines, "
        "or bytes that are no UTF-8. Give it another one in a cell."
    )
    both.begin()
    assert both.run(Path("good").touch) == []
    assert both.run(lambda: Path("a\nb\x1b[2J").rename("named")) == []
    assert both.read() == {"good": "", "named": ""}


def test_what_is_no_file_is_said_once_and_others_come(both: Both) -> None:
    def leave() -> None:
        os.mkfifo("pipe")
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
        Path("good").touch()

    both.begin()
    kinds = {"pipe": "named pipe", "socket": "socket"}
    assert both.run(leave) == [
        f"{path} was not brought to the notebook's folder: it is a {kind}, and only files, folders and links travel."
        for path, kind in kinds.items()
    ]
    both.begin()
    assert both.run(Path("better").touch) == []
    assert both.read() == {"good": "", "better": ""}


def test_what_is_no_file_in_the_notebooks_folder_stays_there_whatever_a_cell_does_to_its_name(both: Both) -> None:
    os.mkfifo(both.notebook / "pipe")
    both.begin()
    (why,) = both.mirror.refused.values()
    assert "pipe is a named pipe in the notebook's folder" in why
    assert both.run(Path("pipe").unlink) == [
        "pipe is a named pipe in the notebook's folder, and is kept though the cell removed it."
    ]
    assert (both.notebook / "pipe").is_fifo()


def test_what_a_cell_puts_in_the_place_of_the_notebooks_pipe_is_beside_it_and_nobody_has_changed_that(
    both: Both,
) -> None:
    for name in ("file", "folder", "link"):
        os.mkfifo(both.notebook / name)
    both.write({"data": "x"})
    both.begin()

    def replace() -> None:
        for name in ("file", "folder", "link"):
            Path(name).unlink()
        Path("file").write_text("made")
        Path("folder").mkdir()
        Path("link").symlink_to("data")

    notes = both.run(replace)
    beside = next(name for name, text in both.read().items() if text == "made")
    assert f"file is a named pipe in the notebook's folder, and is kept: what the cell wrote is {beside}." in notes
    assert "link is a named pipe in the notebook's folder, and is kept though the cell made it a link." in notes
    assert any(note.startswith("folder is ") and "it is a named pipe there, and is kept" in note for note in notes)
    assert not any("was changed in the notebook" in note for note in notes)
    assert all((both.notebook / name).is_fifo() for name in ("file", "folder", "link"))


def test_of_many_that_stay_with_the_node_a_user_reads_a_few_and_how_many_there_are(both: Both) -> None:
    def make_pipes() -> None:
        for number in range(1_200):
            os.mkfifo(f"pipe{number}")

    both.begin()
    notes = both.run(make_pipes)
    assert notes[-1] == "So it is with 1,195 more of the pipes, sockets and devices there."
    assert len(notes) == 6


def test_of_thousands_of_sentences_a_user_reads_the_first_and_how_many_there_are(both: Both) -> None:
    for number in range(5_000):
        both.transfers.note(f"file{number} is not in the notebook's folder: it is too large.")
    assert len(both.transfers._notes) < 5_000, "a cell may make files without end"
    notes = both.transfers.take_notes()
    assert notes[0].startswith("file0 ")
    assert notes[-1] == "So it is with 4,900 more."
    assert len(notes) == 101
    assert both.transfers.take_notes() == []
