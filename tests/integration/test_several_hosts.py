"""A pool of three hosts, set up by the commands of docs/howto/several-hosts.md and by nothing else."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clean_environ import clean_environ
from tests.integration.conftest import PATIENCE_S, Notebook, Output, until
from tests.integration.hosts import Host, made_hosts, readable_python, skip_without_hosts
from tests.other_users import free_uid, with_users

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "several-hosts.md"
UIDS = {"alice": free_uid(61_000), "bob": free_uid(62_000)}
NODES = ("node1", "node2")
#: Of each node, so that two cells need two of them, and nothing large is imported first.
SMALL = "\nc.Pool.slots = 1\nc.Pool.device = 'cpu'\nc.Pool.preload = []\n"


def blocks(title: str) -> list[tuple[str, str]]:
    """The blocks of code in a section of the page, with their languages."""
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)


class Site:
    """The hosts, and what runs on them."""

    def __init__(self, stack: contextlib.ExitStack, hosts: dict[str, Host]) -> None:
        self.stack, self.hosts = stack, hosts
        self.logs = {name: host.folder / "log" for name, host in hosts.items()}

    def start(self, name: str, script: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start what does not end by itself."""
        with self.logs[name].open("ab") as log:
            process = subprocess.Popen(
                [*self.hosts[name].under, "sh", "-ec", f"exec {script}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environ() | environ,
            )
        self.stack.callback(process.wait, PATIENCE_S)
        self.stack.callback(process.terminate)
        return process

    def until_said(self, name: str, words: str) -> None:
        """Wait until the log of what runs on a host has these words."""
        until(lambda: words in self.logs[name].read_text(), f"{words!r} in {self.logs[name]}")

    def status(self) -> str:
        """What `bulletin status` says, and its exit status."""
        (_, command), *_ = [one for one in blocks("On each node") if "bulletin status" in one[1]]
        return self.hosts["hub"].run(f"{command.strip()} && echo all there || echo exit status $?")

    def start_hub(self) -> dict[str, str]:
        """Start a hub of two users on the hub's host; the variables by which its service knows it."""
        hub = subprocess.Popen(
            [*self.hosts["hub"].under, sys.executable, "-m", "tests.integration.hub_process", *UIDS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert hub.stdin is not None
        assert hub.stdout is not None
        self.stack.callback(hub.wait, PATIENCE_S)
        self.stack.callback(hub.stdout.close)
        self.stack.callback(hub.stdin.close)
        address = f"http://127.0.0.1:{hub.stdout.readline().strip()}/hub/api"
        return {"JUPYTERHUB_API_URL": address, "JUPYTERHUB_API_TOKEN": "service"}

    def open_notebook(self, user: str) -> Notebook:
        """A notebook of a user's server, which is on the hub's host."""
        public = self.hosts["hub"].run("cat /var/lib/bulletin/public.json")
        found = dict(re.findall(r'"(\w+)": "([^"]+)"', public))
        environ = {
            "BULLETIN_ADDRESS": found["address"],
            "BULLETIN_PUBLIC_KEY": found["public_key"],
            "JUPYTERHUB_API_TOKEN": f"{user}-token",
        }
        hub = self.hosts["hub"]
        notebook = Notebook(environ, hub.folder, under=hub.under)
        self.stack.callback(notebook.close)
        return notebook


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Three hosts with a pool, as the page says."""
    skip_without_hosts()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o711)
        users = [*readable_python(folder), *with_users(folder, UIDS)]
        site = Site(stack, stack.enter_context(made_hosts(folder, ("hub", *NODES), users)))
        environ = site.start_hub()
        hub = site.hosts["hub"]
        (_, config), (_, broker), (_, add) = blocks("On the broker's host")
        hub.write("/etc/bulletin/bulletin_config.py", config)
        site.start("hub", broker.strip(), **environ)
        site.until_said("hub", "broker ready")
        hub.run(add)
        (_, install), (_, config), (_, agent), _ = blocks("On each node")
        for name in NODES:
            node = site.hosts[name]
            (hub.folder / f"{name}.node.json").rename(node.folder / f"{name}.node.json")  # by scp, so to speak
            node.run(install.replace("node1", name))
            node.write("/etc/bulletin/bulletin_config.py", config + SMALL)
            site.start(name, agent.strip())
        for name in NODES:
            site.until_said(name, 'event="accepted by the broker"')
        yield site


WHERE = "%%gpu\nimport os, pwd, socket\nprint(pwd.getpwuid(os.getuid()).pw_name, 'on', socket.gethostname())"


@pytest.fixture
def bob(site: Site) -> Iterator[tuple[Notebook, Host]]:
    """A notebook with a session, and the node where that is."""
    notebook = site.open_notebook("bob")
    name = notebook.run(WHERE).stream().split()[-1]
    yield notebook, site.hosts[name]
    notebook.run("%gpu stop")


#: A cell that prints for some seconds, and what it prints.
PRINTS = "%%gpu\nimport time\nfor i in range({lines}):\n    print('line', i, flush=True); time.sleep(1)\nresult = i"


def lines(count: int) -> str:
    return "".join(f"line {i}\n" for i in range(count))


@pytest.mark.parametrize("what", ["all", "broker", "notebook"])
def test_a_cut_link_costs_no_cell_and_no_line(site: Site, bob: tuple[Notebook, Host], what: str) -> None:
    notebook, node = bob
    cuts = {"all": node.cut(), "broker": node.firewall(9002, "dport"), "notebook": node.firewall(9003)}

    left_out = site.logs["hub"].read_text().count("node left out")

    def cut() -> None:
        with cuts[what]:
            if what == "notebook":
                notebook.wait_until(f"The node of your cell ({node.name}) does not answer")
            else:
                until(lambda: site.logs["hub"].read_text().count("node left out") > left_out, "the node to be missed")
                assert f"{node.name}: not there, lost" in site.status()

    ran = notebook.run_until(PRINTS.format(lines=10), "line 2", cut)
    assert ran.error is None, ran.shown
    assert ran.stream() == lines(10)
    assert notebook.value("result") == "9"
    until(lambda: "all there" in site.status(), "the node to be heard again")
    usage = json.loads(site.hosts["hub"].run("bulletin usage --cells --json --folder /var/lib/bulletin"))
    # Others are stopped by hand.
    long = [one for one in usage if one["ran_ms"] > 9_000 and one["outcome"] != "interrupted"]
    assert [one["outcome"] for one in long] == ["returned"] * len(long)
    assert len({one["cell"] for one in long}) == len(long), "each once"
    assert long


#: A cell that reads a file of the notebook's folder, and leaves another one there.
COPIES = """%%gpu
import hashlib, os
from pathlib import Path
print('begins in', os.getcwd(), flush=True)
data = Path('data.bin').read_bytes()
Path('copy.bin').write_bytes(data)
print(hashlib.sha256(data).hexdigest(), Path('copy.bin').owner())
"""


def test_files_follow_a_cell_to_a_node_and_a_cut_link_damages_none(site: Site, bob: tuple[Notebook, Host]) -> None:
    notebook, node = bob
    folder = site.hosts["hub"].folder
    content = os.urandom(2**20) * 40
    (folder / "data.bin").write_bytes(content)

    def cut() -> None:
        with node.cut():
            notebook.wait_until(f"The node of your cell ({node.name}) does not answer")

    ran = notebook.run_until(COPIES, "begins in", cut)
    assert ran.error is None, ran.shown
    assert "/bulletin-files-" in ran.stream()
    assert f"{hashlib.sha256(content).hexdigest()} bob" in ran.stream()
    assert (folder / "copy.bin").read_bytes() == content
    notebook.run("%gpu stop")
    assert "bulletin-files" not in node.run("ls -a /tmp /var/tmp")


def test_a_port_that_a_firewall_drops_is_told_and_the_cell_runs_on_another_node(
    site: Site, bob: tuple[Notebook, Host]
) -> None:
    alice = site.open_notebook("alice")
    notebook, other = bob
    (shut,) = (site.hosts[name] for name in NODES if name != other.name)
    seen: list[Output] = []

    def meanwhile() -> None:
        """While the other node is busy, ask for a place, which is on this one; then let the other be free."""
        with shut.firewall(9003):
            told = f"The node {shut.name} was given to your cell, and this notebook did not reach it."
            seen.append(alice.run_until(WHERE, told, notebook.interrupt))
            until(lambda: "drops what comes. See that port 9003" in site.status(), "status to say so")

    busy = notebook.run_until("%%gpu\nimport time\nprint('busy')\nwhile True: time.sleep(0.05)", "busy", meanwhile)
    assert busy.error is not None
    assert seen[0].stream() == f"alice on {other.name}\n"
    assert f"({shut.name}) does not answer" in seen[0].shown
    until(lambda: "all there" in site.status(), "the node's door to answer")


def test_by_the_pages_commands_alone_two_users_compute_on_two_nodes(site: Site) -> None:
    assert "all there" in site.status()
    alice, bob = site.open_notebook("alice"), site.open_notebook("bob")
    seen: list[str] = []

    def meanwhile() -> None:
        seen.append(bob.run(WHERE).stream())
        alice.interrupt()

    first = alice.run_until(WHERE + "\nimport time\nwhile True: time.sleep(0.05)", " on ", meanwhile).stream()
    assert re.fullmatch(r"alice on node[12]\n", first)
    assert re.fullmatch(r"bob on node[12]\n", seen[0])
    assert {first.split()[-1], seen[0].split()[-1]} == set(NODES)
