"""The connections of a server's socket: who is known stays, of strangers there are so many at most, and for so long.

ZeroMQ lets anybody connect who has the server's public key, and never ends a connection by itself. Each takes a
descriptor and memory, and what waits to be sent on it stays until it is gone. Of a message it holds frame after frame
until the last one has come, however many. So here connections are counted as they come, by what the socket's monitor
tells, and how much each has sent since it was heard, by what TCP tells; one is ended by shutting its TCP socket down,
which ZeroMQ takes for its end.
"""

import contextlib
import resource
import secrets
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

#: So many strangers at most, whatever the process may open: each takes some 20 kB.
_MOST_STRANGERS = 16_384
#: What a heartbeat every two seconds takes, and more, in bytes a second: of it no message comes.
_HEARTBEATS_PER_S = 100
#: `tcpi_bytes_received` in Linux's `struct tcp_info`, which only grows at its end.
_RECEIVED_AT, _RECEIVED = 128, struct.Struct("=Q")
_FAILED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH

#: Whether somebody has shown who they are by the connection of this route.
IsKnown = Callable[[bytes], bool]


class _Connection:
    """One that is there, and not known (any more) since then."""

    def __init__(self, peer: tuple[str, int], since_s: float) -> None:
        self.peer, self.since_s = peer, since_s
        self.route: bytes | None = None
        #: Which public key the peer has proved to have; None where the server does not ask.
        self.key: str | None = None
        #: What had come by it when it was last heard, and when that was.
        self.heard_bytes, self.heard_s = 0, since_s


