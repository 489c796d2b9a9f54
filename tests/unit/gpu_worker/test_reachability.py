"""Addresses of TCP: how they are written, read, and what is said of those that lead nowhere."""

import pytest

from gpu_worker.reachability import own_host_towards, parse, write_address


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


def test_a_name_that_nobody_knows_is_said_with_where_to_look() -> None:
    with pytest.raises(OSError, match=r"The name 'nowhere.invalid' cannot be resolved .*: see the name service"):
        own_host_towards("tcp://nowhere.invalid:9002")
