"""Agents as jobs of Slurm: `sbatch` starts one, `squeue` says what became of it, `scancel` ends it.

A job has the name of its node, by which it is found whoever started it. Its script has no secret: it copies the node's
file, which only the pool's user may read, into a folder of its own on its host.
"""

import shlex
import sys
import time
from collections.abc import Mapping

import structlog

from gpu_worker.config import PoolSettings, account_name
from gpu_worker.engines.agent_jobs import AgentTicket, CannotStartAgent, JobState
from gpu_worker.engines.command_line import run
from gpu_worker.engines.slurm_words import FORMAT, find_clusters, read_states, say_not_taken

#: The job: what an admin wants before it, then its agent, which finds out when it is to be gone.
_SCRIPT = """\
#!/bin/sh
{setup}
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/bulletin-agent.XXXXXX") || exit 1
install -m 600 {node_file} "$folder/node.json" || {{ rmdir "$folder"; exit 1; }}
exec {python} -m gpu_worker.cli agent --remove-folder --folder "$folder" --config {config_file} {slots}
"""


class SlurmJobs:
    """Starts and ends jobs with `SlurmSettings`."""

    def __init__(self, settings: PoolSettings, *, counts_slots: bool) -> None:
        """Take whether a node without a GPU offers as many CPU slots as its job has CPUs: no admin says how many."""
        self._pool, self._settings, self._counts_slots = settings, settings.engine.slurm, counts_slots
        self._user, self._clusters = account_name(), find_clusters(self._settings.options)
        self._log = structlog.get_logger("engine")

    async def start(self, ticket: AgentTicket) -> str:
        """See AgentJobs."""
        settings = self._settings
        seconds = settings.time_ms // 1000
        options = {
            "job-name": ticket.node,
            "output": str(ticket.node_file.with_name(f"{ticket.node}.log")),
            "chdir": "/",
            "time": f"{seconds // 60}:{seconds % 60:02}",
            "partition": settings.partition,
            "account": settings.account,
            "qos": settings.qos,
            "gres": settings.gres,
            "constraint": settings.constraint,
        }
        words = [f"--{name}={value}" for name, value in options.items() if value]
        said = await run(
            ["sbatch", "--parsable", "--no-requeue", *words, *settings.options], script=self.write_script(ticket)
        )
        if said.status:
            # Slurm may have taken it all the same, if what came too late was its answer.
            await self.stop({ticket.node: ""})
            raise CannotStartAgent(say_not_taken(said.problem))
        job = said.output.strip().partition(";")[0]
        self._log.info("job submitted", node=ticket.node, job=job)
        return job

    def write_script(self, ticket: AgentTicket) -> str:
        """Write what the job runs."""
        python = [self._settings.python or sys.executable, *self._pool.interpreter_options]
        return _SCRIPT.format(
            setup=self._settings.setup,
            node_file=shlex.quote(str(ticket.node_file)),
            config_file=shlex.quote(str(ticket.config_file)),
            python=shlex.join(python),
            slots='--slots="${SLURM_CPUS_ON_NODE:-1}"' if self._counts_slots else "",
        )

    async def stop(self, jobs: Mapping[str, str]) -> None:
        """See AgentJobs."""
        if not jobs:
            return
        names = ",".join(jobs)
        said = await run(["scancel", *self._clusters, f"--user={self._user}", f"--name={names}"])
        if said.status:
            self._log.warning("jobs could not be cancelled", nodes=names, problem=said.problem)

    async def look(self, jobs: Mapping[str, str]) -> Mapping[str, JobState]:
        """See AgentJobs."""
        if not jobs:
            return {}
        said = await run(
            [
                "squeue",
                *self._clusters,
                "-h",
                "-t",
                "all",
                f"--user={self._user}",
                f"--name={','.join(jobs)}",
                "-o",
                FORMAT,
            ]
        )
        if said.status:
            self._log.warning("Slurm does not say what became of jobs", problem=said.problem)
            return {}
        return read_states(said.output, jobs, time.time_ns() // 1_000_000)
