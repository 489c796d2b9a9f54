"""The same week under another assumption: longer cells, slower ones, shorter pauses. A trace in, a trace out."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from gpu_worker.simulator.traces import Trace, TraceCell


def with_long_cells(trace: Trace, share: float, run_ms: int, walltime_ms: int | None, qos: str) -> Trace:
    """Let this share of the cells run for so long, in this QoS, and ask for this walltime (None: all it gives).

    The same cells of a trace each time.
    """
    draws = Random(0)

    def vary(cell: TraceCell) -> TraceCell:
        return replace(cell, run_ms=run_ms, walltime_ms=walltime_ms, qos=qos) if draws.random() < share else cell

    return _with_cells(trace, vary)


def with_slower_cells(trace: Trace, factor: float) -> Trace:
    """Let each cell take so many times as long, as on a slice of a GPU."""
    return _with_cells(trace, lambda cell: replace(cell, run_ms=round(cell.run_ms * factor)))


def with_added_time(trace: Trace, added_ms: int) -> Trace:
    """Let each cell take so much longer."""
    return _with_cells(trace, lambda cell: replace(cell, run_ms=cell.run_ms + added_ms))


def with_shorter_pauses(trace: Trace, factor: float) -> Trace:
    """Let people think for only this part of the time between their cells; after the last, as long as they did."""
    notebooks = [
        replace(
            notebook,
            cells=(
                *(replace(cell, think_ms=round(cell.think_ms * factor)) for cell in notebook.cells[:-1]),
                *notebook.cells[-1:],
            ),
        )
        for notebook in trace.notebooks
    ]
    return Trace(trace.origin, tuple(notebooks))


def _with_cells(trace: Trace, vary: Callable[[TraceCell], TraceCell]) -> Trace:
    notebooks = [replace(notebook, cells=tuple(map(vary, notebook.cells))) for notebook in trace.notebooks]
    return Trace(trace.origin, tuple(notebooks))
