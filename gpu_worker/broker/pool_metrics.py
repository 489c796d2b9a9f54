"""What the pool has done since its broker was started, counted for Prometheus: by project and class of service.

What a client can make more of is bounded: of pairs of project and class so many are told apart, the others are one.
"""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from bulletin.codes import RefusalCode
from bulletin.ids import ProjectId
from gpu_worker.broker.records import CellRecord, HotRecord, Record
from gpu_worker.scheduler.policy.projects import GPU_MILLI

#: So many pairs of project and class of service are told apart.
MOST_PAIRS = 200
#: What the others are called.
OTHERS = "(others)"
_LABELS = ("project", "qos")
#: In seconds: from a slot that was free to a cell that waited overnight.
_BUCKETS = (1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 43200)


class PoolMetrics:
    """Counters of one broker. They begin at zero with it, as Prometheus expects."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._pairs: set[tuple[str, str]] = set()
        ProcessCollector(namespace="bulletin_broker", registry=self._registry)
        self._waits = Histogram(
            "bulletin_wait_seconds",
            "How long requests waited that were granted.",
            _LABELS,
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._cells = self._count("cells", "Cells that ended, by how they ended.", (*_LABELS, "outcome"))
        self._ran = self._count("cell_run_seconds", "For how long cells ran.")
        self._held = self._count("slot_seconds", "Slots held by cells, times how long: GPU time where these are GPUs.")
        self._busy = self._count("slot_busy_seconds", "Of the slots held by cells, times how long, what was computing.")
        self._measured = self._count("slot_measured_seconds", "Of the slots held, those whose use was measured.")
        self._borrowed = self._count("slot_borrowed_seconds", "Of the slots held, what no guarantee covered.")
        self._refunded = self._count("slot_refunded_seconds", "Of the slots held, what a reclaim made worthless.")
        self._hot = self._count("slot_hot_seconds", "Slots kept ready between cells, times how long.")
        self._sent = self._count("cell_sent_bytes", "Bytes of variables that went to cells.")
        self._returned = self._count("cell_returned_bytes", "Bytes of variables that came back from cells.")
        self._refusals = self._count("refusals", "Requests and connections that were refused, by why.", ("code",))

    def show(self, now: Collector) -> None:
        """Show, beside what is counted, what this tells of the moment when it is asked."""
        self._registry.register(now)

    def _count(self, name: str, text: str, labels: Iterable[str] = _LABELS) -> Counter:
        return Counter(f"bulletin_{name}", text, tuple(labels), registry=self._registry)

    def note_wait(self, project: ProjectId, qos: str, waited_ms: int) -> None:
        """Count a request that was granted after so long."""
        self._waits.labels(*self._pair(project, qos)).observe(max(0, waited_ms) / 1000)

    def note_refusal(self, code: RefusalCode) -> None:
        """Count a refusal of whatever kind."""
        self._refusals.labels(code.value).inc()

    def note_records(self, records: Iterable[Record]) -> None:
        """Count what goes to the ledger, each fact the first time that it is told."""
        for record in records:
            match record:
                case CellRecord():
                    self._note_cell(record)
                case HotRecord():
                    pair = self._pair(record.project, record.qos)
                    slot_ms = record.slots_milli * (record.ended_at_ms - record.started_at_ms) / GPU_MILLI
                    self._hot.labels(*pair).inc(max(0.0, slot_ms / 1000))
                case _:
                    pass

    def _note_cell(self, cell: CellRecord) -> None:
        pair, slots = self._pair(cell.project, cell.qos), cell.slots_milli / GPU_MILLI
        self._cells.labels(*pair, cell.outcome.value).inc(cell.runs)
        self._ran.labels(*pair).inc(max(0, cell.ran_ms) / 1000)
        self._held.labels(*pair).inc(slots * cell.held_ms / 1000)
        self._borrowed.labels(*pair).inc(slots * cell.borrowed_ms / 1000)
        self._refunded.labels(*pair).inc(slots * cell.refunded_ms / 1000)
        self._sent.labels(*pair).inc(max(0, cell.bytes_sent))
        self._returned.labels(*pair).inc(max(0, cell.bytes_returned))
        if cell.mean_utilization is not None:
            held_s = slots * cell.held_ms / 1000
            self._measured.labels(*pair).inc(held_s)
            self._busy.labels(*pair).inc(held_s * min(1.0, max(0.0, cell.mean_utilization)))

    def _pair(self, project: str, qos: str) -> tuple[str, str]:
        """Return the labels of a pair, and remember it, where there is room for another."""
        pair = (project, qos)
        if pair not in self._pairs:
            if len(self._pairs) >= MOST_PAIRS:
                return OTHERS, OTHERS
            self._pairs.add(pair)
        return pair

    def text(self) -> str:
        """Write everything as Prometheus reads it (text format, version 0.0.4)."""
        return generate_latest(self._registry).decode()
