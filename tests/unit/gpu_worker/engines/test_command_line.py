"""Programs that start agents may print what they like, hang, or leave something running: the pool is as before."""

import asyncio
import os
import resource
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gpu_worker.engines.command_line import MOST_BYTES, Said, run
from tests.integration.conftest import until

#: Runs for longer than any test, under a name by which it is found.
_GOES_ON = "exec -a {name} sleep 600"

#: Starts a program as root, has other rights than it before it is to be killed, and goes on.
_BECOMES_NOBODY = """
import asyncio, os, sys
from gpu_worker.engines.command_line import run

async def main():
    runs, words = sys.argv[1:]
    asked = asyncio.create_task(run(["bash", "-c", f"touch {runs}; {words}"], patience_s=3.0))
    while not os.path.exists(runs):
        await asyncio.sleep(0.01)
    os.setresuid(65534, 65534, 65534)
    assert not asked.done()
    said = await asked
    print(said.status, said.problem + ", and the pool goes on")

asyncio.run(main())
"""


def shell(words: str, patience_s: float = 60.0) -> Said:
    return asyncio.run(run(["bash", "-c", words], patience_s=patience_s))


def named(name: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if (one.info["cmdline"] or [""])[0] == name]


def test_of_megabytes_that_a_program_prints_the_end_is_kept_and_nothing_else() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    floods = "head -c 200000000 /dev/zero; head -c 100000000 /dev/zero >&2"
    said = shell(f"{floods}; echo; echo job; echo >&2; echo problem >&2; exit 3")
    assert said.status == 3
    assert said.output.endswith("job\n")
    assert said.problem == "problem"
    assert len(said.output) <= MOST_BYTES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000, "KiB"


def test_a_program_has_ended_though_what_it_started_holds_its_output_open() -> None:
    name = f"left-{os.getpid()}"
    said = shell(f"({_GOES_ON.format(name=name)}) & echo job")
    assert (said.status, said.output) == (0, "job\n")
    (left,) = named(name)
    left.kill()


def test_a_program_that_hangs_is_ended_in_time_with_what_it_waits_for() -> None:
    name = f"hangs-{os.getpid()}"
    said = shell(f"echo job; ({_GOES_ON.format(name=name)}); echo never", patience_s=0.5)
    assert (said.status, said.output) == (124, "job\n")
    assert "did not end within" in said.problem
    assert psutil.wait_procs(named(name), 10)[1] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start what another user may not kill")
def test_a_program_that_runs_as_another_user_and_hangs_ends_nothing_of_the_pool(tmp_path: Path) -> None:
    name = f"sudo-{os.getpid()}"
    pool = subprocess.run(
        [sys.executable, "-c", _BECOMES_NOBODY, str(tmp_path / "runs"), _GOES_ON.format(name=name)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    (left,) = named(name)
    left.kill()
    assert pool.stdout.splitlines()[-1:] == ["124 bash did not end within 3 s, and the pool goes on"], pool.stderr
    assert "a command that hangs could not be ended" in pool.stdout


def test_who_asks_no_longer_waits_for_no_program() -> None:
    name = f"asked-{os.getpid()}"

    async def ask_and_leave() -> None:
        asked = asyncio.create_task(run(["bash", "-c", f"({_GOES_ON.format(name=name)}); echo never"]))
        await asyncio.to_thread(until, lambda: named(name), "it to run")
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(ask_and_leave())
    assert psutil.wait_procs(named(name), 10)[1] == []


def test_a_script_reaches_the_program_and_one_that_does_not_read_it_does_no_harm(tmp_path: Path) -> None:
    got = tmp_path / "got"
    assert asyncio.run(run(["sh", "-c", f"cat > {got}"], script="x" * 1_000_000)).status == 0
    assert got.read_text() == "x" * 1_000_000
    assert asyncio.run(run(["sh", "-c", "exit 4"], script="x" * 1_000_000)).status == 4


def test_what_cannot_be_run_is_said_with_its_reason() -> None:
    said = asyncio.run(run(["/nowhere/sbatch"]))
    assert said.status == 127
    assert "/nowhere/sbatch cannot be run: No such file" in said.problem
