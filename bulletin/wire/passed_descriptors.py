"""Descriptors that come beside what is read from a Unix socket, which no program that is started later inherits."""

import array
import socket


def receive(sock: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Read at most `size` bytes, and at most so many descriptors beside them. Raises OSError.

    `socket.recv_fds` takes flags and leaves them out, so that what it receives is inherited.
    """
    descriptors = array.array("i")
    space = socket.CMSG_LEN(most * descriptors.itemsize)
    data, beside, _, _ = sock.recvmsg(size, space, socket.MSG_CMSG_CLOEXEC)
    for level, kind, numbers in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(numbers[: len(numbers) - len(numbers) % descriptors.itemsize])
    return data, descriptors.tolist()
