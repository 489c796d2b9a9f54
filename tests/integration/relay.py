"""A link that can be cut: passes bytes on between notebooks and an agent, until told otherwise."""

import contextlib
import socket
import threading
from collections.abc import Callable

_PIECE = 64 * 1024


class Relay:
    """Listens at `address`; `lead` says where the bytes go. Threads, so that a test may wait for what it likes."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_whole = threading.Event()
        self._is_closed = False
        self._threads: list[threading.Thread] = []
        self._left: dict[bool, int | None] = {}
        self._is_holding = False
        self._may_pass = threading.Event()
        self._may_pass.set()
        #: Bytes to notebooks (True) and to the agent (False), since `count`.
        self.passed = {True: 0, False: 0}
        self.was_cut = threading.Event()
        self.was_held = threading.Event()

    def lead(self, address: str) -> None:
        """Pass on what comes to this address."""
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._target = host, int(port)
        self._is_whole.set()
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def count(self, cut_after: int | None = None, *, to_notebook: bool = True) -> None:
        """Count from 0, and cut the link after so many bytes to notebooks, or to the agent."""
        with self._lock:
            self.passed, self._left = {True: 0, False: 0}, {to_notebook: cut_after}
            self._is_holding = False
        self.was_cut.clear()

    def hold(self, after: int, *, to_notebook: bool) -> None:
        """Count from 0, and after so many bytes to notebooks, or to the agent, let none pass there until `release`."""
        with self._lock:
            self.passed, self._left = {True: 0, False: 0}, {to_notebook: after}
            self._is_holding = True
        self.was_held.clear()

    def release(self) -> None:
        """Let all that is held pass."""
        with self._lock:
            self._left = {}
        self._may_pass.set()

    def cut(self) -> None:
        """Break every connection; new ones hear nothing."""
        with self._lock:
            self._is_whole.clear()
            self._left = {}
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)  # their threads wake up and close them
        self.was_cut.set()

    def mend(self) -> None:
        """Let bytes pass again."""
        self._is_whole.set()

    def close(self) -> None:
        """The end."""
        self._is_closed = True
        self.cut()
        self.release()
        self.mend()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._is_closed:
                self._is_whole.wait()
                notebook, _ = self._listener.accept()
                self._is_whole.wait()
                if self._is_closed:
                    notebook.close()
                    return
                agent = socket.create_connection(self._target)
                with self._lock:
                    self._open |= {notebook, agent}
                for source, target in ((notebook, agent), (agent, notebook)):
                    self._start(self._pass, source, target, source is agent)

    def _pass(self, source: socket.socket, target: socket.socket, to_notebook: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_PIECE):
                now, later = self._count(data, to_notebook)
                target.sendall(now)
                if self._left.get(to_notebook) == 0 and self._is_holding:
                    self._may_pass.clear()
                    self.was_held.set()
                    self._may_pass.wait()
                    target.sendall(later)
                elif self._left.get(to_notebook) == 0:
                    self.cut()
        with self._lock:  # the other direction has ended when neither is listed any more
            self._open.discard(source)
            if target not in self._open:
                source.close()
                target.close()
            else:
                with contextlib.suppress(OSError):
                    target.shutdown(socket.SHUT_RDWR)

    def _count(self, data: bytes, to_notebook: bool) -> tuple[bytes, bytes]:
        """What may pass, and what may not yet, or never."""
        with self._lock:
            left = self._left.get(to_notebook)
            size = len(data) if left is None else min(left, len(data))
            if left is not None:
                self._left[to_notebook] = left - size
            self.passed[to_notebook] += size
        return data[:size], data[size:]
