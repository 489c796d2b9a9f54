"""The simulated pool: exact small worlds, and what must add up in large ones."""

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from bulletin.ids import AgentId, ProjectId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.policy.projects import Budget, Project, SchedulerSettings
from gpu_worker.simulator.played_cells import PlayedCell
from gpu_worker.simulator.run_report import report, simulate
from gpu_worker.simulator.simulated_nodes import Delays
from gpu_worker.simulator.simulated_pool import SimulatedPool, divide_gpus
from gpu_worker.simulator.traces import Trace, TraceCell, TraceOrigin
from gpu_worker.simulator.workloads import generate
from tests.unit.gpu_worker.simulator.played_worlds import DELAYS, MINUTE, SECOND, notebook, play, times


def test_a_hot_session_starts_its_next_cell_by_itself() -> None:
    world = play(notebook("a", 0, TraceCell(10 * SECOND, MINUTE), TraceCell(SECOND, MINUTE)))
    assert times(world) == {
        "a.0": (0, 200, 10_200, "returned"),
        "a.1": (70_200, 70_205, 71_205, "returned"),
    }
    assert [one.was_hot for one in world.played] == [False, True]
    assert [(stay.from_ms, stay.to_ms) for stay in world.nodes.past_leases] == [(0, 131_205 + 500)]


def test_a_session_that_waits_gets_the_gpu_when_the_cell_before_it_ends_and_its_session_has_left() -> None:
    world = play(
        notebook("a", 0, TraceCell(10 * SECOND, 5 * SECOND), TraceCell(SECOND, 0)),
        notebook("b", SECOND, TraceCell(10 * SECOND, 0)),
    )
    assert times(world) == {
        "a.0": (0, 200, 10_200, "returned"),
        "b.0": (1_000, 10_900, 20_900, "returned"),  # 500 ms until a has left, 200 ms until its own executor is up
        "a.1": (15_200, 21_600, 22_600, "returned"),
    }
    assert world.nodes.evictions == 2


def test_a_session_that_wants_more_gpus_gives_its_own_back_first() -> None:
    world = play(notebook("a", 0, TraceCell(SECOND, SECOND), TraceCell(SECOND, SECOND, gpus=2)), sizes=(2,))
    assert times(world)["a.1"] == (2_200, 2_900, 3_900, "returned")
    assert [stay.slots for stay in world.nodes.past_leases] == [1, 2]


def test_a_cell_is_cut_at_its_walltime() -> None:
    world = play(notebook("a", 0, TraceCell(MINUTE, SECOND, walltime_ms=20 * SECOND), TraceCell(60 * MINUTE, 0)))
    assert times(world)["a.0"] == (0, 200, 20_200, "walltime")
    assert report(world).cut_at_walltime == 2  # the second asked for nothing and got what its lease has


def test_a_cell_that_can_never_run_is_refused_and_its_notebook_goes_on() -> None:
    world = play(
        notebook("a", 0, TraceCell(SECOND, SECOND, gpus=2), TraceCell(SECOND, 0, qos="?"), TraceCell(SECOND, 0))
    )
    assert [one.end for one in world.played] == ["refused", "refused", "returned"]
    assert [one.wait_ms for one in world.played] == [None, None, 200]
    found = report(world)
    assert (found.cells, found.refused, found.returned) == (3, 2, 1)
    assert found.waits.at_once == pytest.approx(1 / 3)
    assert world.waiting.level == 0


def test_a_session_that_wants_another_qos_gives_its_gpu_back_first() -> None:
    world = play(notebook("a", 0, TraceCell(SECOND, SECOND), TraceCell(SECOND, SECOND, qos="batch")))
    assert times(world)["a.1"] == (2_200, 2_900, 3_900, "returned")


def test_an_eviction_that_takes_long_is_counted_once_and_who_leaves_starts_nothing() -> None:
    slow = Delays(start_ms=200, hot_ms=5, evict_ms=25 * SECOND)
    made = (
        notebook("a", 0, TraceCell(SECOND, 5 * SECOND), TraceCell(SECOND, 0)),
        notebook("b", 2 * SECOND, TraceCell(SECOND, MINUTE)),
    )
    world = SimulatedPool(Trace(TraceOrigin(made_by="hand"), made), (1,), None, slow)
    world.run()
    assert times(world) == {
        "a.0": (0, 200, 1_200, "returned"),
        "b.0": (2_000, 27_200, 28_200, "returned"),
        "a.1": (6_200, 53_400, 54_400, "returned"),  # its session was leaving when it was submitted
    }
    assert world.nodes.evictions == 2


