"""What commands of an admin's print is a job's name or a sentence for people, or it is refused: the pool goes on."""

import asyncio
from pathlib import Path

import pytest
from traitlets.config import Config

from gpu_worker.config import Pool
from gpu_worker.engines.agent_jobs import AgentTicket, CannotStartAgent, JobState, JobStatus
from gpu_worker.engines.command_jobs import CommandJobs

TICKET = AgentTicket("command-1", Path("/nowhere/node.json"), Path("/nowhere/config.json"))


def jobs(start: str = "exit 0", look: str = "exit 0", stop: str = "exit 0") -> CommandJobs:
    commands = {"start": start, "stop": stop, "look": look}
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


@pytest.mark.parametrize("prints", ["printf 'vm-7\\teurope-west4-a'", 'printf \'{"id": "%0600d"}\' 7'], ids=str)
def test_what_clouds_print_of_a_machine_is_what_it_is_found_by(prints: str, tmp_path: Path) -> None:
    found_by = tmp_path / "job"
    pool = jobs(prints, stop=f'printf %s "$BULLETIN_JOB" > {found_by}')
    job = asyncio.run(pool.start(TICKET))
    asyncio.run(pool.stop({TICKET.node: job}))
    assert found_by.read_text() == job
    assert len(job) > len("vm-7")


@pytest.mark.parametrize(
    ("start", "job"),
    [
        ("echo vm-7; exit 3", "vm-7"),
        ("exit 3", "command-1"),
        (r"printf '\033[2J17'", "command-1"),
        ("head -c 300000 /dev/zero | tr '\\0' a", "command-1"),
    ],
    ids=str,
)
def test_a_machine_that_a_failed_start_has_made_is_ended_before_another_is_started(
    start: str, job: str, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    with pytest.raises(CannotStartAgent):
        asyncio.run(jobs(start, stop=f'echo "$BULLETIN_NODE $BULLETIN_JOB" >> {ended}').start(TICKET))
    assert ended.read_text() == f"command-1 {job}\n"


def test_an_agent_whose_start_the_pool_did_not_see_end_is_ended_by_its_nodes_name(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    asyncio.run(jobs(stop=f'echo "$BULLETIN_NODE $BULLETIN_JOB" >> {ended}').stop({"command-1": ""}))
    assert ended.read_text() == "command-1 command-1\n"


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
