"""The quota file on its disk: replaced whole, with owner and mode, or not at all, with a sentence that says why."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bulletin.errors import NotDone
from gpu_worker.quotas.quota_file import NewText, obstacle, read_text, version_of

OLD, NEW = b"[projects.lab]\nlimit = 3\n", b"[projects.lab]\nlimit = 8\n"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be other users and to mount")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "quotas.toml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


def test_the_file_is_replaced_with_its_mode(file: Path) -> None:
    NewText(file, NEW).put_in_place(version_of(OLD))
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (NEW, 0o640)
    assert [one.name for one in file.parent.iterdir()] == ["quotas.toml"]


def test_who_changed_it_by_hand_meanwhile_keeps_theirs(file: Path) -> None:
    new = NewText(file, NEW)
    file.write_bytes(b"# by hand\n")
    with pytest.raises(NotDone, match="changed in this moment by somebody else"):
        new.put_in_place(version_of(OLD))
    assert file.read_bytes() == b"# by hand\n"
    assert [one.name for one in file.parent.iterdir()] == ["quotas.toml"]


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    link = tmp_path / "etc" / "quotas.toml"
    link.symlink_to(file)
    NewText(link, NEW).put_in_place(version_of(OLD))
    assert link.is_symlink()
    assert file.read_bytes() == NEW


def test_what_a_killed_broker_left_is_removed_and_the_file_is_whole(file: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from gpu_worker.quotas.quota_file import NewText\n"
        f"NewText(Path({str(file)!r}), {NEW!r}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert file.read_bytes() == OLD
    assert len(list(file.parent.iterdir())) == 2
    NewText(file, NEW).put_in_place(version_of(OLD))
    assert [one.name for one in file.parent.iterdir()] == ["quotas.toml"]


def test_a_second_name_is_refused(file: Path) -> None:
    os.link(file, file.with_name("other"))
    assert "2 names (hard links)" in obstacle(file)
    with pytest.raises(NotDone, match="hard links"):
        NewText(file, NEW)


def test_what_is_no_file_or_gone_is_said(tmp_path: Path) -> None:
    assert "is not a file" in obstacle(tmp_path)
    assert "is not there any more" in obstacle(tmp_path / "none")


@root_only
def test_owner_and_group_are_kept_and_a_stranger_is_told_to_chown(file: Path) -> None:
    os.chown(file, 61001, 61002)
    NewText(file, NEW).put_in_place(version_of(OLD))
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (61001, 61002, 0o640)
    with tempfile.TemporaryDirectory() as name:
        theirs = Path(name) / "quotas.toml"
        theirs.write_bytes(OLD)
        for one, mode in ((Path(name), 0o777), (theirs, 0o666)):
            one.chmod(mode)
        program = f"""
import os
from pathlib import Path
from gpu_worker.quotas.quota_file import obstacle
os.setgroups([]); os.setgid(61003); os.setuid(61003)
print(obstacle(Path({str(theirs)!r})))
"""
        said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "belongs to another user than the pool's broker" in said.stdout


@root_only
@pytest.mark.parametrize(("options", "said"), [("ro", "read only here"), ("size=4k", "The disk of .* is full")])
def test_a_disk_that_is_read_only_or_full_is_said_and_the_file_stays(tmp_path: Path, options: str, said: str) -> None:
    program = f"""
import subprocess, sys
from pathlib import Path
from bulletin.errors import NotDone
from gpu_worker.quotas.quota_file import NewText
disk = Path({str(tmp_path)!r}) / "disk"
disk.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk], check=True)
(disk / "quotas.toml").write_bytes({OLD!r})
subprocess.run(["mount", "-o", "remount,{options}", "none", disk], check=True)
try:
    NewText(disk / "quotas.toml", b"#" * 60_000)
except NotDone as error:
    print(error)
assert (disk / "quotas.toml").read_bytes() == {OLD!r}
assert len(list(disk.iterdir())) == 1
"""
    ended = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    if "unshare" in ended.stderr:
        pytest.skip("no namespace of mounts here")
    assert ended.returncode == 0, ended.stderr
    assert re.search(said, ended.stdout)


def test_the_version_is_of_the_bytes(file: Path) -> None:
    assert read_text(file).version == version_of(OLD) != version_of(NEW)
