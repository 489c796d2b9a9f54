"""What may be written in a quota file: each word once, for the reader, the JSON schema, the page and the log."""

from typing import Any

from gpu_worker.quotas.hours_words import Windows
from gpu_worker.quotas.tree import Leaf, Node, Odd, Table
from gpu_worker.quotas.values import (
    DAY_MS,
    MOST_WHOLE,
    AfterReclaim,
    Duration,
    Factor,
    GpuHours,
    Gpus,
    ProjectName,
    Unfit,
    Whole,
    Word,
    YesNo,
)
from gpu_worker.scheduler.projects import QoS

#: A new class of service has what is not written from here.
NEW_QOS = QoS(name="", priority=100, walltime_ms=0, queued_per_user=4)

#: The settings of a project.
PROJECT_WORDS = (
    Word("guaranteed", "guaranteed_milli", Gpus(), "What it gets within the reclaim time, whoever has it now.", "4"),
    Word("limit", "limit_milli", Gpus(may_be_unlimited=True), "What all its cells together never exceed.", "8"),
    Word("weight", "weight", Whole(1), "Its part of what is left when all guarantees are met.", "3"),
    Word("priority", "priority", Whole(-MOST_WHOLE), "Of what is left, projects with more of it take first.", "10"),
    Word(
        "lending_limit",
        "lending_limit_milli",
        Gpus(may_be_unlimited=True),
        "How much of its unused guarantee others may use.",
        "2",
    ),
    Word("borrow", "can_borrow", YesNo(), "false: never more than is guaranteed, even when GPUs are free.", "false"),
    Word("user_limit", "user_limit_milli", Gpus(may_be_unlimited=True), "What one of its users never exceeds.", "2"),
    Word(
        "budget",
        "budget",
        GpuHours(),
        "How much GPU time it may use in a period. Days, weeks from Monday and months begin at 0:00 UTC.",
        '"200 GPU-hours per week"',
    ),
    Word(
        "class_hours",
        "class_hours",
        Windows(),
        "Windows of the week in which more is guaranteed.",
        "[projects.cs101.class_hours.lecture]",
    ),
    Word("parent", "parent", ProjectName(), "The project that it is in: what it uses counts there too.", '"science"'),
)

#: The settings of a class of service.
QOS_WORDS = (
    Word(
        "walltime",
        "walltime_ms",
        Duration(1000, 366 * DAY_MS),
        "The longest a cell may run, and what it gets if it does not ask.",
        '"30 min"',
    ),
    Word("priority", "priority", Whole(-MOST_WHOLE), "Classes with more of it come first.", "150"),
    Word("queued_per_user", "queued_per_user", Whole(1), "Requests of one user in the queue at once.", "20"),
    Word(
        "running_per_user",
        "running_per_user",
        Whole(1, may_be_unlimited=True),
        "Leases of one user at once.",
        "2",
    ),
    Word(
        "must_be_in_quota",
        "must_be_in_quota",
        YesNo(),
        "true: its cells never borrow, whatever their project may.",
        "true",
    ),
    Word("grace", "grace_ms", Duration(0, DAY_MS), "Between the warning and the end, when reclaimed.", '"30 s"'),
    Word(
        "min_runtime",
        "min_runtime_ms",
        Duration(0, 366 * DAY_MS),
        "A cell that has run for less is not reclaimed.",
        '"5 min"',
    ),
    Word(
        "share_after",
        "share_after_ms",
        Duration(0, 366 * DAY_MS),
        "A cell that has waited for so long takes back what other projects use beyond their share.",
        '"2 min"',
    ),
    Word(
        "preemption",
        "preemption",
        AfterReclaim(),
        "What happens to a borrowed cell whose GPU is wanted back.",
        '"requeue"',
    ),
    Word("usage_factor", "usage_percent", Factor(), "How much of its GPU time counts when use is compared.", "0.5"),
)

#: The tables of a file, with the settings that each of their entries may have.
TABLES = {"projects": PROJECT_WORDS, "qos": QOS_WORDS}


def read_word(word: Word, node: Node) -> Any:
    """What the scheduler's model has for this node. Raises Unfit."""
    match node:
        case Leaf(None):
            raise Unfit("Write a value, or leave the line out.")
        case Leaf(value):
            return word.kind.read(value)
        case Odd() | Table():
            return word.kind.read(None)
