"""The node that a user has brought is run by somebody who is trusted with nothing but their own cells."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import AgentId, CellId, KernelId, LeaseId, ProjectId, SessionId, SlotId, UserName
from bulletin.picture_sight import hide_others
from bulletin.pool_words import slot_word_of
from bulletin.wire import messages as wire
from gpu_worker.broker.agent_admission import AgentAdmission, KeyOf
from gpu_worker.broker.metering import Metering
from gpu_worker.broker.node_notes import AWAITED_MS
from gpu_worker.broker.own_node_claims import MOST_SLOTS
from gpu_worker.broker.pool_report import draw_pool
from gpu_worker.broker.recall import past
from gpu_worker.node_registry import NodeRegistry
from gpu_worker.scheduler import events
from gpu_worker.scheduler.events import OwnNodesAwaited, UseRecalled
from gpu_worker.scheduler.nodes.own_nodes import AWAY_MS
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, HOUR_MS, BrokerParts
from tests.unit.gpu_worker.broker.node_reports import held

OWN, SHARED = AgentId("box"), AgentId("shared")
MINUTE_MS = 60_000
#: A lease that it was not given.
NOBODYS = held(lease=LeaseId("none"), session=SessionId("s-other"))


@pytest.fixture
def pool(broker: BrokerParts, tmp_path: Path) -> BrokerParts:
    """A broker at which ann has registered a box of her own, beside a node for all; neither is there yet."""
    broker.admit(registered(tmp_path))
    return broker


def registered(folder: Path, key_of: KeyOf = lambda route: f"key of {route.decode().split()[0]}") -> AgentAdmission:
    """A registry with both; the first word of a connection's name is whose it is."""
    registry = NodeRegistry(folder)
    if not registry.names:
        registry.add(OWN, f"key of {OWN}", 0, replaces=False, owner="ann")
        registry.add(SHARED, f"key of {SHARED}", 0, replaces=False)
    return AgentAdmission("secret", registry, key_of, lambda _: None)


def come(pool: BrokerParts, *leases: wire.HeldLease, route: str = OWN, **changes: Any) -> None:
    """The box registers, and says that it has these leases; with one, its door is not tried first."""
    message = structs.replace(pool.registration(OWN), agent=OWN, held=leases or (NOBODYS,), **changes)
    pool.report(route, message)


def fill(pool: BrokerParts) -> LeaseId:
    """The node for all comes, and has a cell of eve's."""
    eves = held(lease=LeaseId("l-eve"), session=SessionId("s-eve"), user=EVE.user, cell=CellId("c-eve"))
    pool.report(SHARED, structs.replace(pool.registration(SHARED), agent=SHARED, held=(eves,)))
    return eves.lease


def done(lease: LeaseId, **changes: Any) -> wire.CellDone:
    usage = wire.CellUsage(outcome=CellOutcome.RETURNED, ran_ms=MINUTE_MS, held_ms=MINUTE_MS)
    one = wire.CellDone(
        lease=lease,
        session=SessionId("s-mine"),
        cell=CellId("mine"),
        user=UserName("ann"),
        project=ProjectId("maths"),
        qos="interactive",
        slots=(SlotId("gpu-0"),),
        usage=usage,
    )
    return structs.replace(one, **changes)


def waiting(pool: BrokerParts) -> set[str]:
    return {one.user for one in pool.shell.scheduler.state.pending.values()}


def where(pool: BrokerParts) -> dict[str, str]:
    return {one.user: str(one.agent) for one in pool.shell.scheduler.state.leases.values()}


def said_to(pool: BrokerParts, kind: type[wire.Message]) -> list[Any]:
    return [
        message for route, message in pool.to_routes if route.startswith(OWN.encode()) and isinstance(message, kind)
    ]


def test_its_owner_is_given_it_and_nobody_else_is_also_where_all_else_is_full(pool: BrokerParts) -> None:
    come(pool)
    fill(pool)
    pool.submit(EVE, "one")
    pool.submit(ADMIN, "two")
    assert waiting(pool) == {"eve", "root"}
    pool.submit(ANN, "mine")
    assert where(pool) == {"eve": SHARED, "ann": OWN}
    assert waiting(pool) == {"eve", "root"}


@pytest.mark.parametrize(
    "claimed",
    [
        {},
        {"lease": LeaseId("l-eve"), "user": UserName("eve"), "session": SessionId("s-eve")},
        {"lease": LeaseId("l-eve")},
        {"user": UserName("eve")},
        {"project": ProjectId("guests"), "cell": CellId("c")},
    ],
)
def test_leases_that_it_was_not_granted_are_none_and_it_is_told_to_end_them(
    pool: BrokerParts, claimed: dict[str, Any]
) -> None:
    fill(pool)
    come(pool, structs.replace(NOBODYS, **claimed))
    assert where(pool) == {"eve": SHARED}
    assert [(one.lease, one.force) for one in said_to(pool, wire.Evict)] == [(claimed.get("lease", "none"), True)]
    accounts = pool.shell.scheduler.state.accounts
    assert not accounts.of(ProjectId("guests")).used


