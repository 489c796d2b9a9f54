"""A node for oneself (`--exclusive`): who may have one, which node that is, and that nobody else is on it."""

import msgspec
import pytest

from bulletin.ids import AgentId, LeaseId, ProjectId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Evict, Grant, Refuse
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import Budget, Project
from tests.scheduler.bench import MINUTE, SETTINGS, Bench, granted, held, models, project, slots
from tests.scheduler.quota_bench import Quotas

ALONE = tuple(
    msgspec.structs.replace(one, can_be_exclusive=True) if one.name == "batch" else one for one in SETTINGS.qos
)
NODE = {"qos": "batch", "is_exclusive": True}


def pool(*sizes: int, projects: tuple[Project, ...] = ()) -> Quotas:
    bench = Quotas(*projects, qos=ALONE)
    for index, size in enumerate(sizes):
        bench.join(f"n{index}", slots(size))
    return bench


GPUS, SLICES = models(3, "NVIDIA H100", 80), models(7, "NVIDIA H100 MIG 1g.10gb", 10, "mig", 142)


@pytest.mark.parametrize(
    ("offered", "asked", "says"),
    [
        ((*GPUS, *SLICES), {"gpus": 3}, "A node with 3 GPUs has slices of a GPU (MIG) besides, and such a one nobody"),
        ((*GPUS, *SLICES), {"gpus": 4}, "A node with 3 GPUs has slices of a GPU (MIG) besides"),
        ((*GPUS, *SLICES), {"gpus": 7, "gpu_type": "MIG"}, "A node with 7 GPUs has whole GPUs besides"),
        ((*GPUS, *models(1, "NVIDIA L4", 24)), {"gpus": 3, "gpu_type": "H100"}, "has GPUs of another kind besides"),
        ((*GPUS, *slots(1, "cpu")), {"gpus": 3}, "A node with 3 GPUs has CPU slots besides"),
    ],
)
@pytest.mark.parametrize("has_other", [True, False])
def test_who_asks_for_a_node_that_mixes_what_no_request_is_for_reads_that(
    offered: tuple[ev.Slot, ...], asked: dict[str, object], says: str, *, has_other: bool
) -> None:
    bench = pool(*([2] if has_other else []))
    bench.join("mixed", offered)
    sentence = refused(bench, **asked, **NODE)
    assert says in sentence
    assert ("no node of this pool has" in sentence) is not (has_other and "gpu_type" not in asked)


def allow(bench: Bench, hours: float, gpus: int = 2) -> None:
    allowance = Allowance(round(bench.now_ms + hours * 60 * MINUTE), gpus=gpus, is_exclusive=True)
    bench.say(ev.AllowanceChanged(f"of {gpus}", ProjectId("p"), UserName("ann"), allowance))


def refused(bench: Bench, session: str = "ann", **how: object) -> str:
    [action] = bench.ask(session, **how)  # type: ignore[arg-type]
    assert isinstance(action, Refuse)
    return str(action.reason)


def test_all_of_the_node_that_has_as_many_is_given_whatever_is_free_elsewhere() -> None:
    bench = pool(4, 2)
    [grant] = bench.ask("ann", gpus=2, **NODE)
    assert isinstance(grant, Grant)
    assert (grant.agent, set(grant.slots)) == (AgentId("n1"), {"gpu-0", "gpu-1"})
    assert granted(bench.ask("eve", gpus=2, **NODE)) == [], "half of the large node is no node"
    assert granted(bench.ask("tom", gpus=2)) == ["tom:1"], "which others may have"


def test_it_waits_until_who_is_there_has_gone_and_is_passed_by_nobody_who_stays_longer() -> None:
    bench = pool(2)
    bench.run("tom")
    bench.ask("sue")
    bench.start("sue:1")
    bench.ask("ann", gpus=2, **NODE)
    assert granted(bench.ask("eve", qos="batch")) == []
    bench.free("tom:1")
    assert granted(bench.free("sue:1")) == ["ann:1"]


def test_nobody_comes_to_it_without_a_gpu_and_none_with_cpu_slots_beside_is_given() -> None:
    bench = pool()
    bench.join("both", (*slots(2), *slots(1, "cpu")))
    assert "no node of this pool has GPUs and nothing else" in refused(bench, gpus=2, **NODE)
    bench.join("alone", slots(2))
    assert granted(bench.ask("ann", n=2, gpus=2, **NODE)) == ["ann:2"]
    [action] = bench.ask("cpu", gpus=0)
    assert isinstance(action, Grant)
    assert action.agent == "both"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"gpus": 3, **NODE}, "no node here has just 3 GPUs: one has 2 or 4. Say so with --gpus, as in `--exclusive"),
        ({"gpus": 1, **NODE}, "no node here has just 1 GPU"),
        ({"gpus": 0, **NODE}, "the cell asks for none"),
        ({"gpus": 2, "is_exclusive": True}, "QoS 'interactive' gives no cell a node for itself. Choose batch"),
        ({"gpus": 8, **NODE}, "no node here has just 8 GPUs"),
        ({"gpus": 3, "is_exclusive": True}, "no node here has just 3 GPUs"),
    ],
)
def test_who_can_have_none_reads_why_and_what_to_ask_for(asked: dict[str, object], says: str) -> None:
    assert says in refused(pool(4, 2), **asked)


