"""A trace in the numbers that studies of notebook clusters publish, as if nobody ever waited."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_high

from bulletin.units import MINUTE_MS
from gpu_worker.simulator.reservations import reserved_gpus
from gpu_worker.simulator.traces import TraceNotebook

#: A longer pause between two cells is not part of one burst of work.
BURST_GAP_MS = 20 * MINUTE_MS


@dataclass(frozen=True)
class TraceStatistics:
    """Lengths, gaps and idleness of notebooks."""

    median_run_ms: int
    share_under_2_min: float
    share_under_5_min: float
    longest_run_ms: int
    median_gap_ms: int  #: between a cell's end and the next submission, within a burst of work
    used_gpu_ms: int  #: by cells
    idle_share: float  #: what part of the reserved GPU time no cell would use


def statistics_of(notebooks: Sequence[TraceNotebook]) -> TraceStatistics:
    """Count what notebooks with at least one gap within a burst do."""
    runs = [cell.run_ms for notebook in notebooks for cell in notebook.cells]
    pauses = [cell.think_ms for notebook in notebooks for cell in notebook.cells[:-1]]
    used = sum(cell.run_ms * cell.gpus for notebook in notebooks for cell in notebook.cells)
    return TraceStatistics(
        median_run_ms=median_high(runs),
        share_under_2_min=sum(run_ms < 2 * MINUTE_MS for run_ms in runs) / len(runs),
        share_under_5_min=sum(run_ms < 5 * MINUTE_MS for run_ms in runs) / len(runs),
        longest_run_ms=max(runs),
        median_gap_ms=median_high([pause_ms for pause_ms in pauses if pause_ms <= BURST_GAP_MS]),
        used_gpu_ms=used,
        idle_share=1 - used / reserved_gpus(notebooks).gpu_ms,
    )
