"""A server whose notebook has a GPU of its own: reserved before it starts, refused with the reason, given back."""

import contextlib
import json
import os
import signal
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from bulletin.wire import console
from gpu_worker.console import client
from tests.acceptance.conftest import tab
from tests.acceptance.hub import CONFIG, Hub
from tests.acceptance.lab import log_in
from tests.acceptance.notebook import Kernel
from tests.waiting import until

#: The real configuration, with two CPU slots, of which the course is guaranteed one.
HUB = """\
import os
import bulletin_spawner.setup as setup
from bulletin_spawner.notebook_kinds import WHOLE_NOTEBOOK
from bulletin_spawner.spawner import BulletinMixin

def stop(spawner, *how, real=BulletinMixin.stop, **more):
    if spawner.user.name == "kim":  # as a hub that was started again knows her server
        state = spawner.get_state()
        spawner.clear_state()
        spawner.load_state(state)
    return real(spawner, *how, **more)

BulletinMixin.stop = stop
quotas = os.path.join(os.environ["BULLETIN_RUN"], "quotas.toml")
options = ["--slots=2", "--device=cpu", "--Pool.preload=numpy", "--Pool.away=3"]
test = {{"pool_args": [*options, "--Pool.quota_file=" + quotas],
    "notebooks": [WHOLE_NOTEBOOK, {{"name": "lab", "title": "For <b>the lab</b>", "groups": ["lab"]}}]}}
setup.configure = lambda c, real=setup.configure, **given: real(c, **(given | test))
load_subconfig({config!r})
c = get_config()
with open(quotas, "w") as file:
    file.write("[projects.course]\\nguaranteed = 1\\n")
c.BulletinMixin.notebook_wait = 3
c.Spawner.consecutive_failure_limit = 20
c.JupyterHub.load_groups = {{"course": {{"users": ["ada", "bob", "kim"]}}}}
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles.append({{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "tokens", "access:servers", "access:services", "shutdown"]}})
"""
#: Says where it runs, and in which process.
WHERE = "import os\nprint('on the pool' if 'BULLETIN_EXECUTOR' in os.environ else 'here', os.getpid())"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(tmp_path_factory.mktemp("kinds"), HUB.format(config=str(CONFIG)))
    try:
        hub.start()
        until(lambda: "agent registered" in (hub.folder / "hub.log").read_text(), "the pool's node")
        yield hub
    finally:
        hub.stop()
    assert hub.left_over() == []


def start(hub: Hub, user: str, notebook: str) -> str:
    """Start a server with this kind of notebook; why it did not start, or nothing."""
    hub.make_user(user)
    try:
        hub.api("POST", f"/users/{user}/server", {"bulletin_notebook": notebook})
        hub.start_server(user)
    except urllib.error.HTTPError as error:
        with error:
            return str(json.loads(error.read())["message"])
    return ""


def stop(hub: Hub, user: str) -> None:
    """Stop a server, and wait until it is gone."""
    hub.api("DELETE", f"/users/{user}/server")
    until(lambda: not hub.api("GET", f"/users/{user}")["servers"], "the server to stop")


def holders(hub: Hub) -> list[tuple[str, str]]:
    """Who has a lease, and what it does."""
    report = client.ask(client.find_pool(Path(hub.run) / "pool", is_named=True), console.AskQueue())
    assert isinstance(report, console.QueueReport)
    return [(row.user, row.state) for row in report.running]


def test_a_notebook_has_its_gpu_before_its_first_cell_and_until_its_server_stops(hub: Hub) -> None:
    assert start(hub, "ada", "gpu") == ""
    assert holders(hub) == [("ada", "busy")], "it is had before anything runs"
    with Kernel(hub, "ada") as kernel, Kernel(hub, "ada") as second:
        first = kernel.send(WHERE).wait()
        assert first.text.startswith("on the pool"), (first.text, first.error)
        assert kernel.send(WHERE).wait().text == first.text, "one process for all cells"
        assert second.send(WHERE).wait().text.startswith("here"), "one notebook of a server has it"
        refused = start(hub, "bob", "gpu")
        assert "No GPU came free for your notebook. QoS 'reserved' never borrows, and the guarantee of" in refused
        assert "It takes at most about" in refused, refused
        assert "Start a notebook on CPUs" in refused
        assert holders(hub) == [("ada", "busy")], "who was refused waits no longer"
    stop(hub, "ada")
    until(lambda: not holders(hub), "the place to be given back")


def test_a_place_that_no_notebook_used_is_given_back_too_and_by_one_that_is_killed(hub: Hub) -> None:
    assert start(hub, "bob", "gpu") == ""
    stop(hub, "bob")
    until(lambda: not holders(hub), "a place to be given back that no notebook had used")
    assert start(hub, "bob", "gpu") == ""
    with contextlib.suppress(urllib.error.HTTPError), Kernel(hub, "bob") as kernel:  # which is gone at the end
        assert kernel.send(WHERE).wait().text.startswith("on the pool")
        here = kernel.send("%%cpu\nimport os\nprint(os.getpid(), os.getppid())").wait()
        for pid in map(int, here.text.split()):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not holders(hub), "the place of a server that was killed to be given back")


def test_a_hub_that_was_started_again_gives_back_what_a_server_had(hub: Hub) -> None:
    assert start(hub, "kim", "gpu") == ""
    assert holders(hub) == [("kim", "busy")]
    stop(hub, "kim")
    until(lambda: not holders(hub), "the place to be given back")
    assert "ends later, by itself" not in (hub.folder / "hub.log").read_text()


def test_what_a_project_never_has_is_refused_with_the_reason(hub: Hub) -> None:
    refused = start(hub, "eve", "gpu")
    assert "project 'default' has 0 CPU slots guaranteed" in refused, refused
    assert "eve" not in dict(holders(hub))


@pytest.mark.browser
def test_the_form_of_the_hub_says_why_at_once(hub: Hub) -> None:
    with tab(1000, 800) as page:
        log_in(hub, page, "eve")
        page.wait_for_url("**/hub/spawn**")
        page.get_by_label("Notebook with a GPU of its own").check()
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_text("project 'default' has 0 CPU slots guaranteed")).to_be_visible()
        expect(page.get_by_role("button", name="Start")).to_be_visible()
    assert "consecutive spawns failed" not in (hub.folder / "hub.log").read_text(), "it is no failure of the hub"


def test_a_kind_is_for_its_groups_alone_whatever_is_sent(hub: Hub) -> None:
    refused = start(hub, "eve", "lab")
    assert refused.endswith("There is no notebook 'lab' for you to choose. There are: cpu, gpu."), refused
    assert "eve" not in dict(holders(hub))
