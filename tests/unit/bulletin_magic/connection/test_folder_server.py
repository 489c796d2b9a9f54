"""The notebook's folder, asked by somebody who wants more than is in it."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import xxhash

from bulletin.wire.messages import (
    ChangeFolder,
    FetchFile,
    FileVersion,
    FolderEntry,
    FolderFound,
    FolderProbe,
    FolderReply,
    ListFolder,
    StoreFile,
)
from bulletin_magic.connection.folder_listing import FolderLimits
from bulletin_magic.connection.folder_server import FolderServer
from tests.file_limits import files_end_at

CELL = "0123456789abcdef"


class Site:
    """A folder that is served, and a secret beside it."""

    def __init__(self, base: Path) -> None:
        self.folder, self.outside = base / "course", base / "outside"
        self.folder.mkdir()
        self.outside.mkdir()
        self.secret = self.outside / "secret"
        self.secret.write_text("secret")
        self.limits = FolderLimits()
        self.server = FolderServer(lambda: self.limits)
        self.server.announce(FolderProbe(path=str(self.folder), token=".bulletin-token"), CELL)
        self.server.answer(FolderFound(root=str(self.folder), is_shared=False), ())
        self._number = 0

    def number(self) -> int:
        self._number += 1
        return self._number

    def list(self) -> list[FolderEntry]:
        answer = self.server.answer(ListFolder(number=self.number(), root=str(self.folder)), ())
        assert answer is not None
        return msgspec.msgpack.decode(answer[1][0], type=list[FolderEntry])

    def fetch(self, path: str, root: Path | None = None) -> tuple[FolderReply, bytes]:
        root = root or self.folder
        answer = self.server.answer(FetchFile(number=self.number(), root=str(root), path=path, offset=0, size=99), ())
        assert answer is not None
        return answer[0], b"".join(map(bytes, answer[1]))

    def store(self, path: str, data: bytes, base: FileVersion | None = None, number: int = 0) -> FolderReply:
        message = StoreFile(
            number=number or self.number(),
            root=str(self.folder),
            path=path,
            offset=0,
            total=len(data),
            mode=0o644,
            digest=xxhash.xxh3_128_hexdigest(data),
            base=base,
        )
        answer = self.server.answer(message, (data,))
        assert answer is not None
        return answer[0]

    def change(self, change: str, path: str, target: str = "", base: FileVersion | None = None) -> FolderReply:
        fields = {"number": self.number(), "root": str(self.folder), "path": path, "change": change, "target": target}
        plain = None if base is None else msgspec.to_builtins(base)
        answer = self.server.answer(msgspec.convert({**fields, "base": plain}, ChangeFolder), ())
        assert answer is not None
        return answer[0]

    def check_untouched(self) -> None:
        assert sorted(path.name for path in self.outside.iterdir()) == ["secret"]
        assert self.secret.read_text() == "secret"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.server.forget()
    assert list(made.folder.rglob(".bulletin-*")) == []


BAD = ["../outside/secret", "sub/../../outside/secret", "/etc/passwd", "", ".", "..", "sub//x", "./x", "x/.", "a\0b"]


@pytest.mark.parametrize("path", [*BAD, "/".join("x" * 100), ".bulletin-token"])
def test_a_path_that_is_none_of_the_folder_is_refused_whatever_is_asked(site: Site, path: str) -> None:
    (site.folder / "sub").mkdir()
    assert site.fetch(path)[0].problem
    assert site.store(path, b"x").problem
    assert site.change("make-folder", path).problem
    assert site.change("remove-file", path, base=FileVersion(6, site.secret.stat().st_mtime_ns)).problem
    site.check_untouched()


def test_a_folder_that_no_cell_ran_in_is_not_served(site: Site) -> None:
    reply, data = site.fetch("secret", root=site.outside)
    assert reply.problem == "this notebook does not serve that folder"
    assert data == b""


def test_a_folder_that_the_node_has_itself_is_not_served(site: Site) -> None:
    (site.folder / "x").write_text("x")
    assert site.fetch("x")[1] == b"x"
    site.server.answer(FolderFound(root=str(site.folder), is_shared=True), ())
    assert site.fetch("x")[0].is_served is False


def test_what_is_in_hidden_folders_is_not_served(site: Site) -> None:
    (site.folder / ".ssh").mkdir()
    (site.folder / ".ssh" / "id").write_text("secret")
    reply, data = site.fetch(".ssh/id")
    assert "is in a hidden folder" in reply.problem
    assert data == b""


@pytest.mark.parametrize("step", ["file", "folder"])
def test_no_link_leads_out(site: Site, step: str) -> None:
    (site.folder / "link").symlink_to(site.secret if step == "file" else site.outside)
    path = "link" if step == "file" else "link/secret"
    assert site.fetch(path)[0].problem
    reply = site.store(path, b"x", base=FileVersion(0, 0))
    assert reply.problem or step == "file"  # a link itself may be replaced, as `os.replace` does
    site.change("remove-file", path, base=FileVersion(6, site.secret.stat().st_mtime_ns))
    site.check_untouched()


def test_who_exchanges_a_folder_for_a_link_while_it_is_asked_gets_nothing_more(site: Site) -> None:
    inner, other = site.folder / "inner", site.folder / "other"
    inner.mkdir()
    (inner / "secret").write_text("mine")
    other.symlink_to(site.outside)
    is_over = threading.Event()

    def exchange() -> None:
        while not is_over.is_set():
            inner.rename(site.folder / "third")
            other.rename(inner)
            inner.rename(other)
            (site.folder / "third").rename(inner)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(500):
            assert site.fetch("inner/secret")[1] in (b"", b"mine")
            site.store("inner/planted", b"x")
            site.change("remove-file", "inner/secret", base=FileVersion(6, site.secret.stat().st_mtime_ns))
            assert all("outside" not in entry.path for entry in site.list())
    finally:
        is_over.set()
        thread.join()
    site.check_untouched()


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside"])
def test_no_link_is_made_that_leads_out(site: Site, target: str) -> None:
    assert site.change("make-link", "made", target).problem
    assert not os.path.lexists(site.folder / "made")


def test_special_files_are_listed_with_why_they_do_not_follow_and_are_not_waited_for(site: Site) -> None:
    os.mkfifo(site.folder / "pipe")
    (entry,) = site.list()
    assert entry.problem == (
        "pipe is a named pipe in the notebook's folder, and does not follow a cell to a node that does not share that "
        "folder"
    )
    assert site.fetch("pipe")[0].problem == "pipe is no file"


def test_a_file_takes_its_place_whole_or_not_at_all(site: Site) -> None:
    site.store("x", b"first")
    data = b"second"
    message = StoreFile(
        number=site.number(), root=str(site.folder), path="x", offset=0, total=6, mode=0o600, digest="0" * 32, base=None
    )
    answer = site.server.answer(message, (data,))
    assert answer is not None
    assert answer[0].problem == "it arrived damaged"
    assert (site.folder / "x").read_bytes() == b"first"


def test_a_file_that_does_not_fit_says_so_and_takes_no_room_from_others(site: Site) -> None:
    site.store("x", b"as it was")
    with files_end_at(1000):
        assert site.store("x", b"x" * 1500).problem == "x: File too large"
    assert [path.name for path in site.folder.iterdir()] == ["x"]
    assert (site.folder / "x").read_bytes() == b"as it was"
    assert site.store("y", b"fits").problem == ""


def test_what_is_asked_twice_since_the_answer_was_lost_is_done_once(site: Site) -> None:
    number = site.number()
    first = site.store("x", b"content", number=number)
    assert site.store("x", b"content", number=number) == first
    assert [path.name for path in site.folder.iterdir()] == ["x"]


def test_what_the_notebook_has_changed_is_not_overwritten_and_not_removed(site: Site) -> None:
    (site.folder / "x.txt").write_text("mine")
    note = site.store("x.txt", b"the cell's", base=FileVersion(3, 7)).note
    assert "was changed in the notebook while the cell ran" in note
    assert "is kept" in site.change("remove-file", "x.txt", base=FileVersion(3, 7)).note
    assert (site.folder / "x.txt").read_text() == "mine"
    assert sorted(path.read_text() for path in site.folder.iterdir()) == ["mine", "the cell's"]


def test_a_file_and_all_of_a_session_have_limits(site: Site) -> None:
    site.limits = FolderLimits(entries=3, file_bytes=10, written_bytes=15)
    assert "at most 10 B of one file" in site.store("a", b"x" * 11).problem
    assert site.store("a", b"x" * 10).problem == ""
    assert "have written 15 B already" in site.store("b", b"x" * 10).problem
    assert sorted(path.name for path in site.folder.iterdir()) == ["a"]


def test_a_session_makes_so_many_new_names_and_what_it_removes_makes_room(site: Site) -> None:
    site.limits = FolderLimits(entries=3)

    def change(change: str, path: str, target: str = "") -> str:
        message = ChangeFolder(
            number=site.number(), root=str(site.folder), path=path, change=change, target=target, base=None
        )
        answer = site.server.answer(message, ())
        assert answer is not None
        return answer[0].problem

    assert site.store("one", b"").problem == ""
    assert change("make-folder", "two") == ""
    assert change("make-link", "three", "one") == ""
    for problem in (site.store("four", b"").problem, change("make-folder", "four"), change("make-link", "four", "one")):
        assert problem.startswith("cells of this session have made 3 new files and folders already")
    assert "four" not in {path.name for path in site.folder.iterdir()}
    assert site.store("one", b"again", base=FileVersion(0, (site.folder / "one").stat().st_mtime_ns)).problem == ""
    assert change("remove-folder", "two") == ""
    assert site.store("four", b"").problem == ""
    site.server.forget()
    site.server.serve(str(site.folder))
    assert site.store("five", b"").problem == "", "another session"


def test_of_a_folder_with_far_more_names_than_may_follow_not_all_are_read(site: Site) -> None:
    site.limits = FolderLimits(entries=5)
    for number in range(50):
        (site.folder / f"{number}.txt").touch()
    answer = site.server.answer(ListFolder(number=site.number(), root=str(site.folder)), ())
    assert answer is not None
    assert "more than 5 files" in answer[0].note
    assert len(msgspec.msgpack.decode(answer[1][0], type=list[FolderEntry])) == 5


def test_nobody_keeps_many_files_half_written(site: Site) -> None:
    for number in range(40):
        message = StoreFile(
            number=site.number(), root=str(site.folder), path=f"f{number}", offset=0, total=100, mode=0o644
        )
        site.server.answer(message, (b"x",))
    assert len(list(site.folder.iterdir())) <= 16
    site.server.forget()
    assert list(site.folder.iterdir()) == []


def test_a_size_that_is_said_is_held(site: Site) -> None:
    message = StoreFile(number=site.number(), root=str(site.folder), path="f", offset=5, total=6, mode=0o644)
    answer = site.server.answer(message, (b"xx",))
    assert answer is not None
    assert answer[0].problem == "it is longer than was said"


def test_environments_and_hidden_folders_of_tools_are_left_out(site: Site) -> None:
    for name in ("env", ".git", "__pycache__", "data"):
        (site.folder / name).mkdir()
        (site.folder / name / "x").write_text("x")
    (site.folder / "env" / "pyvenv.cfg").touch()
    (site.folder / ".env").write_text("of the notebook")
    assert {entry.path for entry in site.list()} == {"env", "data", "data/x", ".env"}


def test_of_a_folder_that_was_renamed_while_a_cell_ran_that_is_said_and_not_that_the_cells_file_is_missing(
    site: Site,
) -> None:
    site.folder.rename(site.folder.with_name("renamed"))
    problem = site.store("out.txt", b"x").problem
    assert problem.startswith(f"{site.folder} is there no more, it was renamed or removed; once it has its name again")
    site.folder.with_name("renamed").rename(site.folder)
    assert site.store("out.txt", b"x").problem == ""
    assert (site.folder / "out.txt").read_bytes() == b"x"
