"""What is remembered of sessions that have ended: of each user so much, whatever others do."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from bulletin.ids import KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
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


def test_nobody_pushes_out_what_is_kept_for_others(tmp_path: Path) -> None:
    async def play() -> SessionRegistry:
        settings, inventory = Pool(folder=str(tmp_path), slots=1).settings(), Inventory(1, use_gpus=False)
        registry = SessionRegistry()
        for number, user in enumerate(["bob", *["eve"] * 300]):
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
            registry.finish(session, is_wanted=True)
            session.executor.close()
        return registry

    registry = asyncio.run(play())
    assert [one.prepare.lease for one in registry.of_user(UserName("bob"))] == ["l0"]
    kept = [one.prepare.lease for one in registry.of_user(UserName("eve"))]
    assert 1 < len(kept) < 300
    assert kept[-1] == "l300", "a user's own oldest goes"
