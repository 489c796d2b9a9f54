"""The files in deploy/prometheus and deploy/grafana: Prometheus' own tool reads them, and alerts go off in time."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpu_worker.broker.pool_metrics import PoolMetrics
from tests.prometheus import CONFIG, DASHBOARD, ROOT, RULES, find_program

#: What Grafana puts in.
VARIABLES = {"$project": ".*", "$__rate_interval": "5m"}


def check(folder: Path, *words: object) -> str:
    """What promtool says; it must agree."""
    command = [find_program("promtool", folder), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expressions() -> list[str]:
    """All queries of the dashboard."""
    found = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    for name, value in VARIABLES.items():
        found = [one.replace(name, value) for one in found]
    return found


def test_rules_and_configuration_are_right(tmp_path: Path) -> None:
    assert "SUCCESS: 11 rules found" in check(tmp_path, "check", "rules", RULES)
    check(tmp_path, "check", "config", "--syntax-only", CONFIG)


def test_every_query_of_the_dashboard_is_one(tmp_path: Path) -> None:
    assert len(expressions()) >= 20
    rules = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(expressions())]
    (tmp_path / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    check(tmp_path, "check", "rules", tmp_path / "panels.yml")


def test_rules_and_dashboard_ask_for_what_the_pool_counts() -> None:
    source = "".join((ROOT / "gpu_worker" / "broker" / f"pool_{name}.py").read_text() for name in ("metrics", "gauges"))
    asked = set(re.findall(r"bulletin_[a-z_]+", " ".join([*expressions(), RULES.read_text()])))
    process = {name for name in asked if name.startswith("bulletin_broker_process")}
    assert all(f"# TYPE {name}" in PoolMetrics().text() for name in process)
    unknown = []
    for name in asked - process:
        bare = name.removeprefix("bulletin_").removesuffix("_bucket").removesuffix("_total")
        if f'"{bare}"' not in source and f'"bulletin_{bare}"' not in source:
            unknown.append(name)
    assert unknown == []


def alert(series: dict[str, str], name: str, *, fires_at: str, labels: dict[str, str] | None) -> dict[str, Any]:
    """One case for promtool: these series, a value each minute; which labels the alert then has, or none."""
    expected = [] if labels is None else [{"exp_labels": labels}]
    return {
        "interval": "1m",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "alert_rule_test": [{"alertname": name, "eval_time": fires_at, "exp_alerts": expected}],
    }


WARNING = {"severity": "warning"}
CASES = [
    alert(
        {'up{job="bulletin"}': "0x30"},
        "BulletinDown",
        fires_at="10m",
        labels={"job": "bulletin", "severity": "critical"},
    ),
    alert({'up{job="bulletin"}': "1x30"}, "BulletinDown", fires_at="10m", labels=None),
    alert({"bulletin_nodes": "0x30"}, "BulletinNoNodes", fires_at="10m", labels={"severity": "critical"}),
    alert(
        {'bulletin_node_absent{node="n1"}': "1x30"},
        "BulletinNodeAbsent",
        fires_at="10m",
        labels=WARNING | {"node": "n1"},
    ),
    alert({'bulletin_node_absent{node="n1"}': "1x3 _x30"}, "BulletinNodeAbsent", fires_at="15m", labels=None),
    alert(
        {'bulletin_requests_waiting{project="a",qos="batch"}': "1x30", 'bulletin_slots{node="n",state="free"}': "1x30"},
        "BulletinWaitsWhileSlotsAreFree",
        fires_at="20m",
        labels=WARNING,
    ),
    alert(
        {'bulletin_requests_waiting{project="a",qos="batch"}': "1x30", 'bulletin_slots{node="n",state="free"}': "0x30"},
        "BulletinWaitsWhileSlotsAreFree",
        fires_at="20m",
        labels=None,
    ),
    alert(
        {'bulletin_oldest_wait_seconds{project="a",qos="interactive"}': "3500+60x30"},
        "BulletinLongWait",
        fires_at="20m",
        labels=WARNING | {"project": "a", "qos": "interactive"},
    ),
    alert(
        {'bulletin_cells_total{outcome="node-lost"}': "0 1 2 3 4 5 5x20"},
        "BulletinCellsFailByThePool",
        fires_at="10m",
        labels=WARNING,
    ),
    alert(
        {'bulletin_cells_total{outcome="raised"}': "0+9x30"}, "BulletinCellsFailByThePool", fires_at="10m", labels=None
    ),
    alert(
        {'bulletin_turned_away_total{kind="faults"}': "0 0 1x20"},
        "BulletinFault",
        fires_at="10m",
        labels=WARNING | {"kind": "faults"},
    ),
    alert({"bulletin_ledger_unwritten": "500x30"}, "BulletinLedgerBehind", fires_at="10m", labels=WARNING),
    alert(
        {'bulletin_nodes_without_protection{protection="namespaces"}': "2x30"},
        "BulletinUnprotected",
        fires_at="10m",
        labels=WARNING | {"protection": "namespaces"},
    ),
]


def test_alerts_go_off_when_they_should_and_only_then(tmp_path: Path) -> None:
    text = re.sub(r"\n +annotations:\n(?: {10,}.*\n)+", "\n", RULES.read_text() + "\n")  # what they say is for people
    (tmp_path / "rules.yml").write_text(text)
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": ["rules.yml"], "tests": CASES}))
    tested = {case["alert_rule_test"][0]["alertname"] for case in CASES}
    assert tested == set(re.findall(r"alert: (\w+)", RULES.read_text()))
    check(tmp_path, "test", "rules", tmp_path / "test.yml")


@pytest.mark.parametrize("word", ["summary", "description"])
def test_every_alert_says_what_it_is_and_what_to_do(word: str) -> None:
    assert RULES.read_text().count(f" {word}: ") == RULES.read_text().count("- alert: ")
