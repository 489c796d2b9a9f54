"""What a kernel, or the broker, says of one session never ends the agent: it ends that session."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bulletin.codes import LeaseEnd
from bulletin.ids import CellId, UserName
from bulletin.wire import messages as wire
from gpu_worker.agent.departure import Departure
from gpu_worker.agent.folder_scratch import FolderScratch
from gpu_worker.agent.lease_commands import LeaseCommands
from gpu_worker.agent.output_buffer import OutputBuffer
from gpu_worker.agent.session import Session
from gpu_worker.agent.spool import DiskShare
from tests.unit.gpu_worker.agent.agent_parts import AgentParts, agent_parts


async def assert_ended(agent: AgentParts, session: Session) -> None:
    await agent.kernel().ask(wire.Ping())  # the agent is through with what came before
    assert session.shutdown.reason is LeaseEnd.CANNOT_START


def spoil(session: Session) -> None:
    """Let whatever is asked about the session's cell raise what nobody expects; its end finds what it needs."""
    outputs = OutputBuffer(None, DiskShare(Path("/")), 0)
    session.cells.running = SimpleNamespace(outputs=outputs)  # type: ignore[assignment]


def test_a_fault_with_what_a_kernel_says_ends_its_session_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            spoilt, honest = agent.session("l1"), agent.session("l2")
            eve, bob = agent.kernel(), agent.kernel()
            assert isinstance(await eve.attach(spoilt), wire.Attached)
            assert isinstance(await bob.attach(honest), wire.Attached)
            spoil(spoilt)
            await eve.say(wire.Seen(cell=CellId("c"), seq=1))
            await assert_ended(agent, spoilt)
            assert agent.faults.count == 1
            assert isinstance(await bob.ask(wire.Ping()), wire.Pong)
            assert honest.shutdown.reason is None

    asyncio.run(main())


class Broker:
    """What an agent tells its broker."""

    def __init__(self) -> None:
        self.told: list[wire.Message] = []
        self.heard = asyncio.Event()

    async def tell(self, message: wire.Message) -> None:
        self.told.append(message)
        self.heard.set()

    send = tell


def commands(agent: AgentParts, broker: Any) -> LeaseCommands:
    async def no_fork(_session: Session) -> None:
        raise ValueError("nobody expected this")

    return LeaseCommands(
        "a",
        "n",
        agent.settings,
        None,
        agent.registry,
        broker,
        agent.server.send,
        no_fork,
        Departure(agent.settings, agent.registry, broker, agent.faults),  # type: ignore[arg-type]
        agent.faults,
        FolderScratch("a", agent.settings),
    )


def test_a_fault_with_a_question_about_a_users_cells_ends_the_session_that_has_it(tmp_path: Path) -> None:
    async def main() -> None:
        broker = Broker()
        async with agent_parts(tmp_path) as agent:
            spoilt = agent.session("l1")
            spoil(spoilt)
            obey = commands(agent, broker).obey
            await obey(wire.ListCells(query="q", user=UserName("ada")))
            await assert_ended(agent, spoilt)
            assert broker.told == [wire.Listed(query="q", cells=())]
            assert agent.faults.count == 1

    asyncio.run(main())


def test_a_session_whose_start_fails_in_a_way_that_nobody_expects_is_told_to_the_broker(tmp_path: Path) -> None:
    async def main() -> None:
        broker = Broker()
        async with agent_parts(tmp_path) as agent, asyncio.TaskGroup() as tasks:
            prepare = agent.session("l1").prepare
            agent.registry.running.pop(prepare.lease).executor.close()
            told = commands(agent, broker)
            told.start(tasks)
            await told.obey(prepare)
            async with asyncio.timeout(30):
                await broker.heard.wait()
            (over,) = broker.told
            assert isinstance(over, wire.LeaseOver)
            assert over.code is LeaseEnd.CANNOT_START
            assert agent.faults.count == 1
            assert not agent.registry.running

    asyncio.run(main())
