"""A node that a user has brought is theirs alone: it goes first for them, is nobody else's, and costs nothing."""

import random
import sys

import msgspec
import pytest

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Reclaim, Refuse
from gpu_worker.scheduler.estimates.explain import waiting
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.nodes.capacity import capacity
from gpu_worker.scheduler.nodes.own_nodes import AWAY_MS
from gpu_worker.scheduler.policy.projects import Budget, NodePool, Project, QoS, SchedulerSettings
from tests.scheduler.bench import MINUTE, models, slots

QOS = (QoS(name="interactive", priority=2, walltime_ms=30 * MINUTE, queued_per_user=8, gpus_per_cell=2),)


class Pool:
    """A scheduler whose invariants are checked after each event; cells begin when they are granted."""

    def __init__(self, *projects: Project, node_pools: tuple[NodePool, ...] = (), qos: tuple[QoS, ...] = QOS) -> None:
        self.scheduler = Scheduler(SchedulerSettings(qos=qos, projects=projects, node_pools=node_pools))
        self.now_ms, self._named = 0, 0

    def say(self, event: ev.Event) -> list[Action]:
        actions = self.scheduler.step(event, self.now_ms)
        check(self.scheduler.state)
        return actions

    def join(self, agent: str, offered: tuple[ev.Slot, ...], owner: str = "", **how: object) -> list[Action]:
        joined = ev.AgentJoined(AgentId(agent), agent, offered, owner=UserName(owner))
        return self.say(msgspec.structs.replace(joined, **how))

    def ask(self, session: str, user: str = "", gpus: int = 1, project: str = "p", **how: object) -> list[Action]:
        self._named += 1
        asked = ev.RequestSubmitted(
            RequestId(f"{session}/{self._named}"),
            LeaseId(f"{session}:{self._named}"),
            SessionId(session),
            UserName(user or session.rstrip("0123456789")),
            ProjectId(project),
            "interactive",
            gpus,
        )
        return self.say(msgspec.structs.replace(asked, **how))

    def start(self, session: str, **how: object) -> None:
        """Ask for a cell that begins at once."""
        (given,) = granted(self.ask(session, **how)).items()  # type: ignore[arg-type]
        self.say(ev.CellStarted(self.lease_of(session), CellId(f"cell of {session}")))
        assert given[0] == session

    def lease_of(self, session: str) -> LeaseId:
        return next(iter(self.scheduler.state.leases_of[SessionId(session)]))

    def end(self, session: str) -> list[Action]:
        """End the cell of a session, whose process goes too."""
        lease = self.lease_of(session)
        actions = self.say(ev.CellEnded(lease, CellId(f"cell of {session}")))
        return actions + self.say(ev.LeaseEnded(lease))

    def refused_by(self, last_ms: int) -> list[Refuse]:
        """Let time pass until then, and list who is refused just then, and nobody before."""
        found: list[Refuse] = []
        while (at_ms := self.scheduler.deadline()) is not None and at_ms <= last_ms:
            assert found == [], "before its time"
            self.now_ms = at_ms
            found = [one for one in self.say(ev.Tick()) if isinstance(one, Refuse)]
        assert self.now_ms == last_ms
        return found

    def where(self) -> dict[str, str]:
        """Say which session is on which node."""
        return {lease.session: str(lease.agent) for lease in self.scheduler.state.leases.values()}

    def used(self, project: str = "p") -> int:
        return self.scheduler.state.accounts.of(ProjectId(project)).used


def granted(actions: list[Action]) -> dict[str, str]:
    return {one.session: str(one.agent) for one in actions if isinstance(one, Grant)}


def refused(actions: list[Action]) -> list[str]:
    return [str(one.reason) for one in actions if isinstance(one, Refuse)]


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


def test_whoever_waits_for_the_pool_starts_on_the_own_node_as_soon_as_that_has_room() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(1), "ann")
    pool.start("ann1")
    pool.start("eve1")
    assert granted(pool.ask("ann2")) == {}
    assert granted(pool.end("ann1")) == {"ann2": "anns"}


