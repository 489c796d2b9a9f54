"""When the job ends that an agent runs in, by what Slurm says on its host."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_worker.agent.departure import Departure
from gpu_worker.agent.slurm_job_end import follow_job_end, with_job_end
from gpu_worker.config import Pool
from tests.processes import is_read
from tests.unit.gpu_worker.agent.agent_parts import agent_parts
from tests.waiting import until

JOB = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1"}
Says = Callable[[str], None]


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """What this host's `squeue` is to do: a script."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def says(script: str) -> None:
        (tmp_path / "squeue").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "squeue").chmod(0o755)

    return says


def ends_in_s(environ: dict[str, str], set_to: float = 0.0) -> int | None:
    """In how many seconds the agent's host is taken away; None is never."""
    ends_at_ms = with_job_end(Pool(ends_at=set_to).settings(), environ).ends_at_ms
    return round((ends_at_ms - time.time() * 1000) / 1000) if ends_at_ms else None


def test_it_ends_when_slurm_says_so_whatever_its_version(squeue: Says) -> None:
    squeue('test "$2" = --jobs=7 && echo 1-02:03:04')
    assert ends_in_s(JOB) in (93_783, 93_784)


def test_it_ends_when_its_own_cluster_says_so_whatever_its_sbatch_was_to_choose_from(
    squeue: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sbatch` passes its environment on, and `squeue` then asks clusters that have other jobs of this number."""
    monkeypatch.setenv("SLURM_CLUSTERS", "north,south")
    squeue('test -z "${SLURM_CLUSTERS+set}" || echo 2:00; echo 10:00')
    assert ends_in_s(JOB) in (599, 600)


def test_it_ends_when_a_script_says_so_that_leaves_something_behind_in_the_place_of_squeue(
    squeue: Says, tmp_path: Path
) -> None:
    never = tmp_path / "never"
    os.mkfifo(never)
    squeue(f"cat {never} & echo 10:00")
    assert ends_in_s(JOB) in (597, 598, 599, 600)


def test_it_ends_by_the_limit_that_it_has_now_and_by_that_of_its_start_where_slurm_does_not_say(squeue: Says) -> None:
    """`scontrol update JobId=... TimeLimit=...` does not reach what its processes were started with."""
    environ = {**JOB, "SLURM_JOB_END_TIME": f"{time.time() + 900:.0f}"}
    squeue("echo 10:00")
    assert ends_in_s(environ) in (599, 600)
    squeue("echo UNLIMITED")
    assert ends_in_s(environ) is None
    squeue("echo 'Unable to contact slurm controller' >&2; exit 1")
    assert ends_in_s(environ) in (899, 900)


def test_what_an_admin_has_set_is_what_counts(squeue: Says) -> None:
    squeue("echo 10:00")
    assert ends_in_s(JOB, time.time() + 300) in (299, 300)


def test_a_job_in_parts_is_over_with_the_first(squeue: Says) -> None:
    squeue("printf '20:00\\n10:00\\n'")
    assert ends_in_s(JOB) in (599, 600)


@pytest.mark.parametrize("environ", [{}, {"SLURM_JOB_ID": "7"}])
def test_what_is_in_no_job_ends_never_nor_the_shell_that_waits_for_one(squeue: Says, environ: dict[str, str]) -> None:
    squeue("echo 10:00")
    assert ends_in_s(environ) is None


def test_a_job_without_a_limit_never_ends_without_a_word(squeue: Says, capsys: pytest.CaptureFixture[str]) -> None:
    squeue("echo UNLIMITED")
    assert ends_in_s(JOB) is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("script", ["echo 'Unable to contact slurm controller' >&2; exit 1", "exit 0", None])
def test_where_slurm_does_not_say_when_the_agent_stays_and_says_what_to_do(
    squeue: Says, script: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if script is not None:
        squeue(script)
    elif Path("/usr/bin/squeue").exists():
        squeue("exec /nowhere/squeue")
    assert ends_in_s(JOB) is None
    said = "".join(capsys.readouterr())
    assert "cannot end before it does" in said
    assert "set Pool.ends_at" in said


def test_words_that_are_no_utf_8_are_no_obstacle(squeue: Says) -> None:
    squeue("printf 'Zeit\\374berschreitung\\n' >&2; echo 10:00")
    assert ends_in_s(JOB) in (599, 600)


@pytest.mark.parametrize(("said", "is_known"), [("UNLIMITED", True), ("NOT_SET", False), ("UNLIMITED\nNOT_SET", False)])
def test_a_job_whose_limit_is_taken_away_is_one_that_never_ends_and_silence_changes_nothing(
    squeue: Says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, *, is_known: bool
) -> None:
    monkeypatch.setattr("gpu_worker.agent.slurm_job_end._LOOK_S", 0)
    squeue("echo 10:00")
    settings = with_job_end(Pool().settings(), JOB)
    asked = tmp_path / "asked"
    squeue(f"printf '{said}\\n'; echo >> {asked}")

    async def main() -> bool:
        async with agent_parts(tmp_path / "agent") as agent:
            departure = Departure(settings, agent.registry, None, agent.faults)  # type: ignore[arg-type]
            follows = asyncio.create_task(follow_job_end("7", departure, agent.faults))
            while not asked.exists() or asked.stat().st_size < 2:  # noqa: ASYNC110  another process writes
                await asyncio.sleep(0.01)
            follows.cancel()
            await asyncio.wait([follows])
            assert agent.faults.count == 0
            return departure.leaves_in_ms is None

    assert asyncio.run(main()) == is_known


def test_an_agent_that_ends_does_not_wait_for_a_squeue_that_hangs_and_leaves_none_of_it(
    squeue: Says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a site's own script that calls the real one."""
    monkeypatch.setattr("gpu_worker.agent.slurm_job_end._LOOK_S", 0)
    asked, never = tmp_path / "asked", tmp_path / "never"
    os.mkfifo(never)
    squeue(f"echo > {asked}; cat {never}")

    async def main() -> None:
        async with agent_parts(tmp_path / "agent") as agent:
            departure = Departure(agent.settings, agent.registry, None, agent.faults)  # type: ignore[arg-type]
            follows = asyncio.create_task(follow_job_end("7", departure, agent.faults))
            while not asked.exists():  # noqa: ASYNC110  another process makes it
                await asyncio.sleep(0.01)
            follows.cancel()
            await asyncio.wait([follows])

    asyncio.run(main())  # it ends only when all threads of the loop have
    until(lambda: not is_read(never), "the end of what squeue has started")
