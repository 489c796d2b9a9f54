"""The report of a run is what a hand finds, and the settings of one are read from files."""

from pathlib import Path

import pytest

from bulletin.errors import BadConfig
from gpu_worker.simulator.curves import Curve
from gpu_worker.simulator.pool_size import find_fewest_at_once
from gpu_worker.simulator.run_report import RunReport, jain, read_settings, report, simulate
from gpu_worker.simulator.simulated_pool import SimulatedPool
from gpu_worker.simulator.traces import Trace, TraceCell, TraceOrigin
from gpu_worker.simulator.workloads import generate
from tests.unit.gpu_worker.simulator.played_worlds import DELAYS, MINUTE, SECOND, notebook, play, times


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
