"""Keys of a pool's parts are changed while cells run: who has the old ones, for how long, and that no cell is lost."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bulletin.wire import frames, keys, messages as wire
from tests.integration.conftest import Notebook, until
from tests.integration.nodes import ACCEPTED, AGENT, Part, Peer, add, nodes, picture, pool_file, register, run

#: It ends when the file is there, and says each time that it begins.
WAITS = """%%gpu
import os, time
open({log!r}, 'a').write('x')
print('began')
while not os.path.exists({gate!r}):
    time.sleep(0.02)
done = 'done'
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Part]]:
    """Start a broker or an agent, in a folder of this name."""
    with contextlib.ExitStack() as started:

        def start(part: str, name: str, *options: str) -> Part:
            one = Part(part, tmp_path / name, *options)
            started.callback(one.stop)
            return one

        yield start


@pytest.fixture
def broker(start: Callable[..., Part]) -> Part:
    """A broker without an agent."""
    broker = start("broker", "pool")
    broker.until_said("broker ready")
    return broker


def rotate(broker: Part, name: str, *options: str) -> Path:
    """Give a node new keys; its new file, which is not at its place yet."""
    new = broker.folder.with_name("new.json")
    address = f"--address={pool_file(broker).agent_address}"
    said = run("node", "rotate", name, "--folder", str(broker.folder), address, f"--out={new}", *options)
    assert "its cells go on" in said
    return new


def waiting_cell(folder: Path) -> tuple[str, Path, Path]:
    """A cell that runs until it is let go; the file that lets it go, and that in which it counts how often it began."""
    gate, log = folder / "gate", folder / "log"
    return WAITS.format(gate=str(gate), log=str(log)), gate, log


@pytest.mark.parametrize("is_late", [False, True], ids=["in time", "after the time of the old ones"])
def test_a_node_takes_up_new_keys_while_its_cell_runs_and_the_cell_is_charged_once(
    broker: Part, start: Callable[..., Part], open_notebook: Callable[..., Notebook], tmp_path: Path, is_late: bool
) -> None:
    folder = add(broker, "node1", "node1")
    agent = start("agent", "node1", *AGENT)
    agent.until_said(ACCEPTED)
    notebook = open_notebook(BULLETIN_CONNECTION_FILE=str(broker.folder / "connection.json"))
    source, gate, log = waiting_cell(tmp_path)
    message = notebook.start_until(source, shows="began")
    pool = ("--folder", str(broker.folder))
    if is_late:
        new = rotate(broker, "node1", "--accept-old=0")
        until(lambda: "the time of its old ones is over" in run("status", *pool, status=3), "status to say so")
        assert "was accepted until" in run("node", "list", *pool)
    else:
        new = rotate(broker, "node1")
        assert "is accepted until" in run("node", "list", *pool)
    new.replace(folder / "node.json")
    agent.until_said("has new keys")
    agent.until_said(ACCEPTED, times=2 if is_late else 1)
    until(lambda: "not there" not in run("status", *pool), "the node to be there")
    until(lambda: broker.log.read_text().count("agent registered") == 2, "the broker to know it by its new keys")
    gate.touch()
    output = notebook.collect(message)
    assert output.error is None, output.shown
    assert notebook.value("done") == "'done'"
    assert notebook.run("%%gpu\nprint(done)").stream() == "done\n"
    assert log.read_text() == "x"
    cells = run("usage", *pool, "--cells", "--csv").splitlines()
    assert len(cells) == 3, cells  # a line of names, and both cells


def test_old_keys_are_those_of_the_node_until_their_time_is_over_or_it_is_given_others_at_once(broker: Part) -> None:
    first = keys.read_private(add(broker, "node1", "node1") / "node.json", keys.NodeFile).keys
    second_file = rotate(broker, "node1")
    second = keys.read_private(second_file, keys.NodeFile).keys
    second_file.unlink()
    third = keys.read_private(rotate(broker, "node1"), keys.NodeFile).keys
    for own in (first, second, third):
        with Peer(broker, own) as peer:
            assert isinstance(peer.says(register(broker, "node1")), wire.Registered)
    run("node", "add", "node1", "--replace", "--folder", str(broker.folder), "--address=tcp://h:1", "--out=-")
    for turned_away, own in enumerate((first, second, third), start=1):
        with Peer(broker, own) as peer:
            peer.socket.send_multipart(frames.pack(register(broker, "node1")))
            until(lambda count=turned_away: failed_handshakes(broker) >= count, "it to be turned away")  # type: ignore[misc]
    assert nodes(broker.folder) == set()


def failed_handshakes(broker: Part) -> int:
    seen = picture(broker.folder)
    return 0 if seen is None else seen.counters.get("failed handshakes", 0)
