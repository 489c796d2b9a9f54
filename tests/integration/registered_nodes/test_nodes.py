"""Nodes of other hosts: each has a file of its own, by which it is that node and nothing else, until it is removed."""

import contextlib
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from msgspec import structs

from bulletin.codes import RefusalCode
from bulletin.wire import frames, keys, messages as wire
from tests.integration.conftest import Notebook, until
from tests.integration.nodes import ACCEPTED, AGENT, Part, Peer, add, nodes, picture, pool_file, register, run


def test_a_node_has_one_file_and_runs_cells_until_it_is_removed(
    broker: Part, start: Callable[..., Part], open_notebook: Callable[..., Notebook]
) -> None:
    folder = add(broker, "node1", "node1")
    agent = start("agent", "node1", *AGENT)
    until(lambda: nodes(broker.folder) == {"node1"}, "the node")
    notebook = open_notebook(BULLETIN_CONNECTION_FILE=str(broker.folder / "connection.json"))
    assert notebook.run("%%gpu\nprint('it ran')\n").stream() == "it ran\n"
    assert "node1" in run("node", "list", "--folder", str(broker.folder))
    run("node", "remove", "node1", "--folder", str(broker.folder))
    until(lambda: nodes(broker.folder) == set(), "the removed node to be gone")
    agent.stop()
    again = start("agent", "node1", *AGENT)
    until(lambda: broker_counts(broker, "failed handshakes"), "the removed node to be turned away")
    assert nodes(broker.folder) == set()
    again.stop()
    (folder / "node.json").unlink()
    add(broker, "node1", "node1")
    start("agent", "node1", *AGENT)
    until(lambda: nodes(broker.folder) == {"node1"}, "the node with its new file")


def broker_counts(broker: Part, what: str) -> int:
    seen = picture(broker.folder)
    return 0 if seen is None else seen.counters.get(what, 0)


def test_the_file_of_a_node_has_nothing_of_the_brokers_nor_of_other_nodes(broker: Part) -> None:
    file = add(broker, "node1", "node1") / "node.json"
    other = (add(broker, "node2", "node2") / "node.json").read_text()
    pool, mine = pool_file(broker), file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert pool.keys.public in mine
    own = keys.read_private(file, keys.NodeFile).keys
    known = (broker.folder / "nodes.json").read_text()
    for secret in (pool.keys.secret, pool.agent_secret, pool.token, keys.agent_keys(pool.agent_secret).secret):
        assert secret not in mine
    assert own.secret not in other
    assert own.public in known
    assert own.secret not in known, "the broker needs no secret of a node"


def test_a_node_cannot_be_another_node_or_the_pools_own_agent(broker: Part) -> None:
    own = keys.read_private(add(broker, "node1", "node1") / "node.json", keys.NodeFile).keys
    add(broker, "node2", "node2")
    secret = pool_file(broker).agent_secret
    with Peer(broker, own) as peer:
        for message in (
            register(broker, "node2"),
            register(broker, "node1", node="node2"),
            register(broker, "hub-0a1b2c3d", secret),
        ):
            refused = peer.says(message)
            assert isinstance(refused, wire.Refusal), message
            assert refused.code is RefusalCode.NOT_ALLOWED
            assert "'node1'" in refused.sentence
        assert isinstance(peer.says(register(broker, "node1")), wire.Registered)
    with Peer(broker, keys.agent_keys(secret)) as peer:
        refused = peer.says(register(broker, "node2", secret))
        assert isinstance(refused, wire.Refusal)
        assert "registered node" in refused.sentence


def test_a_name_that_another_agent_has_who_answers_is_refused_with_words_and_is_free_when_that_is_gone(
    broker: Part,
) -> None:
    own = keys.read_private(add(broker, "node1", "node1") / "node.json", keys.NodeFile).keys
    with Peer(broker, own) as first, Peer(broker, own) as second:
        assert isinstance(first.says(register(broker, "node1", process="one")), wire.Registered)
        assert isinstance(first.says(wire.Ping()), wire.Pong)
        refused = second.says(register(broker, "node1", process="two"))
        assert isinstance(refused, wire.Refusal)
        assert refused.code is RefusalCode.NAME_TAKEN
        assert "bulletin node add NAME" in refused.sentence
        first.close()
        until(
            lambda: isinstance(second.says(register(broker, "node1", process="two")), wire.Registered), "it to be free"
        )


