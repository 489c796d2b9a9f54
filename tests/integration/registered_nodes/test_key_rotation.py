"""Keys of a pool's parts are changed while cells run: who has the old ones, for how long, and that no cell is lost."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

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
        until(lambda: "its old ones is over" in run("status", *pool, status=None), "status to say so")
        assert "its old ones is over" in run("status", *pool, status=3)
        assert "was accepted until" in run("node", "list", *pool)
    else:
        new = rotate(broker, "node1")
        assert "is accepted until" in run("node", "list", *pool)
    new.replace(folder / "node.json")
    agent.until_said("has new keys")
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
    until(lambda: nodes(broker.folder) == set(), "the node to be nobody's")


def failed_handshakes(broker: Part) -> int:
    seen = picture(broker.folder)
    return 0 if seen is None else seen.counters.get("failed handshakes", 0)


def test_the_broker_has_new_keys_and_cells_nodes_and_notebooks_with_the_old_ones_go_on_until_their_time_is_over(
    broker: Part, start: Callable[..., Part], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    folder, pool = add(broker, "node1", "node1"), ("--folder", str(broker.folder))
    agent = start("agent", "node1", *AGENT)
    agent.until_said(ACCEPTED)
    old = pool_file(broker)
    connection = {"BULLETIN_CONNECTION_FILE": str(broker.folder / "connection.json")}
    notebook = open_notebook(**connection)
    source, gate, log = waiting_cell(tmp_path)
    message = notebook.start_until(source, shows="began")
    said = run("keys", "rotate", *pool, "--accept-old=3600")
    assert old.agent_address in said
    assert pool_file(broker).keys == old.keys, "until it is started again"
    broker.stop()
    broker = start("broker", "pool")
    broker.until_said("broker ready", times=2)
    new = pool_file(broker)
    assert old.keys != new.keys
    assert (new.earlier and new.earlier.keys, new.earlier and new.earlier.agent_address) == (
        old.keys,
        old.agent_address,
    )
    until(lambda: nodes(broker.folder) == {"node1"}, "the node, which has only its old file")
    gate.touch()
    output = notebook.collect(message)
    assert output.error is None, output.shown
    assert notebook.run("%%gpu\nprint(done)").stream() == "done\n", "a notebook that knows only the old keys"
    rotate(broker, "node1").replace(folder / "node.json")
    agent.until_said("the broker has moved")
    until(lambda: broker.log.read_text().count("agent registered") >= 3, "the node to come with its new file")
    message = notebook.start_until(source.replace(str(gate), str(gate) + "2"), shows="began")
    assert "are accepted until" in run("keys", "rotate", *pool, status=78)
    end_the_time_of_old_keys(broker, start)
    until(lambda: nodes(broker.folder) == {"node1"}, "the node, which knows the new keys")
    gate.with_name("gate2").touch()
    output = notebook.collect(message)
    assert output.error is None, output.shown
    message = notebook.start_until("%%gpu --project other\nprint(1)", shows="does not answer; your cell waits")
    notebook.interrupt()
    notebook.collect(message)
    notebook.run(f"%gpu connect {connection['BULLETIN_CONNECTION_FILE']}")
    assert notebook.run("%%gpu\nprint(done)").stream() == "done\n"
    assert open_notebook(**connection).run("%%gpu\nprint('new')").stream() == "new\n"
    assert log.read_text() == "xx"


def end_the_time_of_old_keys(broker: Part, start: Callable[..., Part]) -> None:
    """Have a broker whose file says that the time of its old keys is over."""
    broker.stop()
    path, file = broker.folder / "pool.json", pool_file(broker)
    assert file.earlier is not None
    keys.write_private(path, structs.replace(file, earlier=structs.replace(file.earlier, until_ms=0)))
    start("broker", "pool").until_said("old keys are accepted no more")
    until(lambda: pool_file(broker).earlier is None, "the file to be without them")
    with socket.create_server(("127.0.0.1", int(file.earlier.agent_address.rpartition(":")[2]))):
        pass  # nothing listens there


def test_a_port_that_the_old_keys_have_is_not_that_of_the_new_ones(broker: Part) -> None:
    port, pool = pool_file(broker).kernel_address.rpartition(":")[2], ("--folder", str(broker.folder))
    broker.stop()
    run("keys", "rotate", *pool)
    said = run("broker", *pool, f"--Pool.kernel_port={port}", status=78)
    assert f"change Pool.kernel_port = {port}" in said
    assert "cut off" in run("keys", "rotate", *pool, "--accept-old=0")
    again = Part("broker", broker.folder, f"--Pool.kernel_port={port}")
    try:
        again.until_said("broker ready", times=2)
        assert pool_file(again).next is None
        assert pool_file(again).earlier is None
    finally:
        again.stop()
