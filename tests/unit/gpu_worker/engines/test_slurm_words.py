"""What `squeue` prints becomes what people are told."""

from datetime import datetime

import pytest

from gpu_worker.engines.agent_jobs import JobStatus
from gpu_worker.engines.slurm_words import read_states, say_waiting

LINES = """\
slurm-a|PENDING|Resources|N/A|gpu|N/A
slurm-b|RUNNING|None|2026-11-26T12:00:00|gpu|2026-11-26T16:00:00
slurm-c|PREEMPTED|None|2026-11-26T12:00:00|gpu|2026-11-26T12:30:00
slurm-d|NODE_FAIL|None|2026-11-26T12:00:00|gpu|2026-11-26T12:30:00
another|RUNNING|None|2026-11-26T12:00:00|gpu|2026-11-26T16:00:00
junk
"""
NOW = datetime(2026, 11, 26, 13, 0)  # noqa: DTZ001  as squeue prints times


@pytest.mark.parametrize(
    ("reason", "start", "said"),
    [
        ("(Resources)", "2026-11-26T14:20:00", "Slurm: the partition gpu has none free until about 14:20"),
        ("Resources", "N/A", "Slurm: the partition gpu has none free"),
        ("Resources", "2026-11-26T12:59:00", "Slurm: the partition gpu has none free"),
        ("Resources", "2026-11-27T08:05:00", "Slurm: the partition gpu has none free until about Fri 08:05"),
        ("Resources", "2026-12-24T08:05:00", "Slurm: the partition gpu has none free until about 24 Dec"),
        ("Priority", "N/A", "Slurm: other jobs of the partition gpu come first"),
        (
            "QOSMaxJobsPerUserLimit",
            "N/A",
            "Slurm: a limit of the pool's account there is reached (QOSMaxJobsPerUserLimit)",
        ),
        ("PartitionDown", "N/A", "Slurm: the nodes of the partition gpu are not available (PartitionDown)"),
        (
            "ReqNodeNotAvail, UnavailableNodes:n[1-2]",
            "N/A",
            "Slurm: the nodes of the partition gpu are not available (ReqNodeNotAvail)",
        ),
        ("Licenses", "N/A", "Slurm: the job of the pool's node waits (Licenses)"),
        ("None", "N/A", "Slurm: a node is asked for"),
    ],
)
def test_why_a_job_waits_is_a_sentence(reason: str, start: str, said: str) -> None:
    assert say_waiting(reason, "gpu", start, NOW) == said


def test_each_state_is_one_of_those_that_count() -> None:
    states = read_states(LINES, dict.fromkeys(("slurm-a", "slurm-b", "slurm-c", "slurm-d", "slurm-e"), ""), NOW)
    assert {node: state.status for node, state in states.items()} == {
        "slurm-a": JobStatus.WAITING,
        "slurm-b": JobStatus.RUNNING,
        "slurm-c": JobStatus.OVER,
        "slurm-d": JobStatus.OVER,
        "slurm-e": JobStatus.OVER,
    }
    assert "preempted" in states["slurm-c"].words
    assert "lost its host" in states["slurm-d"].words
    assert "has ended" in states["slurm-e"].words


def test_when_a_job_ends_is_known_while_it_runs_and_has_a_limit() -> None:
    lines = LINES + "slurm-e|RUNNING|None|2026-11-26T12:00:00|gpu|NONE\n"
    states = read_states(lines, dict.fromkeys(("slurm-a", "slurm-b", "slurm-c", "slurm-e"), ""), NOW)
    ends = datetime(2026, 11, 26, 16, 0).timestamp()  # noqa: DTZ001
    assert {node: state.ends_at_ms for node, state in states.items() if state.ends_at_ms} == {"slurm-b": ends * 1000}