def test_a_removed_node_is_not_heard_also_by_a_connection_that_it_had(broker: Part) -> None:
    own = keys.read_private(add(broker, "node1", "node1") / "node.json", keys.NodeFile).keys
    with Peer(broker, own) as peer:
        assert isinstance(peer.says(register(broker, "node1")), wire.Registered)
        run("node", "remove", "node1", "--folder", str(broker.folder))
        with contextlib.suppress(zmq.Again):  # where its connection is gone already
            peer.socket.send_multipart(frames.pack(register(broker, "node1")), zmq.DONTWAIT)
        until(lambda: nodes(broker.folder) == set(), "the node to be gone")
        assert not any(isinstance(message, wire.Registered) for message in drain(peer))


def drain(peer: Peer) -> Iterator[wire.ToAgent]:
    while peer.socket.poll(200):
        yield peer.unpacker.unpack(peer.socket.recv_multipart())[0]


def test_new_keys_for_a_node_revoke_its_old_ones(broker: Part) -> None:
    old = keys.read_private(add(broker, "node1", "old") / "node.json", keys.NodeFile).keys
    add(broker, "node1", "new", "--replace")
    with Peer(broker, old) as peer:
        peer.socket.send_multipart(frames.pack(register(broker, "node1")))
        until(lambda: broker_counts(broker, "failed handshakes"), "the old keys to be turned away")
        assert list(drain(peer)) == []


def test_a_list_of_nodes_that_cannot_be_trusted_lets_nobody_in(broker: Part) -> None:
    own = keys.read_private(add(broker, "node1", "node1") / "node.json", keys.NodeFile).keys
    with Peer(broker, own) as peer:
        assert isinstance(peer.says(register(broker, "node1")), wire.Registered)
        (broker.folder / "nodes.json").chmod(0o644)
        until(lambda: nodes(broker.folder) == set(), "the node to be left out")
        broker.until_said("no node of another host is let in")


def test_an_agent_says_where_it_listens_whom_it_calls_and_that_it_was_accepted(
    broker: Part, start: Callable[..., Part]
) -> None:
    add(broker, "node1", "node1")
    port = free_port()
    agent = start("agent", "node1", *AGENT, f"--Pool.node_port={port}")
    said = agent.until_said(ACCEPTED)
    assert f"told=tcp://127.0.0.1:{port} broker={pool_file(broker).agent_address}" in said


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_an_agent_without_its_broker_says_why_and_goes_on_when_it_is_there(
    broker: Part, start: Callable[..., Part]
) -> None:
    folder = add(broker, "node1", "node1")
    broker.stop()
    agent = start("agent", "node1", *AGENT)
    agent.until_said("Nothing listens at tcp://127.0.0.1:")
    start("broker", "pool")
    agent.until_said(ACCEPTED)
    run("node", "remove", "node1", "--folder", str(broker.folder))
    agent.until_said("does not know the keys in")
    (folder / "node.json").unlink()
    add(broker, "node1", "node1")  # the agent finds its new file by itself
    agent.until_said(ACCEPTED, times=2)


@pytest.mark.parametrize("wrong", ["port", "key"])
def test_an_agent_that_calls_somebody_else_says_so(broker: Part, start: Callable[..., Part], wrong: str) -> None:
    path = add(broker, "node1", "node1") / "node.json"
    file = keys.read_private(path, keys.NodeFile)
    if wrong == "port":
        keys.write_private(path, structs.replace(file, broker_address=pool_file(broker).kernel_address))
    else:
        keys.write_private(path, structs.replace(file, broker_public_key=keys.make_keys().public))
    agent = start("agent", "node1", *AGENT)
    agent.until_said("at its port for notebooks" if wrong == "port" else "is not the broker that", times=2)


def test_a_second_agent_with_the_same_file_is_told_so_until_the_first_is_gone(
    broker: Part, start: Callable[..., Part]
) -> None:
    first_folder, second_folder = add(broker, "node1", "node1"), broker.folder.with_name("copied")
    second_folder.mkdir()
    shutil.copy(first_folder / "node.json", second_folder)
    first = start("agent", "node1", *AGENT)
    first.until_said(ACCEPTED)
    second = start("agent", "copied", *AGENT)
    second.until_said("There is an agent of this name already", times=2)
    assert nodes(broker.folder) == {"node1"}
    assert first.log.read_text().count(ACCEPTED) == 1, "the first one has noticed nothing"
    first.stop()
    second.until_said(ACCEPTED)


