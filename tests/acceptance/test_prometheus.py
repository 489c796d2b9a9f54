"""A real Prometheus reads a real hub's pool, by the files in deploy/, and has what people did there."""

import contextlib
import json
import os
import secrets
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bulletin_spawner.ports import find_free_ports
from tests.acceptance.hub import CONFIG as HUB_CONFIG, Hub
from tests.acceptance.notebook import Kernel
from tests.integration.conftest import until
from tests.prometheus import CONFIG, DASHBOARD, RULES, find_program

#: A hub whose metrics are for whoever has this token, and of which `ada` is no admin.
OBSERVED = """\
import os
import bulletin_spawner.setup as setup

options = ["--slots=1", "--device=cpu", "--Pool.quota_file=" + {quotas!r}]
test = {{"pool_args": options, "metrics_token": {token!r}, "manage_from_servers": False}}
setup.configure = lambda c, real=setup.configure, **given: real(c, **(given | test))
load_subconfig({config!r})
c = get_config()
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles.append({{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "tokens", "access:servers", "access:services", "shutdown"]}})
"""
TOKEN = secrets.token_hex(16)
#: A cell that holds the only slot until a file is there.
HOLD = """%%gpu
import pathlib, time
print("holds", flush=True)
while not pathlib.Path({gate!r}).exists():
    time.sleep(0.05)"""
#: What a pool without a GPU has nothing to show for.
NEEDS_GPU = "How busy GPUs were that cells held"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    quotas = tmp_path_factory.mktemp("quotas") / "quotas.toml"
    quotas.write_text('[projects.default]\nguaranteed = 1\nbudget = "100 GPU-hours per week"\n')
    config = OBSERVED.format(token=TOKEN, config=str(HUB_CONFIG), quotas=str(quotas))
    hub = Hub(tmp_path_factory.mktemp("observed"), config)
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()
    assert hub.left_over() == []


class Prometheus:
    """One that scrapes the hub, as deploy/prometheus says but for the places of things."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        (port,) = find_free_ports([0])
        self._address = f"http://127.0.0.1:{port}"
        (folder / "token").write_text(TOKEN)
        text = CONFIG.read_text().replace("/etc/prometheus/bulletin-token", str(folder / "token"))
        text = text.replace("127.0.0.1:8000", urllib.parse.urlsplit(hub.address).netloc).replace("15s", "1s")
        (folder / "prometheus.yml").write_text(text)
        (folder / "bulletin.rules.yml").write_text(RULES.read_text())
        self._log = (folder / "prometheus.log").open("wb")
        self._process = subprocess.Popen(
            [
                find_program("prometheus", folder),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=self._log,
            stderr=self._log,
        )

    def ask(self, path: str, **words: str) -> Any:
        with urllib.request.urlopen(f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(words)}") as answer:
            return json.loads(answer.read())["data"]

    def value(self, query: str) -> float | None:
        """What a query that has one answer comes to; None while there is none."""
        with contextlib.suppress(urllib.error.URLError):
            found = self.ask("query", query=query)["result"]
            return float(found[0]["value"][1]) if found else None
        return None

    def empty_panels(self) -> list[str]:
        """Titles of the dashboard's panels of which a query has no answer now."""
        empty = []
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$project", ".*").replace("$__rate_interval", "1m")
                if not self.ask("query", query=query)["result"]:
                    empty.append(panel["title"])
        return empty

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._log.close()


@pytest.fixture
def prometheus(hub: Hub, tmp_path: Path) -> Iterator[Prometheus]:
    running = Prometheus(hub, tmp_path)
    yield running
    running.close()


def test_prometheus_has_what_people_did(hub: Hub, prometheus: Prometheus, tmp_path: Path) -> None:
    until(lambda: prometheus.value('up{job="bulletin"}') == 1, "Prometheus to read the pool's page")
    hub.start_server("ada")
    with Kernel(hub, "ada") as kernel:
        kernel.run("%%gpu\nanswer = 6 * 7")
        kernel.run("%%gpu\nanswer += 1")
        assert "ZeroDivisionError" in str(kernel.send("%%gpu\n1 / 0").wait().error)
    until(lambda: prometheus.value('sum(bulletin_cells_total{outcome="raised"})') == 1, "the cell that raised")
    assert prometheus.value('bulletin_cells_total{outcome="returned",project="default",qos="interactive"}') == 2
    assert prometheus.value("sum(bulletin_wait_seconds_count)") in (1, 2, 3), "a hot session waits for nothing"
    assert (prometheus.value("sum(bulletin_slot_seconds_total)") or 0) > 0
    assert (prometheus.value("sum(bulletin_cell_sent_bytes_total)") or 0) > 0
    assert prometheus.value("sum(bulletin_slots)") == 1
    names = prometheus.ask("label/__name__/values")
    assert [name for name in names if name.startswith("bulletin_")]
    assert "ada" not in json.dumps(prometheus.ask("series", **{"match[]": '{job="bulletin"}'}))
    groups = prometheus.ask("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}
    firing = [one["labels"]["alertname"] for one in prometheus.ask("alerts")["alerts"] if one["state"] == "firing"]
    assert firing == []
    with Kernel(hub, "ada") as holding, Kernel(hub, "ada") as waiting:
        assert "30 d" in str(holding.send("%%gpu --time 30d\n1").wait().error), "refused"
        held = holding.send(HOLD.format(gate=str(tmp_path / "gate"))).wait(lambda run: "holds" in run.text)
        waits = waiting.send("%%gpu\n1")
        until(lambda: prometheus.empty_panels() == [NEEDS_GPU], "all other panels of the dashboard to show something")
        (tmp_path / "gate").touch()
        assert [held.wait().error, waits.wait().error] == [None, None]


def status_of(hub: Hub, path: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"token {token}"} if token else {}
    request = urllib.request.Request(f"{hub.address}/services/bulletin/{path}", headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_only_tokens_that_may_read_what_is_counted(hub: Hub) -> None:
    hub.start_server("ada")
    assert status_of(hub, "metrics", TOKEN)[0] == 200
    for token in ("", "x" * 32, hub.token_of("ada"), os.urandom(4).hex()):
        status, said = status_of(hub, "metrics", token)
        assert status == 403
        assert "bulletin_" not in said
        assert "read:metrics" in said
    assert status_of(hub, "api/status", TOKEN)[0] == 200
    assert "ada" not in status_of(hub, "api/status", TOKEN)[1], "it is no manager"


def test_whoever_watches_services_learns_whether_cells_can_run(hub: Hub) -> None:
    until(lambda: status_of(hub, "health") == (200, '{"status":"ok"}'), "the pool to be there")
