"""Addresses of TCP: how they are written, read, and what is said of those that lead nowhere."""

import asyncio
import contextlib
import os
import resource
import socket
from pathlib import Path
from typing import Any

import pytest
import zmq

from bulletin.wire import channel
from gpu_worker.reachability import (
    find_lasting_address,
    find_obstacle,
    is_of_this_host,
    own_host_towards,
    parse,
    write_address,
)


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


NAMES = {
    "pool.example": ("10.77.0.1",),
    "own.example": ("127.0.1.1",),
    "two.example": ("10.77.0.1", "10.78.0.1"),
    "both.example": ("fd77::1", "10.77.0.1"),
    "six.example": ("fd77::1",),
}


def resolve_by(monkeypatch: pytest.MonkeyPatch, names: dict[str, tuple[str, ...]]) -> None:
    """Have a name service that knows these names."""
    resolve_number = socket.getaddrinfo

    def resolve(name: str, port: int, family: int = 0, type: int = 0, *_: int) -> list[Any]:  # noqa: A002
        found = [
            (kind, type, 6, "", where)
            for address in names.get(name, ())
            for kind, *_, where in resolve_number(address, port, type=type)
            if family in (0, kind)
        ]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


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
        # Others would be led to either.
        ("two.example", "tcp://10.77.0.1:9002", "tcp://10.77.0.1:9002"),
        ("two.example", "tcp://10.78.0.1:9002", "tcp://10.78.0.1:9002"),
        # Nobody is led by a name to an address of IPv6.
        ("both.example", "tcp://10.77.0.1:9002", "tcp://both.example:9002"),
        ("six.example", "tcp://10.77.0.1:9002", "tcp://10.77.0.1:9002"),
    ],
)
def test_others_are_told_a_name_only_where_it_leads_there(
    monkeypatch: pytest.MonkeyPatch, host: str, bound: str, told: str
) -> None:
    resolve_by(monkeypatch, NAMES)
    assert find_lasting_address(host, bound) == told


@pytest.mark.parametrize("names", [("::1", "127.0.0.1"), ("127.0.0.1", "::1")])
def test_a_node_listens_where_it_reaches_its_broker_as_zeromq_does_by_a_name_with_an_address_of_ipv6(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    resolve_by(monkeypatch, {"both.example": names})
    assert own_host_towards("tcp://both.example:9002") == "127.0.0.1"


def test_nothing_is_reached_by_a_name_that_zeromq_would_not_reach_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen(1)
        port = door.getsockname()[1]
        resolve_by(monkeypatch, {"both.example": ("::1", "127.0.0.1"), "six.example": ("::1",)})
        assert asyncio.run(find_obstacle(f"tcp://both.example:{port}")) == ""
        assert "'six.example' cannot be resolved" in asyncio.run(find_obstacle(f"tcp://six.example:{port}"))


def test_an_address_is_of_this_host_or_it_is_not() -> None:
    assert is_of_this_host("127.0.0.1")
    assert not is_of_this_host("192.0.2.1"), "of nobody: RFC 5737"


def test_where_no_descriptor_is_left_an_address_is_still_of_this_host() -> None:
    """Else an agent would take it for gone, and cut off the notebooks that are there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as last:
        resource.setrlimit(resource.RLIMIT_NOFILE, (last.fileno() + 1, hard))
        held: list[int] = []
        try:
            with contextlib.suppress(OSError):
                while True:
                    held.append(os.dup(last.fileno()))
            is_there = is_of_this_host("127.0.0.1")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for one in held:
                os.close(one)
    assert is_there
