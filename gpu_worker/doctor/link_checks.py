"""The pool that runs: whether it answers, whether its nodes are there, and whether this node is one of them."""

import asyncio
from collections.abc import Iterator

from bulletin.errors import BadConfig, BulletinError
from bulletin.pool_words import describe_absence
from bulletin.units import show_duration
from bulletin.wire import keys, messages as wire
from gpu_worker.console import client
from gpu_worker.doctor.broker_probe import shake_hands
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.file_owners import is_there, read_keys
from gpu_worker.doctor.hub_api import HubApi
from gpu_worker.doctor.pool_setup import PoolSetup
from gpu_worker.reachability import find_obstacle


def check_pool(setup: PoolSetup, hub: HubApi) -> Iterator[Diagnosis]:
    """Ask the pool of this folder for its picture. One that was never started is nothing wrong; one that died is."""
    if setup.is_node:
        yield from _check_membership(setup)
        return
    settings = setup.settings
    if not setup.is_broker_up:
        was_up = is_there(settings.connection_file)
        if was_up or (hub.is_up and setup.hub is not None and setup.hub.is_configured):
            yield Diagnosis(
                check="pool-dead",
                what=f"The pool in {settings.folder} does not answer"
                + (", and has not ended as it should." if was_up else f", and a hub does, at {hub.url}."),
                why="%%gpu cells fail until it is there.",
                remedy="See its log (the hub's, or journalctl -u bulletin-broker) for its last words, and start it."
                + ("" if was_up else " If that hub is another one, this one needs other ports, or its end."),
            )
        return
    if (public := _read_public(setup)) is not None:
        yield public
    try:
        answer = client.ask(_connect(setup), wire.Look())
    except BulletinError as error:
        yield Diagnosis(
            check="pool-silent",
            what=f"The pool in {settings.folder} was asked for its state: {error}",
            why="What does not answer here does not answer notebooks.",
            remedy="See the broker's log, and start it again.",
        )
        return
    if isinstance(answer, wire.Picture):
        yield from judge_picture(answer)


def _connect(setup: PoolSetup) -> keys.Connection:
    """Make the connection of the pool's own user, whose file this user may read."""
    file = setup.read_pool_file()
    assert file is not None, "its broker was found by it"
    return keys.Connection(address=file.kernel_address, public_key=file.keys.public, token=file.token)


def judge_picture(picture: wire.Picture) -> Iterator[Diagnosis]:
    """Find what is wrong in what a broker shows of its pool."""
    if not picture.slots:
        yield Diagnosis(
            check="no-agent",
            what="No agent has come to the pool: it has no slots.",
            why="Every cell waits.",
            remedy="Start `bulletin agent` on the nodes; its log says why it is not accepted.",
        )
    for one in picture.absent_nodes:
        yield Diagnosis(
            check="node-absent",
            what=describe_absence(one.node, one.absent_ms, one.problem),
            why="Its slots are missing.",
            remedy=f"Start its agent, or run `bulletin doctor` there; for good: bulletin node remove {one.node}",
        )
    for node, ahead_ms in picture.clocks_ahead_ms.items():
        apart = show_duration(abs(ahead_ms))
        yield Diagnosis(
            check="clock-apart",
            what=f"The clock of {node} is {apart} {'ahead of' if ahead_ms > 0 else 'behind'} the broker's.",
            why=f"Files that cells write there have times that are {apart} off, by which make, caches and backups go; "
            f"where Pool.ends_at is set there, its agent leaves {apart} too {'early' if ahead_ms > 0 else 'late'}. "
            "Cells and what they are charged go by neither.",
            remedy="Let both hosts' clocks be kept: timedatectl set-ntp true (or chrony).",
            level="advice",
        )
    if refused := picture.counters.get("refused agents", 0):
        yield Diagnosis(
            check="agents-unknown",
            what=f"The broker has turned agents away {refused} times since it was started.",
            why="They are not registered, or come with old keys or another version.",
            remedy="Their logs say which; `bulletin node list` shows who may come, `bulletin node add` makes a "
            "new file.",
            level="advice",
        )


def _read_public(setup: PoolSetup) -> Diagnosis | None:
    """Compare what the hub tells its servers with what the broker has."""
    file = setup.read_pool_file()
    try:
        public = keys.read_public(setup.settings.public_file)
    except (OSError, BadConfig) as error:
        return Diagnosis(
            check="public-file",
            what=f"{setup.settings.public_file} cannot be used: {error}",
            why="The hub reads there where the pool is, and tells its servers.",
            remedy="Start the broker again, which writes it anew, in a folder that only it can change.",
        )
    if file is not None and (public.address, public.public_key) != (file.kernel_address, file.keys.public):
        return Diagnosis(
            check="old-public",
            what=f"{setup.settings.public_file} names another broker, or another key, than the one that runs.",
            why="New servers do not find the pool.",
            remedy="Start the broker again, which writes it anew, and then the servers.",
        )
    return None


def _check_membership(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Try the keys in a node's file at the broker that it names."""
    path = setup.settings.node_file
    if is_there(setup.settings.pool_file):
        yield Diagnosis(
            check="two-roles",
            what=f"{setup.settings.folder} has both node.json and pool.json.",
            why="A node needs no secrets of a broker's, and its agent does not start with them.",
            remedy="Remove pool.json on a node of a pool elsewhere; node.json where the broker runs.",
        )
    try:
        file = read_keys(path, keys.NodeFile)
    except (OSError, BadConfig):
        return  # the check of files says it
    if obstacle := asyncio.run(find_obstacle(file.broker_address)):
        yield Diagnosis(
            check="broker-away",
            what=f"This node does not reach its broker. {obstacle}",
            why="It gives the pool nothing until it does.",
            remedy="Start the broker, or let the port through (Pool.agent_port of the broker).",
        )
        return
    match shake_hands(file.broker_address, file.broker_public_key, file.keys):
        case "refused" | "silent":
            yield Diagnosis(
                check="old-keys",
                what=f"The broker at {file.broker_address} does not know the keys in {path}.",
                why="The node was removed, or has got new ones: its agent is not let in.",
                remedy=f"On the broker's host: bulletin node add {file.node} --replace; bring the new file here.",
            )
        case "foreign":
            yield Diagnosis(
                check="other-broker",
                what=f"What answers at {file.broker_address} is not the broker that {path} is for.",
                why="The pool was made anew, or the port is another program's: the agent is not let in.",
                remedy="On the broker's host: bulletin node add NAME; bring the new file here.",
            )
        case "made":
            pass
