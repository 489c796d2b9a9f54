"""When the job of Slurm ends that an agent runs in, however it came to be there: an engine's job, or a user's own."""

import asyncio
import os
import time
from asyncio import timeout
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping

import msgspec
import structlog

from bulletin.wire.messages import NEVER_MS
from gpu_worker.agent.departure import Departure
from gpu_worker.config import PoolSettings
from gpu_worker.faults import Faults
from gpu_worker.running_program import running_program
from gpu_worker.slurm_durations import read_first_end_ms

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


async def follow_job_end(job: str, departure: Departure, faults: Faults) -> None:
    """Let the agent leave in time before its job's end, wherever that is moved; where Slurm is silent, it stays.

    That also sets right what a clock that is set anew has made of it.
    """
    log = structlog.get_logger("agent")
    while True:
        await asyncio.sleep(_LOOK_S)
        with faults.contain(lambda: None, during="asking Slurm when the job ends", job=job):
            parts, _ = await _ask(job)
            left_ms = read_first_end_ms(parts)
            if left_ms is not None and departure.follow_host_end(left_ms, _ABOUT_MS):
                log.info("the job's end has moved", job=job, leaves_in_ms=departure.leaves_in_ms)


async def _ask(job: str) -> tuple[list[str], str]:
    """Ask how much time the parts of a job have left; return Slurm's words for each, and what it complains of."""
    # What is left, and not when it ends: that is printed in a form that users choose (SLURM_TIME_FORMAT), and without
    # a zone, so that the hour in which clocks are put back is there twice.
    asked = ["squeue", "--noheader", f"--jobs={job}", "--states=RUNNING", "--format=%L"]
    # A job is its own cluster's: each of those that its sbatch was to choose from has another job of this number.
    environ = {name: value for name, value in os.environ.items() if name != "SLURM_CLUSTERS"}
    # Some sites have a script there, which is ended with what it has started.
    asking = running_program(*asked, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=environ)
    try:
        async with asking as squeue, timeout(_PATIENCE_S):
            said, complaint = (words.decode(errors="replace") for words in await squeue.communicate())
    except TimeoutError:
        return [], f"squeue does not answer within {_PATIENCE_S:.0f} s"
    except OSError as error:
        return [], str(error)
    return said.split() if squeue.returncode == 0 else [], complaint.strip()


def _find_end_ms(job: str, environ: Mapping[str, str]) -> int:
    """Return when it ends, in milliseconds since 1970; 0 is never, or nobody knows."""
    parts, problem = asyncio.run(_ask(job))
    now_ms = time.time_ns() // 1_000_000
    told = environ.get("SLURM_JOB_END_TIME", "")  # as of the job's start, from Slurm 23 on: its limit may have changed
    if not parts and told.isdecimal():
        return int(told) * 1000
    if not parts:
        structlog.get_logger("agent").warning(
            "nobody knows when this job of Slurm ends: cells may start here that cannot end before it does",
            job=job,
            problem=(problem.splitlines() or ["squeue does not know it"])[-1],
            remedy="let squeue work on this host, or set Pool.ends_at",
        )
    # Several are the parts of one job: the first that ends takes the agent's cells along, as far as it knows.
    left_ms = read_first_end_ms(parts)
    return 0 if left_ms is None or left_ms >= NEVER_MS else now_ms + left_ms
