"""What agents of jobs leave that were killed, the next one clears away; and nothing that is somebody's."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_worker.agent.job_folders import hold, remove_left

HOLDS = """
import sys
from pathlib import Path
from gpu_worker.agent.job_folders import hold
with hold(Path(sys.stdin.readline().strip())):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, age_s: float = 86_400) -> Path:
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        (folder / "node.json").write_text("{}")
        with hold(folder):
            pass  # its agent was there
        os.utime(folder, (time.time() - age_s,) * 2)
        return folder

    return make


def test_what_a_killed_agent_has_left_the_next_one_removes(make: Callable[..., Path]) -> None:
    left, own = make("bulletin-agent.abc123"), make("bulletin-agent.own123", age_s=0)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(f"{left}\n")
        agent.stdin.flush()
        assert agent.stdout.readline() == "held\n"
        os.utime(left, (0, 0))
        assert remove_left(own) == [], "its agent lives"
        agent.send_signal(signal.SIGKILL)
    assert remove_left(own) == [left]
    assert not left.exists()
    assert own.exists()


def test_a_folder_that_a_process_was_started_for_stays(make: Callable[..., Path]) -> None:
    """As of an agent that knows no lock."""
    left, own = make("bulletin-agent.abc123"), make("bulletin-agent.own123")
    command = [sys.executable, "-c", "print(flush=True); input()", "--folder", str(left)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()
        assert remove_left(own) == []
        agent.kill()
    assert remove_left(own) == [left]


def test_a_job_that_has_just_made_its_folder_keeps_it(make: Callable[..., Path]) -> None:
    young, own = make("bulletin-agent.abc123", age_s=600), make("bulletin-agent.own123")
    assert remove_left(own) == []
    assert young.exists()


@pytest.mark.parametrize("host", ["another-host 0123\n", None], ids=["another", "not known"])
def test_a_folder_of_another_host_stays(make: Callable[..., Path], host: str | None) -> None:
    """As where nodes share what TMPDIR names: locks and processes of others are not seen."""
    theirs, own = make("bulletin-agent.abc123"), make("bulletin-agent.own123")
    (theirs / ".host").unlink()
    if host is not None:
        (theirs / ".host").write_text(host)
    os.utime(theirs, (0, 0))
    assert remove_left(own) == []
    assert theirs.exists()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_an_agent_starts_where_folders_have_no_locks(
    make: Callable[..., Path], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_handle: int, _how: int) -> None:
        raise OSError(number, os.strerror(number))

    left, own = make("bulletin-agent.abc123"), make("bulletin-agent.own123")
    monkeypatch.setattr("fcntl.flock", flock)
    with hold(own) as can_be_seen:
        assert not can_be_seen
        assert remove_left(own) == []
    assert left.exists()


def test_nothing_else_is_touched(make: Callable[..., Path], tmp_path: Path) -> None:
    own, others = make("bulletin-agent.own123"), make("precious")
    link = tmp_path / "bulletin-agent.link12"
    link.symlink_to(others)
    (tmp_path / "bulletin-agent.file12").write_text("a file")
    open_to_all = make("bulletin-agent.open12")
    open_to_all.chmod(0o777)
    inside = make("bulletin-agent.left12")
    (inside / "out").symlink_to(others)
    os.utime(inside, (0, 0))
    assert remove_left(own) == [inside]
    assert (others / "node.json").exists()
    assert link.is_symlink()
    assert open_to_all.exists()
    assert (tmp_path / "bulletin-agent.file12").exists()


def test_a_folder_that_no_job_made_has_no_neighbours(make: Callable[..., Path]) -> None:
    make("bulletin-agent.abc123")
    assert remove_left(make("my-pool")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which may remove what is others'")
def test_what_is_another_users_stays(make: Callable[..., Path]) -> None:
    theirs, own = make("bulletin-agent.abc123"), make("bulletin-agent.own123")
    os.chown(theirs, 12345, 12345)
    assert remove_left(own) == []
    with hold(own):
        assert theirs.exists()
