"""Addresses of TCP: how they are written, read, and what is said of those that lead nowhere."""

import socket

import pytest
import zmq

from bulletin.wire import channel
from gpu_worker.reachability import find_lasting_address, own_host_towards, parse, write_address


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.77.0.1", "tcp://10.77.0.1:9001"),
        ("hub.example", "tcp://hub.example:9001"),
        ("fd77::1", "tcp://[fd77::1]:9001"),
        ("::", "tcp://[::]:9001"),
    ],
)
def test_what_is_written_is_read_again_also_of_ipv6(host: str, address: str) -> None:
    assert write_address(host, 9001) == address
    assert parse(address) == (host, 9001)


def test_an_address_that_has_its_brackets_keeps_them() -> None:
    assert write_address("[fd77::1]", 9001) == "tcp://[fd77::1]:9001"


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("FD77::1", "fd77::1"),
        ("fd77:0000:0000:0000:0000:0000:0000:0001", "fd77::1"),
        ("[FD77:0:0::1]", "fd77::1"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("::ffff:a4d:1", "::ffff:10.77.0.1"),
    ],
)
def test_one_address_of_ipv6_is_written_in_one_form(host: str, written: str) -> None:
    assert write_address(host, 9001) == f"tcp://[{written}]:9001"


def test_an_address_of_ipv6_is_written_as_a_socket_says_where_it_listens() -> None:
    """By that a pool finds the port again at which it listened last, however its host is written."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("this host has no IPv6")
    with zmq.Context() as context, context.socket(zmq.ROUTER) as door:
        door.linger = 0
        try:
            address = channel.bind(door, write_address("0:0:0:0:0:0:0:1", 0))
        except zmq.ZMQError:
            pytest.skip("this host has no address of IPv6")
    assert address.startswith(write_address("0:0:0:0:0:0:0:1", 0).removesuffix("0"))


def test_a_name_that_nobody_knows_is_said_with_where_to_look() -> None:
    with pytest.raises(OSError, match=r"The name 'nowhere.invalid' cannot be resolved .*: see the name service"):
        own_host_towards("tcp://nowhere.invalid:9002")


@pytest.mark.parametrize(
    ("host", "bound", "told"),
    [
        ("pool.example", "tcp://10.77.0.1:9002", "tcp://pool.example:9002"),
        ("pool.example", "tcp://10.77.0.9:9002", "tcp://10.77.0.9:9002"),  # it leads elsewhere
        ("eth0", "tcp://10.77.0.1:9002", "tcp://10.77.0.1:9002"),
        ("10.77.0.1", "tcp://10.77.0.1:9002", "tcp://10.77.0.1:9002"),
        ("[fd77::1]", "tcp://[fd77::1]:9002", "tcp://[fd77::1]:9002"),
        ("*", "tcp://0.0.0.0:9002", "tcp://0.0.0.0:9002"),
        # As Debian has a host's own name: others would reach themselves by it, or nobody.
        ("own.example", "tcp://127.0.1.1:9002", "tcp://127.0.1.1:9002"),
    ],
)
def test_others_are_told_a_name_only_where_it_leads_there(
    monkeypatch: pytest.MonkeyPatch, host: str, bound: str, told: str
) -> None:
    known = {"pool.example": "10.77.0.1", "own.example": "127.0.1.1"}

    def resolve(name: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (known[name], port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert find_lasting_address(host, bound) == told