class Connections:
    """Ends those of strangers that are too many, or there for too long, and counts those that ZeroMQ turned away."""

    def __init__(
        self,
        context: zmq.asyncio.Context,
        server: zmq.asyncio.Socket,
        is_known: IsKnown,
        patience_s: float,
        most: int | None = None,
        unheard_limit_bytes: int | None = None,
    ) -> None:
        """Watch a socket that is not bound yet.

        A connection by which more comes than `unheard_limit_bytes` without a message that is whole is ended, whoever's
        it is.

        Strangers are left there for `patience_s`, and so many of them (`most`): by default as many as a quarter of the
        descriptors that this process may have. Of more, the oldest goes of the host that has most of them: who is
        honest shows who they are at once.
        """
        self._server, self._is_known, self._patience_s = server, is_known, patience_s
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._unheard_limit_bytes = unheard_limit_bytes
        self._most = min(_MOST_STRANGERS, soft // 4) if most is None else most
        #: Turned away by ZeroMQ: a wrong key, no key, bytes that are not ZeroMQ. And ended here.
        self.failed = self.ended = 0
        #: By the number of their descriptor in ZeroMQ's hands. Strangers by host, the oldest first.
        self._known: dict[int, _Connection] = {}
        self._strangers: dict[str, dict[int, _Connection]] = {}
        self._descriptors: dict[bytes, int] = {}
        #: By which something was heard since `tidy`.
        self._heard: set[bytes] = set()
        #: At which ports the socket listens beside that which it was bound to last.
        self._earlier_ports: set[int] = set()
        address = f"inproc://monitor-{secrets.token_hex(8)}"
        server.monitor(address, _FAILED | zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self._news: zmq.asyncio.Socket = context.socket(zmq.PAIR)
        self._news.linger = 0
        self._news.connect(address)

    async def run(self) -> None:
        """Follow what happens until cancelled."""
        while True:
            news = parse_monitor_message(await self._news.recv_multipart())
            if news["event"] & _FAILED:
                self.failed += 1
            elif news["event"] == zmq.EVENT_ACCEPTED:
                self._add(news["value"])
            else:
                self._remove(news["value"])

    def close(self) -> None:
        """Stop watching."""
        self._news.close()

    def note(self, received: Sequence[zmq.Frame]) -> None:
        """Take note of whose connection something has come by: a message as ZeroMQ gave it, the route first."""
        route = received[0].bytes
        self._heard.add(route)
        if route not in self._descriptors:
            descriptor = int(received[-1].get(zmq.SRCFD))
            self._add(descriptor)  # the monitor may tell of it later
            connection = self._find(descriptor)
            if connection is not None:
                # What an earlier one with this number has said may be read last: who speaks again has the last word.
                self._descriptors.pop(connection.route or b"", None)
                connection.route, connection.key = route, _key_of(received[-1])
                self._descriptors[route] = descriptor

    def key_of(self, route: bytes) -> str | None:
        """Return the public key that the peer of a connection has proved to have; None where it is not there."""
        descriptor = self._descriptors.get(route)
        connection = None if descriptor is None else self._find(descriptor)
        return None if connection is None else connection.key

    def tidy(self) -> None:
        """Find out who is known by now, and end who was a stranger for too long, or sends and is never heard.

        To be called each second.
        """
        now_s = time.monotonic()
        self._end_unheard(now_s)
        for descriptor, connection in list(self._known.items()):
            if not self._has_shown(connection):
                connection.since_s = now_s
                del self._known[descriptor]
                self._strangers.setdefault(connection.peer[0], {})[descriptor] = connection
        for host in list(self._strangers):
            for descriptor, connection in list(self._strangers[host].items()):
                if self._has_shown(connection):
                    self._move_to_known(descriptor, connection)
                elif now_s - connection.since_s > self._patience_s:
                    self._end(descriptor, connection)

    def _end_unheard(self, now_s: float) -> None:
        """End connections by which too much has come since a message was heard: ZeroMQ holds all of it."""
        heard, self._heard = self._heard, set()
        if self._unheard_limit_bytes is None:
            return
        groups = (self._known, *self._strangers.values())
        for descriptor, connection in [one for group in groups for one in group.items()]:
            received_bytes = _received_bytes(descriptor)
            if connection.route in heard:
                connection.heard_bytes, connection.heard_s = received_bytes, now_s
            allowed_bytes = self._unheard_limit_bytes + _HEARTBEATS_PER_S * (now_s - connection.heard_s)
            if received_bytes - connection.heard_bytes > allowed_bytes:
                self._end(descriptor, connection)

    def end(self, route: bytes) -> None:
        """End the connection of a route at once, with what still waits to be sent on it."""
        descriptor = self._descriptors.get(route)
        connection = None if descriptor is None else self._find(descriptor)
        if descriptor is not None and connection is not None:
            self._end(descriptor, connection)

    def add_earlier_port(self, port: int) -> None:
        """Take note that the socket listens at a port, too, that is not the one that it is bound to last."""
        self._earlier_ports.add(port)

    def end_earlier_port(self, port: int) -> None:
        """End all connections that were made at an earlier port, where the socket listens no more."""
        for group in (self._known, *self._strangers.values()):
            for descriptor, connection in list(group.items()):
                if _peer_of(descriptor, {port}) == connection.peer:
                    self._end(descriptor, connection)
        self._earlier_ports.discard(port)

    def _add(self, descriptor: int) -> None:
        peer, connection = _peer_of(descriptor, self._ports), self._find(descriptor)
        if connection is not None and connection.peer == peer:
            return
        self._remove(descriptor)
        if peer is None:
            return  # it is gone already
        self._strangers.setdefault(peer[0], {})[descriptor] = _Connection(peer, time.monotonic())
        while sum(map(len, self._strangers.values())) > self._most:
            host = max(self._strangers.values(), key=len)
            oldest = next(iter(host))
            if self._has_shown(host[oldest]):
                self._move_to_known(oldest, host[oldest])
            else:
                self._end(oldest, host[oldest])

    def _move_to_known(self, descriptor: int, connection: _Connection) -> None:
        self._remove_stranger(descriptor, connection)
        self._known[descriptor] = connection

    def _has_shown(self, connection: _Connection) -> bool:
        return connection.route is not None and self._is_known(connection.route)

    def _find(self, descriptor: int) -> _Connection | None:
        if descriptor in self._known:
            return self._known[descriptor]
        return next((host[descriptor] for host in self._strangers.values() if descriptor in host), None)

    def _end(self, descriptor: int, connection: _Connection) -> None:
        """Shut a connection down, and forget it. Its number may be another's by now: then nothing happens to that."""
        self._remove(descriptor)
        self.ended += 1
        if _peer_of(descriptor, self._ports) == connection.peer:
            with contextlib.suppress(OSError), _as_socket(descriptor) as tcp:
                tcp.shutdown(socket.SHUT_RDWR)

    def _remove(self, descriptor: int) -> None:
        connection = self._find(descriptor)
        if connection is not None:
            self._known.pop(descriptor, None)
            self._remove_stranger(descriptor, connection)
            if connection.route is not None:
                self._descriptors.pop(connection.route, None)

    def _remove_stranger(self, descriptor: int, connection: _Connection) -> None:
        host = self._strangers.get(connection.peer[0], {})
        host.pop(descriptor, None)
        if not host:
            self._strangers.pop(connection.peer[0], None)

    @property
    def _ports(self) -> Collection[int]:
        last = int(self._server.getsockopt_string(zmq.LAST_ENDPOINT).rpartition(":")[2])
        return {last, *self._earlier_ports} if self._earlier_ports else (last,)


@contextlib.contextmanager
def _as_socket(descriptor: int) -> Iterator[socket.socket]:
    """Use a descriptor of ZeroMQ's as a socket. Raises OSError if it is none.

    No copy is made, and nothing is closed: the number may be a file's by now, and SQLite loses its locks on a file when
    any descriptor of that is closed.
    """
    tcp = socket.socket(fileno=descriptor)
    try:
        yield tcp
    finally:
        tcp.detach()


def _peer_of(descriptor: int, ports: Collection[int]) -> tuple[str, int] | None:
    """Return host and port at the other end, if this is the number of a connection with one of ours at these ports."""
    try:
        with _as_socket(descriptor) as tcp:
            host, peer_port = tcp.getpeername()[:2]
            return (host, peer_port) if tcp.getsockname()[1] in ports else None
    except (OSError, ValueError):  # no descriptor, no socket, or one of another family
        return None


def _key_of(frame: zmq.Frame) -> str | None:
    """Return the key that the handshake of this frame's connection was made with, where its server asked for one."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return None


def _received_bytes(descriptor: int) -> int:
    """Return how much has come by a TCP connection; 0 where it is none any more."""
    size = _RECEIVED_AT + _RECEIVED.size
    try:
        with _as_socket(descriptor) as tcp:
            info = tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
    except (OSError, ValueError):
        return 0
    return int(_RECEIVED.unpack_from(info, _RECEIVED_AT)[0]) if len(info) == size else 0