def test_whoever_waits_starts_on_the_own_node_when_that_comes() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.start("eve1")
    assert granted(pool.ask("bob1")) == {}
    assert granted(pool.ask("ann1")) == {}
    assert granted(pool.join("anns", slots(1), "ann")) == {"ann1": "anns"}


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


def test_whoever_waits_for_the_own_node_alone_waits_on_while_that_is_gone_for_a_moment_and_is_told_so() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    assert pool.ask("ann2", gpus=2) == []
    pool.now_ms += MINUTE
    assert refused(pool.say(ev.AgentLost(AgentId("anns")))) == []
    assert pool.ask("ann3", gpus=2) == [], "nor is who asks meanwhile"
    said = waiting(pool.scheduler.state, RequestId("ann2/2"), pool.now_ms)
    assert said is not None
    assert "the node that you have brought is not there and is awaited for 10 min more" in said.reason
    pool.now_ms += MINUTE
    assert granted(pool.join("anns", slots(2), "ann")) == {"ann2": "anns"}
    pool.now_ms += AWAY_MS
    assert refused(pool.say(ev.Tick())) == []


def test_whoever_is_refused_since_the_own_node_is_gone_for_long_is_told_of_that() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    pool.ask("ann2", gpus=2)
    pool.say(ev.AgentLost(AgentId("anns")))
    (refusal,) = pool.refused_by(AWAY_MS)
    assert refusal.had_own_node
    (other,) = (one for one in pool.ask("eve1", gpus=2) if isinstance(one, Refuse))
    assert not other.had_own_node


def test_whoever_needs_the_own_node_waits_while_it_is_drained() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.say(ev.NodeDrained(AgentId("anns"), is_drained=True))
    assert pool.ask("ann1", gpus=2) == []
    said = waiting(pool.scheduler.state, RequestId("ann1/1"), pool.now_ms)
    assert said is not None
    assert "anns" in said.reason
    assert granted(pool.say(ev.NodeDrained(AgentId("anns"), is_drained=False))) == {"ann1": "anns"}


def test_after_a_restart_of_the_pool_nobody_is_refused_before_their_own_node_can_be_back() -> None:
    pool = Pool()
    pool.say(ev.OwnNodesAwaited({AgentId("anns"): UserName("ann")}, 5 * MINUTE))
    pool.join("shared", slots(1))
    assert pool.ask("ann1", gpus=2) == []
    assert refused(pool.ask("eve1", gpus=2)) != []
    assert granted(pool.join("anns", slots(2), "ann")) == {"ann1": "anns"}
    late = Pool()
    late.say(ev.OwnNodesAwaited({AgentId("anns"): UserName("ann")}, 5 * MINUTE))
    late.join("shared", slots(1))
    assert late.ask("ann1", gpus=2) == []
    assert len(late.refused_by(5 * MINUTE)) == 1


def test_where_nothing_but_a_node_of_somebodys_own_is_there_no_node_is_connected_to_the_pool() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    pool.ask("bob1")
    said = waiting(pool.scheduler.state, RequestId("bob1/1"), pool.now_ms)
    assert said is not None
    assert said.reason == "no node is connected to the pool"
    pool.start("ann1")
    pool.ask("ann2")
    said = waiting(pool.scheduler.state, RequestId("ann2/3"), pool.now_ms)
    assert said is not None
    assert "no node is connected to the pool" in said.reason
    assert "the node that you have brought has no room for it now" in said.reason


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


def test_while_the_pool_has_no_node_nobody_is_refused_for_what_somebody_has_brought() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    assert pool.ask("eve1", gpus=2) == []
    assert granted(pool.join("shared", slots(2))) == {"eve1": "shared"}


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


def test_whoever_would_delay_one_that_waits_for_the_own_node_alone_has_the_pools_gpu() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    assert granted(pool.ask("ann2", gpus=2)) == {}
    assert granted(pool.ask("ann3")) == {"ann3": "shared"}
    assert granted(pool.end("ann1")) == {"ann2": "anns"}


def test_whoever_is_over_in_time_starts_beside_one_that_waits_for_the_own_node_alone() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("ann1")
    pool.start("eve1")
    assert granted(pool.ask("ann2", gpus=2)) == {}
    assert granted(pool.ask("ann3", walltime_ms=10 * MINUTE)) == {"ann3": "anns"}
    assert granted(pool.ask("ann4")) == {}, "the pool is full, and it would be in the way of ann2"
    assert granted(pool.end("eve1")) == {"ann4": "shared"}


def test_a_start_on_the_own_node_is_no_turn_of_the_project_to_pass_others_in_the_pool() -> None:
    def next_of_the_pool(owner: str) -> dict[str, str]:
        pool = Pool(Project(id=ProjectId("p")), Project(id=ProjectId("q"), priority=10))
        pool.join("shared", slots(1))
        if owner:
            pool.join("anns", slots(1), owner)
            pool.start("ann1")
        pool.start("eve1", project="q")
        if owner:
            pool.ask("ann2")
        pool.ask("bob1")
        pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
        pool.ask("eve2", project="q")
        pool.say(ev.Tick())
        if owner:
            assert granted(pool.end("ann1")) == {"ann2": "anns"}
        return granted(pool.end("eve1"))

    assert next_of_the_pool("") == {"bob1": "shared"}
    assert next_of_the_pool("ann") == {"bob1": "shared"}


def test_where_nothing_has_changed_nobody_is_looked_at_anew() -> None:
    assert _calls_of_a_tick(80) - _calls_of_a_tick(8) < 5 * 72, "of one request that is looked at there are hundreds"


def _calls_of_a_tick(waiting: int) -> int:
    """Count the calls of functions in a step in which nothing happens, while so many wait who have brought a node."""
    pool, calls = Pool(), [0]
    pool.join("shared", slots(1))
    pool.start("eve1")
    for number in range(waiting // 4):
        user = f"user{number}-"
        pool.join(f"node{number}", slots(1), user)
        pool.start(f"{user}0", user=user)
        for one in range(1, 5):
            assert granted(pool.ask(f"{user}{one}", user=user)) == {}
    pool.now_ms += 1000
    pool.say(ev.Tick())

    def count(_frame: object, event: str, _arg: object) -> None:
        calls[0] += event == "call"

    sys.setprofile(count)
    try:
        pool.scheduler.step(ev.Tick(), pool.now_ms + 1)
    finally:
        sys.setprofile(None)
    return calls[0]


def test_whoever_waits_for_the_own_node_alone_is_told_so() -> None:
    pool = Pool()
    pool.join("shared", models(1, "NVIDIA T4", 16))
    pool.join("anns", models(1, "NVIDIA H100", 80), "ann")
    pool.start("ann1", gpu_type="H100")
    assert granted(pool.ask("ann2", gpu_type="H100")) == {}
    said = waiting(pool.scheduler.state, RequestId("ann2/2"), pool.now_ms)
    assert said is not None
    assert "busy on the node that you have brought" in said.reason
    assert said.wait_ms == 30 * MINUTE


def test_nobody_stands_before_another_on_a_node_of_ones_own() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    for user in ("bob", "ann"):
        pool.join(f"{user}s", slots(2), user)
        pool.start(f"{user}1", gpus=2)
    for session in ("bob2", "bob3", "ann2", "ann3"):
        assert granted(pool.ask(session, gpus=2)) == {}
    said = [waiting(pool.scheduler.state, name, pool.now_ms) for name in pool.scheduler.state.pending]
    assert [one.position for one in said if one is not None] == [1, 2, 1, 2]


def test_its_cells_are_told_when_it_is_lost_and_who_asks_again_waits_for_the_pool() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(1), "ann")
    pool.start("ann1")
    (end,) = pool.say(ev.AgentLost(AgentId("anns")))
    assert isinstance(end, EndLease)
    assert granted(pool.ask("ann1")) == {"ann1": "shared"}


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


def test_an_agent_that_comes_back_has_its_cells_still_and_they_cost_nothing() -> None:
    pool = Pool()
    pool.join("anns", slots(1), "ann")
    pool.start("ann1")
    lease = pool.scheduler.state.leases[pool.lease_of("ann1")]
    held = ev.ReportedLease(
        lease.id, lease.session, lease.user, lease.home, lease.qos, lease.slots, lease.cell, lease.walltime_ms, 0
    )
    again = Pool()
    again.join("anns", slots(1), "ann", held=(held,))
    assert again.where() == {"ann1": "anns"}
    assert again.used() == 0


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


def test_one_that_waits_for_the_own_node_alone_takes_nobodys_turn_in_the_pool() -> None:
    """Of several requests of a user one has the right of who has waited for their patience in the pool (6)."""

    def next_of_the_pool(owner: str) -> dict[str, str]:
        pool = Pool(Project(id=ProjectId("p")), Project(id=ProjectId("q"), priority=10))
        pool.join("shared", slots(1))
        pool.start("eve1", project="q")
        if owner:
            pool.join("anns", slots(2), owner)
            pool.start("ann1", gpus=2)
            assert granted(pool.ask("ann2", gpus=2)) == {}
        pool.now_ms += MINUTE
        pool.ask("ann3")
        pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
        pool.ask("eve2", project="q")
        pool.say(ev.Tick())
        found = granted(pool.end("eve1"))
        if owner:
            assert granted(pool.end("ann1")) == {"ann2": "anns"}
        return found

    assert next_of_the_pool("") == {"ann3": "shared"}
    assert next_of_the_pool("ann") == {"ann3": "shared"}


def test_one_that_is_late_and_turns_to_the_own_node_leaves_nothing_in_the_line_of_the_pool() -> None:
    """Where its project has others give way for it, and for who is late (6)."""
    batch = QoS(name="batch", priority=1, walltime_ms=480 * MINUTE, queued_per_user=8, min_runtime_ms=0)
    pool = Pool(Project(id=ProjectId("p"), guaranteed_milli=1000), qos=(*QOS, batch))
    pool.join("anns", slots(1), "ann")
    pool.join("shared", slots(1))
    pool.start("ann1")
    pool.start("eve1", qos="batch")
    pool.say(ev.NodeDrained(AgentId("shared")))
    pool.ask("ann2")
    pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
    pool.say(ev.Tick())
    pool.say(ev.CellEnded(pool.lease_of("ann1"), CellId("cell of ann1")))
    assert granted(pool.say(ev.LeaseEnded(pool.lease_of("ann1")))) == {"ann2": "anns"}
    pool.say(ev.CellStarted(pool.lease_of("ann2"), CellId("cell of ann2")))
    pool.say(ev.NodeDrained(AgentId("shared"), is_drained=False))
    asked = pool.ask("bob1")
    assert [one.lease for one in asked if isinstance(one, Reclaim)] == [pool.lease_of("eve1")]


def test_all_that_have_waited_for_their_patience_are_late_at_once_on_the_own_node_and_beside_it() -> None:
    pool = Pool()
    pool.join("shared", slots(1))
    pool.join("anns", slots(2), "ann")
    pool.start("eve1")
    pool.start("ann1", gpus=2)
    pool.ask("ann2", gpus=2)
    pool.ask("ann3", gpus=2)
    pool.ask("ann4")
    pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms
    pool.say(ev.Tick())
    pending = pool.scheduler.state.pending.values()
    assert {str(one.session): one.entry.key.is_early for one in pending} == dict.fromkeys(
        ("ann2", "ann3", "ann4"), False
    )


def test_who_was_late_in_the_pool_has_no_second_such_turn_by_a_detour_over_the_own_node() -> None:
    """Of several requests of one user one has this right in each such time (6)."""
    pool = Pool(Project(id=ProjectId("p")), Project(id=ProjectId("q"), priority=10))
    pool.join("shared", slots(1))
    pool.start("eve0", project="q")
    pool.join("anns", slots(2), "ann")
    pool.start("ann0", gpus=2)
    pool.ask("ann1", gpus=2)
    pool.ask("ann2")
    pool.now_ms += pool.scheduler.state.qos["interactive"].patience_ms + MINUTE
    pool.say(ev.Tick())
    assert granted(pool.end("eve0")) == {"ann2": "shared"}
    pool.now_ms += MINUTE
    pool.ask("eve1", project="q")
    pool.ask("eve2", project="q")
    assert granted(pool.join("big", slots(2))) == {"eve1": "big", "eve2": "big"}
    (one,) = (one for one in pool.scheduler.state.pending.values() if one.session == "ann1")
    assert (one.lane, one.entry.key.is_early) == ("gpu", True)
