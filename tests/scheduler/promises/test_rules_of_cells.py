"""What a project and a class of service say of each cell: which class, how many GPUs, how long, how many wait."""

import msgspec
import pytest

from bulletin.ids import AgentId, SlotId
from gpu_worker.scheduler import actions as act
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.seen import HOUR_S, MINUTE_S, at, nodes, notebook
from tests.scheduler.promises.stories import look, quotas

INSIDE = '[projects.dep]\n{rule}\n[projects.lab]\nparent = "dep"\n[projects.free]\n'
SMALL = '[qos.small]\nwalltime = "1 h"\ngpus_per_cell = 1\nqueued_per_user = 2\n'


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ('qos = ["interactive"]', {"qos": "batch"}),
        ("gpus_per_cell = 2", {"gpus": 3}),
        ('walltime = "10 min"', {"walltime_ms": 601_000}),
        ("", {"qos": "small", "gpus": 2}),
        ("", {"qos": "small", "walltime_ms": HOUR_S * 1000 + 1}),
    ],
)
@pytest.mark.parametrize("project", ["dep", "lab"])
def test_a_project_says_what_its_cells_may_ask_for_and_those_inside_it_too(
    rule: str, asked: dict[str, object], project: str
) -> None:
    seen = look(
        quotas(INSIDE.format(rule=rule) + SMALL),
        nodes(1, 4),
        at(1, notebook("more", project, 10, **asked)),
        at(2, notebook("other", "free", 10, **asked)),
        last=100,
    )
    assert len(seen.refused("more")) == 1
    assert bool(rule) == (seen.wait("other") == 0)


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ('qos = ["interactive"]', {}),
        ("gpus_per_cell = 2", {"gpus": 2}),
        ('walltime = "10 min"', {"walltime_ms": 600_000}),
        ("", {"qos": "small", "walltime_ms": HOUR_S * 1000}),
    ],
)
def test_all_that_is_allowed_may_be_asked_for(rule: str, asked: dict[str, object]) -> None:
    seen = look(
        quotas(INSIDE.format(rule=rule) + SMALL), nodes(1, 4), at(1, notebook("all", "lab", 10, **asked)), last=100
    )
    assert seen.wait("all") == 0


def test_who_does_not_ask_for_a_time_runs_for_as_long_as_the_project_lets_them() -> None:
    seen = look(
        quotas(INSIDE.format(rule='walltime = "10 min"')),
        nodes(1, 4),
        at(1, notebook("cell", "lab", HOUR_S, closes_ms=0)),
        last=HOUR_S,
    )
    assert seen.gpu_seconds("lab") == 10 * MINUTE_S


def test_who_waits_and_may_not_run_any_more_is_refused_and_others_have_the_time_that_is_given_now() -> None:
    rule = INSIDE.format(rule='walltime = "{}"')
    seen = look(
        quotas(rule.format("40 min")),
        nodes(1, 1),
        at(1, notebook("runs", "free", 1000, closes_ms=0)),
        at(10, notebook("long", "lab", 1500, walltime_ms=1_500_000)),
        at(11, notebook("short", "lab", HOUR_S, walltime_ms=300_000, closes_ms=0)),
        at(12, notebook("unsaid", "lab", HOUR_S, closes_ms=0)),
        at(100, hi.Changes(quotas(rule.format("10 min")))),
        last=2 * HOUR_S,
    )
    assert len(seen.refused("long")) == 1
    assert seen.gpu_seconds("lab") == 5 * MINUTE_S + 10 * MINUTE_S


def test_no_more_requests_of_a_user_wait_than_their_class_lets() -> None:
    many = [at(10 + n, notebook(f"s{n}", "free", 10, user="ann", qos="small")) for n in range(3)]
    seen = look(
        quotas(INSIDE.format(rule="") + SMALL), nodes(1, 1), at(1, notebook("runs", "lab", 600)), many, last=100
    )
    assert [len(seen.refused(f"s{n}")) for n in range(3)] == [0, 0, 1]


def test_who_asks_for_more_cpus_or_memory_than_any_node_has_is_refused_and_in_nobodys_way() -> None:
    seen = look(
        quotas(""),
        at(0, hi.Joins(AgentId("n0"), hi.gpus(2), 8, 64 * hi.GB)),
        at(1, notebook("cpus", "lab", 10, cpus=9)),
        at(2, notebook("memory", "lab", 10, memory_bytes=65 * hi.GB)),
        at(3, notebook("all", "lab", 100, cpus=8, memory_bytes=64 * hi.GB)),
        at(4, notebook("more", "lab", 10, cpus=1)),
        last=150,
    )
    assert len(seen.refused("cpus")) == len(seen.refused("memory")) == 1
    assert (seen.wait("all"), seen.granted("more")) == (0, 103)


def test_who_names_no_slice_has_a_whole_gpu_and_the_smallest_of_its_node() -> None:
    large, small, cut = hi.gpus(2), hi.gpus(1, "NVIDIA L4", 24 * hi.GB), hi.slices(2)
    slots = (*large, *(msgspec.structs.replace(one, id=SlotId("small")) for one in small), *cut)
    seen = look(
        quotas(""),
        at(0, hi.Joins(AgentId("n0"), slots)),
        [at(1 + n, notebook(f"s{n}", "lab", 1000)) for n in range(4)],
        at(10, notebook("slice", "lab", 1000, gpu_type="MIG")),
        last=150,
    )
    granted = {one.session: one.slots for _, _, acts in seen.log for one in acts if isinstance(one, act.Grant)}
    assert granted["s0"] == ("small",)
    assert "s3" not in granted
    assert granted["slice"][0].startswith("mig")
