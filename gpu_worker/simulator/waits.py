"""How long the cells of a simulated run waited: all of them, those of the worst hour, and from a person's side."""

import math
from collections.abc import Iterable, Sequence

import msgspec

from bulletin.units import HOUR_MS, MINUTE_MS
from gpu_worker.simulator.played_cells import PlayedCell

#: A cell that waits no longer than this starts at once.
AT_ONCE_MS = 1_000
#: The upper edges of the histogram of waits; the last bin has none.
EDGES_MS = (1_000, 3_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000)
#: An hour in which fewer cells were submitted says nothing of a pool.
CELLS_OF_AN_HOUR = 50
#: Who has waited longer than this once has noticed the pool.
NOTICED_MS = MINUTE_MS


class WaitStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How long cells waited, from their submission to their first line of code."""

    cells: int  #: submitted
    at_once: float  #: the share of them that began within a second; one that never began did not
    mean_ms: float  #: this and the others are of those that began
    median_ms: int
    p90_ms: int  #: no more than one cell in ten waited longer
    p99_ms: int
    max_ms: int


class HourOfWaits(msgspec.Struct, frozen=True, kw_only=True):
    """The hour of a run in which the smallest share of cells started at once."""

    hour: int  #: of the trace, from 0
    cells: int  #: submitted in it
    at_once: float
    waited_for_nobody: float


def wait_statistics(played: Sequence[PlayedCell]) -> WaitStatistics:
    """Work out how long these cells waited."""
    waits = sorted(one.wait_ms for one in played if one.wait_ms is not None)

    def quantile(percent: int) -> int:
        """Find the smallest wait that so many percent of all do not exceed (nearest rank); 0 without any."""
        rank = math.ceil(len(waits) * percent / 100)
        return waits[rank - 1] if waits else 0

    return WaitStatistics(
        cells=len(played),
        at_once=share_within(played, AT_ONCE_MS),
        mean_ms=sum(waits) / max(1, len(waits)),
        median_ms=quantile(50),
        p90_ms=quantile(90),
        p99_ms=quantile(99),
        max_ms=quantile(100),
    )


def share_within(played: Sequence[PlayedCell], limit_ms: int) -> float:
    """Compute the share of cells that waited no longer than this; one that never began waited longer."""
    return sum(one.wait_ms is not None and one.wait_ms <= limit_ms for one in played) / max(1, len(played))


def find_worst_hour(
    played: Iterable[PlayedCell], unhindered_ms: int, least_cells: int = CELLS_OF_AN_HOUR
) -> HourOfWaits | None:
    """Find the hour in which the smallest share of the cells that were submitted in it started at once.

    Of hours alike the first. Hours with fewer cells than `least_cells` are left out; None where there is no other.
    `unhindered_ms` is the longest wait of a cell that waits for no other one.
    """
    by_hour: dict[int, list[PlayedCell]] = {}
    for one in played:
        by_hour.setdefault(one.submitted_ms // HOUR_MS, []).append(one)
    hours = [
        HourOfWaits(
            hour=hour,
            cells=len(cells),
            at_once=share_within(cells, AT_ONCE_MS),
            waited_for_nobody=share_within(cells, unhindered_ms),
        )
        for hour, cells in sorted(by_hour.items())
        if len(cells) >= least_cells
    ]
    return min(hours, key=lambda hour: hour.at_once, default=None)


def share_of_people(played: Iterable[PlayedCell], limit_ms: int = NOTICED_MS) -> float:
    """Compute the share of users of whom at least one cell waited longer than this, or never began."""
    hindered: dict[str, bool] = {}
    for one in played:
        is_late = one.wait_ms is None or one.wait_ms > limit_ms
        hindered[one.user] = hindered.get(one.user, False) or is_late
    return sum(hindered.values()) / max(1, len(hindered))


def passed_by(played: Sequence[PlayedCell]) -> int:
    """Count the requests that were submitted after the one that waited longest, and began before it."""
    longest = max((one for one in played if one.wait_ms is not None), key=lambda one: one.wait_ms or 0, default=None)
    if longest is None or longest.started_ms is None:
        return 0
    return sum(
        one.started_ms is not None
        and one.started_ms < longest.started_ms
        and one.submitted_ms > longest.submitted_ms
        and not one.was_hot
        for one in played
    )


def histogram(played: Iterable[PlayedCell]) -> tuple[int, ...]:
    """Count the cells that began by their wait, between `EDGES_MS`; one bin more than those."""
    counts = [0] * (len(EDGES_MS) + 1)
    for wait_ms in (one.wait_ms for one in played if one.wait_ms is not None):
        counts[next((at for at, edge_ms in enumerate(EDGES_MS) if wait_ms <= edge_ms), len(EDGES_MS))] += 1
    return tuple(counts)
