"""Where executors have the files of notebooks, and that what a tenant makes of it holds up nobody else."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.ids import AgentId, LeaseId
from gpu_worker.agent.folder_scratch import FolderScratch
from gpu_worker.config import Pool

#: More than Python's own rmtree goes down, and more than it has descriptors for.
DEEP = 3000


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderScratch]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield FolderScratch(AgentId("a"), Pool(folder=str(tmp_path), slots=1).settings())
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)  # pytest goes no deeper than Python does


def make_deep(folder: Path) -> None:
    folder.mkdir()
    inner = os.open(folder, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)


@pytest.mark.parametrize(
    ("own", "base"), [("/tmp/job-7", "/tmp"), ("/var/tmp/a/b", "/var/tmp"), ("/scratch", "/scratch")]
)
def test_it_is_where_executors_with_a_tmp_of_their_own_have_a_folder(
    own: str, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", own)
    settings = Pool(folder=str(tmp_path), slots=1, isolation="unix-user").settings()
    assert FolderScratch(AgentId("a"), settings).place(LeaseId("l")).parent == Path(base)


def test_the_folder_of_a_lease_is_removed_however_deep_it_is(scratch: FolderScratch) -> None:
    make_deep(scratch.place(LeaseId("l")))
    asyncio.run(scratch.remove(LeaseId("l")))
    assert not scratch.place(LeaseId("l")).exists()


def test_what_an_earlier_life_has_left_is_removed_and_nothing_that_a_link_leads_to(
    scratch: FolderScratch, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    left = scratch.place(LeaseId("l"))
    make_deep(left)
    (left / "inside").symlink_to(tmp_path / "elsewhere")
    scratch.place(LeaseId("m")).symlink_to(tmp_path / "elsewhere")
    asyncio.run(scratch.remove_all(scratch.find_left()))
    assert not scratch.find_left()
    assert (tmp_path / "elsewhere" / "kept").exists()
