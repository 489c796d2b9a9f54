"""Which nodes a pool has, noted in the ledger: a broker that is started again knows whom to wait for. Pure."""

from collections.abc import Iterator

from bulletin.units import DAY_MS, HOUR_MS
from gpu_worker.broker.records import LedgerEvent
from gpu_worker.scheduler.events import NodesAwaited
from gpu_worker.scheduler.state import State

#: Ids of such events begin so. The rest is a time, of fixed length.
NODES = "nodes-there/"
#: For so long a node may come back before what only that one could run is refused: a host takes some minutes to start.
AWAITED_MS = 300_000
#: For so long a node that is lost is noted, too: it may be down for a moment just when the broker starts again.
_GONE_MS = HOUR_MS


class NodeNotes:
    """Remembers what is noted."""

    def __init__(self) -> None:
        self._noted: dict[str, object] | None = None  #: None: nothing yet, by this broker
        self._noted_ms = 0
        self._seen_ms: dict[str, int] = {}  #: when each node was there last, or awaited

    def forget(self, name: str) -> None:
        """Note no longer a node that is gone for certain: its engine has ended it, or an admin has removed it."""
        self._seen_ms.pop(name, None)

    def take(self, state: State, now_ms: int) -> list[LedgerEvent]:
        """Return what is to be noted now: the nodes that are there, awaited or lost lately, if others than before.

        Said again each day, so that it is young when what is old is forgotten.
        """
        there = [*(node.name for node in state.nodes.values() if not node.owner), *state.slot_catalog.awaited.names]
        self._seen_ms |= dict.fromkeys(there, now_ms)
        self._seen_ms = {name: at_ms for name, at_ms in self._seen_ms.items() if now_ms - at_ms < _GONE_MS}
        payload: dict[str, object] = {"nodes": sorted(self._seen_ms), "has_gpus": state.slot_catalog.has_gpus}
        if payload == self._noted and (not self._seen_ms or now_ms - self._noted_ms < DAY_MS):
            return []
        self._noted, self._noted_ms = payload, now_ms
        return [LedgerEvent(id=f"{NODES}{now_ms:015}", kind="nodes-there", payload=payload, at_ms=now_ms)]


def awaited(last: LedgerEvent | None, now_ms: int) -> Iterator[NodesAwaited]:
    """Make a fact of what was noted last: those nodes may come back now. Nothing where there were none."""
    if last is not None and last.payload["nodes"]:
        has_gpus = bool(last.payload.get("has_gpus"))  # of a broker that is older than this nobody knows
        yield NodesAwaited(tuple(last.payload["nodes"]), now_ms + AWAITED_MS, has_gpus)