def test_what_it_was_granted_it_still_has_when_it_comes_again(pool: BrokerParts) -> None:
    come(pool)
    lease = pool.run(ANN, "mine")
    mine = held(lease=lease, session=SessionId("s-mine"), cell=CellId("mine"))
    pool.to_routes.clear()
    come(pool, mine, route="box again")
    assert where(pool) == {"ann": OWN}
    assert said_to(pool, wire.Evict) == []
    come(pool, structs.replace(mine, project=ProjectId("guests")), route="box and again")
    assert where(pool) == {}


def test_it_says_nothing_of_the_cells_of_others(pool: BrokerParts) -> None:
    lease = fill(pool)
    come(pool)
    for message in (
        wire.CellBegan(lease=lease, cell=CellId("c-eve"), label="x"),
        wire.LeaseOver(lease=lease, code=LeaseEnd.EVICTED, sentence=""),
        wire.PauseDeclined(lease=lease),
        done(lease, user=EVE.user, session=SessionId("s-eve"), cell=CellId("c-eve")),
        wire.LeaseOver(lease=LeaseId("nobody's"), code=LeaseEnd.EVICTED, sentence=""),
    ):
        pool.report(OWN, message)
    assert where(pool) == {"eve": SHARED}
    assert pool.agents.refused == 5
    pool.report(OWN, done(LeaseId("nobody's"), user=EVE.user))
    assert [one.lease for one in said_to(pool, wire.Recorded)] == ["nobody's"], "it need not be said for ever"
    assert written(pool) == []


def written(pool: BrokerParts) -> list[Any]:
    pool.writer.close()
    return pool.ledger.cells()


def test_a_page_is_told_apart_from_the_line_who_waits_for_it_alone(pool: BrokerParts) -> None:
    fill(pool)
    come(pool, slots=pool.registration(OWN, 2).slots)
    pool.submit(ANN, "mine", gpus=2)  # of which the pool has no node
    waits = pool.submit(ANN, "next", gpus=2)
    drawn = draw_pool(pool.shell, pool.agents, pool.now_ms, lambda _: "", started_ms=0, serves_hub=True)
    assert (drawn.waiting, drawn.waiting_count) == ((), 0)
    assert [(one.lease, one.user) for one in drawn.waiting_for_own] == [(waits, "ann")]


def test_its_cells_are_its_owners_in_the_project_that_they_asked_for_and_cost_nothing(pool: BrokerParts) -> None:
    come(pool)
    lease = pool.run(ANN, "mine")
    pool.now_ms += HOUR_MS
    pool.report(OWN, done(lease, user=EVE.user, project=ProjectId("guests"), slots=(SlotId("x"), SlotId("y"))))
    (row,) = written(pool)
    assert (row.user, row.project, row.node, row.ran_ms) == ("ann", "maths", OWN, MINUTE_MS)
    assert (row.gpu_ms, row.charged, row.kind, row.slots) == (0, 0, "gpu", ("gpu-0",))
    accounts = pool.shell.scheduler.state.accounts
    assert (accounts.of(ProjectId("maths")).spent, accounts.of(ProjectId("guests")).spent) == (0, 0)


def test_it_has_no_more_slots_than_a_machine_of_ones_own(pool: BrokerParts) -> None:
    registration = pool.registration(OWN, MOST_SLOTS + 1)
    come(pool, slots=registration.slots)
    (refused,) = said_to(pool, wire.Refusal)
    assert str(MOST_SLOTS) in refused.sentence
    assert OWN not in pool.agents.known


def test_nothing_of_it_is_told_of_the_pool(pool: BrokerParts) -> None:
    registration = pool.registration(OWN)
    cpu = structs.replace(registration.slots[0], kind="cpu", name="slow")
    pool.report(SHARED, structs.replace(pool.registration(SHARED), agent=SHARED, held=(NOBODYS,), slots=(cpu,)))
    come(pool, missing_protections=("swap",), shared_account="ann")
    pool.report(OWN, wire.Ping(counters={"made up": 7}))
    assert pool.agents.slot_word == "CPU slot"
    assert pool.agents.known[OWN].counters == {}
    assert pool.agents.absent_nodes == ()
    assert pool.shell.capacity_milli == 1000
    pool.report(OWN, wire.Left())
    assert pool.agents.absent_nodes == (), "nobody misses it"


def test_a_cell_that_another_notebook_has_taken_over_goes_on_through_a_restart_of_the_broker(
    pool: BrokerParts, tmp_path: Path
) -> None:
    come(pool)
    lease = pool.run(ANN, "mine")
    by = KernelId("another")
    session = pool.kernels.names.draw(ANN.user, by)
    pool.shell.active_leases[lease].session = session
    pool.writer.close()
    again = BrokerParts(pool.ledger)
    again.admit(registered(tmp_path))
    again.shell.metering = Metering(again.shell.scheduler.state, pool.ledger.open_leases(), [], again.now_ms)
    come(again, held(lease=lease, session=session, kernel=by, cell=CellId("mine")))
    assert where(again) == {"ann": OWN}
    assert {one.session for one in again.shell.active_leases.values()} == {session}
    assert said_to(again, wire.Evict) == []


