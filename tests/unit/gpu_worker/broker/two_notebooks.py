"""The notebooks of two users, and what they hear; and a node that says of leases what it likes."""

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.joins import Joins
from gpu_worker.broker.kernels import Kernels
from gpu_worker.broker.records import LeaseRecord, OpenLease
from gpu_worker.broker.session_names import SessionNames
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub
from tests.unit.gpu_worker.broker.node_reports import held

#: Each notebook's connection is called as its user.
KERNELS = {"ann": KernelId("ann-kernel"), "eve": KernelId("eve-kernel")}


async def _nobody_looks(person: Person) -> wire.Picture:
    raise AssertionError(f"{person.user} looks at a pool that is not there")


async def _nobody_asks(person: Person, question: object) -> wire.Refusal:
    raise AssertionError(f"{person.user} asks for {question}")


def restart(broker: BrokerParts, hub: FakeHub, unproved: Mapping[SessionId, UserName] = {}) -> None:
    """Begin with what a broker knows that has been started again: nothing of who is there."""
    url = f"http://127.0.0.1:{hub.server_address[1]}/hub/api"
    identity = Identity("own", Hub(url=url, token="service"), SCOPE)
    kernels = Kernels(
        broker.send,
        identity,
        broker.clock_ms,
        _nobody_looks,
        _nobody_asks,
        "GPU",
        broker.faults,
        SessionNames("secret", unproved),
    )
    broker.agents._claims._names = kernels.names
    kernels.shell, kernels.groups, kernels.decisions = broker.shell, broker.groups, broker.kernels.decisions
    kernels.joins = Joins(broker.send, broker.tell_agent, broker.shell, broker.clock_ms)
    broker.kernels = broker.agents._kernels = kernels
    broker.agents.joins = kernels.joins
    broker.shell._tell = kernels.tell


def forget_agents(broker: BrokerParts) -> None:
    """Know of no agent any more that it was there, as after a restart."""
    broker.agents.known.clear()
    broker.agents._by_route.clear()


def says(broker: BrokerParts, user: str, *messages: wire.FromKernel, hears_moves: bool = True) -> None:
    """What a notebook says, and all that follows from it."""

    async def say() -> None:
        hello = wire.Hello(
            protocol=wire.PROTOCOL,
            version="1",
            token=f"{user}-token",
            kernel=KERNELS[user],
            hears_moves=hears_moves,
        )
        for message in (hello, *messages):
            await broker.kernels.take(user.encode(), message)
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    asyncio.run(say())


def prepared(broker: BrokerParts) -> wire.Prepare:
    """What the last node was told that was granted."""
    return next(said for said in reversed(broker.to_agents) if isinstance(said, wire.Prepare))


def hears(broker: BrokerParts, session: SessionId) -> list[str]:
    """Whose notebooks hear what is said to a session."""
    broker.to_routes.clear()
    asyncio.run(broker.kernels.tell(session, wire.Pong()))
    return [route.decode() for route, _ in broker.to_routes]


def claim(broker: BrokerParts, node: str = "lying", **changes: Any) -> None:
    """A node comes again with a lease, which nobody granted or as it was not granted."""
    made_up = held(
        lease=LeaseId("l-made-up"),
        kernel=KERNELS["eve"],
        user=UserName("eve"),
        walltime_ms=60_000,
        cell=CellId("made-up"),
    )
    message = structs.replace(broker.registration(node), held=(structs.replace(made_up, **changes),))
    asyncio.run(broker.agents.take(f"again-{node}".encode(), message))


def recorded(session: SessionId, lease: str, granted_at_ms: int, node: str = "lying") -> OpenLease:
    record = LeaseRecord(
        lease=LeaseId(lease),
        session=session,
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        node=node,
        slots=(SlotId("gpu-0"),),
        kind="gpu",
        milli=1000,
        granted_at_ms=granted_at_ms,
    )
    return OpenLease(record, 0)


def let_go_by(broker: BrokerParts, minutes: int, *nodes: str) -> None:
    """Time in which these nodes are heard, and notebooks ask for what they wait for."""

    async def pass_minutes() -> None:
        for _ in range(minutes * 12):
            broker.now_ms += 5_000
            for node in nodes:
                await broker.agents.take(node.encode(), wire.Ping())
            await broker.agents.tidy()
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
            await broker.shell.step(events.Tick())

    asyncio.run(pass_minutes())


def grants(broker: BrokerParts, lease: LeaseId) -> list[wire.Prepare]:
    """What was granted beside this lease."""
    return [said for said in broker.to_agents if isinstance(said, wire.Prepare) and said.lease != lease]
