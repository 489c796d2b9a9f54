"""The door of a node: a few places for each Unix user, so that nobody keeps others from their shared memory."""

import asyncio
import contextlib
import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_worker.agent.ring_server import VISITS_EACH, RingServer
from gpu_worker.faults import Faults
from tests.other_users import free_uid

CROWD = 400
SO_PASSRIGHTS = 83


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can pass."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        Path(made).chmod(0o711)
        yield Path(made)


@pytest.fixture
def server(folder: Path) -> Iterator[RingServer]:
    """A door behind which one ticket has something, and which has much patience with those who show none."""
    file = os.open(folder, os.O_RDONLY)
    made = RingServer(folder, lambda ticket: (file, file) if ticket == "t" else None, Faults("agent"), 600)
    yield made
    made.close()
    os.close(file)


def connect(path: Path) -> socket.socket:
    """Knock, and wait as long as it takes."""
    visitor = socket.socket(socket.AF_UNIX)
    visitor.connect(str(path))
    visitor.setblocking(False)
    return visitor


async def visit(path: Path) -> bytes:
    """What somebody hears who shows the ticket."""
    with connect(path) as visitor:
        try:
            await asyncio.get_running_loop().sock_sendall(visitor, b"t\n")
            return await asyncio.get_running_loop().sock_recv(visitor, 1)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def test_one_user_has_so_many_places_and_who_comes_beyond_is_sent_away(server: RingServer) -> None:
    async def main() -> None:
        serving = asyncio.create_task(server.run())
        with contextlib.ExitStack() as crowd:
            for _ in range(VISITS_EACH):
                crowd.enter_context(connect(server.path))
            assert await visit(server.path) == b""
        async with asyncio.timeout(30):
            while await visit(server.path) != b"R":  # until the door has seen that they have left
                pass
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())


@pytest.mark.skipif(os.getuid() != 0, reason="only root is somebody else, too")
def test_a_crowd_of_one_user_keeps_no_other_out(server: RingServer) -> None:
    hears, tells = os.pipe()
    ready, says = os.pipe()
    crowd = os.fork()
    if not crowd:  # another user, who knocks and says nothing, again and again
        try:
            os.close(tells)
            os.close(ready)
            os.setuid(free_uid(after=40_000))
            held = [connect(server.path) for _ in range(CROWD)]
            os.write(says, b"!")
            os.read(hears, 1)  # until the test is over
            del held
        finally:
            os._exit(0)
    os.close(says)

    async def main() -> None:
        serving = asyncio.create_task(server.run())
        assert await asyncio.to_thread(os.read, ready, 1) == b"!"
        async with asyncio.timeout(30):
            assert await visit(server.path) == b"R"
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())
    os.close(tells)
    os.waitpid(crowd, 0)
    for end in (hears, ready):
        os.close(end)


def make_lingering() -> tuple[socket.socket, socket.socket]:
    """A connection whose last close takes an hour, and its peer, who does not read: with that closed, it ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = socket.create_connection(listener.getsockname())
        peer, _ = listener.accept()
    made.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            made.send(bytes(65_536))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3_600))
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return made, peer


def visit_or_give_up(path: Path, release: Callable[[], None]) -> bytes:
    """What somebody hears who shows the ticket, by a thread; in the end whoever is held up is let go."""
    try:
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.settimeout(20)
            visitor.connect(str(path))
            visitor.sendall(b"t\n")
            return visitor.recv(1)
    except TimeoutError:
        return b"nothing"
    finally:
        release()


@pytest.mark.parametrize("files_may_come", [False, True])
def test_open_files_that_a_visitor_sends_along_hold_nobody_up(server: RingServer, *, files_may_come: bool) -> None:
    """Whoever reads what they come with closes them, and that takes as long as their maker wants."""
    if files_may_come:
        with contextlib.suppress(OSError):  # Linux before 6.16 lets them come in any case
            server._socket.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 1)

    async def main() -> bytes:
        lingers, peer = make_lingering()
        with connect(server.path) as attacker:
            with contextlib.suppress(PermissionError):  # they may not come
                socket.send_fds(attacker, [b"x\n"], [lingers.fileno()])
                lingers.close()
            serving = asyncio.create_task(server.run())
            heard = await asyncio.to_thread(visit_or_give_up, server.path, peer.close)
        lingers.close()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return heard

    assert asyncio.run(main()) == b"R"
