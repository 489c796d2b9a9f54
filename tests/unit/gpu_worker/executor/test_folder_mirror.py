"""A folder of the notebook on a node: what is taken for changed by a cell, and above all what is not."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import xxhash

from bulletin.wire.messages import FileVersion, FolderEntry
from gpu_worker.executor.folder_mirror import FolderMirror
from gpu_worker.executor.leased_files import LeasedFiles


def file(path: str, size: int, mtime_ns: int = 10**18, problem: str = "") -> FolderEntry:
    return FolderEntry(path, "file", FileVersion(size, mtime_ns), 0o644, problem=problem)


def folder(path: str, problem: str = "") -> FolderEntry:
    return FolderEntry(path, "folder", FileVersion(0, 0), 0o755, problem=problem)


@pytest.fixture(scope="module")
def leases() -> LeasedFiles:
    return LeasedFiles()


@pytest.fixture
def mirror(tmp_path: Path, leases: LeasedFiles) -> Iterator[FolderMirror]:
    here, store = tmp_path / "course", tmp_path / "store"
    here.mkdir()
    store.mkdir()
    made = FolderMirror("/home/ada/course", here, store, leases)
    yield made
    made.update([])  # gives descriptors back


def fill(mirror: FolderMirror, path: str, content: bytes) -> None:
    """Let the content of a file come."""
    one = mirror.files[path]
    os.pwrite(one.descriptor, content, 0)
    mirror.finish(one, FileVersion(len(content), one.there.mtime_ns))


def are_none(mirror: FolderMirror) -> bool:
    return not any(mirror.changes())


def test_files_look_as_they_are_before_their_content_comes(mirror: FolderMirror) -> None:
    assert mirror.update([folder("data"), file("data/x.csv", 5, 123_000_000_000)]) == []
    facts = mirror.path("data/x.csv").stat()
    assert (facts.st_size, facts.st_mtime_ns, facts.st_mode & 0o777) == (5, 123_000_000_000, 0o644)
    assert are_none(mirror)


def test_who_opens_one_waits_until_its_content_is_there(mirror: FolderMirror, leases: LeasedFiles) -> None:
    mirror.update([file("x", 7)])
    reader = subprocess.Popen(["cat", mirror.path("x")], stdout=subprocess.PIPE)
    broken: list[int] = []
    while not broken:
        broken = leases.take_broken()
        assert reader.poll() is None
    assert mirror.find(broken[0]) == ("x", mirror.files["x"])
    fill(mirror, "x", b"content")
    assert reader.communicate()[0] == b"content"
    assert are_none(mirror)


def test_what_was_touched_and_is_as_it_was_is_no_change(mirror: FolderMirror) -> None:
    mirror.update([file("x", 7)])
    fill(mirror, "x", b"content")
    os.utime(mirror.path("x"))
    assert are_none(mirror)
    mirror.path("x").write_bytes(b"another")
    assert list(mirror.changes().files) == ["x"]


def test_what_cannot_be_looked_at_is_not_taken_for_removed(mirror: FolderMirror) -> None:
    mirror.update([folder("data"), file("data/x", 1), file("y", 1)])
    shutil.rmtree(mirror.here)  # somebody tidies up, or a cell goes too far
    assert are_none(mirror)
    mirror.here.mkdir()
    changes = mirror.changes()
    assert (set(changes.removed_files), changes.removed_folders) == ({"data/x", "y"}, ["data"])


def test_what_did_not_come_is_neither_missing_nor_changed(mirror: FolderMirror) -> None:
    mirror.update([folder("many", "too many"), file("large", 10**12, problem="too large")])
    assert are_none(mirror)
    assert mirror.refused == {"many": "too many", "large": "too large"}
    assert mirror.path("large").stat().st_mode & 0o777 == 0


def test_what_is_in_the_notebook_no_more_goes_unless_a_cell_has_changed_it(mirror: FolderMirror) -> None:
    mirror.update([file("x", 7), file("y", 7), file("z", 7)])
    for name in ("x", "y"):
        fill(mirror, name, b"content")
    mirror.path("y").write_bytes(b"by the cell")
    mirror.update([])
    assert [path.name for path in mirror.here.iterdir()] == ["y"]
    assert list(mirror.changes().files) == ["y"]


def test_what_a_cell_has_made_is_not_replaced_by_what_the_notebook_has_made(mirror: FolderMirror) -> None:
    mirror.path("x").write_bytes(b"by the cell")
    mirror.update([file("x", 7)])
    assert mirror.path("x").read_bytes() == b"by the cell"
    assert list(mirror.changes().files) == ["x"]


def test_a_content_that_was_here_need_not_come_again(mirror: FolderMirror) -> None:
    mirror.update([file("x", 7, 1)])
    fill(mirror, "x", b"content")
    mirror.update([file("moved", 7, 1)])
    digest = xxhash.xxh3_128_hexdigest(b"content")
    assert mirror.known_digests(7) == (digest,)
    mirror.copy_known(digest, mirror.files["moved"])
    mirror.finish(mirror.files["moved"], FileVersion(7, 1))
    assert mirror.path("moved").read_bytes() == b"content"


def test_one_that_was_given_up_is_empty_and_comes_anew_with_the_next_cell(mirror: FolderMirror) -> None:
    mirror.update([file("x", 7)])
    mirror.give_up(mirror.files["x"], "nobody answered")
    assert mirror.path("x").read_bytes() == b""
    assert are_none(mirror)
    mirror.update([file("x", 7)])
    assert mirror.files["x"].descriptor >= 0
