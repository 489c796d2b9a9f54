"""What `bulletin init` writes starts as it is: a hub of each kind, in which a cell runs."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin_spawner.ports import find_free_ports
from gpu_worker.agent.node_protections import find_namespace_problem
from tests.acceptance.hub import REPOSITORY, Hub
from tests.acceptance.notebook import Kernel
from tests.clean_environ import clean_environ
from tests.integration.conftest import Notebook, until
from tests.integration.examining import examine
from tests.integration.hosts import made_hosts, readable_python, skip_without_hosts
from tests.other_users import free_uid, in_mount_namespace, with_readable_python, with_users

PROXY = REPOSITORY / "node_modules" / ".bin" / "configurable-http-proxy"
UIDS = {"alice": free_uid(61_000), "bob": free_uid(62_000)}
#: A hub's file as it was written, with a program of the test's beside its own services.
AS_WRITTEN = """\
import os
from pathlib import Path

load_subconfig({file!r})
c = get_config()
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles.append({{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "tokens", "access:servers", "access:services", "shutdown"]}})
run = Path(os.environ["BULLETIN_RUN"])
run.mkdir(exist_ok=True)
(run / "address").write_text(c.JupyterHub.bind_url)
"""


def free_row(count: int) -> int:
    """The first of so many free ports in a row."""
    while True:
        (first,) = find_free_ports([0])
        if first < 60_000 and find_free_ports(range(first, first + count)) == list(range(first, first + count)):
            return first


def init(*words: str) -> str:
    command = [sys.executable, "-P", "-m", "gpu_worker.cli", "init", *words]
    first = free_row(8)
    ports = [f"--first-port={first}", f"--port={first + 6}"]
    done = subprocess.run(
        [*command, *ports, f"--proxy={PROXY}"], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return done.stdout


@contextlib.contextmanager
def started(hub: Hub, pool: Path) -> Iterator[Hub]:
    """Start a hub, and wait until servers can be told where its pool is."""
    try:
        hub.start()
        until((pool / "public.json").exists, "the pool to be up")
        yield hub
    finally:
        hub.stop()
    assert hub.left_over() == []


def test_on_a_workstation_anybody_with_the_password_computes(tmp_path: Path) -> None:
    out = tmp_path / "files"
    said = init("workstation", f"--out={out}", "--groups=lab")
    file = out / "jupyterhub_config.py"
    assert f"bulletin doctor --hub={file}" in said
    assert examine("--hub", file).wrong == []
    with started(Hub(tmp_path, AS_WRITTEN.format(file=str(file))), out / "pool") as hub:
        hub.start_server("ann")
        with Kernel(hub, "ann") as kernel:
            assert kernel.run("%%gpu\nanswer = 6 * 7") is not None
            assert kernel.run("print(answer)") == "42\n"
        assert examine("--hub", file).wrong == [], "while it runs, too"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become other users")
def test_on_a_server_each_user_computes_as_their_unix_user() -> None:
    if problem := find_namespace_problem():
        pytest.skip(f"no namespaces here: {problem}")
    with tempfile.TemporaryDirectory() as name:  # not below pytest's, which is for its user alone
        folder = Path(name)
        folder.chmod(0o711)
        out = folder / "files"
        init("server", f"--out={out}", "--groups=course", "--admins=bob", f"--folder={folder / 'pool'}")
        users = with_users(folder, UIDS, groups={"course": ["alice", "bob"]})
        under = in_mount_namespace([*with_readable_python(folder), *users])
        file = out / "jupyterhub_config.py"
        assert set(examine("--hub", file, under=under).wrong) <= {"environment-foreign"}, "the checkout's own"
        with started(Hub(folder, AS_WRITTEN.format(file=str(file)), under), folder / "pool") as hub:
            hub.start_server("alice")
            with Kernel(hub, "alice") as kernel:
                assert kernel.run("%%gpu\n!id -un").strip() == "alice"
            assert hub.api("GET", "/users/bob")["admin"] is True
            assert hub.api("GET", "/users/alice")["groups"] == ["course"]


def test_a_hub_and_a_node_find_each_other() -> None:
    skip_without_hosts()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o711)
        users = with_users(folder, UIDS, groups={"course": ["alice", "bob"]})
        hosts = stack.enter_context(made_hosts(folder, ("hub", "node1"), [*readable_python(folder), *users]))
        hub, node = hosts["hub"], hosts["node1"]
        said = hub.run(f"bulletin init nodes --out=files --groups=course --pool-host={hub.address} --proxy={PROXY}")
        files = hub.folder / "files"

        def start(host: str, script: str, words: str) -> None:
            log = folder / f"{host}-{words[:6]}.log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [*hosts[host].under, "sh", "-ec", script],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=clean_environ() | {"BULLETIN_TEST_TOKEN": "t" * 32, "BULLETIN_RUN": str(folder / "run")},
                )
            stack.callback(process.wait, 120)
            stack.callback(process.terminate)
            until(lambda: words in log.read_text() or process.poll() is not None, f"{words!r} in {log}")
            assert process.poll() is None, log.read_text()

        (variables, broker, add, agent) = re.findall(
            r"^  (set -a.*|bulletin (?:broker|node|agent).*)$", said, re.MULTILINE
        )
        start("hub", f"{variables}\nexec {broker}", "broker ready")
        hub.run(add.replace("NAME", "node1"))
        (hub.folder / "node1.node.json").rename(node.folder / "node1.node.json")  # by scp, so to speak
        node.run("install -m 600 node1.node.json /var/lib/bulletin/node.json && chmod 711 /var/lib/bulletin")
        config = (files / "node" / "bulletin_config.py").read_text()
        node.write("/etc/bulletin/bulletin_config.py", config + "c.Pool.slots = 1\nc.Pool.preload = []\n")
        start("node1", f"exec {agent}", "accepted by the broker")
        ours = hub.folder / "with_test.py"
        ours.write_text(AS_WRITTEN.format(file=str(files / "hub" / "jupyterhub_config.py")))
        start("hub", f"exec {sys.executable} -m jupyterhub -f {ours}", "JupyterHub is now running")

        doctor = re.findall(r"^  (bulletin doctor .*)$", said, re.MULTILINE)[0]
        examined = json.loads(hub.run(f"{doctor} --json || true"))["diagnoses"]
        assert {one["check"] for one in examined if one["level"] == "wrong"} == set(), examined
        token = hub.run(
            f"{sys.executable} -c '{textwrap.dedent(ASK_FOR_TOKEN)}' 8081 {'t' * 32} alice",
        ).strip()
        public = json.loads(hub.run("cat /var/lib/bulletin/public.json"))
        environ = {
            "BULLETIN_ADDRESS": public["address"],
            "BULLETIN_PUBLIC_KEY": public["public_key"],
            "JUPYTERHUB_API_TOKEN": token,
        }
        notebook = Notebook(environ, hub.folder, under=hub.under)
        stack.callback(notebook.close)
        assert notebook.run("%%gpu\n!echo $(id -un) on $(hostname)").stream().strip() == "alice on node1"


#: Makes a user's token as an admin's program does, on the hub's own host.
ASK_FOR_TOKEN = """\
import json, sys, urllib.request
port, own, user = sys.argv[1:]
def ask(path):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/hub/api{path}", method="POST", data=b"{}",
        headers={"Authorization": f"token {own}", "Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read() or b"null")
try:
    ask(f"/users/{user}")
except urllib.error.HTTPError as error:
    assert error.code == 409, error
print(ask(f"/users/{user}/tokens")["token"])
"""
