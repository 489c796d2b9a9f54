"""In which order an executor's messages leave it, and by which thread."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from bulletin.ids import CellId
from bulletin.wire import pipe
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages import FromExecutor, Output, Took
from gpu_worker.executor.agent_link import AgentLink
from gpu_worker.executor.cell_owners import CellOwners
from gpu_worker.executor.interrupts import Interrupts
from gpu_worker.executor.relay import Relay
from gpu_worker.executor.unsent_text import AREA_BYTES, UnsentText

TOOK = Took(cell=CellId("one"))


@pytest.fixture
def link() -> Iterator[tuple[AgentLink, socket.socket]]:
    """An executor's end of a pipe, and the agent's."""
    ours, agents = socket.socketpair()
    agents.settimeout(10)
    link = AgentLink(ours.detach())
    with agents:
        yield link, agents
        link.close()


def unsent_text() -> UnsentText:
    memory = os.memfd_create("unsent")
    os.ftruncate(memory, AREA_BYTES)
    return UnsentText(memory)


@pytest.fixture
def relay(link: tuple[AgentLink, socket.socket]) -> Iterator[Relay]:
    """A relay whose thread has not been started."""
    loop, owners = asyncio.new_event_loop(), CellOwners()
    owners.cell = CellId("one")
    yield Relay(link[0], Interrupts(loop, lambda: None), owners, unsent_text())
    loop.close()


def heard(agent: socket.socket, count: int) -> list[FromExecutor]:
    unpacker: Unpacker[FromExecutor] = Unpacker(FromExecutor)
    return [unpacker.unpack(pipe.receive(agent))[0] for _ in range(count)]


def test_what_the_notebook_waits_for_needs_no_other_thread_where_nothing_is_queued(
    relay: Relay, link: tuple[AgentLink, socket.socket]
) -> None:
    relay.send_at_once(TOOK)
    assert heard(link[1], 1) == [TOOK]


def test_it_comes_behind_what_was_printed_before(relay: Relay, link: tuple[AgentLink, socket.socket]) -> None:
    relay.write_text("stdout", "before")
    relay.send_at_once(TOOK)
    relay.start()
    first, second = heard(link[1], 2)
    assert isinstance(first, Output)
    assert second == TOOK


class Seen(AgentLink):
    """A link on which another thread wants to write as soon as somebody has seen that there is room."""

    other: threading.Thread | None = None

    def can_take(self, size_bytes: int) -> bool:
        has_room = super().can_take(size_bytes)
        if (other := self.other) is not None:
            self.other = None
            other.start()
            other.join()
        return has_room


def test_nobody_else_writes_between_the_look_for_room_and_the_writing() -> None:
    first, second = TOOK, Took(cell=CellId("two"))
    loop, (ours, agents) = asyncio.new_event_loop(), socket.socketpair()
    agents.settimeout(10)
    link = Seen(ours.detach())
    relay = Relay(link, Interrupts(loop, lambda: None), CellOwners(), unsent_text())
    link.other = threading.Thread(target=relay.send_at_once, args=(second,))
    with agents:
        relay.send_at_once(first)
        relay.start()
        assert heard(agents, 2) == [first, second]
        link.close()
    loop.close()


@pytest.mark.parametrize("size_bytes", [0, 2**22], ids=["small", "large"])
def test_nobody_waits_for_an_agent_that_does_not_read(
    relay: Relay, link: tuple[AgentLink, socket.socket], size_bytes: int
) -> None:
    ours, agents = link
    count = 0
    while ours.can_take(2**10):
        ours.send(pack(Output(cell=CellId("one"), type="stream"), [bytes(2**10)]))
        count += 1
    relay.send_at_once(TOOK, [bytes(size_bytes)])
    relay.start()
    assert heard(agents, count + 1)[-1] == TOOK
