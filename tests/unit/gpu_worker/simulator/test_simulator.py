"""The simulator: exact small worlds, what must add up in large ones, the report, and the command."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from bulletin.errors import BadConfig
from bulletin.ids import AgentId, ProjectId
from gpu_worker.broker.ledger import CellRecord, Ledger
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.policy.projects import Budget, Project, SchedulerSettings
from gpu_worker.simulator.curves import Curve
from gpu_worker.simulator.played_cells import PlayedCell
from gpu_worker.simulator.pool_size import find_fewest_at_once
from gpu_worker.simulator.run_report import RunReport, jain, read_settings, report, simulate
from gpu_worker.simulator.simulate_command import SimulateCommand
from gpu_worker.simulator.simulated_nodes import Delays
from gpu_worker.simulator.simulated_pool import SimulatedPool, divide_gpus
from gpu_worker.simulator.traces import Trace, TraceCell, TraceNotebook, TraceOrigin
from gpu_worker.simulator.workloads import generate

SECOND = 1000
MINUTE = 60 * SECOND
DELAYS = Delays(start_ms=200, hot_ms=5, evict_ms=500)


def notebook(session: str, opened_ms: int, *cells: TraceCell) -> TraceNotebook:
    return TraceNotebook(session, f"user-{session}", "ml", opened_ms, 0, cells)  # type: ignore[arg-type]


def play(*notebooks: TraceNotebook, sizes: tuple[int, ...] = (1,)) -> SimulatedPool:
    world = SimulatedPool(Trace(TraceOrigin(made_by="hand"), notebooks), sizes, None, DELAYS)
    world.run()
    return world


def times(world: SimulatedPool) -> dict[str, tuple[int, int | None, int | None, str | None]]:
    return {one.cell: (one.submitted_ms, one.started_ms, one.ended_ms, one.end) for one in world.played}


# Small worlds, to the millisecond


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


# What adds up


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


# The report


def test_who_waited_longest_is_said_to_have_been_passed_by_those_who_began_first() -> None:
    wide = TraceCell(10 * SECOND, 0, gpus=2)  # its node has two slots, and both are taken for long
    world = play(
        notebook("a", 0, TraceCell(MINUTE, 0, gpus=2)),
        notebook("b", SECOND, wide),
        notebook("c", 2 * SECOND, TraceCell(SECOND, 0)),
        notebook("d", 3 * SECOND, TraceCell(SECOND, 0)),
        sizes=(2, 1),
    )
    found = report(world)
    assert found.waits.max_ms == times(world)["b.0"][1] - SECOND  # type: ignore[operator]
    assert found.longest_passed_by == 2


def test_a_report_is_what_a_hand_finds() -> None:
    world = play(
        notebook("a", 0, TraceCell(10 * SECOND, 5 * SECOND), TraceCell(SECOND, 0)),
        notebook("b", SECOND, TraceCell(10 * SECOND, 0)),
    )
    found = report(world)
    assert (found.waits.median_ms, found.waits.max_ms) == (6_400, 9_900)  # 200, 6400 and 9900
    assert found.waits.at_once == pytest.approx(1 / 3)
    assert found.waited_for_nobody == pytest.approx(1 / 3)
    assert found.histogram[:4] == (1, 0, 2, 0)
    assert found.cell_gpu_hours == pytest.approx((10_200 + 10_200 + 1_200) / 3_600_000)
    assert found.hours == pytest.approx(23_100 / 3_600_000)
    assert found.utilization == pytest.approx(21_600 / 23_100)
    assert (found.reserved_gpu_hours, found.reserved_gpus) == (pytest.approx(26_000 / 3_600_000), 2)
    assert found.saved_hours == pytest.approx(1 - 21_600 / 26_000)
    assert found.saved_hours_strictly == pytest.approx(1 - 23_100 / 26_000)
    assert found.saved_gpus == 0.5
    progress = [(10_000 + 1_000) / (10_200 + 7_400), 10_000 / 19_900]
    assert found.jain_users == pytest.approx(jain(progress))
    assert found.least_progress == pytest.approx(progress[1])
    assert found.waits_by_project == {"ml": found.waits}


def test_jains_index_is_one_where_all_have_the_same_and_a_part_where_one_has_all() -> None:
    assert jain([3, 3, 3]) == 1
    assert jain([5, 0, 0, 0]) == 0.25
    assert jain([]) == 1


def test_a_curve_is_an_exact_integral_and_means_of_bins() -> None:
    curve = Curve(width_ms=10)
    curve.add(2, 5)
    curve.add(-1, 12)
    curve.advance(25)
    assert curve.total_ms == 2 * 7 + 13
    assert curve.means() == [1.0, (2 * 2 + 8) / 10, 1.0]
    assert curve.most == 2


def test_the_smallest_pool_suffices_and_the_next_smaller_one_does_not() -> None:
    trace = generate("course", seed=1, people=8)

    def play_on(gpus: int) -> RunReport:
        return simulate(trace, (gpus,))

    at_once = [0.0] + [play_on(gpus).waits.at_once for gpus in range(1, 7)]
    for share in (0.5, 0.9, 0.98):
        found = find_fewest_at_once(play_on, share, most=6)
        assert at_once[found.gpus - 1] < share <= at_once[found.gpus] == found.waits.at_once
    with pytest.raises(BadConfig, match="were asked for"):
        find_fewest_at_once(play_on, 0.99, most=1)


def test_gpus_are_divided_as_evenly_as_can_be() -> None:
    assert divide_gpus(60, 8) == (8, 8, 8, 8, 7, 7, 7, 7)


# The command


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    command = SimulateCommand()
    command.initialize(list(words))
    command.start()
    return capsys.readouterr().out


SMALL = ("--generate", "course", "--people", "2", "--gpus", "1", "--nodes", "1")
WEEK = ("--generate", "course", "--people", "12", "--gpus", "3", "--nodes", "2")


def test_the_command_prints_a_table_and_plots(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, *WEEK)
    assert said.startswith("course, seed 1, 12 people, version 1: ")
    assert "a simulation" in said
    for line in (
        "started at once (1 s)",
        "worst hour",
        "closed when idle for 20 min",
        "saved against that",
        "cells by their wait",
        "GPUs that run cells",
        "day 7",
    ):
        assert line in said


def test_a_trace_that_was_saved_gives_the_same_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = run(capsys, *WEEK, "--json", "--save-trace", f"{tmp_path}/week.jsonl")
    again = run(capsys, f"{tmp_path}/week.jsonl", "--gpus", "3", "--nodes", "2", "--json")
    assert json.loads(made) == json.loads(again)
    [found] = json.loads(made)["runs"]
    assert found["cells"] == found["returned"] > 100


def test_two_settings_stand_side_by_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "short.json").write_text(
        '{"qos": [{"name": "interactive", "priority": 1, "walltime_ms": 60000, "queued_per_user": 20}]}'
    )
    said = run(capsys, *WEEK, "--compare", f"{tmp_path}/short.json").splitlines()
    assert said[2].split() == ["defaults", "short"]
    [cut] = [line.split() for line in said if line.startswith("  cut at their walltime")]
    assert int(cut[-2]) == 0 < int(cut[-1])
    assert "GPUs that run cells, short" in said


def test_the_fewest_gpus_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, *WEEK[:-4], "--gpus", "12", "--nodes", "1", "--at-once", "0.9", "--json"))
    assert 1 <= found["runs"][0]["gpus"] < 12
    assert found["runs"][0]["waits"]["at_once"] >= 0.9


def test_with_slower_evictions_fewer_cells_start_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    usual, slow = (
        json.loads(run(capsys, *WEEK, "--json", "--evict-delay", delay))["runs"][0] for delay in ("0.5", "9")
    )
    assert slow["waits"]["at_once"] < usual["waits"]["at_once"]
    assert slow["waits"]["at_once"] < slow["waited_for_nobody"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--state-delay", "3"), "waits"),
        (("--model-delay", "3"), "waits"),
        (("--long-cells", "0.2"), "cell_gpu_hours"),
        (("--lost-node", "11"), "lost"),
    ],
)
def test_another_assumption_gives_another_report(
    words: tuple[str, ...], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [usual], [other] = (json.loads(run(capsys, *WEEK, "--json", *more))["runs"] for more in ((), words))
    assert other[field] != usual[field]
    assert other["cells"] == usual["cells"]


def test_a_figure_is_drawn_and_is_the_same_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one.svg", "two.svg"):
        run(capsys, *SMALL, "--figure", f"{tmp_path}/{name}")
    drawn = (tmp_path / "one.svg").read_text()
    assert "GPUs; one per open notebook would be" in drawn
    assert drawn == (tmp_path / "two.svg").read_text()
    with pytest.raises(BadConfig, match="cannot be written"):
        run(capsys, *SMALL, "--figure", f"{tmp_path}/none/week.svg")


def test_a_recorded_ledger_is_played(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    records = [
        CellRecord(
            cell=f"c{at}", lease="l", session=f"s{at % 2}", user="ann", project="ml", qos="interactive", node="n",
            slots=("g0",), kind="gpu", gpus=1, started_at_ms=10_000 * at, ended_at_ms=10_000 * at + 4_000,
            held_ms=4_000, ran_ms=4_000, outcome="returned",
        )
        for at in range(6)
    ]  # type: ignore[arg-type]  # fmt: skip
    with Ledger.open(url) as ledger:
        ledger.record_cells(records, at_ms=0)
    found = json.loads(run(capsys, "--ledger", url, "--gpus", "1", "--nodes", "1", "--json"))
    assert found["trace"]["made_by"] == "ledger"
    assert (found["runs"][0]["cells"], found["runs"][0]["returned"]) == (6, 6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Give one trace"),
        (("week.jsonl", "--generate", "course"), "Give one trace"),
        (("--generate", "party"), "no workload 'party'"),
        (("--generate", "course", "--gpus", "2"), "not enough for 8 nodes"),
    ],
)
def test_a_command_that_cannot_be_says_why(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadConfig, match=said):
        run(capsys, *words)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("[]", "not understood"),
        ('{"start": 1}', "sets start, which is not known"),
        ('{"start_ms": "soon"}', "not understood"),
    ],
)
def test_settings_that_are_none_are_bad_configuration(content: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadConfig, match=said):
        read_settings(path)


def test_a_quota_file_is_settings(tmp_path: Path) -> None:
    path = tmp_path / "quotas.toml"
    path.write_text("[projects.course]\nguaranteed = 2\n")
    [project] = read_settings(path).projects
    assert (project.id, project.guaranteed_milli) == ("course", 2000)


def test_rules_of_a_quota_file_are_for_the_groups_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "quotas.toml"
    path.write_text('[projects.named]\nweight = 2\n[group_rules.x]\ngroups = ["course-*"]\nlimit = 1\n')
    found = read_settings(path, {"course-a", "named", "default"}).projects
    assert {one.id: (one.limit_milli, one.rule) for one in found} == {"named": (None, ""), "course-a": (1000, "x")}


def test_class_hours_of_a_quota_file_come_on_the_monday_of_a_trace_whatever_their_term(tmp_path: Path) -> None:
    path = tmp_path / "quotas.toml"
    path.write_text("""
        [projects.ml]
        borrow = false
        [projects.ml.class_hours.lecture]
        days = ["Mon"]
        from = "10:00"
        until = "12:00"
        guaranteed = 1
        time_zone = "Europe/Berlin"
        first_day = "2026-10-12"
        last_day = "2027-02-05"
    """)
    trace = Trace(TraceOrigin(made_by="hand"), (notebook("a", 0, TraceCell(10 * MINUTE, MINUTE)),))
    world = SimulatedPool(trace, (1,), read_settings(path), DELAYS)
    world.run()
    assert times(world) == {"a.0": (0, 9 * 60 * MINUTE + 200, 9 * 60 * MINUTE + 10 * MINUTE + 200, "returned")}


def test_the_program_ends_with_the_status_of_bad_configuration() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpu_worker.cli", "simulate", "--generate", "party"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("bulletin simulate: There is no workload 'party'.")
