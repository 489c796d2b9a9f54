"""Where a broker listens, and by which keys it is known there: those that it has, and those before, until a time."""

import asyncio
import contextlib

import structlog
import zmq
import zmq.asyncio
from msgspec import structs

from bulletin.errors import BadConfig
from bulletin.wire import channel, keys
from bulletin.wire.connections import Connections
from gpu_worker.config import LOCALHOST, PoolSettings
from gpu_worker.node_registry import time_of_day_ms
from gpu_worker.reachability import find_lasting_address, is_name, is_of_this_host, parse, resolve, write_address

#: So often it is looked whether the host still has the address that the pool's name led to.
_LOOK_S = 3.0


def open_files(settings: PoolSettings) -> keys.PoolFile:
    """Read the pool's keys and secrets of last time, or draw and keep new ones; take up keys that were made for now."""
    keys.make_folder(settings.folder)
    try:
        files = keys.read_private(settings.pool_file, keys.PoolFile)
    except FileNotFoundError:
        files = keys.PoolFile(
            keys=keys.make_keys(),
            agent_secret=keys.make_secret(),
            token=keys.make_secret(),
            kernel_address="",
            agent_address="",
        )
        keys.write_private(settings.pool_file, files)
        return files
    if files.next is not None:  # the file has them as its own once it has where the broker is with them
        files = _take_up(files, files.next)
        _require_other_ports(files, settings)
    return files


def _take_up(files: keys.PoolFile, new: keys.NextKeys) -> keys.PoolFile:
    """Let the broker have its new keys. Where the old ones are accepted, it has other addresses with the new ones."""
    if new.accepts_old_until_ms <= time_of_day_ms():
        return structs.replace(files, keys=new.keys, next=None, earlier=None)
    earlier = keys.EarlierBroker(
        keys=files.keys,
        kernel_address=files.kernel_address,
        agent_address=files.agent_address,
        until_ms=new.accepts_old_until_ms,
    )
    return structs.replace(files, keys=new.keys, next=None, earlier=earlier, kernel_address="", agent_address="")


def _require_other_ports(files: keys.PoolFile, settings: PoolSettings) -> None:
    """Check that the ports of the old keys are free for them. Raises BadConfig."""
    if files.earlier is None:
        return
    old = {port_of(files.earlier.kernel_address), port_of(files.earlier.agent_address)}
    wanted = {"Pool.kernel_port": settings.kernel_port, "Pool.agent_port": settings.agent_port}
    if taken := [f"{name} = {port}" for name, port in wanted.items() if port in old]:
        raise BadConfig(
            f"The broker has new keys (bulletin keys rotate), and listens with its old ones where it did, until their "
            f"time is over. With the new ones it takes other ports: change {' and '.join(taken)}. If nobody is to come "
            "with the old ones any more: bulletin keys rotate --accept-old=0"
        )


def port_of(address: str) -> int:
    """Return the port of an address that something is bound to."""
    return int(address.rpartition(":")[2])


