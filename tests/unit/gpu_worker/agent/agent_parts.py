"""An agent's sessions and the socket at which their kernels come, without executors and without a broker."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import zmq
import zmq.asyncio

from bulletin.ids import KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import channel, frames, messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.kernel_server import KernelServer
from gpu_worker.agent.session import Session
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.agent.spool import DiskShare
from gpu_worker.config import Pool
from gpu_worker.faults import Faults

_PATIENCE_MS = 30_000


class Kernel:
    """A kernel's connection with the agent."""

    def __init__(self, context: zmq.asyncio.Context, server: KernelServer, address: str) -> None:
        self.socket = channel.connect(context.socket(zmq.DEALER), address, server.public_key, channel.DATA_LIMIT)
        self._unpacker: frames.Unpacker[wire.AgentToKernel] = frames.Unpacker(wire.AgentToKernel)

    async def say(self, message: wire.Message, blobs: Sequence[Blob] = ()) -> None:
        await self.socket.send_multipart(frames.pack(message, blobs))

    async def hear(self) -> wire.AgentToKernel:
        assert await self.socket.poll(_PATIENCE_MS), "the agent does not answer"
        message, _ = self._unpacker.unpack(await self.socket.recv_multipart())
        return message

    async def ask(self, message: wire.Message) -> wire.AgentToKernel:
        await self.say(message)
        return await self.hear()

    async def attach(self, session: Session, **about: object) -> wire.AgentToKernel:
        attach = wire.Attach(
            protocol=wire.PROTOCOL,
            lease=session.prepare.lease,
            ticket=session.prepare.ticket,
            **about,  # type: ignore[arg-type]
        )
        return await self.ask(attach)


class AgentParts:
    """What serves kernels."""

    def __init__(self, folder: Path) -> None:
        self.settings = Pool(folder=str(folder), slots=1).settings()
        self.context = zmq.asyncio.Context()
        self.told: list[wire.Message] = []  #: to the broker
        self.registry, self.faults = SessionRegistry(), Faults("agent")
        self.server = KernelServer(self.context, self.settings, self.registry, self.faults)
        self.address = self.server.bind("127.0.0.1")

    def session(self, name: str, user: str = "ada", *, keep_ms: int = 0) -> Session:
        """A session of this name, ready for its kernel; the ticket is the name."""
        prepare = wire.Prepare(
            lease=LeaseId(name),
            session=SessionId(f"s-{name}"),
            kernel=KernelId("k"),
            user=UserName(user),
            project=ProjectId("p"),
            qos="interactive",
            slots=(SlotId("cpu-0"),),
            walltime_ms=60_000,
            ticket=name,
            keep_ms=keep_ms,
        )
        share, inventory = DiskShare(self.settings.folder), Inventory(1, use_gpus=False)
        session = Session(prepare, self.settings, inventory, self.server.send, self._to_broker, share)
        self.registry.running[prepare.lease] = session
        return session

    async def _to_broker(self, message: wire.Message) -> None:
        self.told.append(message)

    def kernel(self) -> Kernel:
        return Kernel(self.context, self.server, self.address)


@asynccontextmanager
async def agent_parts(folder: Path) -> AsyncIterator[AgentParts]:
    """Serve kernels while the block runs."""
    parts = AgentParts(folder)
    serving = asyncio.create_task(parts.server.run())
    try:
        yield parts
        assert not serving.done(), "the agent has ended"
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for session in parts.registry.running.values():
            session.executor.close()
        parts.server.close()
        parts.context.destroy(linger=0)
