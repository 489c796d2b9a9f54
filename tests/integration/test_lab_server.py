"""A notebook server tells its page of the user's cells: behind the server's own login, while kernels are busy."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.clean_environ import clean_environ
from tests.integration.conftest import Notebook, PoolProcess, until
from tests.integration.hub_pool import HubPool
from tests.integration.own_pools import pools
from tests.processes import has_ended

PASSWORD = "of-this-server"


class LabServer:
    """A user's own notebook server, a process of its own, as its page asks it."""

    def __init__(self, folder: Path, **environ: str) -> None:
        folder.mkdir()
        self._log = (folder / "log").open("wb")
        others = dict.fromkeys(("jupyterlab", "jupyter_lsp", "notebook_shim", "jupyter_server_terminals"), False)
        options = [
            f"--ServerApp.jpserver_extensions={others}",
            "--no-browser",
            "--ServerApp.port=0",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.root_dir={folder}",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *options, "--allow-root"],
            env=clean_environ() | {"JUPYTER_TOKEN": PASSWORD, "JUPYTER_RUNTIME_DIR": str(folder / "run"), **environ},
            stdout=self._log,
            stderr=self._log,
        )
        found = until(lambda: list((folder / "run").glob("jpserver-*.json")), "the server to be up")
        self.url = str(until(lambda: json.loads(found[0].read_text() or "{}").get("url"), "its address"))
        until(self._is_listening, "the server to answer")

    def _is_listening(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}api", timeout=30).close()
        except OSError:
            return False
        return True

    def ask(self, path: str, body: object = None, token: str = PASSWORD) -> Any:
        """What it answers; raises HTTPError where that is no success."""
        request = urllib.request.Request(
            f"{self.url}bulletin/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {token}"} if token else {},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def status_of(self, path: str, body: object = None, token: str = PASSWORD) -> int:
        try:
            self.ask(path, body, token)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        return 200

    def until(self, condition: Callable[[Any], bool], what: str, path: str = "cells") -> Any:
        """Its answer, once it is as it should be; what it was last is told where it never is."""
        view = None

        def look() -> Any:
            nonlocal view
            view = self.ask(path)
            return view if condition(view) else None

        try:
            return until(look, what)
        except AssertionError as error:
            error.add_note(f"its last answer: {view}")
            raise

    def last_activity(self) -> str:
        request = urllib.request.Request(f"{self.url}api/status", headers={"Authorization": f"token {PASSWORD}"})
        with urllib.request.urlopen(f"{request.full_url}?token={PASSWORD}&no_track_activity=1") as answer:
            return str(json.loads(answer.read())["last_activity"])

    def stop(self) -> int:
        self.process.terminate()
        status = self.process.wait(timeout=60)
        self._log.close()
        return status


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., LabServer]]:
    servers: list[LabServer] = []

    def start(**environ: str) -> LabServer:
        servers.append(LabServer(tmp_path / f"server-{len(servers)}", **environ))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def hub_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubPool]:
    pool = HubPool(tmp_path_factory.mktemp("hub"), 1)
    yield pool
    pool.stop()


