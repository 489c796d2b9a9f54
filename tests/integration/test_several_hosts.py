"""A pool of three hosts: what cut links and firewalls cost."""

import hashlib
import json
import os
import re
from collections.abc import Iterator

import pytest

from tests.integration.conftest import Notebook, Output, until
from tests.integration.host_pools import Site, made_site
from tests.integration.hosts import Host

NODES = ("node1", "node2")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Three hosts with a pool, as the page says."""
    with made_site(NODES) as made:
        yield made


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
