"""The same week under other assumptions, and what its notebooks would reserve if idle ones were closed."""

import pytest

from gpu_worker.simulator.reservations import ReservedGpus, reserved_gpus
from gpu_worker.simulator.traces import MINUTE_MS, Trace, TraceCell, TraceNotebook, TraceOrigin
from gpu_worker.simulator.variations import with_added_time, with_long_cells, with_shorter_pauses, with_slower_cells
from gpu_worker.simulator.workloads import generate


def notebook(session: str, opened_ms: int, *cells: TraceCell, first_ms: int = 0) -> TraceNotebook:
    return TraceNotebook(session, "ann", "ml", opened_ms, first_ms, cells)  # type: ignore[arg-type]


def cells_of(trace: Trace) -> list[TraceCell]:
    return [cell for one in trace.notebooks for cell in one.cells]


def test_an_idle_notebook_that_is_closed_holds_its_gpu_until_then_and_again_from_its_next_cell() -> None:
    one = notebook(
        "a",
        0,
        TraceCell(10 * MINUTE_MS, 5 * MINUTE_MS),  # from 2 to 12, then a short pause
        TraceCell(10 * MINUTE_MS, 40 * MINUTE_MS),  # from 17 to 27: closed at 47, opened again at 67
        TraceCell(MINUTE_MS, 60 * MINUTE_MS),  # until 68: closed at 88
        first_ms=2 * MINUTE_MS,
    )
    assert reserved_gpus([one], 20 * MINUTE_MS) == ReservedGpus(
        gpu_ms=(47 + 21) * MINUTE_MS, most_at_once=1, most_notebooks=1, reopened=1
    )
    assert (
        reserved_gpus([one], 60 * MINUTE_MS)
        == reserved_gpus([one])
        == ReservedGpus(gpu_ms=128 * MINUTE_MS, most_at_once=1, most_notebooks=1)
    )


def test_who_is_closed_makes_room_for_who_opens_then() -> None:
    first = notebook("a", 0, TraceCell(10 * MINUTE_MS, 60 * MINUTE_MS, gpus=2))
    second = notebook("b", 30 * MINUTE_MS, TraceCell(MINUTE_MS, 0))
    assert reserved_gpus([first, second]).most_at_once == 3
    culled = reserved_gpus([first, second], 20 * MINUTE_MS)
    assert (culled.most_at_once, culled.most_notebooks) == (2, 1)


@pytest.mark.parametrize("cull_ms", [60 * MINUTE_MS, 30 * MINUTE_MS, 20 * MINUTE_MS])
def test_closing_idle_notebooks_never_reserves_more(cull_ms: int) -> None:
    notebooks = generate("research", seed=1).notebooks
    all_week, culled = reserved_gpus(notebooks), reserved_gpus(notebooks, cull_ms)
    assert culled.gpu_ms < all_week.gpu_ms
    assert culled.most_at_once <= all_week.most_at_once
    assert culled.reopened > 0  # a researcher rests for longer between two bursts of work


def test_some_cells_become_long_and_the_same_ones_each_time() -> None:
    week = generate("course", seed=1, people=300)
    longer = with_long_cells(week, 0.05, 60 * MINUTE_MS, 120 * MINUTE_MS, "batch")
    long = [cell for cell in cells_of(longer) if cell.qos == "batch"]
    assert {(cell.run_ms, cell.walltime_ms) for cell in long} == {(60 * MINUTE_MS, 120 * MINUTE_MS)}
    assert len(long) / len(cells_of(week)) == pytest.approx(0.05, abs=0.01)
    assert [cell.think_ms for cell in cells_of(longer)] == [cell.think_ms for cell in cells_of(week)]
    assert longer == with_long_cells(week, 0.05, 60 * MINUTE_MS, 120 * MINUTE_MS, "batch")


def test_cells_become_slower_or_longer_and_pauses_shorter_and_nothing_else_changes() -> None:
    week = Trace(TraceOrigin(made_by="hand"), (notebook("a", 5, TraceCell(100, 40), TraceCell(200, 60)),))
    assert cells_of(with_slower_cells(week, 1.5)) == [TraceCell(150, 40), TraceCell(300, 60)]
    assert cells_of(with_added_time(week, 7)) == [TraceCell(107, 40), TraceCell(207, 60)]
    assert cells_of(with_shorter_pauses(week, 0.5)) == [TraceCell(100, 20), TraceCell(200, 60)]
    assert with_slower_cells(week, 1) == with_added_time(week, 0) == with_shorter_pauses(week, 1) == week
