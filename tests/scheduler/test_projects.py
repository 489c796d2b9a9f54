"""What an admin may write down, and what is said of what cannot be kept."""

import pytest

from bulletin.ids import ProjectId
from gpu_worker.scheduler.policy.projects import (
    Budget,
    Problem,
    Project,
    check_projects,
    guarantees,
    show_gpu_time,
    show_gpus,
)
from tests.scheduler.bench import project


def said(*projects: Project, capacity_milli: int | None = None) -> list[tuple[str, str, bool]]:
    return [(found.project, found.field, found.is_warning) for found in check_projects(projects, capacity_milli)]


def test_a_tree_that_can_be_kept_has_no_problems() -> None:
    hub = project("hub", guaranteed_milli=8000)
    course = project("course", "hub", guaranteed_milli=1500, limit_milli=4000, budget=Budget(10**9, "week"))
    assert said(hub, course, project("lab", "hub", guaranteed_milli=6500), capacity_milli=8000) == []


@pytest.mark.parametrize(
    ("found", "where"),
    [
        (project("a", guaranteed_milli=-1), "guaranteed_milli"),
        (project("a", limit_milli=-1), "limit_milli"),
        (project("a", guaranteed_milli=2000, limit_milli=1000), "limit_milli"),
        (project("a", weight=0), "weight"),
        (project("a", budget=Budget(-1, "day")), "budget"),
        (project("a", "nobody"), "parent"),
        (project("a", "a"), "parent"),
    ],
)
def test_what_cannot_be_is_said_with_its_field(found: Project, where: str) -> None:
    assert said(found) == [("a", where, False)]


def test_projects_inside_each_other_are_found() -> None:
    assert said(project("a", "b"), project("b", "a")) == [("a", "parent", False), ("b", "parent", False)]
    assert said(project("a"), project("a")) == [("a", "id", False)]


def test_a_wrong_parent_is_said_once() -> None:
    assert said(project("a", "nobody"), project("b", "a")) == [("a", "parent", False)]


def test_who_is_in_a_circle_is_inside_itself_and_who_hangs_below_is_not() -> None:
    ring = [project("a", "c"), project("b", "a"), project("c", "b"), project("d", "b"), project("e", "d")]
    for turned in (ring, ring[::-1], ring[3:] + ring[:3]):
        assert sorted(said(*turned)) == [(name, "parent", False) for name in ("a", "b", "c")]


def test_a_chain_of_any_length_is_checked_in_one_walk() -> None:
    chain = [project("p0", guaranteed_milli=500)]
    chain += [project(f"p{n}", f"p{n - 1}") for n in range(1, 20_000)]
    chain.append(project("last", "p19999", guaranteed_milli=2000))
    for turned in (chain, chain[::-1]):
        assert said(*turned) == [("p0", "guaranteed_milli", True)]
        assert guarantees(turned)["p10000"] == 2000
    assert len(said(*chain[1:], project("p0", "last"))) == 20_001


def test_guarantees_of_children_count_for_their_parent() -> None:
    tree = [project("hub"), project("a", "hub", guaranteed_milli=1500), project("b", "hub", guaranteed_milli=1000)]
    assert guarantees(tree) == {"hub": 2500, "a": 1500, "b": 1000}
    assert said(*tree) == []


def test_more_inside_than_the_parent_has_is_a_warning() -> None:
    tree = [project("hub", guaranteed_milli=2000), project("a", "hub", guaranteed_milli=3000)]
    assert check_projects(tree) == [
        Problem(
            ProjectId("hub"),
            "guaranteed_milli",
            "3 GPUs are guaranteed inside 'hub', which has 2 GPUs guaranteed itself. It counts as 3 GPUs. "
            "Raise its guarantee, or lower some inside it.",
            is_warning=True,
        )
    ]
    tree[0] = project("hub", limit_milli=2500)
    assert said(*tree) == [("hub", "limit_milli", True)]


def test_more_than_the_pool_has_is_a_warning() -> None:
    tree = [project("a", guaranteed_milli=3000), project("b", guaranteed_milli=2500)]
    assert said(*tree, capacity_milli=5000) == [("a", "guaranteed_milli", True)]
    assert said(*tree, capacity_milli=5500) == []
    assert said(*tree) == []


def test_amounts_are_shown_as_people_write_them() -> None:
    assert [show_gpus(milli) for milli in (0, 143, 1000, 1500, 12_000)] == [
        "0 GPUs", "0.143 GPUs", "1 GPU", "1.5 GPUs", "12 GPUs",
    ]  # fmt: skip


def test_gpu_time_is_shown_in_hours_or_where_that_is_less_than_one_in_what_people_can_read() -> None:
    hour_ms = 3_600_000
    assert [show_gpu_time(hour_ms), show_gpu_time(200 * hour_ms), show_gpu_time(0)] == [
        "1 GPU-hour",
        "200 GPU-hours",
        "0 GPU-hours",
    ]
    assert show_gpu_time(hour_ms // 2, on_cpu=True) == "30 CPU slot-minutes"
    assert show_gpu_time(61_200) == "1.02 GPU-minutes"
    assert show_gpu_time(32_400, on_cpu=None) == "32.4 slot-seconds"
