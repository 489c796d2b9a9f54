"""TCP ports: whether what is to listen can, and whether nodes and notebooks reach it."""

import errno
import os
import socket
from collections.abc import Iterator

from bulletin.errors import BadConfig
from bulletin.wire import keys
from gpu_worker.config import LOCALHOST
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.file_owners import read_keys
from gpu_worker.doctor.hub_api import HubApi
from gpu_worker.doctor.pool_setup import PoolSetup
from gpu_worker.node_registry import NodeRegistry
from gpu_worker.reachability import is_loopback, is_unspecified, parse


def check_pool_ports(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Try to listen where broker and agent are to, unless the pool itself does."""
    settings = setup.settings
    host = settings.host or (LOCALHOST if not setup.is_node else "")
    if setup.is_node:
        wanted = {"node_port": settings.node_port}
    elif setup.is_broker_up:
        return
    else:
        wanted = {"kernel_port": settings.kernel_port, "agent_port": settings.agent_port}
    if problem := _try_to_listen(host, 0):
        yield _cannot_listen("Pool.host", host, 0, problem)
        return
    for name, port in wanted.items():
        if port and (problem := _try_to_listen(host, port)) and not (setup.is_node and problem == errno.EADDRINUSE):
            yield _cannot_listen(f"Pool.{name}", host, port, problem)
    file = setup.read_pool_file()
    for name, address in (("kernel", file.kernel_address), ("agent", file.agent_address)) if file is not None else ():
        kept = parse(address)
        if kept is not None and not wanted.get(f"{name}_port") and _try_to_listen(*kept) == errno.EADDRINUSE:
            yield Diagnosis(
                check="port-kept",
                what=f"Port {kept[1]}, which this pool had last time, is now another program's.",
                why="The pool takes another one at its start, and servers and nodes that run do not find it.",
                remedy=f"`ss -ltnp sport = :{kept[1]}` names that program: end it; or choose ports that stay, "
                "Pool.kernel_port and Pool.agent_port.",
                level="advice",
            )


def check_hub_ports(setup: PoolSetup, hub: HubApi) -> Iterator[Diagnosis]:
    """Try to listen where the hub and its proxy are to, unless this hub runs."""
    if setup.hub is None or hub.is_up:
        return
    for what, host, port in setup.hub.listeners:
        if port and (problem := _try_to_listen(host, port)):
            yield _cannot_listen(what, host, port, problem)


def check_reach(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look whether nodes of other hosts reach the broker, or this node does."""
    settings = setup.settings
    if setup.is_node:
        return
    try:
        nodes = read_keys(NodeRegistry(settings.folder).path, keys.NodesFile).nodes
    except (OSError, BadConfig):  # there is none, or the check of private files says what is wrong with it
        nodes = ()
    host = settings.host or LOCALHOST
    file = setup.read_pool_file()
    if file is not None and setup.is_broker_up and (listens := parse(file.agent_address)) is not None:
        host = listens[0]  # it may have been started with --host
    if nodes and is_loopback(host):
        yield Diagnosis(
            check="broker-hidden",
            what=f"{', '.join(one.node for one in nodes)} may come to this pool, and its broker listens at {host}.",
            why="Only programs of this host come there.",
            remedy="Set Pool.host to the address by which nodes and notebooks reach this host.",
        )
    told = parse(settings.advertise)
    if settings.advertise and told is None:
        yield Diagnosis(
            check="advertise",
            what=f"Pool.advertise is {settings.advertise!r}.",
            why="Notebooks are told to find the agent there, and cannot.",
            remedy="Write it as tcp://HOST:PORT.",
        )
    elif told is not None and is_unspecified(told[0]):
        yield Diagnosis(
            check="advertise",
            what=f"Pool.advertise is {settings.advertise!r}, which stands for every address and is none to go to.",
            why="Notebooks are told to find the agent there, and cannot.",
            remedy="Name one address of this host.",
        )


def _try_to_listen(host: str, port: int) -> int:
    """Listen there for a moment; return the error, 0 if it works."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("" if host == "*" else host, port))
            sock.listen(1)
        except socket.gaierror:
            return errno.EADDRNOTAVAIL
        except OSError as error:
            return error.errno or errno.EINVAL
    return 0


def _cannot_listen(what: str, host: str, port: int, problem: int) -> Diagnosis:
    where = f"port {port} of {host or 'this host'}"
    if problem == errno.EADDRINUSE:
        found = f"{where} is another program's, and {what} is to be there."
        return Diagnosis(
            check="port-taken",
            what=found[0].upper() + found[1:],
            why="What is to listen there does not start.",
            remedy=f"`ss -ltnp sport = :{port}` names that program: end it, or choose another port.",
        )
    if problem == errno.EADDRNOTAVAIL:
        return Diagnosis(
            check="host-foreign",
            what=f"{host} is no address of this host, and {what} is to listen there.",
            why="What is to listen there does not start.",
            remedy="`ip address` shows this host's addresses; behind a port that is passed on, set Pool.advertise.",
        )
    return Diagnosis(
        check="port-forbidden",
        what=f"{what} cannot listen at {where}: {os.strerror(problem)}.",
        why="What is to listen there does not start.",
        remedy="Ports below 1024 are for root: choose a higher one.",
    )
