"""A client's connection, where its server was away and something else was at its address meanwhile."""

import contextlib
import socket

import pytest
import zmq

from bulletin.wire import channel, keys

#: Until a test gives up. Never what a test waits for.
PATIENCE_MS = 60_000


@pytest.mark.parametrize(
    "junk",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff" * 1000,
        b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0CURVE" + bytes(100) + b"\xff" * 1000,
        b"",
    ],
    ids=["HTTP", "bytes", "another mechanism", "nothing"],
)
def test_who_speaks_no_zeromq_at_a_servers_address_keeps_its_clients_from_it_no_longer_than_it_is_there(
    junk: bytes,
) -> None:
    """Libzmq does not connect again then, and a message that is sent waits for ever."""
    own = keys.make_keys()
    context = zmq.Context()
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = "tcp://{}:{}".format(*other.getsockname())
        client = channel.connect(context.socket(zmq.DEALER), address, own.public, channel.CONTROL_LIMIT)
        news = client.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        visitor, _ = other.accept()
        visitor.sendall(junk)
        with contextlib.suppress(OSError):  # the client has hung up
            visitor.shutdown(socket.SHUT_WR)
        assert news.poll(PATIENCE_MS)
        visitor.close()
    server = channel.serve(context.socket(zmq.ROUTER), own, channel.CONTROL_LIMIT, 100)
    channel.bind(server, address)
    for _ in range(PATIENCE_MS // 50):  # what is sent before libzmq has given up is lost, and said again
        channel.send(client, address, [b"heard"])
        if server.poll(50):
            break
    assert server.recv_multipart(zmq.DONTWAIT)[1] == b"heard"
    client.disable_monitor()
    context.destroy(linger=0)


def test_who_is_not_answered_at_all_connects_anew_long_before_the_system_gives_up() -> None:
    """As where a link is cut, or a firewall drops what comes: the system's own tries are further and further apart."""
    context = zmq.Context()
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # more than may wait there; who comes then gets no answer
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        address = "tcp://{}:{}".format(*full.getsockname())
        client = context.socket(zmq.DEALER)
        news = client.get_monitor_socket(zmq.EVENT_CONNECT_RETRIED)
        channel.connect(client, address, keys.make_keys().public, channel.CONTROL_LIMIT)
        assert news.poll(PATIENCE_MS)
        client.disable_monitor()
        context.destroy(linger=0)


def test_a_server_is_reached_at_an_address_of_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"this host has no IPv6: {error}")
    own = keys.make_keys()
    context = zmq.Context()
    server = channel.serve(context.socket(zmq.ROUTER), own, channel.CONTROL_LIMIT, 100)
    address = channel.bind(server, "tcp://[::1]:0")
    client = channel.connect(context.socket(zmq.DEALER), address, own.public, channel.CONTROL_LIMIT)
    channel.send(client, address, [b"heard"])
    assert server.poll(PATIENCE_MS)
    assert server.recv_multipart()[1:] == [b"heard"]
    context.destroy(linger=0)