def test_a_cell_on_its_way_is_not_stopped_by_an_eviction() -> None:
    impatient = SchedulerSettings(start_ms=50)
    world = SimulatedPool(
        Trace(TraceOrigin(made_by="hand"), (notebook("a", 0, TraceCell(SECOND, 0)),)), (1,), impatient, DELAYS
    )
    world.run(until_ms=100)
    assert [lease.phase for lease in world.scheduler.state.leases.values()] == [Phase.EVICTING]
    world.run()
    assert times(world) == {"a.0": (0, 200, 1_200, "returned")}


def test_a_lease_that_no_agent_knows_is_over_when_it_is_asked_for() -> None:
    world = SimulatedPool(
        Trace(TraceOrigin(made_by="hand"), (notebook("a", MINUTE, TraceCell(SECOND, 0)),)), (1,), None, DELAYS
    )
    world.run(until_ms=0)
    [joined] = world.nodes.join()
    ghost = ev.ReportedLease("l-ghost", "ghost", "eve", "ml", "interactive", (joined.slots[0].id,), None, MINUTE, 0)  # type: ignore[arg-type]
    world.tell(msgspec.structs.replace(joined, held=(ghost,)))
    world.run()
    assert times(world) == {"a.0": (60_000, 60_200, 61_200, "returned")}


@pytest.mark.parametrize("lost_ms", [100, 30 * SECOND, MINUTE])  # on their way; running; about to end
def test_cells_of_a_lost_node_are_lost_and_their_notebooks_go_on_elsewhere(lost_ms: int) -> None:
    cells = (TraceCell(MINUTE, SECOND), TraceCell(MINUTE, SECOND))
    trace = Trace(TraceOrigin(made_by="hand"), tuple(notebook(name, 0, *cells) for name in "abc"))
    world = SimulatedPool(trace, (2, 1), None, DELAYS)
    world.run(until_ms=lost_ms)
    world.tell(ev.AgentLost(AgentId("n0")))
    world.run()
    ends = [one.end for one in world.played]
    assert (ends.count("lost"), ends.count("returned")) == (2, 4)
    gone = {stay.lease for stay in world.nodes.past_leases if stay.to_ms == lost_ms + DELAYS.evict_ms}
    assert gone == {"l-b.0", "l-c.0"}  # a fitted n1
    assert world.nodes.busy.level == world.nodes.leased.level == world.waiting.level == 0
    check(world.scheduler.state)


def world_with_a_budget_for_one_cell_at_a_time() -> SimulatedPool:
    project = Project(id=ProjectId("ml"), budget=Budget(gpu_ms=32 * MINUTE, period="day"))
    cells = (TraceCell(10 * MINUTE, MINUTE), TraceCell(MINUTE, MINUTE))
    trace = Trace(TraceOrigin(made_by="hand"), (notebook("a", 0, *cells),))
    return SimulatedPool(trace, (1,), SchedulerSettings(projects=(project,)), DELAYS)


def test_who_has_used_up_a_budget_waits_for_the_next_day() -> None:
    world = world_with_a_budget_for_one_cell_at_a_time()
    world.run()
    (first, second), day_ms = world.played, 24 * 60 * MINUTE
    assert first.end == second.end == "returned"
    assert second.started_ms is not None
    assert day_ms <= second.started_ms < day_ms + MINUTE


def test_who_waits_for_a_pool_without_nodes_still_waits_at_the_end() -> None:
    world = world_with_a_budget_for_one_cell_at_a_time()
    world.run(until_ms=10 * MINUTE + SECOND)
    world.tell(ev.AgentLost(AgentId("n0")))
    world.run()
    assert [one.end for one in world.played] == ["returned", None]
    assert report(world).still_waiting == 1


def check_conservation(world: SimulatedPool) -> None:
    """Every submitted cell is in one place, and every millisecond of every GPU is counted once."""
    told = report(world)
    assert told.cells == (
        told.returned + told.cut_at_walltime + told.refused + told.lost + told.still_waiting + told.still_running
    )
    assert len({one.cell for one in world.played}) == len(world.played)
    gpus = sum(world.nodes.sizes)
    assert world.nodes.busy.most <= world.nodes.leased.most <= gpus
    assert world.waiting.level == told.still_waiting
    stays = sum(stay.slots * (stay.to_ms - stay.from_ms) for stay in world.nodes.past_leases)
    stays += sum(len(one.slots) * (world.now_ms - one.since_ms) for one in world.nodes.leases.values())
    assert world.nodes.leased.total_ms == stays
    taken = sum(len(lease.slots) for lease in world.scheduler.state.leases.values())
    assert world.nodes.leased.level == taken
    check(world.scheduler.state)


