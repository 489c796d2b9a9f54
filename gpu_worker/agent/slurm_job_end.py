"""When the job of Slurm ends that an agent runs in, however it came to be there: an engine's job, or a user's own."""

import asyncio
import subprocess
import time
from collections.abc import Mapping

import msgspec
import structlog

from gpu_worker.agent.departure import Departure
from gpu_worker.config import PoolSettings
from gpu_worker.slurm_durations import read_left_ms

_PATIENCE_S = 20.0
#: So often Slurm is asked again: its owner, or an admin of the cluster, may give a job more time, or less.
_LOOK_S = 30.0
#: Times that are no further apart are the same: Slurm counts whole seconds, and takes some to answer.
_ABOUT_MS = 5_000


def find_job(environ: Mapping[str, str]) -> str:
    """Return the number of the job that this process runs in; empty where it is in none."""
    # A shell of `salloc` has the job's number, too, and is not on its host.
    return environ.get("SLURM_JOB_ID", "") if "SLURMD_NODENAME" in environ else ""


def with_job_end(settings: PoolSettings, environ: Mapping[str, str]) -> PoolSettings:
    """Return the settings with the end of the job as that of the host's time, unless another one is set."""
    job = find_job(environ)
    if not job or settings.ends_at_ms:
        return settings
    return msgspec.structs.replace(settings, ends_at_ms=_find_end_ms(job, environ))


async def follow_job_end(job: str, departure: Departure) -> None:
    """Let the agent leave in time before its job's end, wherever that is moved; where Slurm is silent, it stays.

    That also sets right what a clock that is set anew has made of it.
    """
    log = structlog.get_logger("agent")
    while True:
        await asyncio.sleep(_LOOK_S)
        lines, _ = await asyncio.to_thread(_ask, job)
        left_ms = [left for left in map(read_left_ms, lines) if left is not None]
        if left_ms and departure.follow_host_end(min(left_ms), _ABOUT_MS):
            log.info("the job's end has moved", job=job, leaves_in_ms=departure.leaves_in_ms)


def _ask(job: str) -> tuple[list[str], str]:
    """Ask how much time the parts of a job have left; return Slurm's words for each, and what it complains of."""
    # What is left, and not when it ends: that is printed in a form that users choose (SLURM_TIME_FORMAT), and without
    # a zone, so that the hour in which clocks are put back is there twice.
    asked = ["squeue", "--noheader", f"--jobs={job}", "--states=RUNNING", "--format=%L"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], str(error)
    return said.stdout.split() if said.returncode == 0 else [], said.stderr.strip()


def _find_end_ms(job: str, environ: Mapping[str, str]) -> int:
    """Return when it ends, in milliseconds since 1970; 0 is never, or nobody knows."""
    lines, problem = _ask(job)
    now_ms = time.time_ns() // 1_000_000
    told = environ.get("SLURM_JOB_END_TIME", "")  # as of the job's start, from Slurm 23 on: its limit may have changed
    if not lines and told.isdecimal():
        return int(told) * 1000
    if not lines:
        structlog.get_logger("agent").warning(
            "nobody knows when this job of Slurm ends: cells may start here that cannot end before it does",
            job=job,
            problem=(problem.splitlines() or ["squeue does not know it"])[-1],
            remedy="let squeue work on this host, or set Pool.ends_at",
        )
    # Several are the parts of one job: the first that ends takes the agent's cells along, as far as it knows.
    left_ms = [left for left in map(read_left_ms, lines) if left is not None]
    return now_ms + min(left_ms) if left_ms else 0
