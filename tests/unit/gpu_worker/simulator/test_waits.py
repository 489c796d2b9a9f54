"""How long cells waited: the worst hour, and people."""

from bulletin.units import HOUR_MS, MINUTE_MS
from gpu_worker.simulator.played_cells import PlayedCell
from gpu_worker.simulator.waits import HourOfWaits, find_worst_hour, histogram, share_of_people, wait_statistics


def cell(submitted_ms: int, wait_ms: int | None, user: str = "ann") -> PlayedCell:
    started_ms = None if wait_ms is None else submitted_ms + wait_ms
    return PlayedCell(f"c{submitted_ms}", user, "ml", "interactive", 1, submitted_ms, started_ms)  # type: ignore[arg-type]


def test_the_worst_hour_is_that_in_which_the_smallest_share_of_cells_starts_at_once() -> None:
    good = [cell(at, 200) for at in range(10)]
    bad = [cell(2 * HOUR_MS + at, wait_ms) for at, wait_ms in enumerate([200, 700, 1_500, 3_000, None])]
    assert find_worst_hour([*good, *bad], unhindered_ms=1_500, least_cells=5) == HourOfWaits(
        hour=2, cells=5, at_once=0.4, waited_for_nobody=0.6
    )


def test_hours_with_few_cells_say_nothing() -> None:
    few = [cell(at, MINUTE_MS) for at in range(49)]
    assert find_worst_hour(few, 700) is None
    enough = find_worst_hour([*few, cell(49, 0)], 700)
    assert enough is not None
    assert enough.at_once == 0.02


def test_who_waited_for_over_a_minute_once_is_counted_once_and_so_is_who_never_began() -> None:
    played = [
        cell(0, 0, "ann"),
        cell(1, MINUTE_MS + 1, "ann"),
        cell(2, 2 * MINUTE_MS, "ann"),
        cell(3, MINUTE_MS, "bob"),
        cell(4, None, "eve"),
        cell(5, 0, "dan"),
    ]
    assert share_of_people(played) == 0.5
    assert share_of_people([]) == 0


def test_statistics_of_waits_are_nearest_ranks_of_those_that_began() -> None:
    played = [*(cell(at, at * 100) for at in range(1, 101)), cell(101, None)]
    found = wait_statistics(played)
    assert (found.cells, found.median_ms, found.p90_ms, found.p99_ms, found.max_ms) == (101, 5000, 9000, 9900, 10_000)
    assert found.mean_ms == 5050
    assert found.at_once == 10 / 101
    assert sum(histogram(played)) == 100
