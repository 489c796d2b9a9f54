"""Brokers that are killed, links that break, agents that are lost and come back, clocks that jump: each cell once."""

import msgspec

from bulletin.codes import CellOutcome
from bulletin.ids import AgentId, UserName
from gpu_worker.broker.metering import PATIENCE_MS, Stretch
from gpu_worker.broker.records import CellRecord
from gpu_worker.broker.translate import LEASE_ENDS
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import EndLease
from tests.unit.gpu_worker.broker.metered_pool import LAB, World, only


def test_what_ended_and_began_while_there_was_no_broker_is_told_when_there_is_one(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.write()
    world.is_linked = False
    world.pass_ms(100)
    world.end(lease)
    world.pass_ms(50)
    world.begin(lease, "two")
    world.pass_ms(50)
    world.new_broker()
    world.register()
    world.pass_ms(70)
    world.end(lease)
    world.settle()
    rows = world.holds()
    assert [rows[cell, lease][0]["held_ms"] for cell in ("one", "two")] == [200, 120]
    assert world.ledger.usage("user")[0].hot_ms == 50


def test_a_cell_that_is_said_again_to_the_next_broker_is_not_counted_again(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.end(lease)
    said = dict(world.unrecorded)
    world.write()
    world.unrecorded = said  # the broker was killed before the agent heard of it
    world.new_broker()
    world.register()
    world.settle()
    assert only(world.holds())["held_ms"] == 100


def test_a_lease_that_was_over_before_it_was_written_still_has_its_cells(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    for cell in ("one", "two"):
        world.begin(lease, cell)
        world.pass_ms(100)
        world.end(lease)
    world.leave(lease)
    world.new_broker()
    world.register()
    world.settle()
    assert [row["held_ms"] for (row,) in world.holds().values()] == [100, 100]


def test_a_node_that_was_lost_and_comes_back_late_goes_on_as_another_lease(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(PATIENCE_MS)
    world.write()
    assert world.ledger.open_leases() == []
    world.pass_ms(50)
    world.register()
    world.pass_ms(60)
    world.end(lease)
    world.pass_ms(10)
    world.begin(lease, "two")
    world.pass_ms(30)
    world.end(lease)
    world.settle()
    rows = world.holds()
    assert (rows["one", lease][0]["outcome"], rows["one", lease][0]["held_ms"]) == ("node-lost", 100)
    assert rows["two", lease][0]["held_ms"] == 30


def test_an_end_that_is_told_soon_after_its_node_was_lost_is_the_cells_own(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.pass_ms(40)
    world.end(lease)
    world.pass_ms(40)
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(40)
    world.register()
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("returned", 140)


def test_a_cell_that_is_lost_with_its_agent_and_its_broker_ran_until_it_was_last_known_to(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    for _ in range(70):
        world.pass_ms(1_000)
    world.write()
    world.leases.clear()
    world.new_broker()
    world.register()
    world.pass_ms(PATIENCE_MS)
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("not-held", 61_000)
    assert world.spent(LAB) == world.charged(LAB) == 61_000


def test_a_cell_that_outlived_its_broker_is_counted_once_however_it_was_noted(world: World) -> None:
    world.register()
    first, second = world.ask("ann", "lab"), world.ask("bob", "lab")
    world.begin(first, "ends unseen")
    world.begin(second, "runs on")
    world.pass_ms(500)
    world.pass_ms(5_000)
    world.write()
    world.is_linked = False
    world.end(first)
    world.pass_ms(500)
    world.new_broker()
    world.register()
    world.pass_ms(1_000)
    world.end(second)
    world.settle()
    rows = world.holds()
    assert rows["ends unseen", first][0]["held_ms"] == 5_500
    assert rows["runs on", second][0]["held_ms"] == 7_000
    assert world.spent(LAB) == world.charged(LAB) == 12_500


def test_a_cell_that_is_lost_with_its_agent_is_told_as_soon_as_another_agent_has_come(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    heard_ms = world.now_ms
    world.pass_ms(9_000)
    del world.leases[lease]
    joined = ev.AgentJoined(AgentId("a"), "n", world.slots)
    ends = {
        one.lease: LEASE_ENDS[one.why]
        for one in world.scheduler.step(joined, world.now_ms)
        if isinstance(one, EndLease)
    }
    told = world.metering.follow_step(ends, world.now_ms, lost_ms=heard_ms)
    cell, over = told
    assert isinstance(cell, CellRecord)
    assert (cell.outcome, cell.held_ms) == (CellOutcome.NOT_HELD, 100)
    assert over.ended_at_ms == heard_ms  # type: ignore[union-attr]
    world.queue.append((told, None, None))
    world.refund(world.metering.take_refunded())
    world.write()
    world.holds()
    assert world.spent(LAB) == world.charged(LAB) == 100, "what nobody used after that is given back"


def test_a_clock_that_was_put_back_between_two_brokers_takes_nothing_back(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.end(lease)
    world.write()
    world.now_ms -= 60_000
    world.new_broker()
    world.leases[lease].since_ms -= 60_000
    world.register()
    world.begin(lease, "two")
    world.pass_ms(100)
    world.end(lease)
    world.settle()
    rows = world.holds()
    assert [rows[cell, lease][0]["held_ms"] for cell in ("one", "two")] == [100, 0]


def test_a_clock_that_was_put_forward_between_two_brokers_counts_nothing_again(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.end(lease)
    said = {
        name: msgspec.structs.replace(done, began_ms=done.began_ms + 60_000, ended_ms=done.ended_ms + 60_000)
        for name, done in world.unrecorded.items()
    }
    world.write()
    world.unrecorded = said
    world.now_ms += 60_000
    world.new_broker()
    world.register()
    world.settle()
    assert only(world.holds())["held_ms"] == 100


def test_a_cell_is_charged_until_its_node_was_lost_and_no_longer(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(40)
    world.end(lease)
    world.leave(lease)
    world.pass_ms(40)
    world.register()
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("returned", 100)


def test_a_cell_that_nobody_heard_of_before_its_lease_was_given_up_is_counted_from_then_on(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(20)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(300)
    world.leave(lease)
    world.pass_ms(PATIENCE_MS)
    world.register()
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("left", 300)


def test_a_cell_that_comes_back_is_in_quota_where_the_one_before_it_is_gone(world: World) -> None:
    world.register()
    first, second = world.ask("ann", "lab"), world.ask("bob", "lab", gpus=2)
    for lease in (first, second):
        world.begin(lease)
    world.pass_ms(50)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.leave(first)
    world.pass_ms(50)
    world.register()
    world.pass_ms(70)
    world.end(second)
    world.settle()
    (row,) = next(found for (_, lease), found in world.holds().items() if lease == second)
    assert (row["borrowed_ms"], row["in_quota_ms"]) == (100, 70)


def test_what_the_scheduler_did_not_see_is_told_apart(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab", gpus=2)
    world.begin(lease, "one")
    world.pass_ms(1_000)
    assert world.unseen == [], "it was told of"
    world.end(lease)
    began_ms = world.now_ms + 100
    world.pass_ms(100)
    world.write()
    world.is_linked = world.is_registered = False
    world.begin(lease, "two")
    world.pass_ms(200)
    world.end(lease)
    world.begin(lease, "three")
    world.pass_ms(300)
    world.new_broker()
    world.register()
    world.pass_ms(0)
    of = {"project": LAB, "user": UserName("ann"), "qos": "interactive", "charged": 2_000}
    assert world.unseen == [
        Stretch(**of, from_ms=began_ms + 200, until_ms=began_ms + 500),  # type: ignore[arg-type]
        Stretch(**of, from_ms=began_ms, until_ms=began_ms + 200),  # type: ignore[arg-type]
    ]
    world.settle()
    world.holds()
    assert len(world.unseen) == 2
    assert world.spent(LAB) == world.charged(LAB) == 2 * 1_500


def test_what_ran_while_its_node_was_lost_is_told_when_it_is_back(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease)
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(300)
    world.register()
    world.pass_ms(50)
    assert world.spent(LAB) == 450
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(20)
    world.end(lease)
    world.pass_ms(1_000)
    world.register()
    world.settle()
    world.holds()
    assert world.spent(LAB) == world.charged(LAB) == 470
