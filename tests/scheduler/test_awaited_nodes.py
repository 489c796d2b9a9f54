"""A broker that is started again: its nodes come back one by one, and nobody is refused for those that come later."""

import msgspec
import pytest

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import Budget, NodePool, Project
from tests.scheduler.bench import MINUTE, SETTINGS, granted, models, project, refused, slots
from tests.scheduler.quota_bench import Quotas

ALONE = tuple(
    msgspec.structs.replace(one, can_be_exclusive=True) if one.name == "batch" else one for one in SETTINGS.qos
)
ASKED = (
    {"gpus": 4, "qos": "batch", "is_exclusive": True},
    {"gpus": 4},
    {"gpu_type": "A100"},
    {"gpu_memory_bytes": 70 * 10**9},
    {"memory_bytes": 10**12},
)
LARGE = models(4, "NVIDIA A100", 80)


def started_again(*names: str, projects: tuple[Project, ...] = (), has_gpus: bool = False, **how: object) -> Quotas:
    """A pool that knows of these nodes, and waits for them for five minutes."""
    bench = Quotas(*projects, qos=ALONE)
    if how:
        bench.say(ev.SettingsChanged(msgspec.structs.replace(bench.settings, **how)))
    bench.say(ev.NodesAwaited(names, bench.now_ms + 5 * MINUTE, has_gpus))
    return bench


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("is_before", [True, False])
def test_nobody_is_refused_because_a_small_node_is_back_first(asked: dict[str, object], *, is_before: bool) -> None:
    bench = started_again("node-small", "node-large")
    if is_before:
        assert bench.ask("ann", **asked) == []  # type: ignore[arg-type]
    assert refused(bench.join("small", models(1, "NVIDIA L4", 24))) == {}
    if not is_before:
        assert bench.ask("ann", **asked) == []  # type: ignore[arg-type]
    assert granted(bench.join("large", LARGE, cpus=64, memory_bytes=2 * 10**12)) == ["ann:1"]


def test_who_could_run_on_none_of_them_is_refused_when_the_last_one_is_back() -> None:
    bench = started_again("node-a", "node-b")
    bench.ask("ann", gpus=4)
    assert refused(bench.join("a", slots(1))) == {}
    assert "the largest node of this pool has 2" in refused(bench.join("b", slots(2)))["ann/1"]
    assert "the largest node of this pool has 2" in refused(bench.ask("eve", gpus=3))["eve/1"]


def test_the_last_one_may_offer_nothing_new() -> None:
    bench = started_again("node-a", "node-b")
    bench.ask("ann", gpus=4)
    bench.join("a", slots(2))
    assert "the largest node of this pool has 2" in refused(bench.join("b", slots(2)))["ann/1"]


def test_nobody_waits_for_ever_for_a_node_that_does_not_come_back() -> None:
    bench = started_again("node-a", "node-b")
    bench.ask("ann", gpus=4)
    bench.join("a", slots(2))
    due_ms = bench.scheduler.deadline()
    assert due_ms is not None
    assert due_ms <= 5 * MINUTE
    assert refused(bench.later(5 * MINUTE - 1)) == {}
    assert "node node-b, which was there before the pool was started again, is awaited" in bench.why("ann/1").reason
    assert bench.scheduler.deadline() == 5 * MINUTE
    assert "the largest node of this pool has 2" in refused(bench.later(1))["ann/1"]
    assert "no node here has just 4 GPUs" in refused(bench.ask("eve", gpus=4, qos="batch", is_exclusive=True))["eve/1"]


def test_who_waits_for_what_may_come_back_reads_that_and_for_how_long_and_no_longest_wait() -> None:
    """A replay that knows nothing of nodes to come back ends when they are given up, and told so long a wait."""
    bench = started_again("node-cpus", "node-g", "node-h", has_gpus=True)
    bench.join("cpus", slots(2, "cpu"))
    bench.ask("ann", gpus=1)
    bench.now_ms += MINUTE  # and nothing happens meanwhile
    said = bench.why("ann/1")
    assert said.reason == "2 nodes that were there before the pool was started again are awaited for 4 min more"
    assert said.wait_ms is None
    assert granted(bench.join("g", slots(1))) == ["ann:1"]


def test_who_waits_for_what_is_back_is_told_how_long() -> None:
    bench = started_again("node-a", "node-b")
    bench.join("a", slots(1))
    for name in ("ann", "bob"):
        bench.ask(name)
    bench.start("ann:1")
    said = bench.why("bob/1")
    assert said.reason == "the only GPU is busy"
    assert said.wait_ms is not None


def test_while_no_node_at_all_is_there_nobody_can_say_afterwards_either() -> None:
    bench = started_again("node-a")
    bench.ask("ann", gpus=4)
    assert refused(bench.later(6 * MINUTE)) == {}
    assert granted(bench.join("a", slots(4))) == ["ann:1"]


def test_what_no_node_changes_is_refused_at_once() -> None:
    bench = started_again("node-a", "node-b", projects=(project("p", limit_milli=1000),))
    bench.join("a", slots(2))
    assert "may use 1 GPU at most" in refused(bench.ask("ann", gpus=2))["ann/1"]
    assert "gives no cell a node" in refused(bench.ask("eve", gpus=4, is_exclusive=True))["eve/1"]
    assert "no QoS" in refused(bench.ask("tom", qos="none"))["tom/1"]


def test_a_price_that_only_other_nodes_have_refuses_nobody_who_would_have_a_cheaper_one() -> None:
    club = project("p", budget=Budget(60 * MINUTE, "week"))
    bench = started_again("node-dear", "node-cheap", projects=(club,), prices=(Price("H100", 400),))
    how = {"gpus": 2, "qos": "batch", "is_exclusive": True, "walltime_ms": 20 * MINUTE}
    bench.join("dear", models(1, "NVIDIA H100", 80))
    assert bench.ask("ann", **how) == []  # type: ignore[arg-type]
    assert granted(bench.join("cheap", models(2, "NVIDIA L4", 24))) == ["ann:1"]


def test_a_guarantee_of_nodes_that_come_later_refuses_nobody_of_a_class_that_never_borrows() -> None:
    lab = project("p", guaranteed_milli=4000, pool_guarantees=(("big", 4000),))
    pools = (NodePool(name="big", words=("a100",)),)
    bench = started_again("node-part", "node-plain", "node-large", projects=(lab,), node_pools=pools)
    bench.join("part", models(1, "NVIDIA A100", 80))
    bench.join("plain", models(4, "NVIDIA L4", 24))
    assert bench.ask("ann", gpus=4, qos="reserved") == []
    assert granted(bench.join("large", LARGE)) == ["ann:1"]