def test_quotas_count_all_its_gpus() -> None:
    bench = pool(2, projects=(project("p", limit_milli=1000),))
    assert "2 GPUs were asked for" in refused(bench, gpus=2, **NODE)
    assert bench.scheduler.state.accounts.of(ProjectId("p")).used == 0
    bench = pool(2, projects=(project("p", limit_milli=2000),))
    bench.ask("ann", gpus=2, **NODE)
    assert bench.scheduler.state.accounts.of(ProjectId("p")).used == 2000


def test_who_was_granted_it_may_in_any_class_until_it_is_over() -> None:
    bench = pool(2)
    bench.run("tom")
    bench.ask("sue", walltime_ms=30 * MINUTE)
    bench.start("sue:1")
    how = {"gpus": 2, "user": "ann", "is_exclusive": True}
    allow(bench, 0.25)
    assert bench.ask("ann", **how) == [Evict(LeaseId("tom:1"))]
    [action] = [one for one in bench.later(16 * MINUTE) if isinstance(one, Refuse)]
    assert "gives no cell a node" in str(action.reason)


def test_who_was_granted_a_small_node_has_no_larger_one() -> None:
    bench = pool(1, 8)
    allow(bench, 1, gpus=1)
    assert "gives no cell a node for itself" in refused(bench, gpus=8, user="ann", is_exclusive=True)
    assert granted(bench.ask("ann", n=2, gpus=1, user="ann", is_exclusive=True)) == ["ann:2"]


def test_a_hot_session_leaves_a_large_node_when_only_a_small_one_is_granted_still() -> None:
    bench = pool(2)
    allow(bench, 1)
    allow(bench, 2, gpus=1)
    bench.run("ann", gpus=2, is_exclusive=True)
    assert bench.later(61 * MINUTE) == [Evict(LeaseId("ann:1"))]


def test_a_hot_session_leaves_its_node_when_what_was_granted_is_over() -> None:
    bench = pool(2)
    allow(bench, 1)
    bench.run("ann", gpus=2, is_exclusive=True)
    assert bench.later(61 * MINUTE) == [Evict(LeaseId("ann:1"))]


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_a_broker_that_is_started_again_knows_which_session_has_one(is_exclusive: bool) -> None:
    bench = pool()
    lease = msgspec.structs.replace(held("ann", on=("gpu-0", "gpu-1")), is_exclusive=is_exclusive)
    bench.join("n", slots(2), lease)
    left = [one for one in bench.journal[-1][2] if isinstance(one, Evict)]
    assert bool(left) is is_exclusive, "its class gives none, and nobody has granted it"


def test_a_session_keeps_its_node_to_itself_though_an_older_agent_says_nothing_of_that() -> None:
    bench = pool(2)
    bench.run("ann", gpus=2, **NODE)
    bench.join("n0", slots(2), msgspec.structs.replace(held("ann", on=("gpu-0", "gpu-1")), qos="batch"))
    assert bench.scheduler.state.leases[LeaseId("ann:1")].is_exclusive


def test_who_waits_for_one_is_in_nobodys_way_on_a_larger_node() -> None:
    bench = pool(2, 4)
    bench.ask("sue", gpus=2, **NODE)
    bench.start("sue:1")
    assert granted(bench.ask("ann", gpus=2, **NODE)) == []
    assert granted(bench.ask("tom", qos="batch", gpus=4)) == ["tom:1"]


def priced() -> Quotas:
    """A pool with a budget of an hour each week, where an H100 costs four times as much as others."""
    club = project("p", budget=Budget(60 * MINUTE, "week"))
    bench = pool(projects=(club,))
    settings = msgspec.structs.replace(SETTINGS, qos=ALONE, projects=(club,), prices=(Price("H100", 400),))
    bench.say(ev.SettingsChanged(settings))
    return bench


def test_a_larger_node_that_could_never_be_its_own_makes_nobodys_node_dearer() -> None:
    bench = priced()
    bench.join("large", models(8, "NVIDIA H100", 80))
    bench.join("small", models(2, "NVIDIA L4", 24))
    assert granted(bench.ask("ann", gpus=2, walltime_ms=20 * MINUTE, **NODE)) == ["ann:1"]
    assert "at the price 4 of NVIDIA H100" in refused(bench, "eve", gpus=8, walltime_ms=20 * MINUTE, **NODE)


def test_who_waits_for_a_node_is_counted_by_what_is_dearest_of_its_size_once_that_is_there() -> None:
    bench = priced()
    bench.join("large", models(8, "NVIDIA H100", 80))
    bench.join("small", models(2, "NVIDIA L4", 24))
    bench.ask("sue", gpus=2, walltime_ms=10 * MINUTE, **NODE)
    assert granted(bench.ask("tom", gpus=2, walltime_ms=20 * MINUTE, **NODE)) == []
    refusals = [one for one in bench.join("dear", models(2, "NVIDIA H100", 80)) if isinstance(one, Refuse)]
    assert "at the price 4 of NVIDIA H100" in str(refusals[0].reason)
