"""What commands of an admin's print is a job's name or a sentence for people, or it is refused: the pool goes on."""

import asyncio
from pathlib import Path

import pytest
from traitlets.config import Config

from gpu_worker.config import Pool
from gpu_worker.engines.agent_jobs import AgentTicket, CannotStartAgent, JobState, JobStatus
from gpu_worker.engines.command_jobs import CommandJobs

TICKET = AgentTicket("command-1", Path("/nowhere/node.json"), Path("/nowhere/config.json"))


def jobs(start: str = "exit 0", look: str = "exit 0") -> CommandJobs:
    commands = {"start": start, "stop": "exit 0", "look": look}
    shells = {name: ["sh", "-c", words] for name, words in commands.items()}
    return CommandJobs(Pool(config=Config(Pool={"engine": "command"}, CommandAgents=shells)).settings())


def looked(words: str, job: str = "17") -> JobState:
    return asyncio.run(jobs(look=words).look({"command-1": job}))["command-1"]


def test_the_last_line_is_what_an_agent_is_found_by_and_without_one_its_node() -> None:
    assert asyncio.run(jobs("echo one; echo ' two '; echo").start(TICKET)) == "two"
    assert asyncio.run(jobs("exit 0").start(TICKET)) == "command-1"


@pytest.mark.parametrize(
    "prints", [r"printf 'a\0b'", r"printf '\033[2J17'", "head -c 300000 /dev/zero | tr '\\0' a"], ids=str
)
def test_what_no_command_can_be_told_again_is_no_job(prints: str) -> None:
    with pytest.raises(CannotStartAgent, match="printed as its last line what no agent is found by"):
        asyncio.run(jobs(prints).start(TICKET))


def test_of_a_failure_the_last_sentence_is_told() -> None:
    with pytest.raises(CannotStartAgent, match=r"failed: no host is left$"):
        asyncio.run(jobs("echo trying >&2; echo no host is left >&2; exit 3").start(TICKET))
    with pytest.raises(CannotStartAgent, match="status 3 and said nothing"):
        asyncio.run(jobs("echo >&2; exit 3").start(TICKET))


def test_why_an_agent_is_gone_is_one_line() -> None:
    assert looked("exit 0") == JobState(JobStatus.RUNNING)
    assert looked("exit 2").status is JobStatus.UNKNOWN
    assert looked("echo its host; echo was sold.; exit 1") == JobState(JobStatus.OVER, "its host was sold")
    assert looked("exit 1") == JobState(JobStatus.OVER, "its command says that it is there no more")
