"""A session that keeps its slots between cells: until when, and what it tells of the time between them."""

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import CellId
from bulletin.kept_time import is_kept
from bulletin.units import HOUR_MS, MINUTE_MS
from bulletin.wire import blobs as bulk, messages as wire
from gpu_worker.agent.agent_cell import AgentCell
from gpu_worker.agent.keep_watch import KeepWatch
from gpu_worker.agent.session import Session
from gpu_worker.agent.session_reports import cell_done, cell_usage
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


class Watched:
    """The keep time of a session, by a clock of its own, and what is told of it."""

    def __init__(self, session: Session, keep_ms: int = HOUR_MS) -> None:
        self.now_ms, self.session, self.told = 1_000_000, session, list[wire.Message]()
        self.prepare = structs.replace(session.prepare, keep_ms=keep_ms, walltime_ms=12 * HOUR_MS)
        self.watch = KeepWatch(self.prepare, self._tell, lambda: self.now_ms)

    async def _tell(self, message: wire.Message) -> None:
        self.told.append(message)

    async def cell_comes(self, name: str) -> AgentCell:
        """A cell comes while the slots are kept."""
        cell = AgentCell(run_of(name), "", self.session._share, 1_000)
        cell.started_ms = cell.held_since_ms = self.now_ms
        await self.watch.pass_on(self.prepare, cell)
        return cell

    def charged_ms(self, cell: AgentCell) -> tuple[int, int]:
        """For how long a cell that is over now held the slots, and ran."""
        usage = cell_usage(self.prepare, cell, CellOutcome.RETURNED, None, self.now_ms)
        return cell_done(self.prepare, cell, usage, self.now_ms).usage.held_ms, usage.ran_ms


@pytest.mark.parametrize(("gap_ms", "own_ms", "kept_ms"), [(999, 1_009, []), (1_000, 10, [1_000])])
def test_all_the_time_between_two_cells_is_charged_however_short(
    tmp_path: Path, gap_ms: int, own_ms: int, kept_ms: list[int]
) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            it = Watched(agent.session("l1"))
            await it.watch.begin(it.prepare, CellId("a"))
            it.now_ms += gap_ms
            cell = await it.cell_comes("b")
            it.now_ms += 10
            assert it.charged_ms(cell) == (own_ms, 10)
            assert [one.usage.held_ms for one in it.told if isinstance(one, wire.CellDone)] == kept_ms
            began = [one.cell for one in it.told if isinstance(one, wire.CellBegan)]
            assert [is_kept(one) for one in began] == [True, False]

    asyncio.run(main())


def test_what_is_given_back_right_after_a_cell_is_told_of_to_its_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            it = Watched(agent.session("l1"))
            await it.watch.begin(it.prepare, CellId("a"))
            it.now_ms += 200
            await it.watch.end(it.prepare)
            began, done = it.told
            assert isinstance(began, wire.CellBegan)
            assert isinstance(done, wire.CellDone)
            assert (done.cell, done.usage.outcome, done.usage.held_ms) == (began.cell, CellOutcome.KEPT, 200)
            await it.watch.end(it.prepare)
            assert len(it.told) == 2, "and once"

    asyncio.run(main())


def test_who_never_takes_the_last_results_keeps_a_place_a_minute_longer_and_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, keep_ms = agent.session("l1"), 10 * MINUTE_MS
            it = Watched(session, keep_ms)
            await it.watch.begin(it.prepare, CellId("a"))

            async def look(after_ms: int) -> LeaseEnd | None:
                it.now_ms += after_ms
                await it.watch.check(session.kernel, session.shutdown, is_evictable=False)
                await asyncio.sleep(0)
                return session.shutdown.reason

            assert await look(keep_ms) is None, "its results may come yet"
            assert await look(MINUTE_MS - 1) is None
            assert await look(1) is LeaseEnd.KEEP_OVER
            assert "No cell of this notebook has run for 10 min" in session.shutdown.describe(0)

    asyncio.run(main())


def test_what_an_admin_gives_a_place_counts_once_and_after_the_next_cell_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            watched = Watched(agent.session("l1"))
            watch = watched.watch
            await watch.begin(watched.prepare, CellId("before"))
            began = watched.told[-1]
            assert isinstance(began, wire.CellBegan)
            assert watch.extend(HOUR_MS)
            assert not watch.extend(HOUR_MS), "it was said again"
            assert watch.walltime_ms == 13 * HOUR_MS
            await watched.cell_comes("next")
            await watch.begin(watched.prepare, CellId("next"))
            assert watch.walltime_ms == 13 * HOUR_MS
            assert watch.add_to(watched.session.held_lease()).more_ms == HOUR_MS
            assert not watch.extend(HOUR_MS), "it was said again after the next cell"
            assert watch.extend(2 * HOUR_MS), "in all"
            watched.now_ms += 14 * HOUR_MS
            assert watch.is_over
            assert not watch.extend(3 * HOUR_MS), "it is too late"
            session = watched.session
            await watch.check(session.kernel, session.shutdown, is_evictable=True)
            await asyncio.sleep(0)
            assert session.shutdown.describe(0) == (
                "This notebook has had its place for 14 h, which is all of its time."
            )

    asyncio.run(main())


def test_what_is_given_to_a_cell_or_between_two_is_the_places_from_then_on(tmp_path: Path) -> None:
    """Whichever of them runs by the time it comes: the message and a cell may cross."""

    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            session, kernel = agent.session("l1", keep_ms=HOUR_MS), agent.kernel()
            whole_ms = session.prepare.walltime_ms
            assert isinstance(await kernel.attach(session), wire.Attached)

            async def give(cell: str, more_ms: int) -> int:
                more = wire.ExtendCell(lease=session.prepare.lease, cell=CellId(cell), more_ms=more_ms, sentence="more")
                await session.extend(more)
                return session._keep_watch.walltime_ms - whole_ms

            await session.from_kernel(run_of("c"), ())
            assert HOUR_MS - MINUTE_MS < await give("c", HOUR_MS) <= HOUR_MS
            assert session.held_lease().more_ms == HOUR_MS
            await session._from_executor(end_of("c"), ())
            await session._from_executor(end_of("c", 1), ())
            assert session.held_lease().more_ms == HOUR_MS
            assert HOUR_MS < await give("c", 2 * HOUR_MS) <= 2 * HOUR_MS, "its cell has ended meanwhile"
            assert session.held_lease().more_ms == 2 * HOUR_MS

    asyncio.run(main())


@pytest.mark.parametrize("keep_ms", [0, HOUR_MS])
def test_a_broker_that_is_started_again_is_told_whether_a_place_is_kept(tmp_path: Path, keep_ms: int) -> None:
    async def main() -> None:
        async with agent_parts(tmp_path) as agent:
            assert agent.session("l1", keep_ms=keep_ms).held_lease().is_kept is (keep_ms > 0)

    asyncio.run(main())