def held_ms(one: PlayedCell) -> int:
    """How long a cell that has begun and ended held each of its GPUs."""
    assert one.started_ms is not None
    assert one.ended_ms is not None
    return one.ended_ms - one.started_ms + (DELAYS.hot_ms if one.was_hot else DELAYS.start_ms)


@pytest.mark.parametrize(("name", "people", "gpus"), [("course", 25, 3), ("research", 2, 12)])
def test_every_cell_ends_once_and_leases_add_up(name: str, people: int, gpus: int) -> None:
    trace = generate(name, seed=2, people=people)
    world = SimulatedPool(trace, divide_gpus(gpus, 3), None, DELAYS)
    day = 24 * 60 * MINUTE
    for at_ms in (0, day // 2, 5 * day // 2, 7 * day):
        world.run(until_ms=at_ms)
        check_conservation(world)
    world.run()
    check_conservation(world)
    told = report(world)
    assert told.cells == sum(len(one.cells) for one in trace.notebooks)
    assert (told.still_waiting, told.still_running) == (0, 0)
    assert world.nodes.leased.level == 0
    began = [one for one in world.played if one.started_ms is not None]
    whole_ms = sum(one.gpus * held_ms(one) for one in began)
    was_cut = sum(one.reclaims for one in began) > 0  # of those that were reclaimed, what was lost is not in their rows
    assert world.nodes.busy.total_ms > whole_ms if was_cut else world.nodes.busy.total_ms == whole_ms
    for one in trace.notebooks:  # one cell at a time, each a pause after the one before
        own = [done for done in world.played if done.cell.startswith(f"{one.session}.")]
        assert [done.cell for done in own] == [f"{one.session}.{at}" for at in range(len(one.cells))]
        for at in range(len(own) - 1):
            assert own[at + 1].submitted_ms == own[at].ended_ms + one.cells[at].think_ms  # type: ignore[operator]


CELLS = st.builds(
    TraceCell,
    run_ms=st.integers(0, 40 * MINUTE),
    think_ms=st.sampled_from([0, 1, 300, SECOND, MINUTE]),
    gpus=st.integers(1, 4),
    qos=st.sampled_from(["interactive", "batch", "long"]),
    walltime_ms=st.sampled_from([None, MINUTE, 30 * MINUTE]),
)


@settings(max_examples=40, deadline=None)
@given(
    notebooks=st.lists(st.tuples(st.sampled_from([0, 1, SECOND, MINUTE]), st.lists(CELLS, max_size=5)), max_size=7),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    stop_ms=st.integers(0, 60 * MINUTE),
)
def test_random_notebooks_add_up(notebooks: list[tuple[int, list[TraceCell]]], sizes: list[int], stop_ms: int) -> None:
    made = tuple(notebook(f"s{at}", opened_ms, *cells) for at, (opened_ms, cells) in enumerate(notebooks))
    world = SimulatedPool(Trace(TraceOrigin(made_by="hand"), made), tuple(sizes), None, DELAYS)
    world.run(until_ms=stop_ms)
    check_conservation(world)
    world.run()
    check_conservation(world)
    assert all(one.ended_ms is not None for one in world.played)
    assert len(world.played) == sum(len(cells) for _, cells in notebooks)


def test_two_runs_are_equal_also_where_one_was_stopped_between() -> None:
    trace = generate("course", seed=5, people=30)
    first, second = SimulatedPool(trace, (3, 2)), SimulatedPool(trace, (3, 2))
    first.run()
    for hour in range(0, 200, 20):
        second.run(until_ms=hour * 60 * MINUTE)
    second.run()
    assert first.played == second.played
    assert first.nodes.past_leases == second.nodes.past_leases
    assert first.steps == second.steps


def test_more_gpus_make_no_more_cells_wait() -> None:
    trace = generate("course", seed=1, people=25)
    shares = [simulate(trace, divide_gpus(gpus, 2)).waits.at_once for gpus in (2, 5, 25)]
    assert shares == sorted(shares)
    assert shares[0] < 0.9
    assert shares[2] == 1.0


def test_gpus_are_divided_as_evenly_as_can_be() -> None:
    assert divide_gpus(60, 8) == (8, 8, 8, 8, 7, 7, 7, 7)
