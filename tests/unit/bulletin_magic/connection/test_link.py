"""The link's thread and its sockets, with nobody or somebody at the other end."""

import os
import socket
import threading
from pathlib import Path

import pytest

from bulletin.boot_id import read_boot_id
from bulletin.errors import CellStopped
from bulletin.ids import KernelId
from bulletin.wire.blobs import RING, make_ring
from bulletin.wire.keys import Connection, make_keys
from bulletin.wire.messages import AgentAddress
from bulletin_magic.connection import shared_memory
from bulletin_magic.connection.deliveries import LeaseReleased, RequestFailed
from bulletin_magic.connection.link import Link
from bulletin_magic.connection.session_events import AgentConnected, ReleaseAsked, StopPressed

from .stage import cell

BOOT = read_boot_id()


@pytest.fixture
def lonely_link() -> Link:
    """A link to a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    return Link(
        Connection(address=address, public_key=make_keys().public), KernelId("k"), "of the test", lambda _: None
    )


def test_a_cell_that_waits_for_nobody_can_be_stopped(lonely_link: Link) -> None:
    deliveries = lonely_link.ask(cell())
    lonely_link.tell(StopPressed())
    told = deliveries.get(timeout_s=60)
    assert isinstance(told, RequestFailed)
    assert isinstance(told.error, CellStopped)
    lonely_link.close()
    assert not lonely_link.is_usable


def test_a_bug_in_the_thread_reaches_whoever_waits(lonely_link: Link) -> None:
    lonely_link.ask(cell())
    told = lonely_link.ask(cell("c2")).get(timeout_s=60)
    assert type(told).__name__ == "IllegalMove"


def test_leaving_without_a_session_is_answered(lonely_link: Link) -> None:
    assert lonely_link.ask(ReleaseAsked()).get(timeout_s=60) == LeaseReleased(None)
    lonely_link.close()
    lonely_link.close()


def address(path: Path, boot: str = BOOT, door_uid: int | None = None) -> AgentAddress:
    return AgentAddress(address="", public_key="", door=str(path), boot=boot, door_uid=door_uid)


@pytest.mark.parametrize("gift", ["rings", "one ring", "a file", "nothing"])
def test_the_door_hands_out_two_rings_or_there_are_none(gift: str, tmp_path: Path) -> None:
    plain = os.open(tmp_path, os.O_RDONLY)
    gifts = {"rings": [make_ring(), make_ring()], "one ring": [make_ring()], "a file": [plain, plain], "nothing": []}
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "door"))
        server.listen()

        def serve() -> None:
            visitor, _ = server.accept()
            with visitor:
                heard.append(visitor.recv(100))
                socket.send_fds(visitor, [b"R"], gifts[gift])

        thread = threading.Thread(target=serve)
        thread.start()
        rings = shared_memory.open_rings(address(tmp_path / "door", door_uid=os.geteuid()), "ticket")
        thread.join()
    assert heard == [b"ticket\n"]
    if gift == "rings":
        assert rings.ring_out is not None
        assert rings.ring_in is not None
        rings.ring_out[:3] = b"out"
        assert os.pread(gifts[gift][0], 3, 0) == b"out"
        assert len(rings.ring_in) == RING
    else:
        assert rings == AgentConnected()
    for descriptor in {plain, *gifts["rings"], *gifts["one ring"]}:
        os.close(descriptor)


def test_a_door_that_somebody_else_has_made_is_not_shown_the_ticket(tmp_path: Path) -> None:
    """In /tmp, say, where a door is whose folder has a long path, and was tidied away."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "door"))
        server.listen()
        agents = address(tmp_path / "door", door_uid=os.geteuid() + 1)
        assert shared_memory.open_rings(agents, "ticket") == AgentConnected()
        visitor, _ = server.accept()
        with visitor:
            assert visitor.recv(100) == b""


def test_there_are_no_rings_on_another_host_or_without_a_door(tmp_path: Path) -> None:
    assert shared_memory.open_rings(address(tmp_path / "nowhere"), "t") == AgentConnected()
    assert shared_memory.open_rings(address(tmp_path / "nowhere", boot="another"), "t") == AgentConnected()
