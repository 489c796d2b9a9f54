"""What comes from user code to the agent's end of a pair of sockets: bytes, and no open files."""

import contextlib
import socket
from collections.abc import Callable

import pytest

from bulletin.wire.fileless_sockets import make_local_pair, make_pair

Pair = Callable[[], tuple[socket.socket, socket.socket]]


@pytest.mark.parametrize("make", [make_pair, make_local_pair])
def test_by_a_pair_come_bytes_and_no_open_files(make: Pair) -> None:
    ours, theirs = make()
    with ours, theirs:
        with contextlib.suppress(PermissionError):  # or it is dropped where it is sent
            socket.send_fds(theirs, [b"x"], [0])
            assert ours.recv(1) == b"x"
        theirs.sendall(b"said")
        assert socket.recv_fds(ours, 10, 10)[:2] == (b"said", [])
        ours.sendall(b"heard")
        assert theirs.recv(10) == b"heard"


def test_nobody_else_gets_an_end_of_a_pair() -> None:
    for _ in range(20):
        ours, theirs = make_local_pair()
        with ours, theirs:
            assert (ours.getpeername(), theirs.getpeername()) == (theirs.getsockname(), ours.getsockname())
