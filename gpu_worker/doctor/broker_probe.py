"""Whether the broker that is meant listens at an address: it has the key, and knows ours where that matters."""

import time
from typing import Literal

import zmq
from zmq.utils.monitor import parse_monitor_message

from bulletin.wire import channel
from bulletin.wire.keys import Keys

_FAILED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_DISCONNECTED
_REFUSED = zmq.EVENT_HANDSHAKE_FAILED_AUTH
_MADE = zmq.EVENT_HANDSHAKE_SUCCEEDED
_PATIENCE_S = 3.0
#: `silent`: nothing has said anything in this time; `foreign`: it has not the key; `refused`: it does not take ours.
Shake = Literal["made", "refused", "foreign", "silent"]


def shake_hands(address: str, public_key: str, own: Keys | None = None) -> Shake:
    """Make the handshake of CURVE with a server, and nothing more; say how it ended."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        socket = context.socket(zmq.DEALER)
        news = socket.get_monitor_socket(_FAILED | _REFUSED | _MADE)
        news.linger = 0
        channel.connect(socket, address, public_key, channel.CONTROL_LIMIT, own)
        return _follow(news)
    finally:
        context.destroy(linger=0)


def _follow(news: "zmq.Socket[bytes]") -> Shake:
    end = time.monotonic() + _PATIENCE_S
    last: Shake = "silent"
    while (left_s := end - time.monotonic()) > 0 and news.poll(int(left_s * 1000)):
        event = parse_monitor_message(news.recv_multipart())["event"]
        if event & _MADE:
            return "made"
        if event & _REFUSED:
            return "refused"
        if last == "foreign":
            return last  # twice: it is no accident
        last = "foreign"
    return last


def is_broker(address: str, public_key: str) -> bool:
    """Whether the broker with this key listens at an address."""
    return shake_hands(address, public_key) == "made"
