"""Whoever takes the address of a part of the pool while that is down is not taken for it, and hears nothing."""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest
import zmq

from bulletin.wire import channel, keys
from tests.integration.conftest import Notebook, PoolProcess, until
from tests.processes import has_ended


class Impostor:
    """Listens where a part of the pool did, as that would, with keys of its own; and hears what it can."""

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = channel.serve(self._context.socket(zmq.ROUTER), keys.make_keys(), channel.DATA_LIMIT, 1000)
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_ACCEPTED)
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            self.close()
            raise OSError(error.errno, error.strerror) from None

    def wait_for_visitor(self) -> None:
        """Wait until somebody has connected."""
        assert self._monitor.poll(60_000)
        self._monitor.recv_multipart()

    @property
    def has_heard(self) -> bool:
        """Whether anything was said to it."""
        return bool(self._socket.poll(0))

    def close(self) -> None:
        self._socket.disable_monitor()
        self._context.destroy(linger=0)


class Babbler:
    """Listens there and says what is no ZeroMQ to all who come."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._socket = socket.create_server((host, int(port)))
        self._visitor: socket.socket | None = None
        self.has_heard = False  #: it would not understand it

    def wait_for_visitor(self) -> None:
        self._socket.settimeout(60)
        self._visitor, _ = self._socket.accept()
        self._visitor.sendall(b"\xff" * 100_000)

    def close(self) -> None:
        if self._visitor is not None:
            self._visitor.close()
        self._socket.close()


def _try(kind: type[Impostor] | type[Babbler], address: str) -> Impostor | Babbler | None:
    try:
        return kind(address)
    except OSError:  # zmq.ZMQError, too
        return None


@contextmanager
def gone(pool: PoolProcess, part: str) -> Iterator[str]:
    """End a part of the pool, which is not started again before the end of the block; gives its address."""
    address = keys.read_private(pool.folder / "agent.json", keys.AgentFile).address
    if part == "broker":
        address = pool.connection.address
    keeper = psutil.Process(pool.process.pid)
    process = pool.part(part)
    keeper.suspend()
    try:
        process.send_signal(signal.SIGKILL)
        until(lambda: has_ended(process), "it to end")
        yield address
    finally:
        keeper.resume()


@pytest.mark.parametrize("kind", [Impostor, Babbler])
@pytest.mark.parametrize("part", ["agent", "broker"])
def test_who_takes_the_port_of_a_part_hears_nothing_and_the_notebook_goes_on(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    part: str,
    kind: type[Impostor] | type[Babbler],
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run("%%gpu\nx = 1")
    with gone(pool, part) as address:
        impostor = until(lambda: _try(kind, address), "the port to be free")
        started = notebook.start("%%gpu\nx += 1\nprint('x is', x)")
        impostor.wait_for_visitor()
    ran = notebook.collect(started)
    has_heard = impostor.has_heard
    impostor.close()
    assert ran.stream() == "x is 2\n", ran.shown
    assert not has_heard
