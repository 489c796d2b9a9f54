"""The executor's end of the pipe to its agent, which code of its tenant can close, replace or shut down at any time.

Who cannot be heard, or hears nothing, must not go on: its slot would be used by what nobody can stop or take results
from. A thread that waits in recv(2) keeps a closed socket open, and the other end would never hear of it; one that
waits by epoll(7) does not. What holds the socket elsewhere (a fork that Python does not know of) is found by looking.
"""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from bulletin.wire import pipe
from bulletin.wire.frames import Blob

#: The exit status of an executor that has no link to its agent any more. 76 is EX_PROTOCOL of sysexits.h.
UNHEARD = 76
#: How often a reader looks whether the socket is still its own.
_LOOK_S = 2.0
#: What goes into a socket that the kernel calls writable: then three quarters of its 200 KB are free.
_ROOM_BYTES = 2**15


class AgentLink:
    """One thread receives; any may send, one at a time: whoever sends sees to that."""

    def __init__(self, descriptor: int) -> None:
        """Take over the descriptor."""
        self._socket = socket.socket(fileno=descriptor)
        self._identity = _identify(descriptor)
        self._readable = select.epoll()
        self._readable.register(descriptor, select.EPOLLIN)

    @property
    def is_open(self) -> bool:
        """Whether the descriptor is still the socket that it was; number and socket can be anything by now."""
        try:
            return _identify(self._socket.fileno()) == self._identity
        except OSError:
            return False

    def receive(self) -> list[Blob]:
        """Wait for the next packet. Raises EOFError or OSError when nobody is there, MalformedMessage on junk."""
        return pipe.receive(self)

    def recv_into(self, view: memoryview) -> int:
        """Wait for bytes, as socket.recv_into does, without holding the socket open meanwhile."""
        while True:
            try:
                return self._socket.recv_into(view, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait()

    def can_take(self, size_bytes: int) -> bool:
        """Tell whether a packet of so many bytes can be sent without waiting."""
        if size_bytes > _ROOM_BYTES or not self.is_open:
            return False
        writable = select.poll()  # one serves one thread at a time
        writable.register(self._socket, select.POLLOUT)
        return bool(writable.poll(0))

    def send(self, frames: Sequence[Blob]) -> None:
        """Send one packet. Raises OSError when nobody can hear it; nothing goes into what has the number by now."""
        if not self.is_open:
            raise ConnectionResetError
        pipe.send(self._socket, frames)

    def close(self) -> None:
        """Close it in a fork, where another process is at this end; unless its number is something else's by now."""
        if self.is_open:
            self._socket.close()

    def end_if_closed(self) -> None:
        """End this process, and all that it has started, where it has no link any more."""
        if not self.is_open:
            end_unheard()

    def _wait(self) -> None:
        while not self._readable.poll(_LOOK_S):
            if not self.is_open:
                raise EOFError
        if not self.is_open:
            raise EOFError


def end_unheard() -> NoReturn:
    """End this process and what it has started; its agent, if it is there, knows by the status what has happened."""
    for pid in _descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    os._exit(UNHEARD)  # what has been started meanwhile goes to the zygote, which ends it


def _descendants(pid: int) -> list[int]:
    """List the processes below one, each after its parent."""
    found = [pid]
    for one in found:  # which grows meanwhile
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # that thread has ended
                found += map(int, task.read_text().split())
    return found[1:]


def _identify(descriptor: int) -> tuple[int, int]:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino
