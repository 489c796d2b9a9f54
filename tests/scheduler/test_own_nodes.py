"""A node that a user has brought is theirs alone: it goes first for them, is nobody else's, and costs nothing."""

import random

import pytest

from bulletin.ids import AgentId, CellId, ProjectId, RequestId
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict
from gpu_worker.scheduler.estimates.explain import waiting
from gpu_worker.scheduler.nodes.capacity import capacity
from gpu_worker.scheduler.nodes.own_nodes import AWAY_MS
from gpu_worker.scheduler.policy.projects import Budget, NodePool, Project
from tests.scheduler.bench import MINUTE, models, slots
from tests.scheduler.own_node_pool import Pool, granted, refused


def test_a_cell_goes_to_its_users_own_node_first_and_to_the_pool_when_that_is_full() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(1), "ann")
    pool.start("ann1")
    pool.start("ann2")
    assert pool.where() == {"ann1": "anns", "ann2": "shared"}


@pytest.mark.parametrize("is_first", [True, False])
def test_nobody_else_is_ever_given_it_also_where_the_pool_is_full(*, is_first: bool) -> None:
    pool = Pool()
    if is_first:
        pool.join("anns", slots(1), "ann")
    pool.join("shared", slots(1))
    if not is_first:
        pool.join("anns", slots(1), "ann")
    pool.start("eve1")
    assert granted(pool.ask("eve2")) == {}
    assert granted(pool.ask("bob1")) == {}
    pool.now_ms += 10 * MINUTE
    assert granted(pool.say(ev.Tick())) == {}
    assert pool.where() == {"eve1": "shared"}
    said = waiting(pool.scheduler.state, RequestId("bob1/3"), pool.now_ms)
    assert said is not None
    assert "the only GPU is busy" in said.reason


def test_it_costs_nothing_and_counts_for_no_guarantee_limit_or_budget() -> None:
    project = Project(id=ProjectId("p"), guaranteed_milli=1000, user_limit_milli=1000, budget=Budget(1, "day"))
    pool = Pool(project)
    pool.join("shared", slots(2))
    state = pool.scheduler.state
    before = capacity(state.nodes.values(), state.slot_catalog), state.accounts.capacity
    pool.join("anns", slots(4), "ann")
    assert (capacity(state.nodes.values(), state.slot_catalog), state.accounts.capacity) == before
    for number in range(4):
        pool.start(f"ann{number}")
    assert set(pool.where().values()) == {"anns"}
    assert pool.used() == 0
    pool.now_ms += 20 * MINUTE
    for number in range(4):
        pool.end(f"ann{number}")
    assert state.accounts.of(ProjectId("p")).spent == 0


def test_what_the_pool_could_never_give_runs_on_the_own_node_and_is_refused_without_it() -> None:
    pool = Pool(Project(id=ProjectId("p"), user_limit_milli=1000))
    pool.join("shared", models(1, "NVIDIA T4", 16))
    pool.join("anns", models(4, "NVIDIA H100", 80), "ann")
    assert granted(pool.ask("ann1", gpus=4)) == {"ann1": "anns"}, "a class gives two, and the project one"
    pool.say(ev.CellStarted(pool.lease_of("ann1"), CellId("cell of ann1")))
    assert refused(pool.ask("ann2", gpu_type="H100")) == []
    assert pool.where() == {"ann1": "anns"}
    (reason,) = refused(pool.ask("eve1", gpu_type="H100"))
    assert "T4" in reason
    assert "H100" not in reason.replace("'H100'", ""), "nobody is told what others have brought"
    assert refused(pool.say(ev.AgentLost(AgentId("anns")))) == [], "it may be back in a moment"
    (again,) = pool.refused_by(AWAY_MS)
    assert "T4" in str(again.reason)


def test_whoever_may_not_have_a_node_alone_reads_that_of_their_own_node_too() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    assert refused(pool.ask("ann1", gpus=2)) == []
    (reason,) = refused(pool.ask("ann2", gpus=2, is_exclusive=True))
    assert reason.startswith("QoS 'interactive' gives no cell a node for itself.")
    (reason,) = refused(pool.ask("eve1", gpus=2, is_exclusive=True))
    assert "no node here has just 2 GPUs" in reason


def test_the_rules_for_classes_hold_there_too() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    (reason,) = refused(pool.ask("ann1", walltime_ms=31 * MINUTE))
    assert "30 min" in reason


def test_a_gpu_that_somebody_has_brought_tells_nobody_what_the_pool_has() -> None:
    pool = Pool()
    pool.join("shared", slots(2, "cpu"))
    pool.join("anns", slots(1), "ann")
    pool.start("eve1")
    assert pool.used() == 1000, "CPU slots stand in for GPUs, as before"
    pool.start("ann1")
    assert pool.where() == {"eve1": "shared", "ann1": "anns"}


def test_slices_still_stand_in_for_gpus_where_the_pool_has_no_other_and_somebody_brings_one() -> None:
    pool = Pool()
    pool.join("shared", models(1, "NVIDIA A100 MIG 1g.5gb", 5, "mig", 142))
    pool.join("anns", slots(1), "ann")
    pool.start("eve1")
    assert pool.where() == {"eve1": "shared"}


def test_cpu_slots_of_ones_own_stand_in_where_the_pool_has_no_gpu_and_only_there() -> None:
    pool = Pool()
    pool.join("anns", slots(1, "cpu"), "ann")
    pool.join("shared", slots(1, "cpu"))
    pool.start("ann1")
    assert pool.where() == {"ann1": "anns"}
    pool.end("ann1")
    pool.join("gpus", slots(1))
    pool.start("ann2")
    pool.start("ann3", gpus=0)
    assert pool.where() == {"ann2": "gpus", "ann3": "anns"}


def test_own_nodes_of_two_users_are_apart() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    pool.join("bobs", slots(1), "bob")
    pool.start("bob1")
    pool.start("ann1")
    assert pool.where() == {"bob1": "bobs", "ann1": "anns"}
    assert granted(pool.ask("bob2")) == {}
    assert granted(pool.end("ann1")) == {}


def test_a_hot_session_of_ones_own_leaves_for_another_one() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(1), "ann")
    pool.start("eve1")
    pool.start("ann1")
    pool.say(ev.CellEnded(pool.lease_of("ann1"), CellId("cell of ann1")))
    evicted = pool.ask("ann2")
    assert [one.lease for one in evicted if isinstance(one, Evict)] == [pool.lease_of("ann1")]
    assert granted(pool.say(ev.LeaseEnded(pool.lease_of("ann1")))) == {"ann2": "anns"}


def test_it_is_in_no_node_pool_and_nobody_who_is_guaranteed_one_has_it() -> None:
    names = NodePool(name="fast", words=("model",))
    owners = Project(id=ProjectId("q"), guaranteed_milli=1000, pool_guarantees=(("fast", 1000),))
    pool = Pool(owners, Project(id=ProjectId("p")), node_pools=(names,))
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("eve1", project="q")
    assert granted(pool.ask("eve2", project="q")) == {}
    pool.start("ann1")
    assert pool.where() == {"eve1": "shared", "ann1": "anns"}


@pytest.mark.parametrize("slow", [0, 30], ids=["soon", "for longer than the patience"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_nobody_is_on_a_node_of_another(seed: int, slow: int) -> None:
    draw, users = random.Random(seed), ("ann", "bob", "eve")
    pool = Pool(Project(id=ProjectId("p"), guaranteed_milli=1000), Project(id=ProjectId("q"), user_limit_milli=1000))
    owner_of = {"anns": "ann", "bobs": "bob", "bobs2": "bob", "shared": "", "small": ""}
    for _ in range(160):
        pool.now_ms += draw.choice([0, 0, 1000, MINUTE, slow * MINUTE])
        state = pool.scheduler.state
        actions: list[Action] = pool.say(ev.Tick())
        match draw.randrange(6):
            case 0:
                agent = draw.choice(list(owner_of))
                if agent in state.nodes:
                    actions += pool.say(ev.AgentLost(AgentId(agent)))
                else:
                    kind = draw.choice(["gpu", "cpu"])
                    actions += pool.join(agent, slots(draw.randint(1, 3), kind), owner_of[agent])
            case 1 | 2:
                user, number = draw.choice(users), draw.randrange(4)
                actions += pool.ask(
                    f"{user}{number}", gpus=draw.randint(0, 3), project=draw.choice("pq"), cpus=0, is_kept=False
                )
            case 3 if draw.random() < 0.3:
                drained = ev.NodeDrained(AgentId(draw.choice(list(owner_of))), is_drained=draw.random() < 0.5)
                actions += pool.say(drained)
            case 3 if state.leases:
                lease = draw.choice(list(state.leases.values()))
                actions += pool.say(ev.CellStarted(lease.id, CellId(f"cell of {lease.session}")))
            case 4 if state.leases:
                lease = draw.choice(list(state.leases.values()))
                actions += pool.say(ev.CellEnded(lease.id, CellId(f"cell of {lease.session}")))
            case _ if state.leases:
                actions += pool.say(ev.LeaseEnded(draw.choice(list(state.leases))))
        for one in actions:
            if isinstance(one, EndLease):
                pool.say(ev.LeaseEnded(one.lease))
        for lease in pool.scheduler.state.leases.values():
            owner = owner_of[str(lease.agent)]
            assert owner in ("", lease.user)
            assert not owner or lease.cost == lease.charged == 0
        for request in state.pending:
            assert waiting(state, request, pool.now_ms) is not None
