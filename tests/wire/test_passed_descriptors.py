"""Descriptors arrive beside what is read, and no program that is started later inherits them."""

import os
import socket

from bulletin.wire import passed_descriptors


def test_what_was_passed_is_open_and_is_not_inherited() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    with ours, theirs:
        socket.send_fds(theirs, [b"F"], [reader, writer])
        data, received = passed_descriptors.receive(ours, 1, 2)
        assert data == b"F"
        assert len(received) == 2
        assert [os.get_inheritable(one) for one in received] == [False, False]
        os.write(received[1], b"said")
        assert os.read(reader, 4) == b"said"
    for one in (reader, writer, *received):
        os.close(one)


def test_what_comes_alone_is_read_and_a_hang_up_is_empty() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(b"x")
            assert passed_descriptors.receive(ours, 1, 2) == (b"x", [])
        assert passed_descriptors.receive(ours, 1, 2) == (b"", [])
