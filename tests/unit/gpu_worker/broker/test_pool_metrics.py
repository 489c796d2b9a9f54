"""What Prometheus reads of a pool: what was done, what is there now; and that nobody makes it grow."""

import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.ids import CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import console
from gpu_worker.broker.pool_gauges import PoolGauges
from gpu_worker.broker.pool_metrics import MOST_PAIRS, OTHERS, PoolMetrics
from gpu_worker.broker.records import CellRecord, HotRecord, Span
from tests.prometheus import find_program
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, BrokerParts


def read(metrics: PoolMetrics) -> dict[tuple[str, ...], float]:
    """All values, by their names and the values of their labels, in the order of the labels' names."""
    families = text_string_to_metric_families(metrics.text())
    return {
        (one.name, *(one.labels[label] for label in sorted(one.labels))): one.value
        for family in families
        for one in family.samples
    }


def cell(name: str, project: str = "maths", qos: str = "interactive", **fields: object) -> CellRecord:
    given = {
        "cell": CellId(name),
        "lease": LeaseId("l-1"),
        "session": SessionId("s-1"),
        "user": UserName("ann"),
        "project": ProjectId(project),
        "qos": qos,
        "node": "n1",
        "slots": (SlotId("gpu-0"), SlotId("gpu-1")),
        "kind": "gpu",
        "attempt": 0,
        "gpus": 2,
        "started_at_ms": 0,
        "ended_at_ms": 10_000,
        "held_ms": 10_000,
        "ran_ms": 9_000,
        "outcome": CellOutcome.RETURNED,
    }
    return CellRecord(**(given | fields))  # type: ignore[arg-type]


def test_cells_are_counted_with_what_they_held_and_how_busy_that_was() -> None:
    metrics = PoolMetrics()
    spans = (Span(0, 4_000), Span(4_000, 10_000, is_in_quota=False))
    measured = cell("c1", mean_utilization=0.25, bytes_sent=7, bytes_returned=9, spans=spans)
    metrics.note_records([measured, cell("c2", outcome=CellOutcome.RAISED)])
    hot = HotRecord(
        lease=LeaseId("l-1"),
        session=SessionId("s-1"),
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        node="n1",
        slots=(SlotId("gpu-0"),),
        kind="gpu",
        started_at_ms=0,
        ended_at_ms=3_000,
    )
    metrics.note_records([hot])
    values = read(metrics)
    pair = ("maths", "interactive")
    assert values["bulletin_cells_total", "returned", *pair] == 1
    assert values["bulletin_cells_total", "raised", *pair] == 1
    assert values["bulletin_slot_seconds_total", *pair] == 40
    assert values["bulletin_slot_measured_seconds_total", *pair] == 20
    assert values["bulletin_slot_busy_seconds_total", *pair] == 5
    assert values["bulletin_slot_borrowed_seconds_total", *pair] == 12
    assert values["bulletin_slot_hot_seconds_total", *pair] == 3
    assert values["bulletin_cell_sent_bytes_total", *pair] == 7
    assert values["bulletin_cell_returned_bytes_total", *pair] == 9


def test_waits_and_refusals_are_counted() -> None:
    metrics = PoolMetrics()
    for waited_ms in (100, 30_000, 20_000_000):
        metrics.note_wait(ProjectId("maths"), "batch", waited_ms)
    metrics.note_refusal(RefusalCode.QUEUE_FULL)
    values = read(metrics)
    assert values["bulletin_wait_seconds_bucket", "1.0", "maths", "batch"] == 1
    assert values["bulletin_wait_seconds_bucket", "60.0", "maths", "batch"] == 2
    assert values["bulletin_wait_seconds_count", "maths", "batch"] == 3
    assert values["bulletin_refusals_total", "queue-full"] == 1


def test_however_many_projects_there_are_the_text_stays_small() -> None:
    metrics = PoolMetrics()
    for number in range(5 * MOST_PAIRS):
        metrics.note_records([cell(f"c{number}", project=f"project-{number}")])
        metrics.note_wait(ProjectId(f"project-{number}"), "batch", 10)
    values = read(metrics)
    assert len({key[2:] for key in values if key[0] == "bulletin_cells_total"}) <= MOST_PAIRS + 1
    assert sum(value for key, value in values.items() if key[0] == "bulletin_cells_total") == 5 * MOST_PAIRS
    assert values["bulletin_wait_seconds_count", OTHERS, OTHERS] > 0
    assert len(metrics.text()) < 1_000_000


def observed(broker: BrokerParts) -> PoolMetrics:
    metrics = PoolMetrics()
    metrics.show(
        PoolGauges(broker.shell, broker.agents, broker.clock_ms, 0, lambda: {"too fast": 2, "x at n1": 1}, int)
    )
    return metrics


def test_the_moment_is_told_the_line_the_slots_and_the_projects(broker: BrokerParts) -> None:
    broker.join(slots=2)
    broker.run(ANN, "cell-a")
    broker.run(ANN, "cell-b")
    broker.now_ms = 1_000
    broker.submit(EVE, "cell-e")
    broker.now_ms = 61_000
    values = read(observed(broker))
    assert values["bulletin_requests_waiting", "guests", "interactive"] == 1
    assert values["bulletin_oldest_wait_seconds", "guests", "interactive"] == 60
    assert values["bulletin_leases", "maths", "interactive", "busy"] == 2
    assert values["bulletin_slots", "n1", "busy"] == 2
    assert values["bulletin_slots", "n1", "free"] == 0
    assert values["bulletin_project_slots", "used", "maths"] == 2
    assert values["bulletin_project_slots", "limit", "school"] == 4
    assert values["bulletin_project_budget_left_seconds", "school"] <= 36_000
    assert values["bulletin_turned_away_total", "too-fast"] == 2
    assert not any("x-at-n1" in key for key in values), "names of nodes are no kinds"
    assert not {"ann", "eve"} & {word for key in values for word in key}, "no user is named"


def test_prometheus_own_tool_likes_the_text(broker: BrokerParts, tmp_path: Path) -> None:
    broker.join()
    broker.run(ANN, "cell-a")
    metrics = observed(broker)
    metrics.note_records([cell("c1", project='a "quoted\\ name\nof two lines')])
    done = subprocess.run(
        [find_program("promtool", tmp_path), "check", "metrics"],
        input=metrics.text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_only_admins_read_what_is_counted(broker: BrokerParts) -> None:
    assert "admin" in broker.refusal(ANN, console.AskMetrics())
    assert isinstance(broker.ask(ADMIN, console.AskMetrics()), console.MetricsReport)