class BrokerDoors:
    """The addresses at which kernels and agents find a broker."""

    def __init__(
        self,
        settings: PoolSettings,
        sockets: tuple[zmq.asyncio.Socket, zmq.asyncio.Socket],
        connections: tuple[Connections, Connections],
    ) -> None:
        """Take what kernels and agents come to, in this order, with the present keys; neither is bound yet."""
        self._settings, self._sockets, self._connections = settings, sockets, connections
        self._log = structlog.get_logger("broker")
        #: What is bound for the old keys, by what others were told: a name may lead elsewhere by now.
        self._bound: dict[str, str] = {}
        #: Where each of the two sockets listens with the present keys.
        self._listens_at = ["", ""]
        #: What was said last of an address at which nobody can come.
        self._problem = ""

    def open(self, files: keys.PoolFile) -> keys.PoolFile:
        """Bind the addresses of last time, so that all find the way back, else free ones. Raises BadConfig.

        Returns what to keep of where that is, and to tell others.
        """
        if files.earlier is not None:
            self._open_earlier(files.earlier, files.keys)
        kernel = self._bind(0, files.kernel_address, self._settings.kernel_port)
        agent = self._bind(1, files.agent_address, self._settings.agent_port)
        return structs.replace(files, kernel_address=kernel, agent_address=agent)

    def close_earlier(self, files: keys.PoolFile) -> keys.PoolFile:
        """Cut off who comes with the old keys, where their time is over; return what to keep."""
        earlier = files.earlier
        if earlier is None or earlier.until_ms > time_of_day_ms():
            return files
        for socket, address, connections in self._earlier_doors(earlier):
            with contextlib.suppress(zmq.ZMQError):  # it was another program's when this broker began
                socket.unbind(self._bound.get(address, address))
            connections.end_earlier_port(port_of(address))
        self._log.info("the broker's old keys are accepted no more", kernels=earlier.kernel_address)
        return structs.replace(files, earlier=None)

    def _open_earlier(self, earlier: keys.EarlierBroker, present: keys.Keys) -> None:
        for socket, address, connections in self._earlier_doors(earlier):
            channel.set_keys(socket, earlier.keys)
            try:
                self._bound[address] = channel.bind(socket, address)
                connections.add_earlier_port(port_of(address))
            except zmq.ZMQError as error:
                self._log.warning("nobody can come with the broker's old keys", address=address, problem=str(error))
            channel.set_keys(socket, present)

    def _earlier_doors(self, earlier: keys.EarlierBroker) -> list[tuple[zmq.asyncio.Socket, str, Connections]]:
        addresses = earlier.kernel_address, earlier.agent_address
        return list(zip(self._sockets, addresses, self._connections, strict=True))

    def _bind(self, index: int, kept: str, port: int) -> str:
        host = self._settings.host or LOCALHOST
        wanted = write_address(host, port)
        if kept.startswith(write_address(host, 0).removesuffix("0")) and port in (0, port_of(kept)):
            try:
                return find_lasting_address(host, self._listen(index, kept))
            except zmq.ZMQError:
                self._log.warning("the port of last time is taken, another is used", address=kept)
        try:
            return find_lasting_address(host, self._listen(index, wanted))
        except zmq.ZMQError as error:
            raise BadConfig(
                f"The pool cannot listen on {wanted}: {error.strerror}. Choose another Pool.host or port."
            ) from None

    def _listen(self, index: int, address: str) -> str:
        self._listens_at[index] = bound = channel.bind(self._sockets[index], address)
        return bound

    async def follow_name(self) -> None:
        """Listen where the pool's name leads to, at the same ports, whenever the host has not the address of before.

        Until cancelled. Who was told the name comes there by itself. With the old keys nobody does: they are over soon.
        """
        while True:
            await asyncio.sleep(_LOOK_S)
            if not is_name(self._settings.host):
                continue
            gone = [(index, found) for index, at in enumerate(self._listens_at) if (found := parse(at)) is not None]
            gone = [(index, found) for index, found in gone if not is_of_this_host(found[0])]
            if not gone:
                continue
            try:
                now = await asyncio.to_thread(resolve, self._settings.host)
            except OSError as error:
                self._warn(str(error.strerror))
                continue
            problems = [
                self._move(index, now, port)
                for index, (host, port) in gone
                if now != host  # else the name service does not know yet, or it was away for a moment
            ]
            if any(problems):
                self._warn("; ".join(dict.fromkeys(problem for problem in problems if problem)))
            elif problems:
                self._problem = ""

    def _move(self, index: int, host: str, port: int) -> str:
        """Listen at another address instead. Return why not, where the host has not got it (yet), or not its port."""
        if not is_of_this_host(host):
            return f"The name {self._settings.host!r} leads to {host}, which this host has not"
        before = self._listens_at[index]
        try:
            now = self._listen(index, write_address(host, port))
        except zmq.ZMQError as error:
            return f"{write_address(host, port)}: {error.strerror}"
        with contextlib.suppress(zmq.ZMQError):  # not before: where it cannot move, the host may have that one again
            self._sockets[index].unbind(before)
        self._log.info("listening again", before=before, now=now)
        return ""

    def _warn(self, problem: str) -> None:
        """Say once, and not at each look, why nobody can come."""
        if problem != self._problem:
            self._problem = problem
            self._log.warning("this host has another address, and this broker has none", problem=problem)
