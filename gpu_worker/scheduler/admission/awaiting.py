"""A pool that is started again waits for the nodes that it had: what it knows of it until they are back."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpu_worker.scheduler.events import NodesAwaited, OwnNodesAwaited
from gpu_worker.scheduler.state import State


def await_nodes(state: State, event: NodesAwaited | OwnNodesAwaited) -> None:
    """Wait for these nodes, and give nobody who asks for a GPU a CPU slot where one of the pool's had a GPU."""
    if isinstance(event, OwnNodesAwaited):
        state.own_nodes.expect(event.owners, event.until_ms)
        return
    with _counting_anew(state):
        state.slot_catalog.awaited.expect(event.nodes, event.until_ms, has_gpus=event.has_gpus)


def pop_awaited(state: State, now_ms: int) -> bool:
    """Wait no longer if all are back, or the time is over; tell whether that is since now."""
    with _counting_anew(state):
        return state.slot_catalog.awaited.pop_over(now_ms)


@contextmanager
def _counting_anew(state: State) -> Iterator[None]:
    had_gpus = state.slot_catalog.has_gpus
    yield
    if state.slot_catalog.has_gpus != had_gpus:
        state.count_anew(costs=True, shapes=True)
