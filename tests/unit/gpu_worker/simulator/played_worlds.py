"""Small worlds made by hand, played to their end."""

from gpu_worker.simulator.simulated_nodes import Delays
from gpu_worker.simulator.simulated_pool import SimulatedPool
from gpu_worker.simulator.traces import Trace, TraceCell, TraceNotebook, TraceOrigin

SECOND = 1000
MINUTE = 60 * SECOND
DELAYS = Delays(start_ms=200, hot_ms=5, evict_ms=500)


def notebook(session: str, opened_ms: int, *cells: TraceCell) -> TraceNotebook:
    return TraceNotebook(session, f"user-{session}", "ml", opened_ms, 0, cells)  # type: ignore[arg-type]


def play(*notebooks: TraceNotebook, sizes: tuple[int, ...] = (1,)) -> SimulatedPool:
    world = SimulatedPool(Trace(TraceOrigin(made_by="hand"), notebooks), sizes, None, DELAYS)
    world.run()
    return world


def times(world: SimulatedPool) -> dict[str, tuple[int, int | None, int | None, str | None]]:
    return {one.cell: (one.submitted_ms, one.started_ms, one.ended_ms, one.end) for one in world.played}
