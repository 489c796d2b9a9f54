"""A place that is reserved for a server, however long it takes: asked of a broker's parts, by wire."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, RequestId, SessionId
from bulletin.wire import channel, messages as wire
from bulletin.wire.clients import FromClient
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.keys import PublicFile, make_keys
from bulletin_magic.commands.options import parse
from bulletin_magic.connection.cell_phase import CellPhase
from bulletin_magic.connection.cell_run import CellRun
from bulletin_magic.connection.session_events import CellSubmitted
from bulletin_spawner.notebook_kinds import WHOLE_NOTEBOOK, NotebookKind
from bulletin_spawner.reserved_place import ReservedPlace, make_request, reserve
from gpu_worker.broker.active_lease import ActiveLease
from gpu_worker.broker.ledger import Ledger
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import TOKEN, BrokerParts

PLACE = ReservedPlace("server-1")
PATIENCE_S = 30


class ServedBroker(BrokerParts):
    """A broker's parts, which answer where they were asked."""

    def __init__(self, ledger: Ledger, socket: zmq.asyncio.Socket) -> None:
        self._socket, self.heard_of = socket, asyncio.Queue[FromClient]()
        super().__init__(ledger, (Project(id=ProjectId("default"), guaranteed_milli=1000),))

    async def send(self, route: bytes, message: wire.Message) -> None:
        if route != b"n1":
            await self._socket.send_multipart([route, *pack(message)])

    async def tell(self, session: SessionId, message: wire.Message) -> None:
        await self.kernels.tell(session, message)

    async def hears(self, kind: type[wire.Message]) -> None:
        """Wait until it has heard such a message."""
        async with asyncio.timeout(PATIENCE_S):
            while not isinstance(await self.heard_of.get(), kind):
                pass

    async def pass_seconds(self, seconds: int) -> None:
        """Time passes in which it listens, and hears nobody."""
        while not self.heard_of.empty():
            self.heard_of.get_nowait()
        for _ in range(seconds):
            self.now_ms += 1_000
            await self.kernels.tidy()

    async def grant(self) -> None:
        """A node comes, and its process for who waits is up."""
        await self.agents.take(b"n1", self.registration())
        (lease,) = self.shell.scheduler.state.leases
        await self.agents.take(b"n1", wire.Prepared(lease=lease))


class Door:
    """The address of a broker, which another may take over."""

    def __init__(self, pool: PublicFile, broker: ServedBroker) -> None:
        self.pool, self.broker = pool, broker


@asynccontextmanager
async def door(folder: Path) -> AsyncIterator[tuple[Door, Ledger, zmq.asyncio.Socket]]:
    async def serve(socket: zmq.asyncio.Socket, at: Door) -> None:
        unpacker: Unpacker[FromClient] = Unpacker(FromClient)
        while True:
            route, *parts = await socket.recv_multipart()
            message, _ = unpacker.unpack(parts)
            await at.broker.kernels.take(route, message)
            at.broker.heard_of.put_nowait(message)

    keys = make_keys()
    with (
        Ledger.open(f"sqlite:///{folder / 'ledger.db'}") as ledger,
        zmq.asyncio.Context() as context,
        context.socket(zmq.ROUTER) as socket,
    ):
        channel.serve(socket, keys, channel.CONTROL_LIMIT, 0)
        address = channel.bind(socket, "tcp://127.0.0.1:0")
        at = Door(PublicFile(address=address, public_key=keys.public), ServedBroker(ledger, socket))
        serving = asyncio.create_task(serve(socket, at))
        try:
            yield at, ledger, socket
        finally:
            serving.cancel()


def test_who_waits_for_longer_than_a_broker_takes_for_gone_gets_the_place(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path) as (at, _, _):
            asking = asyncio.create_task(reserve(at.pool, TOKEN, PLACE, WHOLE_NOTEBOOK, PATIENCE_S))
            await at.broker.hears(wire.Submit)
            for _ in range(2):
                await at.broker.pass_seconds(15)
                await at.broker.hears(wire.Ping)
            await at.broker.pass_seconds(1)
            assert len(at.broker.shell.pending_requests) == 1
            await at.broker.grant()
            await asking

    asyncio.run(main())


def test_who_waits_asks_the_broker_that_was_started_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with door(tmp_path) as (at, ledger, socket):
            asking = asyncio.create_task(reserve(at.pool, TOKEN, PLACE, WHOLE_NOTEBOOK, PATIENCE_S))
            await at.broker.hears(wire.Submit)
            at.broker = ServedBroker(ledger, socket)
            await at.broker.hears(wire.Submit)
            await at.broker.grant()
            await asking

    asyncio.run(main())


@pytest.mark.parametrize(
    "kind",
    [
        WHOLE_NOTEBOOK,
        NotebookKind(name="big", title="Two", gpus=2, gpu_type="A100", keep="90 s", time="4 h", qos="reserved"),
    ],
)
def test_the_cells_of_a_notebook_ask_for_what_was_reserved_for_it(kind: NotebookKind) -> None:
    resources = parse(kind.cell_options).resources
    name = RequestId(PLACE.name)
    submitted = CellSubmitted(cell=CellId("c"), request=name, source="", number=1, parts=(), resources=resources)
    cell = CellRun(submitted, CellPhase.QUEUED, 0, lambda *_: None, lambda _: None).lease_request()
    assert isinstance(cell, wire.Submit)
    reserved = make_request(PLACE, kind)
    granted = wire.Granted(
        request=name,
        lease=LeaseId("l"),
        session=SessionId("s"),
        agent=wire.AgentAddress(address="", public_key=""),
        ticket="",
        node="n",
        slots=(),
        walltime_ms=1,
    )
    assert ActiveLease(SessionId("s"), AgentId("a"), KernelId("k"), "", granted, asked=reserved).is_for(cell)
