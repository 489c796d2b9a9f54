"""What may be written in a quota file: each setting once, for the reader, the JSON schema, the page and the log."""

from typing import Any

from bulletin.units import DAY_MS
from gpu_worker.quotas.class_hours_settings import ClassHoursTable
from gpu_worker.quotas.node_pool_settings import PoolGuaranteesTable
from gpu_worker.quotas.reservation_settings import UserNames
from gpu_worker.quotas.tree import TreeLeaf, TreeNode, TreeTable, UnsupportedValue
from gpu_worker.quotas.value_kinds import (
    MOST_WHOLE,
    OF_PARENT,
    Duration,
    Factor,
    GpuAmount,
    GpuHours,
    PreemptionMode,
    ProjectName,
    QosName,
    QosNames,
    QuotaSetting,
    UnfitValue,
    WholeNumber,
    YesNo,
)
from gpu_worker.scheduler.policy.projects import QoS

#: A new class of service has what is not written from here.
NEW_QOS = QoS(name="", priority=100, walltime_ms=0, queued_per_user=4)

#: Shown where nothing is granted without a decision.
NOBODY_AT_ONCE = "as its parent; else nothing"

#: The settings of a project.
PROJECT_SETTINGS = (
    QuotaSetting(
        "guaranteed", "guaranteed_milli", GpuAmount(), "What it gets within the reclaim time, whoever has it now.", "4"
    ),
    QuotaSetting(
        "limit", "limit_milli", GpuAmount(may_be_unlimited=True), "What all its cells together never exceed.", "8"
    ),
    QuotaSetting("weight", "weight", WholeNumber(1), "Its part of what is left when all guarantees are met.", "3"),
    QuotaSetting(
        "priority", "priority", WholeNumber(-MOST_WHOLE), "Of what is left, projects with more of it take first.", "10"
    ),
    QuotaSetting(
        "lending_limit",
        "lending_limit_milli",
        GpuAmount(may_be_unlimited=True),
        "How much of its unused guarantee others may use, in all and of its part of each node pool.",
        "2",
    ),
    QuotaSetting(
        "borrow", "can_borrow", YesNo(), "false: never more than is guaranteed, even when GPUs are free.", "false"
    ),
    QuotaSetting(
        "user_limit", "user_limit_milli", GpuAmount(may_be_unlimited=True), "What one of its users never exceeds.", "2"
    ),
    QuotaSetting(
        "budget",
        "budget",
        GpuHours(),
        "How much GPU time it may use in a period. Days, weeks from Monday and months begin at 0:00 UTC.",
        '"200 GPU-hours per week"',
    ),
    QuotaSetting(
        "class_hours",
        "class_hours",
        ClassHoursTable(),
        "Windows of the week in which more is guaranteed.",
        "[projects.cs101.class_hours.lecture]",
    ),
    QuotaSetting(
        "node_pools",
        "pool_guarantees",
        PoolGuaranteesTable(),
        "Of its guarantee, what it gets in each node pool, whoever has that now. It is guaranteed at least their sum.",
        "{ h100 = 4 }",
    ),
    QuotaSetting(
        "qos",
        "qos",
        QosNames(),
        "The classes of service that its cells may use. Without it, those of its parent.",
        '["interactive", "batch"]',
    ),
    QuotaSetting(
        "default_qos",
        "default_qos",
        QosName(),
        "What a cell has that names none. Without it, that of its parent; where there is none, interactive (in the "
        "background batch), or the first of qos where that is not among them.",
        '"interactive"',
    ),
    QuotaSetting(
        "gpus_per_cell",
        "gpus_per_cell",
        WholeNumber(1, without=OF_PARENT),
        "How many GPUs one of its cells may have. Without it, as many as in its parent.",
        "2",
    ),
    QuotaSetting(
        "walltime",
        "walltime_ms",
        Duration(1000, 366 * DAY_MS, without=OF_PARENT),
        "The longest one of its cells may run, where its class allows more, and what it gets if it does not ask. "
        "Without it, as long as in its parent.",
        '"4 h"',
    ),
    QuotaSetting(
        "keep_hot",
        "keep_hot_ms",
        Duration(0, DAY_MS, without=OF_PARENT),
        "For so long after its last cell a session keeps its GPU from those who borrow, as far as the guarantee "
        "reaches. Its next cell then starts at once, and does not wait for a borrower's grace; the GPU is idle "
        'meanwhile. Without it, as in its parent, and not at all where nobody says so ("0 s").',
        '"5 min"',
    ),
    QuotaSetting(
        "auto_grant_walltime",
        "auto_grant_walltime_ms",
        Duration(1000, 30 * DAY_MS, without=NOBODY_AT_ONCE),
        "Who asks for cells of up to this length (%gpu request --time) has them at once. What is more is for its leads "
        "and admins to decide. Without it, as in its parent.",
        '"4 h"',
    ),
    QuotaSetting(
        "auto_grant_gpus",
        "auto_grant_gpus",
        WholeNumber(1, without=NOBODY_AT_ONCE),
        "Who asks for up to so many GPUs, in a cell and at once (%gpu request --gpus), has them at once, up to what "
        "the project may use. Without it, as in its parent.",
        "2",
    ),
    QuotaSetting(
        "auto_grant_for",
        "auto_grant_for_ms",
        Duration(60_000, 31 * DAY_MS, without="as its parent; else 1 d"),
        "What is granted at once is granted for so long, or for less where less was asked for; what leads and admins "
        "grant, too, where nobody says another time.",
        '"2 d"',
    ),
    QuotaSetting(
        "auto_grants_per_week",
        "auto_grants_per_week",
        WholeNumber(1, without="as its parent; else 3"),
        "So often within seven days one user is granted something at once.",
        "2",
    ),
    QuotaSetting(
        "leads",
        "leads",
        UserNames(without="none"),
        "Users who answer for it: they change what is inside it, and never have more of the pool by that.",
        '["ann"]',
    ),
    QuotaSetting(
        "parent", "parent", ProjectName(), "The project that it is in: what it uses counts there too.", '"science"'
    ),
)

