"""What Slurm says of a job, read out of `squeue` and put into words for people. Pure."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from datetime import datetime

from bulletin.wire.messages import NEVER_MS
from gpu_worker.engines.agent_jobs import JobState, JobStatus
from gpu_worker.slurm_durations import read_left_ms

#: What `squeue` is asked for: name, state, reason, (expected) start, partition, time left by its limit.
#: Not when it ends: that is a time on a wall clock, and when clocks are put back an hour has two of each.
FORMAT = "%j|%T|%r|%S|%P|%L"
_WAITING = frozenset(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"))
_RUNNING = frozenset(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"))
_OVER: Mapping[str, str] = {
    "PREEMPTED": "Slurm gave its place to another job (it was preempted)",
    "CANCELLED": "its Slurm job was cancelled",
    "TIMEOUT": "its Slurm job reached its time limit",
    "NODE_FAIL": "Slurm lost its host",
    "OUT_OF_MEMORY": "its Slurm job used more memory than it may",
}
_GONE = "its Slurm job has ended"
#: What a job waits for that does not come by waiting: somebody must change something. Who, and what.
_STUCK: Mapping[str, str] = {
    "PartitionTimeLimit": "asks for more time than the {where} {gives} (SlurmAgents.time)",
    "PartitionNodeLimit": "asks for more nodes than the {where} {gives} (SlurmAgents.options)",
    "BadConstraints": "asks for what no node of the {where} has (SlurmAgents.constraint, SlurmAgents.gres)",
    "AccountNotAllowed": "is not let into the {where} by its account (SlurmAgents.account)",
    "QOSNotAllowed": "is not let into the {where} by its QOS (SlurmAgents.qos)",
    "InvalidAccount": "has an account that Slurm does not know any more (SlurmAgents.account)",
    "InvalidQOS": "has a QOS that Slurm does not know any more (SlurmAgents.qos)",
    "JobHeldAdmin": "is held by an admin of the cluster",
    "JobHeldUser": "is held by the pool's user there (scontrol release lets it go on)",
    "launch failed requeued held": "could not be started on its node",
    "DependencyNeverSatisfied": "waits for another one that will never end well (SlurmAgents.options)",
}
_HELD = frozenset(("JobHeldAdmin", "JobHeldUser"))
#: Of these no waiting makes an agent, and nobody meant to keep the job waiting.
_FAILED = frozenset(("launch failed requeued held", "DependencyNeverSatisfied"))


def read_states(lines: str, nodes: Mapping[str, str], now_ms: int) -> dict[str, JobState]:
    """Read what `squeue -o FORMAT` printed, of the jobs of these nodes; what it does not know has ended.

    Parameters
    ----------
    lines
        All jobs of these names; of one that was requeued by hand the last line counts.
    nodes
        Their nodes, whose names the jobs have.
    now_ms
        When it printed them, in milliseconds since 1970. It prints times as clocks have them in this host's zone.
    """
    states = dict.fromkeys(nodes, JobState(JobStatus.OVER, _GONE))
    for line in lines.splitlines():
        words = line.split("|")
        if len(words) == 6 and words[0] in nodes:
            node, state, reason, start, partition, left = words
            states[node] = _read_state(state, reason, start, partition, left, now_ms)
    return states


def _read_state(state: str, reason: str, start: str, partition: str, left: str, now_ms: int) -> JobState:
    if state in _WAITING:
        now = datetime.fromtimestamp(now_ms / 1000)  # noqa: DTZ006  to be compared with what has no zone either
        why, words = reason.strip("()"), say_waiting(reason, partition, start, now)
        return JobState(JobStatus.WAITING, words, is_held=why in _HELD, has_failed=why in _FAILED)
    if state in _RUNNING:
        left_ms = read_left_ms(left) if state == "RUNNING" else None
        if left_ms is None or left_ms >= NEVER_MS:
            return JobState(JobStatus.RUNNING, has_no_end=left_ms is not None)
        return JobState(JobStatus.RUNNING, ends_at_ms=now_ms + left_ms)
    return JobState(JobStatus.OVER, _OVER.get(state, _GONE))


def say_waiting(reason: str, partition: str, start: str, now: datetime) -> str:
    """Say why a job waits, and until about when if Slurm expects something: words to stand after a semicolon."""
    until = _say_time(start, now)
    reason = reason.strip("()")
    names = partition.split(",")
    where, has = (f"partition {partition}", "has") if len(names) == 1 else (f"partitions {', '.join(names)}", "have")
    if (stuck := _STUCK.get(reason)) is not None:
        gives = "gives" if len(names) == 1 else "give"
        return f"Slurm: the job of the pool's node {stuck.format(where=where, gives=gives)}: tell the pool's admins"
    if reason in ("", "None"):
        return "Slurm: a node is asked for"
    if reason == "Resources":
        return f"Slurm: the {where} {has} none free{f' until about {until}' if until else ''}"
    expected = f", until about {until}" if until else ""
    if reason == "Priority":
        return f"Slurm: other jobs of the {where} come first{expected}"
    if reason.startswith(("QOS", "Assoc", "MaxJobs")):
        return f"Slurm: a limit of the pool's account there is reached ({reason}){expected}"
    if reason.startswith("Nodes required"):  # Slurm's own words go on: DOWN, DRAINED or reserved for jobs in ...
        return f"Slurm: nodes of the {where} are down, drained, or kept for other jobs{expected}"
    if reason.startswith(("Partition", "ReqNodeNotAvail", "NodeDown", "Reservation")):
        return f"Slurm: the nodes of the {where} are not available ({reason.partition(',')[0]}){expected}"
    return f"Slurm: the job of the pool's node waits ({reason}){expected}"


def say_not_taken(problem: str) -> str:
    """Say why sbatch came to nothing, by what it complained of last."""
    problem = problem.removeprefix("sbatch: ").removeprefix("error: ")
    is_silent = any(words in problem for words in ("Unable to contact slurm controller", "did not end within"))
    return f"Slurm does not answer: {problem}" if is_silent else f"Slurm refused the job: {problem}"


def find_clusters(options: Sequence[str]) -> list[str]:
    """Return the option of squeue and scancel for the clusters that options of sbatch name; none for its own."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-M", "--clusters", "--cluster", dest="clusters", nargs="?")
    clusters = parser.parse_known_args(options)[0].clusters
    return [f"--clusters={clusters}"] if clusters else []


def _say_time(start: str, now: datetime) -> str:
    """Say when Slurm expects a job to start; empty where it does not, or said so for a time that has passed."""
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        return ""
    if at <= now:
        return ""
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%a %H:%M}" if (at - now).days < 6 else f"{at:%d %b}"
