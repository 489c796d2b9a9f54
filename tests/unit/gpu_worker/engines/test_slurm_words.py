"""What `squeue` prints becomes what people are told."""

from datetime import datetime

import pytest

from bulletin.units import DAY_MS, HOUR_MS
from gpu_worker.engines.agent_jobs import JobStatus
from gpu_worker.engines.slurm_words import find_clusters, read_states, say_not_taken, say_waiting

LINES = """\
slurm-a|PENDING|Resources|2026-11-26T14:20:00|gpu|4:00:00
slurm-b|RUNNING|None|2026-11-26T12:00:00|gpu|3:00:00
slurm-c|PREEMPTED|None|2026-11-26T12:00:00|gpu|3:30:00
slurm-d|NODE_FAIL|None|2026-11-26T12:00:00|gpu|3:30:00
another|RUNNING|None|2026-11-26T12:00:00|gpu|3:00:00
junk
"""
NOW = datetime(2026, 11, 26, 13, 0)  # noqa: DTZ001  as squeue prints times
NOW_MS = round(NOW.timestamp() * 1000)


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
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            "N/A",
            "Slurm: nodes of the partition gpu are down, drained, or kept for other jobs",
        ),
        (
            "BadConstraints",
            "N/A",
            (
                "Slurm: the job of the pool's node asks for what no node of the partition gpu has "
                "(SlurmAgents.constraint, SlurmAgents.gres): tell the pool's admins"
            ),
        ),
        (
            "(JobHeldAdmin)",
            "N/A",
            "Slurm: the job of the pool's node is held by an admin of the cluster: tell the pool's admins",
        ),
        ("PartitionInactive", "N/A", "Slurm: the nodes of the partition gpu are not available (PartitionInactive)"),
        ("Licenses", "N/A", "Slurm: the job of the pool's node waits (Licenses)"),
        ("None", "N/A", "Slurm: a node is asked for"),
    ],
)
def test_why_a_job_waits_is_a_sentence(reason: str, start: str, said: str) -> None:
    assert say_waiting(reason, "gpu", start, NOW) == said


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
            "Slurm does not answer: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        ),
        ("sbatch: error: invalid partition specified: x", "Slurm refused the job: invalid partition specified: x"),
        ("sbatch did not end within 60 s", "Slurm does not answer: sbatch did not end within 60 s"),
    ],
)
def test_a_slurm_that_does_not_answer_is_not_said_to_refuse(problem: str, said: str) -> None:
    assert say_not_taken(problem) == said


def test_each_state_is_one_of_those_that_count() -> None:
    states = read_states(LINES, dict.fromkeys(("slurm-a", "slurm-b", "slurm-c", "slurm-d", "slurm-e"), ""), NOW_MS)
    assert {node: state.status for node, state in states.items()} == {
        "slurm-a": JobStatus.WAITING,
        "slurm-b": JobStatus.RUNNING,
        "slurm-c": JobStatus.OVER,
        "slurm-d": JobStatus.OVER,
        "slurm-e": JobStatus.OVER,
    }
    assert states["slurm-a"].words == "Slurm: the partition gpu has none free until about 14:20"
    assert "preempted" in states["slurm-c"].words
    assert "lost its host" in states["slurm-d"].words
    assert "has ended" in states["slurm-e"].words


@pytest.mark.parametrize(
    ("left", "left_ms"),
    [
        ("0:30", 30_000),
        ("00:30", 30_000),
        ("59:59", 3_599_000),
        ("1:00:00", HOUR_MS),
        ("2-01:00:05", 2 * DAY_MS + HOUR_MS + 5_000),
        ("UNLIMITED", None),
        ("NOT_SET", None),
        ("INVALID", None),
        ("2026-11-26T16:00:00", None),
    ],
)
def test_when_a_job_ends_is_counted_from_now_while_it_has_a_limit(left: str, left_ms: int | None) -> None:
    """So the hour that clocks have twice a year, when they are put back, is none of its business."""
    states = read_states(f"slurm-a|RUNNING|None|N/A|gpu|{left}\n", {"slurm-a": ""}, NOW_MS)
    assert states["slurm-a"].has_no_end == (left == "UNLIMITED")
    assert states["slurm-a"].ends_at_ms == (None if left_ms is None else NOW_MS + left_ms)


def test_when_a_job_ends_is_not_known_while_it_does_not_run() -> None:
    states = read_states(LINES, dict.fromkeys(("slurm-a", "slurm-b", "slurm-c"), ""), NOW_MS)
    assert [node for node, state in states.items() if state.ends_at_ms] == ["slurm-b"]


@pytest.mark.parametrize(
    ("reason", "is_held", "has_failed"),
    [
        ("JobHeldUser", True, False),
        ("JobHeldAdmin", True, False),
        ("launch failed requeued held", False, True),
        ("DependencyNeverSatisfied", False, True),
        ("Resources", False, False),
    ],
)
def test_a_job_that_is_held_is_told_from_one_that_could_not_be_started(
    reason: str, is_held: bool, has_failed: bool
) -> None:
    state = read_states(f"slurm-a|PENDING|{reason}|N/A|gpu|4:00:00\n", {"slurm-a": ""}, NOW_MS)["slurm-a"]
    assert (state.status, state.is_held, state.has_failed) == (JobStatus.WAITING, is_held, has_failed)


def test_of_several_partitions_it_is_said_that_they_are() -> None:
    assert say_waiting("Resources", "gpu,long", "N/A", NOW) == "Slurm: the partitions gpu, long have none free"


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["--cpus-per-task=8", "--mem=64G"], []),
        (["--clusters=north"], ["--clusters=north"]),
        (["--mem=64G", "--clusters", "north,south"], ["--clusters=north,south"]),
        (["-M", "north", "--mem=64G"], ["--clusters=north"]),
        (["-Mnorth"], ["--clusters=north"]),
        (["--clusters=north", "-M", "south"], ["--clusters=south"]),
    ],
)
def test_jobs_are_looked_for_in_the_clusters_that_they_are_asked_of(options: list[str], asked: list[str]) -> None:
    """Else each is taken for one that has ended, and is started again and again."""
    assert find_clusters(options) == asked
