"""The tables of docs/explanation/simulation.md, as functions from a pool and a week to lines of Markdown."""

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from bulletin.ids import ProjectId
from bulletin.units import HOUR_MS, MINUTE_MS, show_duration
from gpu_worker.scheduler.policy.projects import DEFAULT_QOS, Project, SchedulerSettings
from gpu_worker.simulator.policies import Policies
from gpu_worker.simulator.pool_size import Play, find_fewest, find_fewest_for_all
from gpu_worker.simulator.reservations import ReservedGpus, reserved_gpus
from gpu_worker.simulator.run_report import CULLED_AFTER_MS, RunReport, report, simulate
from gpu_worker.simulator.simulated_nodes import Delays, NodeFault
from gpu_worker.simulator.simulated_pool import SimulatedPool, divide_gpus
from gpu_worker.simulator.traces import Trace
from gpu_worker.simulator.variations import with_added_time, with_long_cells, with_shorter_pauses, with_slower_cells
from gpu_worker.simulator.waits import wait_statistics
from gpu_worker.simulator.workloads import generate

#: The quality that is asked for: this share of cells starts within a second.
SHARE = 0.9
NODES, MOST = 8, 300
SEEDS = range(1, 9)
#: MIG slices of an A100 or H100 with 80 GB: seven, of 10 GB each.
SLICES = 7
SECOND_MS = 1000
SUNDAY_20 = 6 * 24 + 20
#: Between the least and the most that a start and an eviction may cost.
MIDDLE = Delays(start_ms=1000, state_ms=200, model_ms=5000, evict_ms=2000)
#: Interactive cells may run for longer: by default they are cut after 30 min.
LONGER = SchedulerSettings(qos=(replace(DEFAULT_QOS[0], walltime_ms=4 * HOUR_MS), *DEFAULT_QOS[1:]))
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Standard(NamedTuple):
    """The pool and the week of all tables but the first."""

    gpus: int
    seed: int

    @property
    def week(self) -> Trace:
        """The week in which this pool is needed."""
        return generate("course", self.seed)

    def play(self, week: Trace, delays: Delays | None = None, gpus: int | None = None) -> RunReport:
        """Play a week on this pool, or with another number of GPUs on as many nodes."""
        return simulate(week, divide_gpus(gpus or self.gpus, NODES), None, delays)


class FoundWeek(NamedTuple):
    """The fewest GPUs with which one week is good enough: in its mean, and in each of its hours."""

    in_mean: int
    in_each_hour: int


