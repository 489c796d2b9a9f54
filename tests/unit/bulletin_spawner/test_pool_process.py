"""The pool as a child of the service: it is kept running, and it never outlives the service."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin.errors import BadConfig
from bulletin_spawner.service.pool_process import PoolProcess
from bulletin_spawner.service.single_instance import take_over

PATIENCE_S = 60.0

#: Says that it lives, then waits for the end of its stdin, as `bulletin pool --exit-with-stdin` does.
CHILD = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
#: Does not heed SIGTERM, and has a child of its own in its process group.
STUBBORN = """\
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # the kernel tells nobody but a parent
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    """Not gone, and not a zombie that nobody has reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_pool_that_dies_is_started_again_and_ends_with_the_block() -> None:
    async def scenario() -> None:
        async with PoolProcess([sys.executable, "-c", CHILD]) as pool:
            await until(lambda: pool.pid is not None)
            first = pool.pid
            assert first is not None
            os.kill(first, signal.SIGKILL)
            await until(lambda: pool.pid not in (None, first))
            second = pool.pid
            assert second is not None
        assert not is_running(first)
        assert not is_running(second)

    asyncio.run(scenario())


def test_a_pool_that_ignores_the_polite_signal_is_ended_with_its_children(capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []

    def has_said() -> bool:
        said.extend(capfd.readouterr().out.split())
        return bool(said)

    async def scenario() -> None:
        async with PoolProcess([sys.executable, "-c", STUBBORN], grace_s=0.05):
            await until(has_said)
        await until(lambda: not is_running(int(said[0])))

    asyncio.run(scenario())


def test_a_pool_ends_when_its_service_is_killed() -> None:
    service = (
        "import asyncio, sys\n"
        "from bulletin_spawner.service.pool_process import PoolProcess\n"
        "async def main():\n"
        f"    async with PoolProcess([sys.executable, '-c', {CHILD!r}]):\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", service], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pool = int(process.stdout.readline())
        process.kill()
        process.wait()
        asyncio.run(until(lambda: not is_running(pool)))


def test_the_newer_service_takes_the_folder_over_from_one_that_was_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "service.pid"
    older = (
        "import signal, sys\nfrom pathlib import Path\nfrom bulletin_spawner.service.single_instance import take_over\n"
        f"with take_over(Path({str(path)!r})):\n    print('held', flush=True)\n    signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", older], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with take_over(path, patience_s=PATIENCE_S):
            assert path.read_text() == str(os.getpid())
        assert process.wait() == -signal.SIGTERM


def test_a_service_that_does_not_let_go_is_named(tmp_path: Path) -> None:
    path = tmp_path / "service.pid"
    older = (
        "import signal, sys\nfrom pathlib import Path\nfrom bulletin_spawner.service.single_instance import take_over\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"with take_over(Path({str(path)!r})):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", older], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(BadConfig, match="does not end"), take_over(path, patience_s=0.0):
            pass
        process.communicate()


@pytest.mark.parametrize("is_link", [True, False])
def test_a_folder_that_somebody_else_has_prepared_is_not_touched(tmp_path: Path, *, is_link: bool) -> None:
    """The service may be root's: it would write into what a link leads to, and signal whoever a file names."""
    folder, victim = tmp_path / "pool", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("precious")
    if is_link:
        (folder / "service.pid").symlink_to(victim)
    else:
        os.link(victim, folder / "service.pid")
    folder.chmod(0o777)
    command = [sys.executable, "-m", "bulletin_spawner.service", "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert "can be changed by other users" in done.stderr
    assert done.returncode == 1
    assert victim.read_text() == "precious"


def test_a_link_is_not_taken_for_the_file_of_an_earlier_service(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "service.pid").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"), take_over(tmp_path / "service.pid"):
        pass
    assert victim.read_text() == "precious"