def test_a_node_whose_door_does_not_answer_gets_no_cells_and_status_says_so(
    broker: Part, start: Callable[..., Part]
) -> None:
    add(broker, "node1", "node1")
    folder, port = str(broker.folder), free_port()
    until((broker.folder / "connection.json").exists, "the broker to let people in without a node")
    assert "node1: not there, has not come since" in run("status", "--folder", folder, status=3)
    agent = start("agent", "node1", *AGENT, f"--Pool.advertise=tcp://127.0.0.1:{port}")
    agent.until_said("cannot reach this node where notebooks would")
    assert nodes(broker.folder) == set()
    assert f"Nothing listens at tcp://127.0.0.1:{port}" in run("status", "--folder", folder, status=3)
    with socket.create_server(("127.0.0.1", port)):
        agent.until_said(ACCEPTED)
    assert "not there" not in run("status", "--folder", folder)


def test_a_lost_node_stays_in_status_until_it_is_removed(broker: Part, start: Callable[..., Part]) -> None:
    add(broker, "node1", "node1")
    agent = start("agent", "node1", *AGENT)
    until(lambda: nodes(broker.folder) == {"node1"}, "the node")
    folder = str(broker.folder)
    assert "not there" not in run("status", "--folder", folder)
    agent.process.kill()
    until(lambda: nodes(broker.folder) == set(), "the node to be given up")
    assert "node1: not there, lost " in run("status", "--folder", folder, status=3)
    run("node", "remove", "node1", "--folder", folder)
    assert "not there" not in run("status", "--folder", folder)


def test_a_setting_that_another_process_obeys_is_refused_with_where_it_belongs(broker: Part, tmp_path: Path) -> None:
    folder, file = add(broker, "node1", "node1"), tmp_path / "config.py"
    file.write_text("c.Pool.kernel_port = 9100\n")
    for words in (["--Pool.kernel_port=9100"], ["--config", str(file)]):
        said = run("agent", "--folder", str(folder), *AGENT, *words, status=78)
        assert "Pool.kernel_port is a setting that the broker obeys, and this is the agent" in said
    said = run("broker", "--folder", str(tmp_path / "new"), "--isolation", "shared", "--slots", "2", status=78)
    assert "Pool.isolation, Pool.slots are settings that the agent obeys" in said
    assert not (tmp_path / "new").exists()


def test_two_ports_that_are_one_and_a_port_that_is_taken_are_said(broker: Part) -> None:
    folder = add(broker, "node1", "node1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = run("agent", "--folder", str(folder), *AGENT, f"--Pool.node_port={port}", status=78)
    assert "Choose another Pool.host or Pool.node_port." in said
    assert "Traceback" not in said
    same = ("--Pool.kernel_port=9001", "--Pool.agent_port=9002", "--Pool.node_port=9002")
    assert "Pool.agent_port and Pool.node_port are both 9002" in run("pool", "--folder", str(folder), *same, status=78)


def test_what_cannot_be_done_is_said_with_the_remedy(broker: Part, tmp_path: Path) -> None:
    folder = ("--folder", str(broker.folder))
    add(broker, "node1", "node1")
    for words, said in [
        (["add", "node2", *folder], "where only this host reaches it"),
        (["add", "node1", *folder, "--address=tcp://h:1", f"--out={tmp_path / 'a'}"], "--replace"),
        (["add", "../evil", *folder, "--address=tcp://h:1"], "is no name for a node"),
        (["add", "node2", *folder, "--address=hub:9002"], "tcp://HOST:PORT"),
        (["add", "node2", *folder, "--address=tcp://h:1", f"--out={broker.folder / 'pool.json'}"], "is there already"),
        (["remove", "node2", *folder], "Registered are: node1."),
        (["list", "--folder", str(tmp_path / "nothing")], "Start its broker first"),
    ]:
        assert said in run("node", *words, status=78), words
    assert "usage: bulletin node add NAME" in run("node", status=2)
    assert not (tmp_path / "a").exists()


def test_a_folder_that_would_be_a_node_and_a_pool_is_refused(broker: Part) -> None:
    file = add(broker, "node1", "node1") / "node.json"
    (file.parent / "pool.json").write_bytes((broker.folder / "pool.json").read_bytes())
    assert "remove pool.json here" in run("agent", "--folder", str(file.parent), *AGENT, status=78)
    (file.parent / "pool.json").unlink()
    file.chmod(0o644)
    assert "chmod 600" in run("agent", "--folder", str(file.parent), *AGENT, status=78)
    file.chmod(0o600)
    said = run("agent", "--folder", str(file.parent), "--device", "cpu", status=78)
    assert "Pool.isolation is not chosen, and this node runs cells for others" in said
