"""Sockets by which no open files come: who reads what user code sends closes them, and a close can take hours.

An open file may come along with any byte on a Unix socket, also where nobody asks for it, and whoever reads that byte
closes it, if nobody else has it any more: a socket that lingers holds its reader up for as long as its maker wanted.
"""

import contextlib
import socket

#: SO_PASSRIGHTS, from Linux 6.16 on. Python has no name for it yet.
_PASS_RIGHTS = 83


def refuse_files(unix_socket: socket.socket) -> bool:
    """Let who sends to this socket, or to one that it accepts, send no open files; return whether the system can."""
    with contextlib.suppress(OSError):
        unix_socket.setsockopt(socket.SOL_SOCKET, _PASS_RIGHTS, 0)
        return True
    return False


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Make two connected sockets. By the first one come bytes and nothing else."""
    ours, theirs = socket.socketpair()
    if refuse_files(ours):
        return ours, theirs
    ours.close()
    theirs.close()
    return make_local_pair()


def make_local_pair() -> tuple[socket.socket, socket.socket]:
    """Make two sockets that are connected through the host's own address: only a Unix socket passes open files on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        while theirs.getpeername() != ours.getsockname():  # somebody else was quicker
            theirs.close()
            theirs, _ = listener.accept()
    for end in (ours, theirs):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours, theirs
