"""Files whose content is brought when somebody opens them: by leases of Linux, which make every open(2) wait.

It does not matter who opens: Python, a library's C code, a program that the cell has started. fcntl(2) says what a
lease is: who opens the file waits until the holder, which is told by a signal, has given it up, for as long as
/proc/sys/fs/lease-break-time says. No rights are needed for a file of one's own.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import struct
import threading
from pathlib import Path

_SIGNAL = signal.SIGRTMIN + 1
#: fcntl(2) has them, and Python has no names for them. Signals go to one thread: in others they are not blocked.
_F_SETSIG, _F_SETOWN_EX, _F_OWNER_TID = 10, 15, 0
#: Of struct signalfd_siginfo: its size, and where the signal and the descriptor are.
_INFO_BYTES, _AT_NUMBER, _AT_DESCRIPTOR = 128, 0, 20
_BREAK_TIME = Path("/proc/sys/fs/lease-break-time")
_USUAL_BREAK_S = 45.0
_libc = ctypes.CDLL(None, use_errno=True)


class LeasedFiles:
    """Holds leases, and tells which of them somebody waits for. One for a process, used by one thread."""

    def __init__(self) -> None:
        """Begin to listen: signals of leases are read from `descriptor` from now on, and do nothing else."""
        numbers = (_SIGNAL, signal.SIGIO)
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        mask = (ctypes.c_uint64 * 16)(sum(1 << (number - 1) for number in numbers))
        #: Readable when there is something for `take_broken`.
        self.descriptor = _libc.signalfd(-1, ctypes.byref(mask), os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "signalfd")
        self._owner = struct.pack("=ii", _F_OWNER_TID, threading.get_native_id())
        self._held: set[int] = set()

    @property
    def break_time_s(self) -> float:
        """For how long the system lets an open wait."""
        try:
            return float(_BREAK_TIME.read_text())
        except (OSError, ValueError):
            return _USUAL_BREAK_S

    def hold(self, descriptor: int) -> bool:
        """Take a lease on an open file that nobody else has open. False where the file system has none."""
        try:
            fcntl.fcntl(descriptor, _F_SETOWN_EX, self._owner)
            fcntl.fcntl(descriptor, _F_SETSIG, _SIGNAL)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            return False
        self._held.add(descriptor)
        return True

    def close(self, descriptor: int) -> None:
        """Close a file, and so give up the lease on it, if there is one: whoever waits to open it goes on.

        Both at once: a program that is to be executed must not find somebody who may still write to it (ETXTBSY).
        """
        self._held.discard(descriptor)
        os.close(descriptor)

    def take_broken(self) -> list[int]:
        """Return the descriptors of held leases that somebody waits for, each once, those first who came first."""
        found: dict[int, None] = {}
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(self.descriptor, 32 * _INFO_BYTES)
                for at in range(0, len(data), _INFO_BYTES):
                    (number,) = struct.unpack_from("=I", data, at + _AT_NUMBER)
                    (descriptor,) = struct.unpack_from("=i", data, at + _AT_DESCRIPTOR)
                    if number == signal.SIGIO:  # too many signals waited: nobody knows of which leases
                        found.update(dict.fromkeys(filter(_is_broken, sorted(self._held))))
                    elif descriptor in self._held:
                        found[descriptor] = None
        return list(found)


def _is_broken(descriptor: int) -> bool:
    return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_WRLCK
