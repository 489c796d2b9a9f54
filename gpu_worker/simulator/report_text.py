"""Reports for a terminal: a table, runs side by side, and plots made of letters."""

import math
from collections.abc import Callable, Sequence

from bulletin.units import show_duration
from gpu_worker.simulator.run_report import CULLED_AFTER_MS, RunReport
from gpu_worker.simulator.waits import EDGES_MS, WaitStatistics

_BARS = " ▁▂▃▄▅▆▇█"
_PARTS_OF_A_BAR: tuple[str, ...] = ("", *"▏▎▍▌▋▊▉")  # by how many eighths of a letter
_WIDTH = 50  # of a histogram's longest bar
_HEIGHT = 8  # of a curve
_COLUMNS = 112  # of a curve at most
_HALF_HOURS_A_DAY = 48


def table(names: Sequence[str], reports: Sequence[RunReport]) -> list[str]:
    """Return the lines of the table: each number is a line, each report a column."""
    rows: list[tuple[str, list[str]]] = []

    def row(label: str, show: Callable[[RunReport], str]) -> None:
        rows.append((label, [show(one) for one in reports]))

    row("GPUs, nodes", lambda one: f"{one.gpus}, {one.nodes}")
    row("cells", lambda one: f"{one.cells}")
    row("  returned", lambda one: f"{one.returned}")
    for label, field in (
        ("  cut at their walltime", "cut_at_walltime"),
        ("  refused", "refused"),
        ("  lost with their node", "lost"),
        ("  still waiting", "still_waiting"),
        ("  still running", "still_running"),
    ):
        if any(getattr(one, field) for one in reports):
            row(label, lambda one, field=field: str(getattr(one, field)))  # type: ignore[misc]
    row("started at once (1 s)", lambda one: f"{one.waits.at_once:.1%}")
    row("waited for no other cell", lambda one: f"{one.waited_for_nobody:.1%}")
    row("started hot, without a request", lambda one: f"{one.started_hot / max(1, one.cells):.1%}")
    row("worst hour: at once, of cells", _worst_hour)
    row("wait: mean", lambda one: show_duration(round(one.waits.mean_ms)))
    row("  median", lambda one: show_duration(one.waits.median_ms))
    row("  90%, 99% of cells", lambda one: f"{show_duration(one.waits.p90_ms)}, {show_duration(one.waits.p99_ms)}")
    row("  longest", lambda one: show_duration(one.waits.max_ms))
    row("    passed by later requests", lambda one: f"{one.longest_passed_by}")
    row("people who waited over 1 min", lambda one: f"{one.people_hindered:.1%}")
    projects = sorted({project for one in reports for project in one.waits_by_project})
    for project in projects if len(projects) > 1 else ():
        row(f"  {project}: at once, 90%", lambda one, project=project: _by_project(one, project))  # type: ignore[misc]
    row("GPU-hours held for cells", lambda one: f"{one.cell_gpu_hours:.0f}")
    row("  held by hot sessions", lambda one: f"{one.hot_gpu_hours:.0f}")
    row("  one GPU per open notebook", lambda one: f"{one.reserved_gpu_hours:.0f}")
    row("  saved against that", lambda one: f"{one.saved_hours:.1%}")
    row("  saved if hot ones count too", lambda one: f"{one.saved_hours_strictly:.1%}")
    row("GPUs for one per notebook", lambda one: f"{one.reserved_gpus}")
    row("  saved against that", lambda one: f"{one.saved_gpus:.1%}")
    for at in range(len(CULLED_AFTER_MS)):
        label = f"  closed when idle for {show_duration(CULLED_AFTER_MS[at])}"
        row(label, lambda one, at=at: f"{one.culled[at].gpus}, {one.culled[at].reopened} lost variables")  # type: ignore[misc]
    row("utilization", lambda one: f"{one.utilization:.1%} of {one.hours:.0f} h")
    row("evictions of hot sessions", lambda one: f"{one.evictions}")
    row("reclaims of running cells", lambda one: f"{one.reclaims}")
    row("progress: Jain, users", lambda one: f"{one.jain_users:.4f}")
    row("  Jain, projects", lambda one: f"{one.jain_projects:.4f}")
    row("  the user who fared worst", lambda one: f"{one.least_progress:.1%}")
    if len(reports) > 1:
        rows.insert(0, ("", list(names)))
    label_width = max(len(label) for label, _ in rows)
    widths = [max(len(values[at]) for _, values in rows) for at in range(len(reports))]
    cells = [[label.ljust(label_width), *map(str.rjust, values, widths)] for label, values in rows]
    return ["  ".join(line) for line in cells]


def _worst_hour(one: RunReport) -> str:
    worst = one.worst_hour
    return f"{worst.at_once:.1%} of {worst.cells}, day {worst.hour // 24 + 1} {worst.hour % 24}:00" if worst else "-"


def _by_project(one: RunReport, project: str) -> str:
    waits: WaitStatistics | None = one.waits_by_project.get(project)
    return f"{waits.at_once:.1%}, {show_duration(waits.p90_ms)}" if waits else "no cells"


def histogram(one: RunReport) -> list[str]:
    """Draw how many cells waited how long, one bar a line."""
    names = [f"up to {show_duration(edge_ms)}" for edge_ms in EDGES_MS]
    names.append(f"over {show_duration(EDGES_MS[-1])}")
    most = max(1, *one.histogram)
    width = max(map(len, names))
    rows = zip(names, one.histogram, strict=True)
    return [f"{name.rjust(width)} {_bar(cells, most)} {cells}" for name, cells in rows]


def _bar(number: int, most: int) -> str:
    """Draw a bar as long as the number asks for, in eighths of a letter; what is not 0 has at least one of them."""
    eighths = number * _WIDTH * 8 // most
    if number and not eighths:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return "█" * full + _PARTS_OF_A_BAR[rest]


def curve(values: Sequence[float], top: float) -> list[str]:
    """Draw half-hourly values over time as columns, from 0 up to `top`; below them the days."""
    each = max(1, math.ceil(len(values) / _COLUMNS))  # values that share a column
    columns = [max(values[at : at + each]) for at in range(0, len(values), each)]
    eighths = [round(value * _HEIGHT * 8 / top) if top else 0 for value in columns]
    width = len(f"{top:.0f}")
    lines = []
    for level in reversed(range(_HEIGHT)):
        label = f"{top:.0f}" if level == _HEIGHT - 1 else "0" if level == 0 else ""
        lines.append(f"{label:>{width}} " + "".join(_BARS[min(8, max(0, one - level * 8))] for one in eighths).rstrip())
    days = "".join(
        f"day {at * each // _HALF_HOURS_A_DAY + 1}".ljust(max(6, _HALF_HOURS_A_DAY // each))
        for at in range(0, len(columns), max(6, _HALF_HOURS_A_DAY // each))
    )
    lines.append(" " * (width + 1) + days.rstrip())
    return lines


def pages(names: Sequence[str], reports: Sequence[RunReport]) -> list[str]:
    """Return the whole text of some runs as lines: the table of all, then the plots of each."""
    lines = table(names, reports)
    for name, one in zip(names, reports, strict=True):
        of = f", {name}" if len(reports) > 1 else ""
        lines += ["", f"cells by their wait{of}", *histogram(one)]
        lines += ["", f"GPUs that run cells{of}", *curve(one.gpus_in_use, one.gpus)]
        most = max(one.requests_waiting, default=0)
        if most >= 1:
            lines += ["", f"requests that wait{of}", *curve(one.requests_waiting, most)]
    return lines
