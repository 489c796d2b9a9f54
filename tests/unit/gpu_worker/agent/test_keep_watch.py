"""A session that keeps its slots between cells: until when, and what it tells of the time between them."""

import asyncio
from pathlib import Path

from bulletin.codes import LeaseEnd
from bulletin.ids import CellId
from bulletin.kept_time import is_kept
from bulletin.units import HOUR_MS
from bulletin.wire import blobs as bulk, messages as wire
from tests.unit.gpu_worker.agent.agent_parts import agent_parts


def run_of(name: str) -> wire.Run:
    return wire.Run(cell=CellId(name), source="", number=1, parcel=bulk.describe(()))


def end_of(name: str, number: int = 0) -> wire.Ended:
    return wire.Ended(cell=CellId(name), outcome="returned", parcel=bulk.describe(()), ran_ms=0, round=number)


def test_a_notebook_that_is_killed_while_its_cell_runs_keeps_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = agent.session("l1", keep_ms=HOUR_MS), agent.kernel()
            assert isinstance(await kernel.attach(session), wire.Attached)
            await session.from_kernel(run_of("c"), ())
            assert session.kernel.route is not None
            agent.registry.drop_route(session.kernel.route)  # nobody is there to be sent anything
            session.kernel.heard_ms -= 6 * agent.settings.away_ms
            await session._from_executor(end_of("c"), ())
            began, done = agent.told
            assert isinstance(began, wire.CellBegan)
            assert is_kept(began.cell)
            assert isinstance(done, wire.CellDone)
            await session.check_time()  # its results are kept for another kernel, which needs all of them
            assert session.cells.last is not None
            assert session.cells.last.full_round is not None
            await session._from_executor(end_of("c", session.cells.last.full_round), ())
            assert session.is_evictable
            await session.check_time()
            await asyncio.sleep(0)
            assert session.shutdown.reason is LeaseEnd.KERNEL_GONE

    asyncio.run(main())