def row(*cells: object) -> str:
    """Write one row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(*heads: str) -> list[str]:
    """Write the head of a table."""
    return [row(*heads), row(*("---" for _ in heads))]


def percent(part: float) -> str:
    """Write a share."""
    return f"{part:.1%}"


def worst(one: RunReport) -> str:
    """Write the worst hour: what share of its cells started at once, of how many, and when it was."""
    hour = one.worst_hour
    return f"{hour.at_once:.0%} of {hour.cells}, {DAYS[hour.hour // 24 % 7]} {hour.hour % 24}:00" if hour else "-"


def waits(one: RunReport) -> str:
    """Write the mean wait and three quantiles."""
    found = one.waits
    shown = (round(found.mean_ms), found.median_ms, found.p90_ms, found.p99_ms)
    return " · ".join(map(show_duration, shown))


def is_good(one: RunReport) -> bool:
    """Whether enough cells of the week start at once."""
    return one.waits.at_once >= SHARE


def is_good_each_hour(one: RunReport) -> bool:
    """Whether enough cells of each hour do."""
    return one.worst_hour is None or one.worst_hour.at_once >= SHARE


def player(week: Trace, settings: SchedulerSettings | None = None) -> Play:
    """Return what plays a week on any number of GPUs."""
    return lambda gpus: simulate(week, divide_gpus(gpus, NODES), settings)


# The number that the page leads with


def find_week(seed: int) -> FoundWeek:
    """Find how many GPUs one week needs."""
    play = player(generate("course", seed))
    in_mean = find_fewest(play, is_good, MOST, guess=56).gpus
    return FoundWeek(in_mean, find_fewest(play, is_good_each_hour, MOST, guess=in_mean + 12).gpus)


def find_standard(found: Sequence[FoundWeek]) -> tuple[Standard, list[RunReport]]:
    """Choose the pool that is good enough in each week, and the week that needs most; return its run of each week."""
    most = max(one.in_mean for one in found)
    runs = find_fewest_for_all([player(generate("course", seed)) for seed in SEEDS], is_good, MOST, guess=most)
    return Standard(runs[0].gpus, SEEDS[[one.in_mean for one in found].index(most)]), runs


def weeks_table(standard: Standard, found: Sequence[FoundWeek], runs: Sequence[RunReport]) -> list[str]:
    """Write what the pool is in each of the weeks."""
    hours = max(one.in_each_hour for one in found)
    worst_hour = min(one.worst_hour.at_once for one in runs if one.worst_hour is not None)
    answer = (
        f"**{standard.gpus} GPUs** for 500 people: in each of {len(runs)} made-up weeks {SHARE:.0%} of the cells, or "
        f"more, start within a second. In the worst hour of the worst week {worst_hour:.0%} do. Where {SHARE:.0%} are "
        f"to hold in *each* hour with 50 cells or more, it takes **{hours}**."
    )
    lines = [answer, "", *table("week (seed)", "start within 1 s", "waited for no other cell", "worst hour: within 1 s",
                   "99% of waits below", "longest wait", "people of whom a cell waited over 1 min", "start hot",
                   "fewest GPUs for this week alone", "the same, in each hour")]  # fmt: skip
    for seed, one, own in zip(SEEDS, runs, found, strict=True):
        lines.append(
            row(
                seed, percent(one.waits.at_once), percent(one.waited_for_nobody), worst(one),
                show_duration(one.waits.p99_ms), show_duration(one.waits.max_ms), f"{one.people_hindered:.0%}",
                f"{one.started_hot / one.cells:.0%}", own.in_mean, own.in_each_hour,
            )
        )  # fmt: skip
    return lines


# Tables of that pool and that week


def alternatives_table(standard: Standard) -> list[str]:
    """Compare with a GPU for each open notebook, culled or not, and with MIG slices."""
    weeks = [generate("course", seed) for seed in SEEDS]
    runs = [standard.play(week) for week in weeks]
    lines = table(
        "", "GPUs, in the worst of the weeks", "GPU-hours a week, mean", f"{standard.gpus} GPUs are fewer by",
        "what people notice",
    )  # fmt: skip

    def reserve(name: str, notice: str, reserved: Iterable[ReservedGpus], slices: int = 1) -> None:
        reserved = list(reserved)
        most = max(-(-one.most_at_once // slices) for one in reserved)
        hours = fmean(one.gpu_ms for one in reserved) / HOUR_MS / slices
        lost = f"{fmean(one.reopened for one in reserved):.0f}"
        saved = percent(1 - standard.gpus / most) if standard.gpus <= most else "it is more"
        lines.append(row(name, most, f"{hours:.0f}", saved, notice.replace("LOST", lost)))

    reserve("a GPU for each open notebook", "nobody waits", (reserved_gpus(one.notebooks) for one in weeks))
    for cull_ms in CULLED_AFTER_MS:
        reserve(
            f"the same, closed after {show_duration(cull_ms)} in which nothing ran",
            "nobody waits; LOST times a week variables are gone: somebody comes back to a closed notebook",
            (reserved_gpus(one.notebooks, cull_ms) for one in weeks),
        )
    for factor in (1, 2, 7):
        slower = [with_slower_cells(one, factor) for one in weeks]
        speed = "no cell is slower" if factor == 1 else f"each cell takes {factor} times as long"
        for cull_ms in (None, CULLED_AFTER_MS[-1]):
            closed = f", closed after {show_duration(cull_ms)}" if cull_ms else ""
            reserve(
                f"a seventh (MIG, 10 GB) for each open notebook{closed}; {speed}",
                f"nobody waits; {speed}" + ("; LOST times a week variables are gone" if cull_ms else ""),
                (reserved_gpus(one.notebooks, cull_ms) for one in slower),
                SLICES,
            )
    notice = f"{percent(1 - min(one.waits.at_once for one in runs))} of cells wait over a second in the worst week"
    lines.append(row("**Bulletin, a GPU for each cell that runs**", f"**{standard.gpus}**",
                     f"{fmean(one.cell_gpu_hours for one in runs):.0f} for cells, "
                     f"{fmean(one.hot_gpu_hours for one in runs):.0f} hot", "", notice))  # fmt: skip
    for factor in (1, 2):
        slower = with_slower_cells(standard.week, factor)
        found = find_fewest(player(slower, LONGER), is_good, MOST, guess=standard.gpus * factor)
        speed = "no cell is slower" if factor == 1 else f"each takes {factor} times as long"
        lines.append(row(f"Bulletin, a seventh (MIG, 10 GB) for each cell that runs; {speed}",
                         f"{-(-found.gpus // SLICES)} (week {standard.seed})",
                         f"{found.cell_gpu_hours / SLICES:.0f} for cells", "",
                         f"{percent(1 - found.waits.at_once)} of cells wait over a second"))  # fmt: skip
    return lines


#: What may differ, by name: the costs of a cold start and an eviction.
COSTS = (
    ("as on top of this page", Delays()),
    ("executor and CUDA start in 1 s", Delays(start_ms=1000)),
    ("in 3 s", Delays(start_ms=3000)),
    ("variables travel for 0.2 s (100 MB)", Delays(state_ms=200)),
    ("for 2 s (1 GB)", Delays(state_ms=2000)),
    ("for 20 s (10 GB)", Delays(state_ms=20_000)),
    ("model and data are loaded in 2 s", Delays(model_ms=2000)),
    ("in 10 s", Delays(model_ms=10_000)),
    ("in 30 s", Delays(model_ms=30_000)),
    ("a hot session leaves within 2 s", Delays(evict_ms=2000)),
    ("within 10 s", Delays(evict_ms=10_000)),
    ("within 30 s", Delays(evict_ms=30_000)),
    ("all in the middle: 1 + 0.2 + 5 s to start, 2 s to leave", MIDDLE),
    (
        "all high: 3 + 2 + 30 s to start, 30 s to leave",
        Delays(start_ms=3000, state_ms=2000, model_ms=30_000, evict_ms=30_000),
    ),
)


def costs_table(standard: Standard) -> list[str]:
    """Write what the costs of cold starts and evictions make of the result."""
    lines = table("assumed", "start within 1 s", "waited for no other cell", "wait: mean · median · 90% · 99%",
                  "GPU-hours held for cells")  # fmt: skip
    week = standard.week
    for name, delays in COSTS:
        one = standard.play(week, delays)
        lines.append(row(name, percent(one.waits.at_once), percent(one.waited_for_nobody), waits(one),
                         f"{one.cell_gpu_hours:.0f}"))  # fmt: skip
    return lines


HEADS = ("GPUs", "start within 1 s", "worst hour", "wait: mean · median · 90% · 99%", "longest",
         "people of whom a cell waited over 1 min")  # fmt: skip


def quality(one: RunReport) -> tuple[str, ...]:
    """Write one run under `HEADS`."""
    return (str(one.gpus), percent(one.waits.at_once), worst(one), waits(one), show_duration(one.waits.max_ms),
            f"{one.people_hindered:.0%}")  # fmt: skip


def long_table(standard: Standard) -> list[str]:
    """Write what cells of an hour do."""
    lines = table("cells of an hour", *HEADS, "cells cut at their walltime")
    for share in (0.02, 0.05, 0.1):
        long = partial_long(standard.week, share)
        longer = player(long("interactive", 2 * HOUR_MS), LONGER)
        for name, one in (
            ("as interactive ones, which may run for 2 h", longer(standard.gpus)),
            ("the same, with as many GPUs as hold 90%", find_fewest(longer, is_good, MOST, guess=standard.gpus * 2)),
            ("in the QoS `batch`", standard.play(long("batch", 2 * HOUR_MS))),
            ("in `interactive` as it is: cut after 30 min", standard.play(long("interactive", None))),
        ):
            lines.append(row(f"{share:.0%}, {name}", *quality(one), one.cut_at_walltime))
    return lines


def partial_long(week: Trace, share: float) -> Callable[[str, int | None], Trace]:
    """Return what makes a week with so many cells of an hour, in a QoS and with a walltime."""
    return lambda qos, walltime_ms: with_long_cells(week, share, HOUR_MS, walltime_ms, qos)


def deadline_table(standard: Standard) -> list[str]:
    """Write what becomes of a night in which all homework is done in the last two hours."""
    week = generate("deadline", standard.seed)
    play = player(week)
    best = find_fewest(play, is_good, MOST, guess=150)
    lines = [f"{reserved_gpus(week.notebooks).most_notebooks} notebooks are open at the worst moment.", ""]
    lines += table("", *HEADS)
    for gpus in sorted({standard.gpus, 80, 100, 120, best.gpus}):
        name = {standard.gpus: "the pool of this page", best.gpus: "holds 90%"}.get(gpus, "")
        lines.append(row(name, *quality(best if gpus == best.gpus else play(gpus))))
    return lines


def lost_node_table(standard: Standard) -> list[str]:
    """Write what the loss of a node does on Sunday evening."""
    week = standard.week
    lines = table("the largest node is lost on Sunday at 20:00", "GPUs lost", "cells lost",
                  "of the cells submitted from 20:00 to 22:00 start within 1 s", "their wait: 99%, longest",
                  "start within 1 s, whole week")  # fmt: skip
    at_ms = SUNDAY_20 * HOUR_MS
    for name, faults in (
        ("not lost", []),
        ("back after 10 min", [NodeFault(0, at_ms, at_ms + 10 * MINUTE_MS)]),
        ("back after 2 h", [NodeFault(0, at_ms, at_ms + 2 * HOUR_MS)]),
        ("not back", [NodeFault(0, at_ms)]),
    ):
        pool = SimulatedPool(week, divide_gpus(standard.gpus, NODES), faults=faults)
        pool.run()
        evening = [one for one in pool.played if at_ms <= one.submitted_ms < at_ms + 2 * HOUR_MS]
        then, one = wait_statistics(evening), report(pool)
        lines.append(row(name, pool.nodes.sizes[0] if faults else 0, one.lost, percent(then.at_once),
                         f"{show_duration(then.p99_ms)}, {show_duration(then.max_ms)}",
                         percent(one.waits.at_once)))  # fmt: skip
    return lines


def people_table(standard: Standard) -> list[str]:
    """Write what other people would do to the result."""
    lines = table("", *HEADS)
    for name, week in (
        ("as on top of this page", standard.week),
        ("each cell takes 10 s longer", with_added_time(standard.week, 10 * SECOND_MS)),
        ("each cell takes twice as long", with_slower_cells(standard.week, 2)),
        ("people think half as long between cells", with_shorter_pauses(standard.week, 0.5)),
        ("600 people", generate("course", standard.seed, 600)),
    ):
        lines.append(row(name, *quality(simulate(week, divide_gpus(standard.gpus, NODES), LONGER))))
    return lines


def mix_table(standard: Standard) -> list[str]:
    """Write how many GPUs a course and two groups need."""
    week = generate("mix", standard.seed)
    one = find_fewest(player(week), is_good, MOST, guess=standard.gpus + 12)
    lines = table(*HEADS, "GPUs of one per notebook", "GPU-hours: for cells, of one per notebook")
    lines.append(row(*quality(one), one.reserved_gpus, f"{one.cell_gpu_hours:.0f} of {one.reserved_gpu_hours:.0f}"))
    return lines


# Experiments: what the pool might do


def reserve_table(standard: Standard) -> list[str]:
    """Write what a warm reserve brings: GPUs that are kept free, hot sessions leaving before anybody asks."""
    lines = table("a hot session leaves within", "kept free", "start hot", "start within 1 s",
                  "wait: mean · median · 90% · 99%", "evictions")  # fmt: skip
    for evict_ms in (MIDDLE.evict_ms, 10 * SECOND_MS):
        delays = replace(MIDDLE, evict_ms=evict_ms)
        for kept in (0, 1, 2, 4, 8):
            one = simulate(standard.week, divide_gpus(standard.gpus, NODES), None, delays,
                           policies=Policies(reserve=kept))  # fmt: skip
            lines.append(row(show_duration(evict_ms), kept, percent(one.started_hot / one.cells),
                             percent(one.waits.at_once), waits(one), one.evictions))  # fmt: skip
    return lines


def keep_table(_: Standard) -> list[str]:
    """Write what a keep time brings to a class that is guaranteed the GPUs a lab borrows, over eight lessons."""
    gpus = 16
    lines = table("keep time", "class: wait mean · median · 90% · 99%", "class: start within 1 s", "class: start hot",
                  "lab's cells ended for the class, a lesson", "lab's cells begun until 11:00",
                  "GPUs that ran cells, 10:00 to 11:00")  # fmt: skip
    for keep_ms in (0, 30 * SECOND_MS, MINUTE_MS, 2 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS):
        course = Project(id=ProjectId("class"), guaranteed_milli=gpus * 1000, keep_hot_ms=keep_ms)
        settings = SchedulerSettings(projects=(course,))
        lessons = [SimulatedPool(generate("lesson", seed), divide_gpus(gpus, 2), settings) for seed in SEEDS]
        for one in lessons:
            one.run()
        played = [cell for one in lessons for cell in one.played]
        students = [cell for cell in played if cell.project == "class"]
        begun = sum(cell.project == "lab" and 0 < (cell.started_ms or 0) < 11 * HOUR_MS for cell in played)
        found = wait_statistics(students)
        shown = (round(found.mean_ms), found.median_ms, found.p90_ms, found.p99_ms)
        in_use = fmean(level for one in lessons for level in one.nodes.busy.means()[20:22])
        lines.append(row(show_duration(keep_ms), " · ".join(map(show_duration, shown)), percent(found.at_once),
                         percent(sum(cell.was_hot for cell in students) / len(students)),
                         f"{fmean(one.nodes.reclaims for one in lessons):.0f}", f"{begun / len(lessons):.0f}",
                         f"{in_use:.1f} of {gpus}"))  # fmt: skip
    return lines


def residents_table(standard: Standard) -> list[str]:
    """Write what it brings if sessions leave their memory on a GPU while another one runs there."""
    lines = table("sessions on a GPU", "nodes", "memory was there", "start within 1 s",
                  "wait: mean · median · 90% · 99%")  # fmt: skip
    for nodes in (NODES, 1):
        for residents in (0, 1, 2, 4, 8):
            one = simulate(standard.week, divide_gpus(standard.gpus, nodes), None, MIDDLE,
                           policies=Policies(residents=residents))  # fmt: skip
            lines.append(row(residents or "1, gone with its lease (now)", nodes, percent(one.started_warm / one.cells),
                             percent(one.waits.at_once), waits(one)))  # fmt: skip
    return lines


#: All but the one with which the pool is found.
TABLES: dict[str, Callable[[Standard], list[str]]] = {
    "alternatives": alternatives_table,
    "costs": costs_table,
    "long": long_table,
    "deadline": deadline_table,
    "lost-node": lost_node_table,
    "people": people_table,
    "mix": mix_table,
    "reserve": reserve_table,
    "keep": keep_table,
    "residents": residents_table,
}
