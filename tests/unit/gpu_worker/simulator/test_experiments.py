"""Costs of a start, a node that is lost, and what the pool might do: small worlds, to the millisecond."""

import msgspec
import pytest

from bulletin.ids import AgentId, ProjectId, SessionId
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.policy.projects import Project, SchedulerSettings
from gpu_worker.simulator.policies import Policies
from gpu_worker.simulator.resident_sessions import Residence, ResidentSessions
from gpu_worker.simulator.run_report import report
from gpu_worker.simulator.simulated_nodes import Delays, NodeFault
from gpu_worker.simulator.simulated_pool import SimulatedPool, divide_gpus
from gpu_worker.simulator.traces import Trace, TraceCell, TraceNotebook, TraceOrigin
from gpu_worker.simulator.workloads import generate

SECOND = 1000
MINUTE = 60 * SECOND
DELAYS = Delays(start_ms=200, hot_ms=5, evict_ms=500)
CLASS_HAS_ONE = SchedulerSettings(projects=(Project(id=ProjectId("class"), guaranteed_milli=1000),))


def notebook(session: str, opened_ms: int, *cells: TraceCell, project: str = "ml") -> TraceNotebook:
    return TraceNotebook(session, f"user-{session}", project, opened_ms, 0, cells)  # type: ignore[arg-type]


def play(
    *notebooks: TraceNotebook,
    sizes: tuple[int, ...] = (1,),
    settings: SchedulerSettings | None = None,
    delays: Delays = DELAYS,
    faults: tuple[NodeFault, ...] = (),
    policies: Policies | None = None,
) -> SimulatedPool:
    trace = Trace(TraceOrigin(made_by="hand"), notebooks)
    world = SimulatedPool(trace, sizes, settings, delays, faults=faults, policies=policies)
    world.run()
    check(world.scheduler.state)
    assert world.nodes.busy.level == world.nodes.leased.level == world.nodes.leaving == 0
    assert not world.nodes.hot
    return world


def starts(world: SimulatedPool) -> dict[str, int | None]:
    return {one.cell: one.started_ms for one in world.played}


# Costs


def test_a_cold_start_is_an_executor_then_variables_then_a_model() -> None:
    costs = Delays(start_ms=200, state_ms=30, model_ms=4_000, hot_ms=5, evict_ms=500)
    world = play(notebook("a", 0, TraceCell(SECOND, SECOND), TraceCell(SECOND, 0)), delays=costs)
    assert starts(world) == {"a.0": 4_230, "a.1": 6_235}
    assert costs.unhindered_ms == 4_730
    assert report(world).waited_for_nobody == 1
    assert [one.was_warm for one in world.played] == [False, True]


# A lost node


def test_a_node_that_is_lost_takes_its_cells_along_and_comes_back_empty() -> None:
    cells = (TraceCell(MINUTE, SECOND), TraceCell(SECOND, 0))
    world = play(notebook("a", 0, *cells), faults=(NodeFault(0, 10 * SECOND, 5 * MINUTE),))
    assert [one.end for one in world.played] == ["lost", "returned"]
    assert starts(world)["a.1"] == 5 * MINUTE + 200
    assert report(world).lost == 1


def test_a_node_that_is_not_back_leaves_the_others() -> None:
    made = [notebook(name, 0, TraceCell(MINUTE, SECOND), TraceCell(SECOND, 0)) for name in "abc"]
    world = play(*made, sizes=(2, 1), faults=(NodeFault(0, 10 * SECOND),))
    assert sorted(one.end or "" for one in world.played) == ["lost", "lost", *4 * ["returned"]]
    assert world.nodes.free == 1


# A reserve of free GPUs


def test_with_a_reserve_the_session_that_is_hot_for_longest_leaves_before_anybody_asks() -> None:
    made = (
        notebook("a", 0, TraceCell(SECOND, MINUTE), TraceCell(SECOND, 0)),
        notebook("b", 2 * SECOND, TraceCell(SECOND, 10 * SECOND), TraceCell(SECOND, MINUTE)),
        notebook("c", 8 * SECOND, TraceCell(SECOND, 0)),
    )
    without, kept = play(*made, sizes=(2,)), play(*made, sizes=(2,), policies=Policies(reserve=1))
    assert starts(without)["c.0"] == 8_700  # a has to leave first
    assert starts(kept)["c.0"] == 8_200
    left = {stay.lease: stay.to_ms for stay in kept.nodes.past_leases}
    assert left["l-a.0"] == 2_500  # b took the last GPU
    assert left["l-b.0"] == 8_500  # c did


def test_a_reserve_never_ends_a_cell() -> None:
    world = play(notebook("a", 0, TraceCell(MINUTE, SECOND), TraceCell(MINUTE, 0)), policies=Policies(reserve=1))
    assert [one.end for one in world.played] == ["returned", "returned"]
    assert starts(world) == {
        "a.0": 200,
        "a.1": 61_400,
    }  # it had begun to leave when its second cell came: 500 ms, 200 ms


# A keep time