@pytest.fixture(scope="module")
def ann_server(hub_pool: HubPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """The server of a user whom the hub knows."""
    hub_pool.open("ann", "maths")
    hub_pool.close_notebooks()
    server = LabServer(tmp_path_factory.mktemp("ann") / "server", **server_environ(hub_pool, "ann"))
    yield server
    server.stop()


def server_environ(pool: HubPool, user: str) -> dict[str, str]:
    connection = pool.process.connection
    return {
        "BULLETIN_ADDRESS": connection.address,
        "BULLETIN_PUBLIC_KEY": connection.public_key,
        "JUPYTERHUB_API_TOKEN": f"{user}-token",
    }


def test_a_page_is_told_of_the_users_cells_while_kernels_are_busy_and_of_no_one_elses(
    hub_pool: HubPool, start_server: Callable[..., LabServer]
) -> None:
    ann, eve = hub_pool.open("ann", "maths"), hub_pool.open("eve", "guests")
    ann_page, eve_page = (start_server(**server_environ(hub_pool, user)) for user in ("ann", "eve"))
    running = ann.start_until("%%gpu --label mine\nprint('started')\ninput()", shows="started")
    waiting = eve.start("%%gpu --label hers\nhere = 1")
    view = ann_page.until(lambda view: view["running"] and "1 waiting" in view["summary"], "the cell to be told")
    (cell,) = view["running"]
    assert (view["pool"], view["brief"]) == ("there", "0 of 1 CPU slot free")
    assert (cell["title"], cell["is_cell"], cell["kind"]) == ("mine", True, "front")
    assert cell["sentence"].startswith("Running for ")
    assert view["waiting"] == []
    assert "eve" not in json.dumps(view)
    assert "hers" not in json.dumps(view)
    hers = eve_page.until(lambda view: view["waiting"], "the place in line to be told")
    (place,) = hers["waiting"]
    assert (place["title"], place["brief"]) == ("hers", "1st in line")
    assert place["sentence"].startswith("Waiting for a CPU slot: 1st in line")
    assert hers["running"] == []
    assert re.search(r"\bann\b", json.dumps(hers)) is None
    ann.answer("go")
    ann.collect(running)
    eve.collect(waiting)
    ended = ann_page.until(
        lambda view: any(one["title"] == "mine" for one in view["ended"]), "the receipt", "cells?whole=1"
    )
    (mine,) = [one for one in ended["ended"] if one["title"] == "mine"]  # beside what ann ran before
    assert mine["is_well"]
    assert mine["sentence"].startswith("ran ")
    for view in (ended, hers):
        assert "-token" not in json.dumps(view)
    hub_pool.close_notebooks()


def test_a_cell_in_the_background_is_cancelled_from_the_page_and_others_cells_are_not(
    hub_pool: HubPool, start_server: Callable[..., LabServer]
) -> None:
    ann = hub_pool.open("ann", "maths")
    ann_page, eve_page = (start_server(**server_environ(hub_pool, user)) for user in ("ann", "eve"))
    hub_pool.open("eve", "guests")
    begun = ann.run("%%gpu --background job\nimport time\ntime.sleep(600)")
    assert begun.error is None, begun.shown
    (cell,) = ann_page.until(
        lambda view: view["running"] and view["running"][0]["sentence"].startswith("Running"), "it to run"
    )["running"]
    assert cell["kind"] == "background"
    assert eve_page.status_of("cancel", {"lease": cell["lease"]}) == 409
    assert ann_page.status_of("cells") == 200
    assert "asked to stop" in ann_page.ask("cancel", {"lease": cell["lease"]})["sentence"]
    ann_page.until(lambda view: not any(one["is_cell"] for one in view["running"]), "it to be over")
    assert ann_page.status_of("cancel", {"lease": cell["lease"]}) == 409
    hub_pool.close_notebooks()


def test_what_is_no_name_of_a_cell_is_refused(ann_server: LabServer) -> None:
    for body in (
        "[]",
        '{"lease": 1}',
        "x",
        '{"lease": "' + "a" * 500 + '"}',
        "x" * 5_000,
        '{"x":' + "[" * 3_000,
        "\udcff",
    ):
        request = urllib.request.Request(
            f"{ann_server.url}bulletin/v1/cancel",
            data=body.encode(errors="surrogateescape"),
            headers={"Authorization": f"token {PASSWORD}"},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        refused.value.close()
        assert refused.value.code in (400, 413), body


def test_nobody_is_answered_who_is_not_logged_in_and_no_other_site_cancels(ann_server: LabServer) -> None:
    server = ann_server
    assert server.status_of("cells", token="") == 403
    assert server.status_of("cancel", {"lease": "x"}, token="") == 403
    with_cookie = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with_cookie.open(f"{server.url}?token={PASSWORD}").close()
    with with_cookie.open(f"{server.url}bulletin/v1/cells") as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError) as refused:  # a form of another site has the cookie and no XSRF token
        with_cookie.open(f"{server.url}bulletin/v1/cancel", data=b'{"lease": "x"}')
    refused.value.close()
    assert refused.value.code == 403


def test_a_user_whom_the_pool_does_not_let_in_is_shown_nothing(
    hub_pool: HubPool, start_server: Callable[..., LabServer]
) -> None:
    assert start_server(**server_environ(hub_pool, "nobody")).ask("cells")["pool"] == "none"


@pytest.mark.parametrize("environ", [{"BULLETIN_ADDRESS": ""}, {"BULLETIN": "off"}], ids=["no pool", "off"])
def test_where_there_is_no_pool_nothing_is_shown(
    environ: dict[str, str], start_server: Callable[..., LabServer], tmp_path: Path
) -> None:
    server = start_server(BULLETIN_RUNTIME_DIR=str(tmp_path / "runtime"), **environ)
    view = server.ask("cells")
    assert (view["pool"], view["summary"], view["running"]) == ("none", "", [])


def test_a_page_that_is_open_is_no_work_of_its_server(ann_server: LabServer) -> None:
    server = ann_server
    before = server.last_activity()
    server.ask("cells")
    server.ask("cells?whole=1")
    assert server.last_activity() == before


def test_a_pool_of_ones_own_is_found_and_never_started_by_a_page(
    start_server: Callable[..., LabServer], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    runtime = tmp_path / "runtime"
    server = start_server(BULLETIN_RUNTIME_DIR=str(runtime))
    assert server.ask("cells")["pool"] == "startable"
    assert pools(runtime) == []
    notebook = open_notebook(BULLETIN_RUNTIME_DIR=str(runtime))
    notebook.run("%%gpu\nx = 1")
    try:
        server.until(lambda view: view["pool"] == "there" and "CPU slot" in view["summary"], "the pool to be found")
    finally:
        for pool in pools(runtime):
            pool.terminate()
            until(partial(has_ended, pool), "the pool to end")
    server.until(lambda view: view["pool"] == "startable", "the end of the pool to be seen")


def test_a_broker_that_is_started_again_is_asked_again(
    start_pool: Callable[..., PoolProcess], start_server: Callable[..., LabServer]
) -> None:
    pool = start_pool()
    server = start_server(BULLETIN_CONNECTION_FILE=str(pool.folder / "connection.json"))
    assert server.ask("cells")["pool"] == "there"
    broker = pool.part("broker")
    broker.kill()
    until(lambda: pool.part("broker").pid != broker.pid, "another broker")
    server.until(lambda view: view["pool"] == "there", "the pool to answer again")


def test_a_server_that_ends_leaves_the_pool_and_is_not_held_up(
    hub_pool: HubPool, start_server: Callable[..., LabServer]
) -> None:
    hub_pool.open("ann", "maths")  # a broker remembers for a while whom the hub does not know
    hub_pool.close_notebooks()
    server = start_server(**server_environ(hub_pool, "ann"))
    server.ask("cells")
    assert server.stop() == 0