def test_a_session_that_it_makes_up_is_none_of_another_users(pool: BrokerParts) -> None:
    come(pool)
    lease = pool.run(ANN, "mine")
    eves = pool.kernels.names.draw(EVE.user, KernelId("k"))
    come(pool, held(lease=lease, session=eves, cell=CellId("mine")), route="box again")
    assert [one.session for one in pool.shell.active_leases.values()] == [SessionId("s-mine")]


def test_a_gpu_of_ones_own_in_a_pool_of_cpu_slots_changes_nothing_of_what_is_remembered(pool: BrokerParts) -> None:
    come(pool)
    slow = structs.replace(pool.registration(SHARED).slots[0], kind="cpu", name="slow")
    eves = held(lease=LeaseId("l-eve"), session=SessionId("s-eve"), user=EVE.user, cell=CellId("c-eve"))
    pool.report(SHARED, structs.replace(pool.registration(SHARED), agent=SHARED, held=(eves,), slots=(slow,)))
    mine = pool.run(ANN, "mine")
    assert where(pool) == {"ann": OWN, "eve": SHARED}
    pool.now_ms += HOUR_MS
    pool.report(OWN, done(mine))
    pool.report(SHARED, done(eves.lease, user=EVE.user, session=eves.session, cell=CellId("c-eve")))
    pool.writer.close()
    recalled = [event for event, _ in past(pool.ledger, SchedulerSettings(), [], pool.now_ms)]
    uses = [use for event in recalled if isinstance(event, UseRecalled) for use in event.uses]
    assert [(use.user, use.amount) for use in uses] == [("eve", 1000 * MINUTE_MS)]
    assert slot_word_of(pool.ledger.slot_kinds()) == "CPU slot"


def test_whose_nodes_may_come_is_known_when_a_broker_starts(pool: BrokerParts, tmp_path: Path) -> None:
    registered(tmp_path)
    owners = NodeRegistry(tmp_path).owners
    assert owners == {OWN: "ann"}
    told = [event for event, _ in past(pool.ledger, SchedulerSettings(), [], pool.now_ms, None, owners)]
    assert OwnNodesAwaited(owners, pool.now_ms + AWAITED_MS) in told


def test_whoever_is_refused_since_their_node_is_gone_reads_that(pool: BrokerParts) -> None:
    fill(pool)
    come(pool, slots=pool.registration(OWN, 2).slots)
    pool.submit(ANN, "mine", gpus=2)
    assert where(pool)["ann"] == OWN
    pool.submit(ANN, "more", gpus=2)
    pool.report(OWN, wire.Leaving())
    pool.report(OWN, wire.Left())
    assert "ann" in waiting(pool), "it may be back in a moment"
    pool.now_ms += AWAY_MS
    pool.step(events.Tick())
    sentences = [message.sentence for _, message in pool.to_sessions if isinstance(message, wire.Refusal)]
    assert "The node that you have brought could run it, and is gone." in sentences[-1]


def test_who_waits_for_it_alone_is_in_nobody_elses_line(pool: BrokerParts) -> None:
    fill(pool)
    come(pool, slots=pool.registration(OWN, 2).slots)
    pool.submit(ANN, "mine", gpus=2)
    pool.submit(ANN, "more", gpus=2)
    assert waiting(pool) == {"ann"}
    seen = {}
    for person in (ANN, EVE, ADMIN):
        drawn = pool.picture(person)
        seen[person.user] = [one.user for one in drawn.waiting]
    assert seen == {"ann": ["ann"], "eve": [], "root": ["ann"]}


@pytest.mark.parametrize("answers", range(8))
def test_an_agent_whose_key_is_gone_while_it_comes_again_is_still_one_that_can_be_given_up(
    broker: BrokerParts, tmp_path: Path, answers: int
) -> None:
    left = [1000]

    def key_of(route: bytes) -> str | None:
        left[0] -= 1
        return f"key of {route.decode().split()[0]}" if left[0] >= 0 else None

    broker.admit(registered(tmp_path, key_of))
    come(broker)
    lease = broker.run(ANN, "mine")
    left[0] = answers  # so often somebody is found to have the key, and then nobody
    come(broker, held(lease=lease, session=SessionId("s-mine"), cell=CellId("mine")), route="box again")
    assert list(broker.agents.known) == list(broker.shell.scheduler.state.nodes) == [OWN], "to be parted with together"


def test_others_do_not_see_it() -> None:
    slots = tuple(
        wire.SlotPicture(node=node, slot=SlotId("gpu-0"), name="A100", state="free", owner=UserName(owner))
        for node, owner in (("shared", ""), ("box", "ann"))
    )
    picture = wire.Picture(slots=slots, waiting=(), recent=(), counters={}, uptime_ms=0, slot_word="GPU")
    assert [one.node for one in hide_others(picture, UserName("eve")).slots] == ["shared"]
    assert [one.node for one in hide_others(picture, UserName("ann")).slots] == ["shared", "box"]