LESSON = (
    notebook("a", 0, TraceCell(SECOND, 30 * SECOND), TraceCell(SECOND, 0), project="class"),
    notebook("z", 5 * SECOND, TraceCell(10 * MINUTE, 0), project="lab"),
)


def _keeping(keep_hot_ms: int) -> SchedulerSettings:
    course = Project(id=ProjectId("class"), guaranteed_milli=1000, keep_hot_ms=keep_hot_ms)
    return SchedulerSettings(projects=(course,))


def test_who_borrows_waits_until_a_session_in_quota_has_been_hot_for_its_keep_time() -> None:
    now = play(*LESSON, settings=CLASS_HAS_ONE)
    assert now.nodes.reclaims == 1  # the lab had the GPU after 700 ms, and the class took it back
    assert now.played[2].cell == "a.1"
    assert (now.played[2].wait_ms or 0) > 30 * SECOND
    kept = play(*LESSON, settings=_keeping(MINUTE))
    assert starts(kept) == {"a.0": 200, "a.1": 31_205, "z.0": 32_205 + 500 + 200}
    assert kept.nodes.reclaims == 0


def test_after_the_keep_time_it_leaves_and_who_is_in_quota_does_not_wait_for_it() -> None:
    kept = play(*LESSON, settings=_keeping(20 * SECOND))
    assert kept.played[1].cell == "z.0"
    assert kept.played[1].submitted_ms == 5_000
    assert kept.nodes.reclaims == 1
    mates = (LESSON[0], notebook("b", 5 * SECOND, TraceCell(SECOND, 0), project="class"))
    world = play(*mates, settings=_keeping(MINUTE))
    assert starts(world)["b.0"] == 5_700


# Sessions that leave their memory on a GPU


NODE = AgentId("n0")
A, B, C = (SessionId(name) for name in "abc")


def test_a_session_finds_its_memory_where_nobody_runs_and_displaces_who_was_used_longest_ago() -> None:
    gpus = ResidentSessions({NODE: 1}, most=2)
    found = []
    for session in (A, B, A, C, A, B):
        found.append(gpus.begin(NODE, session))
        gpus.end(session)
    there, room, displaces = Residence.THERE, Residence.ROOM, Residence.DISPLACES
    assert found == [room, room, there, displaces, there, displaces]


def test_one_session_runs_on_a_gpu_at_a_time_and_the_other_is_loaded_elsewhere() -> None:
    gpus = ResidentSessions({NODE: 2}, most=2)
    assert gpus.begin(NODE, A) is Residence.ROOM
    gpus.end(A)
    assert gpus.begin(NODE, B) is Residence.ROOM  # an empty GPU comes first
    gpus.end(B)
    assert gpus.begin(NODE, C) is Residence.ROOM  # beside a
    assert gpus.begin(NODE, A) is Residence.ROOM  # where b is: c runs on its own


def test_a_lost_node_and_a_closed_notebook_leave_nothing() -> None:
    other = AgentId("n1")
    gpus = ResidentSessions({NODE: 1, other: 1}, most=1)
    gpus.begin(NODE, A)
    gpus.lose(NODE)
    assert gpus.begin(NODE, B) is Residence.ROOM
    gpus.forget(B)
    assert gpus.begin(NODE, A) is Residence.ROOM
    gpus.end(A)
    assert gpus.begin(other, A) is Residence.ROOM  # it does not travel


def test_with_residents_a_session_gives_its_gpu_up_at_once_and_finds_its_memory_again() -> None:
    made = (
        notebook("a", 0, TraceCell(SECOND, 9 * SECOND), TraceCell(SECOND, MINUTE)),
        notebook("b", 5 * SECOND, TraceCell(SECOND, MINUTE)),
    )
    world = play(*made, policies=Policies(residents=2))
    assert starts(world) == {"a.0": 200, "b.0": 5_200, "a.1": 10_205}
    assert [one.was_warm for one in world.played] == [False, False, True]
    one = play(*made, policies=Policies(residents=1))
    assert starts(one) == {"a.0": 200, "b.0": 5_700, "a.1": 10_900}


@pytest.mark.parametrize(
    "policies",
    [Policies(), Policies(reserve=2), Policies(residents=1), Policies(residents=3)],
)
def test_whatever_is_tried_each_cell_runs_once(policies: Policies) -> None:
    week = generate("course", seed=3, people=30)
    faults = (NodeFault(0, 58 * 60 * MINUTE, 60 * 60 * MINUTE),)
    settings = SchedulerSettings(projects=(Project(id=ProjectId("course"), guaranteed_milli=3000),))
    world = SimulatedPool(week, divide_gpus(4, 2), settings, DELAYS, faults=faults, policies=policies)
    world.run()
    check(world.scheduler.state)
    assert sum(len(one.cells) for one in week.notebooks) == len({one.cell for one in world.played}) == len(world.played)
    assert {one.end for one in world.played} <= {"returned", "lost"}
    assert world.nodes.busy.level == world.nodes.leased.level == 0
    again = SimulatedPool(week, divide_gpus(4, 2), settings, DELAYS, faults=faults, policies=policies)
    again.run()
    assert msgspec.json.encode(report(again)) == msgspec.json.encode(report(world))
