"""Agents that commands of the admin's own start somewhere, and end again."""

import asyncio
from collections.abc import Mapping, Sequence
from unicodedata import category

import structlog

from bulletin.errors import BadConfig
from gpu_worker.config import PoolSettings
from gpu_worker.engines.agent_jobs import AgentTicket, CannotStartAgent, JobState, JobStatus
from gpu_worker.engines.command_line import Said, run

_IS_GONE = 1
_GONE = "its command says that it is there no more"
#: Of what a variable of the environment may hold, 128 KiB with its name, what its name leaves and more.
_LONGEST_JOB_BYTES = 100_000
_MOST_LOGGED = 250


class CommandJobs:
    """Runs the commands of `CommandSettings`."""

    def __init__(self, settings: PoolSettings) -> None:
        """Take the settings. Raises BadConfig where a command is missing."""
        self._settings = settings.engine.command
        for name in ("start", "stop"):
            if not getattr(self._settings, name):
                raise BadConfig(
                    f"CommandAgents.{name} is empty. The engine 'command' needs both: one that starts an agent "
                    "somewhere (CommandAgents.start), and one that ends it (CommandAgents.stop)."
                )
        self._log = structlog.get_logger("engine")

    async def start(self, ticket: AgentTicket) -> str:
        """See AgentJobs."""
        files = {"BULLETIN_NODE_FILE": str(ticket.node_file), "BULLETIN_AGENT_CONFIG": str(ticket.config_file)}
        said = await run(self._settings.start, environ={"BULLETIN_NODE": ticket.node, **files})
        lines = said.output.split("\n")
        job = next((line.strip() for line in reversed(lines) if line.strip()), ticket.node)
        is_usable = _is_usable(job)
        if is_usable and not said.status:
            return job
        # What it asked for may be there, or on its way: nobody else would ever end it.
        await self.stop({ticket.node: job if is_usable else ticket.node})
        if said.status:
            raise CannotStartAgent(f"the command that starts one failed: {said.problem}")
        raise CannotStartAgent(
            "the command that starts one printed as its last line what no agent is found by: 100,000 bytes or fewer, "
            "and no control characters but tabs"
        )

    async def stop(self, jobs: Mapping[str, str]) -> None:
        """See AgentJobs."""
        for node, said in zip(jobs, await self._each(self._settings.stop, jobs), strict=True):
            if said.status:
                job = jobs[node][:_MOST_LOGGED]
                self._log.warning("an agent could not be ended", node=node, job=job, problem=said.problem)

    async def look(self, jobs: Mapping[str, str]) -> Mapping[str, JobState]:
        """See AgentJobs."""
        if not self._settings.look:
            return {}
        said = await self._each(self._settings.look, jobs)
        return {node: _read(one) for node, one in zip(jobs, said, strict=True)}

    async def _each(self, words: Sequence[str], jobs: Mapping[str, str]) -> list[Said]:
        return await asyncio.gather(
            *(run(words, environ={"BULLETIN_NODE": node, "BULLETIN_JOB": job or node}) for node, job in jobs.items())
        )


def _is_usable(job: str) -> bool:
    """Tell whether a command can be told of a job so, and a log can show it."""
    is_short = len(job.encode()) <= _LONGEST_JOB_BYTES
    return is_short and all(letter == "\t" or category(letter) not in ("Cc", "Zl", "Zp") for letter in job)


def _read(said: Said) -> JobState:
    if said.status == _IS_GONE:
        return JobState(JobStatus.OVER, " ".join(said.output.split()).rstrip(".")[:200] or _GONE)
    return JobState(JobStatus.RUNNING if not said.status else JobStatus.UNKNOWN)
