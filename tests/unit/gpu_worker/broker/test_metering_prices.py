"""What was agreed for a cell or a kept place is charged, whatever becomes of broker, link and prices."""

import random
from fractions import Fraction

import msgspec
import pytest

from bulletin.ids import AgentId
from gpu_worker.broker.metering import PATIENCE_MS
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.prices import Price
from tests.unit.gpu_worker.broker.metered_pool import LAB, SETTINGS, World


def test_what_a_running_cell_is_charged_outlives_the_broker_and_a_change_of_prices(world: World) -> None:
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 400),))
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(2_000)
    world.pass_ms(1_000)
    world.write()
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 200),))
    world.new_broker()
    world.register()
    assert world.scheduler.state.leases[lease].charged == 4_000
    world.pass_ms(1_000)
    world.end(lease)
    assert world.spent(LAB) == 4 * 4_000
    world.begin(lease, "two")
    world.pass_ms(1_000)
    world.end(lease)
    assert world.spent(LAB) == 4 * 4_000 + 2 * 1_000
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [(rows[one]["milli"], rows[one]["charged_milli"]) for one in ("one", "two")] == [(1000, 4000), (1000, 2000)]
    world.knows_the_ledger()


@pytest.mark.parametrize("seed", range(3))
def test_late_and_lost_news_are_charged_at_the_price_that_was_agreed(world: World, seed: int) -> None:
    chance = random.Random(seed)
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 250),))
    world.new_broker()
    world.register()
    for _ in range(4):
        lease = world.ask("ann", "lab")
        world.begin(lease)
        world.pass_ms(chance.choice((10, 500, 3_000)))
        world.write()
        world.is_linked = world.is_registered = False
        world.pass_ms(chance.choice((10, 2_000)))
        world.end(lease)
        world.new_broker()
        world.register()
        world.leave(lease)
        world.pass_ms(PATIENCE_MS)
        world.write()
    world.settle()
    world.holds()
    assert {row["charged_milli"] for row in world.ledger.each_cell()} <= {2500, None}
    assert world.spent(LAB) == world.charged(LAB)


@pytest.mark.parametrize("told_after_ms", [0, 700, 5_000])
def test_a_place_that_is_kept_is_charged_once(world: World, told_after_ms: int) -> None:
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 250),))
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    for cell in ("kept-1", "second", "kept-2", "third"):
        world.pass_ms(6_000)
        world.pass_ms(4_000)
        world.go_on(lease, cell, told_after_ms)
        world.pass_ms(0)
    world.pass_ms(10_000)
    world.end(lease)
    world.pass_ms(0)
    all_of_it = 5 * 10_000 + 4 * told_after_ms
    assert world.unseen == []
    assert world.spent(LAB) == Fraction(5, 2) * all_of_it
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [rows[cell]["held_ms"] for cell in ("first", "third")] == [10_000, 10_000 + told_after_ms]
    assert {row["charged_milli"] for row in rows.values()} == {2_500}
    assert world.charged(LAB) == world.spent(LAB)
    world.knows_the_ledger()


def test_what_was_agreed_for_a_kept_place_holds_when_prices_change_meanwhile(world: World) -> None:
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 400),))
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    world.pass_ms(30)
    world.pass_ms(2_000)
    dearer = msgspec.structs.replace(SETTINGS, prices=(Price("model", 200),))
    world.step(ev.SettingsChanged(dearer))
    world.go_on(lease, "kept-1")
    world.pass_ms(1_000)
    world.end(lease)
    assert world.spent(LAB) == 4 * 2_030 + 2 * 1_000
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [rows[cell]["charged_milli"] for cell in ("first", "kept-1")] == [4_000, 2_000]


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_kept_place_has_one_price_whatever_becomes_of_broker_and_link(world: World, is_restarted: bool) -> None:
    world.settings, world.keeps = msgspec.structs.replace(SETTINGS, prices=(Price("model", 400),)), True
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    world.pass_ms(2_000)
    world.write()
    dearer = msgspec.structs.replace(SETTINGS, prices=(Price("model", 200),))
    world.is_linked = world.is_registered = False
    world.end(lease)
    world.begin(lease, "kept-1")
    world.pass_ms(2_000)
    if is_restarted:
        world.settings = dearer
        world.new_broker()
    else:
        world.step(ev.SettingsChanged(dearer))
    world.register()
    assert world.scheduler.state.leases[lease].charged == 4_000
    world.go_on(lease, "second")
    world.pass_ms(1_000)
    world.register()
    assert world.scheduler.state.leases[lease].charged == 4_000
    world.end(lease)
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [rows[cell]["charged_milli"] for cell in ("first", "kept-1", "second")] == 3 * [4_000]


def test_a_kept_cell_that_began_while_its_node_was_lost_is_charged_from_there_on(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    world.pass_ms(1_000)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(300)
    world.end(lease)
    world.begin(lease, "kept-1")
    world.pass_ms(500)
    world.register()
    world.pass_ms(200)
    world.end(lease)
    world.settle()
    world.holds()
    assert world.spent(LAB) == world.charged(LAB) == 2_000
