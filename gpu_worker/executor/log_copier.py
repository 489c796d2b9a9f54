"""`python -m gpu_worker.executor.log_copier FD PID`: copies to the log what the executors of the zygote PID write.

An executor is a fork of the zygote, with all that this has ever read still somewhere in its memory. So the zygote reads
none of it itself, and what one tenant writes is in no other's memory. Nor does it wait long for this process.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from functools import partial

from bulletin.wire import fileless_sockets, passed_descriptors
from gpu_worker.executor.process_logs import ProcessLogs

#: What is said to it: a kind, a process, and for a new one the name of its lines, beside a descriptor.
_HEAD = struct.Struct("=cq")
_FOLLOW, _END = b"F", b"E"
_DONE = struct.Struct("=q")
_MOST_BYTES = 4096
#: As much as a pipe takes before its writer waits.
_UNREAD_BYTES = 65_536
#: So long the zygote waits for the last lines of one executor, and others for it.
_WAIT_S = 2.0
#: A Unix user without rights, as Linux itself calls who has no number here.
_NOBODY = 65_534


class LogCopier:
    """The zygote's end of it."""

    def __init__(self) -> None:
        """Start the process, which ends after this one, by the interpreter's options of this one. Raises OSError."""
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.settimeout(_WAIT_S)
        options = sys.orig_argv[1 : sys.orig_argv.index("-m")]
        command = [sys.executable, *options, "-m", __name__, str(theirs.fileno()), str(os.getpid())]
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def follow(self, pid: int, reader: int, name: str) -> None:
        """Have the other end of this copied from now on, under this name; the descriptor is closed here."""
        with contextlib.suppress(OSError):  # without it nothing is copied, and executors go on
            socket.send_fds(self._link, [_HEAD.pack(_FOLLOW, pid) + name.encode()[:_MOST_BYTES]], [reader])
        os.close(reader)

    def end(self, pid: int) -> None:
        """Wait until the rest of a process that has ended is copied, or for a moment."""
        with contextlib.suppress(OSError):
            self._link.send(_HEAD.pack(_END, pid))
            while (done := self._link.recv(_DONE.size)) and done != _DONE.pack(pid):
                pass  # it was waited for in vain before

    def close(self) -> None:
        """Wait until all is copied, or for a moment, and have the process end."""
        self._link.close()
        try:
            self._process.wait(_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


def make_way() -> tuple[int, int]:
    """Make a way to the log: the end for `LogCopier.follow`, and the one for the executor. Raises OSError.

    It is no pipe: who writes to one from memory that does not come holds up who reads it, and closes it.
    """
    reader, writer = fileless_sockets.make_pair()
    reader.setblocking(False)
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UNREAD_BYTES)
    writer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)
    return reader.detach(), writer.detach()


def main() -> None:
    """Serve until the zygote is gone, which nobody else has the other end of."""
    link, zygote = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM):  # it ends with whom it serves
        signal.signal(number, signal.SIG_IGN)
    if os.getuid() == 0:  # all that it needs is open
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    waiting = select.poll()
    logs = ProcessLogs(waiting, partial(_log, zygote))
    waiting.register(link, select.POLLIN)
    is_there = True
    while is_there:
        ready = {fd for fd, _ in waiting.poll()}
        logs.copy(ready)
        is_there = link.fileno() not in ready or _obey(link, logs)
    logs.end_all()


def _log(zygote: int, line: str) -> None:
    print(f"bulletin zygote {zygote}: {line}", file=sys.stderr, flush=True)  # noqa: T201


def _obey(link: socket.socket, logs: ProcessLogs) -> bool:
    """Do what the zygote says next; False where it is gone."""
    said, descriptors = passed_descriptors.receive(link, _HEAD.size + _MOST_BYTES, 1)
    if not said:
        return False
    kind, pid = _HEAD.unpack_from(said)
    if kind == _FOLLOW:
        for reader in descriptors:
            logs.follow(pid, reader, said[_HEAD.size :].decode(errors="replace"))
    else:
        logs.end(pid)
        link.send(_DONE.pack(pid))
    return True


if __name__ == "__main__":
    main()