#: The settings of a class of service.
QOS_SETTINGS = (
    QuotaSetting(
        "walltime",
        "walltime_ms",
        Duration(1000, 366 * DAY_MS),
        "The longest a cell may run, and what it gets if it does not ask.",
        '"30 min"',
    ),
    QuotaSetting("priority", "priority", WholeNumber(-MOST_WHOLE), "Classes with more of it come first.", "150"),
    QuotaSetting(
        "queued_per_user", "queued_per_user", WholeNumber(1), "Requests of one user in the queue at once.", "20"
    ),
    QuotaSetting(
        "running_per_user",
        "running_per_user",
        WholeNumber(1, may_be_unlimited=True),
        "Leases of one user at once.",
        "2",
    ),
    QuotaSetting(
        "gpus_per_cell",
        "gpus_per_cell",
        WholeNumber(1, may_be_unlimited=True),
        "How many GPUs one of its cells may have.",
        "4",
    ),
    QuotaSetting(
        "must_be_in_quota",
        "must_be_in_quota",
        YesNo(),
        "true: its cells never borrow, whatever their project may.",
        "true",
    ),
    QuotaSetting(
        "grace", "grace_ms", Duration(0, DAY_MS), "Between the warning and the end, when reclaimed.", '"30 s"'
    ),
    QuotaSetting(
        "min_runtime",
        "min_runtime_ms",
        Duration(0, 366 * DAY_MS),
        "A cell that has run for less is not reclaimed.",
        '"5 min"',
    ),
    QuotaSetting(
        "share_after",
        "share_after_ms",
        Duration(0, 366 * DAY_MS),
        "A cell that has waited for so long takes back what other projects use beyond their share.",
        '"2 min"',
    ),
    QuotaSetting(
        "patience",
        "patience_ms",
        Duration(0, 366 * DAY_MS),
        "A cell that has waited for so long is passed by nobody who is in quota, or borrows, as it does.",
        '"30 min"',
    ),
    QuotaSetting(
        "preemption",
        "preemption",
        PreemptionMode(),
        "What happens to a borrowed cell whose GPU is wanted back.",
        '"requeue"',
    ),
    QuotaSetting(
        "keep",
        "keep_ms",
        Duration(0, DAY_MS),
        "For so long after its last cell a notebook may keep its GPU, if it asks for that with --keep. It is charged "
        "as if a cell ran, and nobody takes it. Only in a class that must be in quota.",
        '"30 min"',
    ),
    QuotaSetting(
        "exclusive",
        "can_be_exclusive",
        YesNo(),
        "true: a cell may have a node for itself, if it asks for that with --exclusive and for as many GPUs as the "
        "node has. It is charged for all of them.",
        "true",
    ),
    QuotaSetting(
        "usage_factor", "usage_percent", Factor(), "How much of its GPU time counts when use is compared.", "0.5"
    ),
)

#: The settings of the scheduler itself, for all projects and classes of service.
SCHEDULER_SETTINGS = (
    QuotaSetting(
        "look_ahead",
        "look_ahead",
        WholeNumber(1),
        "For so many requests that no guarantee covers GPUs are freed at the same time; those behind them wait until "
        "one of these has its GPUs. With a larger number a crowd that borrows is served sooner, and more hot sessions "
        "leave for cells that may not come. Those that a guarantee covers are not counted.",
        "32",
    ),
    QuotaSetting(
        "back_off",
        "back_off_ms",
        Duration(0, DAY_MS),
        "A project that had to give back what it borrowed stands behind other borrowers for so long, and twice as long "
        "each time that it happens again within longest_back_off after that. It gets what nobody else wants, at once.",
        '"30 s"',
    ),
    QuotaSetting(
        "longest_back_off",
        "longest_back_off_ms",
        Duration(0, DAY_MS),
        "It never stands behind others for longer than this. A short time lets a borrower come back soon, to lose more "
        "cells when the owner wants the GPUs again.",
        '"5 min"',
    ),
)

#: What a price has: it is written as one number behind the name.
PRICE_SETTINGS = (
    QuotaSetting("factor", "percent", Factor(), "What an hour of such a GPU counts for, where use adds up.", "4.0"),
)
PRICE_NAME_LENGTH = 64
#: Whoever is charged goes through all of them.
MOST_PRICES = 100

#: The tables of a file; those of all but the scheduler have names in them.
TABLES = ("projects", "group_rules", "node_pools", "qos", "scheduler", "prices", "reservations")


def read_setting(setting: QuotaSetting, node: TreeNode) -> Any:
    """Turn what the file says of a setting into what the scheduler's model has for it. Raises UnfitValue."""
    match node:
        case TreeLeaf(None):
            raise UnfitValue("Write a value, or leave the line out.")
        case TreeLeaf(value):
            return setting.kind.read(value)
        case UnsupportedValue() | TreeTable():
            return setting.kind.read(None)
