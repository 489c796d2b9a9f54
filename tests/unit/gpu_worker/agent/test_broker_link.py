"""What an agent tells its broker of cells that are over: each, in its place among all else that it tells."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from bulletin.codes import CellOutcome, RefusalCode
from bulletin.errors import NotDone, VersionMismatch
from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import channel, frames, messages as wire
from bulletin.wire.keys import make_keys
from gpu_worker.agent.broker_link import BrokerLink
from gpu_worker.agent.departure import Departure
from gpu_worker.agent.membership import Membership
from gpu_worker.config import Pool
from tests.unit.gpu_worker.agent.agent_parts import agent_parts

_PATIENCE_MS = 30_000
_LEASE = LeaseId("lease")


def _done(cell: str) -> wire.CellDone:
    return wire.CellDone(
        lease=_LEASE,
        session=SessionId("session"),
        cell=CellId(cell),
        user=UserName("ann"),
        project=ProjectId("project"),
        qos="interactive",
        slots=(SlotId("cpu-0"),),
        usage=wire.CellUsage(outcome=CellOutcome.RETURNED, ran_ms=1, held_ms=1),
        ended_ago_ms=2_000,
    )


class Broker:
    """The other end, which knows the agent once it has said so."""

    def __init__(self, context: zmq.asyncio.Context) -> None:
        self.keys = make_keys()
        self._socket = channel.serve(context.socket(zmq.ROUTER), self.keys, channel.CONTROL_LIMIT, 100)
        self.address = channel.bind(self._socket, "tcp://127.0.0.1:0")
        self._unpacker: frames.Unpacker[wire.FromAgent] = frames.Unpacker(wire.FromAgent)
        self._route = b""

    async def hear(self) -> wire.FromAgent:
        assert await self._socket.poll(_PATIENCE_MS), "the agent does not say anything"
        self._route, *parts = await self._socket.recv_multipart()
        return self._unpacker.unpack(parts)[0]

    async def hear_cells(self, count: int) -> list[str]:
        """Return what is said next: the names of cells that are over, and of other messages the kinds."""
        heard = [await self.hear() for _ in range(count)]
        return [message.cell if isinstance(message, wire.CellDone) else type(message).__name__ for message in heard]

    async def say_in_another_protocol(self) -> None:
        mark = b"BLTN" + bytes([wire.PROTOCOL + 1])
        await self._socket.send_multipart([self._route, mark, b"of which nobody here can read more"])

    async def say(self, message: wire.Message) -> None:
        await self._socket.send_multipart([self._route, *frames.pack(message)])


@asynccontextmanager
async def linked(folder: Path) -> AsyncIterator[tuple[BrokerLink, Broker]]:
    """Have an agent's link to a broker that knows it."""
    async with agent_parts(folder) as agent:
        broker = Broker(agent.context)
        member = Membership(
            file=folder / "pool.json",
            broker_address=broker.address,
            broker_public_key=broker.keys.public,
            own=make_keys(),
            serves_hub=False,
        )
        link = BrokerLink(agent.context, Pool(folder=str(folder)).settings(), member, _introduce)

        async def obey(_: wire.ToAgent) -> None:
            pass

        listens = asyncio.create_task(link.run(obey))
        try:
            assert isinstance(await broker.hear(), wire.Register)
            await broker.say(wire.Registered())
            await link.tell(wire.Prepared(lease=_LEASE))  # is said once the broker is known to know the agent
            assert isinstance(await broker.hear(), wire.Prepared)
            yield link, broker
        finally:
            listens.cancel()
            await asyncio.gather(listens, return_exceptions=True)


def _introduce(secret: str) -> wire.Register:
    return wire.Register(
        protocol=wire.PROTOCOL,
        version="0",
        secret=secret,
        agent=AgentId("agent"),
        node="node",
        address=wire.AgentAddress(address="", public_key=""),
        slots=(),
    )


def test_cells_that_are_over_are_told_before_whatever_is_told_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with linked(tmp_path) as (link, broker):
            await link.tell(_done("first"))
            await link.tell(_done("second"))
            await link.tell(wire.CellBegan(lease=_LEASE, cell=CellId("third")))
            await link.tell(_done("third"))
            await link.send(wire.Ping(counters={}))
            assert await broker.hear_cells(5) == ["first", "second", "CellBegan", "third", "Ping"]

    asyncio.run(main())


def test_a_cell_that_is_over_is_told_though_nothing_else_is_and_how_long_ago_it_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with linked(tmp_path) as (link, broker):
            await link.tell(_done("only"))
            told = await broker.hear()
            assert isinstance(told, wire.CellDone)
            assert (told.cell, told.ended_ago_ms >= 2_000) == ("only", True)

    asyncio.run(main())


def test_an_agent_that_ends_tells_first_of_the_cells_that_are_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with linked(tmp_path) as (link, broker):
            await link.tell(_done("last"))
            link.close()
            assert await broker.hear_cells(1) == ["last"]

    asyncio.run(main())


def test_a_broker_that_has_forgotten_the_agent_is_told_of_each_cell_when_it_knows_it_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with linked(tmp_path) as (link, broker):
            await broker.say(wire.Unknown())
            await link.tell(_done("told"))
            while await broker.hear_cells(1) != ["Register"]:
                pass  # it was told before the agent heard that it is unknown
            await broker.say(wire.Registered())
            await link.tell(wire.PauseDeclined(lease=_LEASE))
            assert await broker.hear_cells(2) == ["told", "PauseDeclined"]

    asyncio.run(main())


@pytest.mark.parametrize("says_it", [True, False])
def test_an_agent_whose_broker_speaks_another_protocol_gives_its_cells_their_grace_and_says_which_is_older(
    tmp_path: Path, *, says_it: bool
) -> None:
    async def main() -> None:
        async with linked(tmp_path) as (link, broker), agent_parts(tmp_path / "agent") as agent:
            session, kernel = agent.session("lease"), agent.kernel()
            assert isinstance(await kernel.attach(session), wire.Attached)
            await session.from_kernel(wire.Run(cell=CellId("cell"), source="", number=1, parcel=wire.Parcel()), ())
            departure = Departure(agent.settings, agent.registry, link, agent.faults)
            leaves = asyncio.create_task(departure.run())
            if says_it:
                older = str(VersionMismatch(wire.PROTOCOL, wire.PROTOCOL + 1, "the agent"))
                await broker.say(wire.Refusal(code=RefusalCode.VERSION_MISMATCH, sentence=older))
            else:
                await broker.say_in_another_protocol()
            told = await kernel.hear()
            while not isinstance(told, wire.Notice):
                told = await kernel.hear()
            assert "30 s" in told.sentence
            assert session.cells.running is not None, "it has its grace"
            del agent.registry.running[_LEASE]  # it has ended
            session.executor.close()
            with pytest.raises(NotDone, match="must be upgraded"):
                await leaves

    asyncio.run(main())
