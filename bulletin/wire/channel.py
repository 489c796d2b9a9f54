"""ZeroMQ sockets as Bulletin uses them: CURVE always, frames of limited size, dead peers noticed.

A server binds a ROUTER, a client connects a DEALER. Both come in two forms: of a plain context (for threads) and of an
asyncio one. A server's queues hold so many messages of each connection, a client's all that it says.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import zmq
import zmq.asyncio
from zmq.auth.asyncio import AsyncioAuthenticator

from bulletin.wire.frames import BLOB_LIMIT, MESSAGE_LIMIT, Blob
from bulletin.wire.keys import Keys, make_keys

AnySocket = TypeVar("AnySocket", zmq.Socket[bytes], zmq.asyncio.Socket)

#: Links that carry control only, and links that carry blobs.
CONTROL_LIMIT = MESSAGE_LIMIT
DATA_LIMIT = BLOB_LIMIT + 4096

_HEARTBEAT_MS, _HEARTBEAT_TIMEOUT_MS = 2_000, 6_000
#: Who is not answered connects anew: the system asks a second time after twice as long each time, and where a link was
#: cut for a minute, the other one is not reached for half a minute more.
_CONNECT_TIMEOUT_MS = 4_000
#: So long a connection may be silent whose client sends no heartbeats before TCP asks whether it is there.
_KEEPALIVE_S = 60


def _prepare(socket: AnySocket, size_limit: int, queue: int) -> AnySocket:
    socket.linger = 0
    socket.sndhwm = socket.rcvhwm = queue
    socket.maxmsgsize = size_limit
    socket.handshake_ivl = 10_000
    return socket


def _take_family(socket: AnySocket, address: str) -> None:
    """Let a socket speak IPv6 where its address is one of IPv6: of a name, libzmq would then ask for no other."""
    socket.ipv6 = address.startswith("tcp://[")


def serve(socket: AnySocket, keys: Keys, size_limit: int, queue: int) -> AnySocket:
    """Make a ROUTER that only peers who know its public key can talk to. The caller binds it.

    In each direction so many messages (`queue`) of each connection wait: beyond, the peer's network is not read, and a
    send to the peer fails with EAGAIN. So send with DONTWAIT.
    """
    _prepare(socket, size_limit, queue)
    socket.curve_server = True
    set_keys(socket, keys)
    socket.router_mandatory = True
    # Heartbeats are the client's, which says how long its silence may last. libzmq 4.3.5 aborts the process where a
    # server's own heartbeat is due on a connection that broke while its queue was full (`!_io_error`).
    socket.tcp_keepalive = 1
    socket.tcp_keepalive_idle = _KEEPALIVE_S
    return socket


def set_keys(socket: AnySocket, keys: Keys) -> None:
    """Let a server have these keys where it is bound from now on; where it is bound already, it keeps those it had."""
    socket.curve_publickey = keys.public.encode()
    socket.curve_secretkey = keys.secret.encode()


def bind(socket: AnySocket, address: str) -> str:
    """Bind to "tcp://host:port", or to a free port for 0; return the address. Raises zmq.ZMQError if it is taken."""
    _take_family(socket, address)
    socket.bind(address.removesuffix(":0") + ":*" if address.endswith(":0") else address)
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)


def connect(
    socket: AnySocket, address: str, server_public_key: str, size_limit: int, own: Keys | None = None
) -> AnySocket:
    """Connect a DEALER to a server whose public key is known. Reconnects by itself, once a second at most.

    With fresh keys, unless its own matter to the server (`own`).
    """
    _prepare(socket, size_limit, 0)
    socket.heartbeat_ivl = _HEARTBEAT_MS
    socket.heartbeat_timeout = socket.heartbeat_ttl = _HEARTBEAT_TIMEOUT_MS
    own = make_keys() if own is None else own
    socket.curve_serverkey = server_public_key.encode()
    socket.curve_publickey = own.public.encode()
    socket.curve_secretkey = own.secret.encode()
    socket.reconnect_ivl = 50
    socket.reconnect_ivl_max = 1_000
    socket.connect_timeout = _CONNECT_TIMEOUT_MS
    _take_family(socket, address)
    socket.connect(address)
    return socket


def send(socket: zmq.Socket[bytes], address: str, frames: Sequence[Blob], *, copy: bool = True) -> None:
    """Send by a DEALER of `connect`, without waiting; connect it anew where libzmq has given its connection up.

    It does for good, and a send then waits for ever, where what answers once is no ZeroMQ, or not as it should be: the
    port may be another program's while the server is down. What was sent there is lost.
    """
    try:
        socket.send_multipart(frames, zmq.DONTWAIT, copy=copy)
    except zmq.Again:
        connect_anew(socket, address)
        socket.send_multipart(frames, zmq.DONTWAIT, copy=copy)


async def send_soon(socket: zmq.asyncio.Socket, address: str, frames: Sequence[Blob]) -> None:
    """Send as `send` does, by a socket of asyncio."""
    try:
        await socket.send_multipart(frames, zmq.DONTWAIT)
    except zmq.Again:
        connect_anew(socket, address)
        await socket.send_multipart(frames, zmq.DONTWAIT)


def connect_anew(socket: AnySocket, address: str) -> None:
    """Connect a DEALER of `connect` once more; what waits to be sent is lost."""
    with contextlib.suppress(zmq.ZMQError):  # libzmq has parted with the address already
        socket.disconnect(address)
    socket.connect(address)


class AdmittedKeys:
    """Turns away, in the handshake, at the servers of a context, whose key is not admitted."""

    def __init__(self, context: zmq.asyncio.Context, is_admitted: Callable[[str], bool]) -> None:
        """Take a context whose servers are all for the holders of admitted keys; who is admitted may change."""
        self._is_admitted = is_admitted
        self._authenticator = AsyncioAuthenticator(context)

    def start(self) -> None:
        """Begin, in the event loop that is to answer ZeroMQ; before the servers are bound."""
        self._authenticator.start()
        self._authenticator.configure_curve_callback(credentials_provider=self)

    def callback(self, _domain: str, key: bytes) -> bool:
        """Tell whether a peer with this public key is let in."""
        return self._is_admitted(key.decode())

    def stop(self) -> None:
        """Let nobody in any more."""
        self._authenticator.stop()
