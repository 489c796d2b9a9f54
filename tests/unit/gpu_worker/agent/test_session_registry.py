"""What is remembered of sessions that have ended: of each user so much, whatever others do."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from bulletin.ids import CellId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.wire import messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.session import Session
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.agent.spool import DiskShare
from gpu_worker.config import Pool


async def _nobody(_route: bytes, _message: wire.Message, _blobs: Sequence[Blob]) -> None:
    pass


async def _no_broker(_message: wire.Message) -> None:
    pass


def finished(folder: Path, users: Sequence[str], outputs: int = 0) -> SessionRegistry:
    """Sessions of these users, l0 and so on, that have ended, eve's each with so many outputs."""

    async def play() -> SessionRegistry:
        settings, inventory = Pool(folder=str(folder), slots=1).settings(), Inventory(1, use_gpus=False)
        registry = SessionRegistry()
        for number, user in enumerate(users):
            prepare = wire.Prepare(
                lease=LeaseId(f"l{number}"),
                session=SessionId(f"s{number}"),
                kernel=KernelId("k"),
                user=UserName(user),
                project=ProjectId("p"),
                qos="interactive",
                slots=(SlotId("cpu-0"),),
                walltime_ms=60_000,
                ticket="t",
            )
            session = Session(prepare, settings, inventory, _nobody, _no_broker, DiskShare(settings.folder))
            if user == "eve":
                for _ in range(outputs):
                    session._outputs.keep(None, wire.Output(cell=CellId("c"), type="stream"), [b"{}"])
            registry.finish(session, is_wanted=True)
            session.executor.close()
        return registry

    return asyncio.run(play())


def kept(registry: SessionRegistry, user: str) -> list[str]:
    return [one.prepare.lease for one in registry.of_user(UserName(user))]


def test_nobody_pushes_out_what_is_kept_for_others(tmp_path: Path) -> None:
    registry = finished(tmp_path, ["bob", *["eve"] * 300])
    assert kept(registry, "bob") == ["l0"]
    assert 1 < len(kept(registry, "eve")) < 300
    assert kept(registry, "eve")[-1] == "l300", "a user's own oldest goes"


def test_what_is_kept_of_a_user_takes_a_bounded_part_of_the_agents_memory(tmp_path: Path) -> None:
    registry = finished(tmp_path, ["bob", *["eve"] * 8], outputs=30_000)
    assert kept(registry, "bob") == ["l0"]
    assert sum(one.memory_bytes for one in registry.of_user(UserName("eve"))) < 80_000_000
    assert kept(registry, "eve")[-1] == "l8"
    assert len(kept(registry, "eve")) < 8
