"""What a cell has moved arrives in the notebook's folder before its old name goes, and where it cannot, that stays.

Both ends are as they are: a served folder, and a mirror of it whose changes go back over a socket that may be cut.
"""

import ctypes
import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bulletin.wire import pipe
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages import ChangeFolder, FolderFound, FolderProbe, FromFolder, StoreFile
from bulletin_magic.connection.folder_listing import FolderLimits
from bulletin_magic.connection.folder_server import FolderServer
from gpu_worker.executor.folder_mirror import FolderMirror
from gpu_worker.executor.folder_requests import FolderRequests, FolderUnreachable
from gpu_worker.executor.folder_return import FolderReturn
from gpu_worker.executor.folder_transfers import FolderTransfers
from gpu_worker.executor.leased_files import LeasedFiles

#: More changes than any cell here makes.
MANY = 1000


class Both:
    """A notebook's folder, and the node's. The notebook is gone after it has made so many changes (`changes_left`)."""

    def __init__(self, base: Path, leases: LeasedFiles) -> None:
        self.notebook, here, store = base / "notebook", base / "node" / "course", base / "node" / ".store"
        for folder in (self.notebook, here, store):
            folder.mkdir(parents=True)
        self.limits, self.changes_left = FolderLimits(), MANY
        self._server = FolderServer(lambda: self.limits)
        root = str(self.notebook)
        self._server.announce(FolderProbe(path=root, token=".bulletin-token"), "0123456789abcdef")
        self._server.on_found(FolderFound(root=root, is_shared=False))
        ours, self._theirs = socket.socketpair()
        self.mirror = FolderMirror(root, here, store, leases)
        self.transfers = FolderTransfers(FolderRequests(ours))
        self.ends = (ours, self._theirs)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        unpacker: Unpacker[FromFolder] = Unpacker(FromFolder)
        while True:
            try:
                message, blobs = unpacker.unpack(pipe.receive(self._theirs))
            except (EOFError, OSError):
                return
            if isinstance(message, StoreFile | ChangeFolder):
                self.changes_left -= 1
                if self.changes_left < 0:
                    self._theirs.shutdown(socket.SHUT_RDWR)
                    return
            assert isinstance(message, StoreFile | ChangeFolder) or self.changes_left >= 0
            answer = self._server.answer(message, blobs)  # type: ignore[arg-type]
            assert answer is not None
            pipe.send(self._theirs, pack(*answer))

    def begin(self) -> None:
        """Have all as it is in the notebook, as before a cell."""
        entries = self.transfers.list_folder(self.mirror)
        if entries is not None:
            self.transfers.fill_all(self.mirror, self.mirror.update(entries))

    def bring(self, *paths: str) -> None:
        """Have the content of these, as if a cell had opened them."""
        for path in paths:
            self.transfers.fill(self.mirror, path)

    def run(self, cell: Callable[[], None]) -> list[str]:
        """Run something on the node as a cell, and take back what it changed; return what its user reads."""
        before = Path.cwd()
        os.chdir(self.mirror.here)
        try:
            cell()
        finally:
            os.chdir(before)
        FolderReturn(self.transfers, self.mirror).hand_back()
        return self.transfers.take_notes()

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            (self.notebook / path).parent.mkdir(parents=True, exist_ok=True)
            (self.notebook / path).write_text(text)

    def read(self) -> dict[str, str]:
        """Return what the notebook has: texts, and where links lead."""
        found = (path for path in self.notebook.rglob("*") if not path.name.startswith(".bulletin-"))
        return {
            str(path.relative_to(self.notebook)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
            for path in found
            if path.is_symlink() or path.is_file()
        }

    def close(self) -> None:
        for end in self.ends:
            end.close() if end is not self._theirs else end.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self._theirs.close()
        self._server.forget()
        self.mirror.update([])


@pytest.fixture(scope="module")
def leases() -> LeasedFiles:
    return LeasedFiles()


@pytest.fixture
def make(tmp_path: Path, leases: LeasedFiles) -> Iterator[Callable[[], Both]]:
    made: list[Both] = []

    def add() -> Both:
        made.append(Both(tmp_path / str(len(made)), leases))
        return made[-1]

    yield add
    for both in made:
        both.close()


@pytest.fixture
def both(make: Callable[[], Both]) -> Both:
    return make()


def _move() -> None:
    Path("log").rename("moved")


def _version_the_data() -> None:
    Path("data").rename("data_v1")
    Path("data").symlink_to("data_v1")


def _file_for_a_folder() -> None:
    Path("data").rename("data_v1")
    Path("data").write_text("new")


def _back_up() -> None:
    Path("log").rename("kept")
    Path("log").write_text("new")


def _link_to_the_latest() -> None:
    Path("log").rename("log_v1")
    Path("log").symlink_to("log_v1")


def _rotate() -> None:
    Path("log.1").rename("log.2")
    Path("log").rename("log.1")
    Path("log").write_text("new")


def _move_into_a_new_folder() -> None:
    Path("old/deep").mkdir(parents=True)
    Path("log").rename("old/deep/log")
    Path("data").rename("old/data")


def _change_places() -> None:
    for old, new in (("log", "between"), ("log.1", "log"), ("between", "log.1")):
        Path(old).rename(new)


def _go_round() -> None:
    for old, new in (("log", "between"), ("log.1", "log"), ("data/a", "log.1"), ("between", "data/a")):
        Path(old).rename(new)


def _move_into_a_folder_of_the_same_name() -> None:
    Path("log").rename("between")
    Path("log").mkdir()
    Path("between").rename("log/first")


def _move_out_of_the_folder_of_the_same_name() -> None:
    Path("data").rename("between")
    Path("between/a").rename("data")
    Path("between/deep").rename("deep")
    Path("between").rmdir()


def _link_from_the_old_name_into_a_folder_of_an_old_name() -> None:
    Path("log").rename("kept")
    Path("log").mkdir()
    Path("log.1").rename("log/first")
    Path("log.1").symlink_to("log/first")


def _hide_a_file() -> None:
    Path("private").mkdir()
    Path("log").rename("private/log")
    Path("private").chmod(0)


def _hide_a_folder() -> None:
    Path("data").rename("between")
    Path("between").chmod(0)


def _list_names_alone() -> None:
    Path("private").mkdir()
    Path("log").rename("private/log")
    Path("private").chmod(0o600)


def _hide_in_a_folder_of_the_same_name() -> None:
    Path("log").rename("between")
    Path("log").mkdir()
    Path("between").rename("log/first")
    Path("log").chmod(0)


HIDING = {
    "a file goes into a folder": _hide_a_file,
    "a folder": _hide_a_folder,
    "a folder whose names can be listed": _list_names_alone,
    "a file goes into a folder that has its name now": _hide_in_a_folder_of_the_same_name,
}
MOVES = {
    "files change places": _change_places,
    "files go round": _go_round,
    "a file goes into a folder that has its name now": _move_into_a_folder_of_the_same_name,
    "a file has the name of its folder now": _move_out_of_the_folder_of_the_same_name,
    "a folder is kept under a version, and a link leads there": _version_the_data,
    "a file takes the place of a folder that was moved": _file_for_a_folder,
    "a file is moved": _move,
    "a file is kept before it is written anew": _back_up,
    "a file is kept under a version, and a link leads there": _link_to_the_latest,
    "files are rotated": _rotate,
    "a link leads into a folder in the place of a file": _link_from_the_old_name_into_a_folder_of_an_old_name,
    "all is moved into a new folder": _move_into_a_new_folder,
}
FILES = {"data/a": "text of a", "data/deep/b": "text of b", "log": "text of log", "log.1": "text of log.1"}


@pytest.mark.parametrize("is_here", [True, False], ids=["contents here", "contents to come"])
@pytest.mark.parametrize("move", MOVES)
def test_wherever_it_ends_each_content_is_in_the_notebook_under_one_name(
    make: Callable[[], Both], move: str, is_here: bool
) -> None:
    for changes in itertools.count():
        both = make()
        both.write(FILES)
        both.begin()
        if is_here:
            both.bring(*FILES)
        both.changes_left = changes
        try:
            both.run(MOVES[move])
        except FolderUnreachable:
            pass
        else:
            break
        finally:
            kept = set(both.read().values())
            assert kept >= set(FILES.values()), changes
    assert changes > 0
    both.bring(*both.mirror.files)
    assert both.read() == {
        str(path.relative_to(both.mirror.here)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in both.mirror.here.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("is_here", [True, False], ids=["contents here", "contents to come"])
@pytest.mark.parametrize("written", [0, 10, 20, 30])
@pytest.mark.parametrize("move", MOVES)
def test_whatever_is_refused_each_content_stays_in_the_notebook(
    both: Both, move: str, written: int, is_here: bool
) -> None:
    both.write(FILES)
    both.begin()
    if is_here:
        both.bring(*FILES)
    both.limits = FolderLimits(written_bytes=written)
    notes = both.run(MOVES[move])
    assert set(both.read().values()) >= set(FILES.values())
    if written == 0:
        assert any(" is kept " in note for note in notes)
    both.begin()
    assert both.run(lambda: None) == [], "it is said once"
    assert set(both.read().values()) >= set(FILES.values())


def _see(both: Both) -> dict[str, str]:
    """Return what the next cell would read."""
    both.begin()
    both.bring(*both.mirror.files)
    return {str(path.relative_to(both.mirror.here)): path.read_text() for path in both.mirror.here.rglob("*")}


def test_a_moved_file_that_is_refused_is_there_again_under_its_old_name(both: Both) -> None:
    both.write({"video": "frames", "small": "s"})
    both.begin()
    both.bring("video")
    both.limits = FolderLimits(file_bytes=3)

    def cell() -> None:
        Path("video").rename("old")
        Path("small").rename("moved")

    first, second = both.run(cell)
    assert first.startswith("old was not brought to the notebook's folder: it has ")
    assert second == "video is kept in the notebook's folder: what the cell moved it to could not be brought."
    both.limits = FolderLimits()
    assert _see(both) == {"video": "frames", "old": "frames", "moved": "s"}
    assert both.run(Path("old").unlink) == []
    assert both.read() == {"video": "frames", "moved": "s"}
    assert both.run(Path("video").unlink) == []
    assert both.read() == {"moved": "s"}, "what a cell removes goes"


def test_a_file_whose_content_did_not_come_keeps_its_name_though_it_was_moved(both: Both) -> None:
    both.write({"early": "content", "late": "content", "data/large": "content"})
    both.limits = FolderLimits(file_bytes=6)
    both.begin()
    large = both.mirror.refused
    assert sorted(large) == ["data/large", "early", "late"]
    both.limits = FolderLimits()  # it may come now, and what is here is empty, or of zeros
    notes = both.run(lambda: Path("data").rename("moved"))
    assert "data/large is kept in the notebook's folder: what the cell moved it to could not be brought." in notes
    assert set(both.read().values()) == {"content"}


@pytest.mark.parametrize("is_opened", [True, False])
def test_a_file_that_cannot_be_fetched_keeps_its_name_though_it_was_moved(both: Both, is_opened: bool) -> None:
    both.write({"video": "content"})
    both.begin()
    both.limits = FolderLimits(file_bytes=6)
    if is_opened:
        both.bring("video")
        both.limits = FolderLimits()
    notes = both.run(lambda: Path("video").rename("moved"))
    assert "video is kept in the notebook's folder: what the cell moved it to could not be brought." in notes
    assert both.read() == {"video": "content"}
    both.limits = FolderLimits()
    assert _see(both) == {"video": "content", "moved": ""}


def test_a_link_that_is_refused_under_a_new_name_stays_under_the_old_one(both: Both) -> None:
    (both.notebook / "shared").symlink_to("/usr/share")
    both.begin()
    notes = both.run(lambda: Path("shared").rename("moved"))
    assert "shared is kept in the notebook's folder: what the cell moved it to could not be brought." in notes
    assert both.read() == {"shared": "-> /usr/share"}
    both.begin()
    assert both.run(lambda: None) == []


def test_what_a_cell_has_really_removed_goes_whatever_is_refused(both: Both) -> None:
    both.write({"a": "text", "data/b": "text"})
    both.begin()
    both.limits = FolderLimits(written_bytes=0)

    def cell() -> None:
        Path("made").write_text("more")  # before anything is removed: its inode is another
        Path("a").unlink()
        Path("data/b").unlink()
        Path("data").rmdir()

    (note,) = both.run(cell)
    assert note.startswith("made was not brought")
    assert list(both.notebook.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said_once_and_made_when_its_name_is_free(both: Both) -> None:
    both.write({"out": "of the notebook"})
    both.begin()

    def cell() -> None:
        Path("out").unlink()
        Path("out/deep").mkdir(parents=True)
        Path("out/deep/made").write_text("of the cell")
        (both.notebook / "out").write_text("changed meanwhile")

    notes = both.run(cell)
    assert "out was changed in the notebook, and is kept though the cell removed it." in notes
    assert "out is not as the cell left it in the notebook's folder: out: File exists." in notes
    for number in range(3):
        both.write({"other": str(number)})  # which makes the listing a new one
        both.begin()
        assert both.run(Path("out/deep").touch) == []
    assert both.read()["out"] == "changed meanwhile"
    (both.notebook / "out").unlink()
    both.begin()
    assert both.run(lambda: None) == []
    assert both.read() == {"out/deep/made": "of the cell", "other": "2"}


def test_a_folder_that_cannot_be_made_is_made_also_if_its_name_is_free_before_anybody_looks(both: Both) -> None:
    both.write({"out": "of the notebook"})
    both.begin()

    def cell() -> None:
        Path("out").unlink()
        Path("out").mkdir()
        (both.notebook / "out").write_text("changed meanwhile")

    assert len(both.run(cell)) == 2
    (both.notebook / "out").unlink()
    both.begin()
    assert both.run(lambda: None) == []
    assert (both.notebook / "out").is_dir()


def test_a_link_that_leads_out_is_said_once_and_stays_on_the_node(both: Both) -> None:
    assert len(both.run(lambda: Path("sets").symlink_to("/usr/share"))) == 1
    for number in range(3):
        both.write({"other": str(number)})
        both.begin()
        assert both.run(lambda: None) == []
    assert both.mirror.path("sets").is_symlink()
    assert sorted(both.read()) == ["other"]


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


@pytest.fixture
def like_others() -> Iterator[None]:
    """Root is held to the modes of files, as users are."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    less = (ctypes.c_uint32 * 6)(*before)
    less[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, less) == 0
    yield
    assert libc.capset(header, before) == 0


@pytest.mark.usefixtures("like_others")
@pytest.mark.parametrize("is_here", [True, False], ids=["contents here", "contents to come"])
@pytest.mark.parametrize("hide", HIDING)
def test_what_is_moved_to_where_nobody_can_look_stays_in_the_notebook(both: Both, hide: str, is_here: bool) -> None:
    both.write(FILES)
    both.begin()
    if is_here:
        both.bring(*FILES)
    notes = both.run(HIDING[hide])
    assert set(both.read().values()) == set(FILES.values())
    assert any("nobody can look into it" in note for note in notes)
    assert any("is kept in the notebook's folder" in note for note in notes)
    both.begin()
    assert both.run(lambda: None) == [], "it is said once"
    assert set(both.read().values()) == set(FILES.values())


@pytest.mark.usefixtures("like_others")
def test_a_folder_that_can_be_looked_into_again_follows_with_what_is_in_it(both: Both) -> None:
    both.write(FILES)
    both.begin()

    def cell() -> None:
        Path("private").mkdir()
        Path("private/made").write_text("made")
        Path("private").chmod(0)

    [note] = both.run(cell)
    assert "'private/'" in note
    both.begin()
    assert both.run(lambda: Path("private").chmod(0o700)) == []
    assert both.read() == {**FILES, "private/made": "made"}
