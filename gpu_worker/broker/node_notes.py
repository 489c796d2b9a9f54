"""Which nodes a pool has, noted in the ledger: a broker that is started again knows whom to wait for. Pure."""

from collections.abc import Iterator

from bulletin.units import DAY_MS
from gpu_worker.broker.records import LedgerEvent
from gpu_worker.scheduler.events import NodesAwaited
from gpu_worker.scheduler.state import State

#: Ids of such events begin so. The rest is a time, of fixed length.
NODES = "nodes-there/"
#: For so long a node may come back before what only that one could run is refused: a host takes some minutes to start.
AWAITED_MS = 300_000


class NodeNotes:
    """Remembers what is noted."""

    def __init__(self) -> None:
        self._noted: tuple[str, ...] | None = None  #: None: nothing yet, by this broker
        self._noted_ms = 0

    def take(self, state: State, now_ms: int) -> list[LedgerEvent]:
        """Return what is to be noted now: the nodes that are there or awaited, where they are others than before.

        Said again each day, so that it is young when what is old is forgotten.
        """
        there = tuple(sorted({*(node.name for node in state.nodes.values()), *state.slot_catalog.awaited.names}))
        if there == self._noted and (not there or now_ms - self._noted_ms < DAY_MS):
            return []
        self._noted, self._noted_ms = there, now_ms
        payload = {"nodes": list(there)}
        return [LedgerEvent(id=f"{NODES}{now_ms:015}", kind="nodes-there", payload=payload, at_ms=now_ms)]


def awaited(last: LedgerEvent | None, now_ms: int) -> Iterator[NodesAwaited]:
    """Make a fact of what was noted last: those nodes may come back now. Nothing where there were none."""
    if last is not None and last.payload["nodes"]:
        yield NodesAwaited(tuple(last.payload["nodes"]), now_ms + AWAITED_MS)
