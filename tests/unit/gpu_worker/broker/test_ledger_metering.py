"""Cells are metered once, from their beginning to their end, in quota or borrowed, refunded or not."""

import itertools
import random
from fractions import Fraction

import msgspec
import pytest

from bulletin.codes import LeaseEnd
from bulletin.ids import AgentId
from gpu_worker.broker.metering import PATIENCE_MS
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.projects import GPU_MILLI
from tests.unit.gpu_worker.broker.ledger_records import rows as sql
from tests.unit.gpu_worker.broker.metered_pool import BEGAN_MS, GUESTS, LAB, SLICES, Done, World, only


def test_a_cell_is_metered_from_its_beginning_to_its_end_by_the_broker(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    began_ms = world.now_ms + 70
    world.pass_ms(70)
    world.begin(lease)
    world.pass_ms(40)
    world.pass_ms(1_000)
    world.end(lease)
    world.pass_ms(200)
    world.settle()
    row = only(world.holds())
    assert (row["started_at_ms"], row["held_ms"], row["in_quota_ms"], row["attempt"]) == (began_ms, 1_040, 1_040, 1)
    (used,) = world.ledger.usage("user")
    assert (used.slot_ms, used.hot_ms) == (1_040, 270)


def test_a_cell_so_short_that_its_beginning_was_not_told_is_counted_all_the_same(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    for _ in range(2):
        world.begin(lease)
        world.pass_ms(20)
        world.end(lease)
        world.pass_ms(100)
    world.settle()
    assert [row["in_quota_ms"] for (row,) in world.holds().values()] == [20, 20]


def test_cells_of_which_a_broker_hears_late_were_held_for_as_long_as_their_agent_says(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_registered = False  # the broker stands still: what it is told waits
    world.pass_ms(900)
    world.end(lease)
    for cell in ("two", "three"):
        world.pass_ms(50)
        world.begin(lease, cell)
        world.pass_ms(40)
        world.pass_ms(1_960)
        world.end(lease)
    world.pass_ms(3_000)
    world.is_registered = True
    for said, why in world.unsaid:
        world.report(said) if isinstance(said, Done) else world.step(said, why)
    world.settle()
    rows = world.holds()
    assert [rows[cell, lease][0]["held_ms"] for cell in ("one", "two", "three")] == [1_000, 2_000, 2_000]
    assert world.ledger.usage("user")[0].hot_ms == 3_100
    assert world.spent(LAB) == world.charged(LAB) == 5_000


def test_a_cell_turns_when_another_of_its_project_ends(world: World) -> None:
    world.register()
    first, second = world.ask("ann", "lab"), world.ask("bob", "lab", gpus=2)
    for lease in (first, second):
        world.begin(lease)
    world.pass_ms(50)
    world.pass_ms(50)
    world.end(first)
    world.pass_ms(300)
    world.end(second)
    world.settle()
    rows = [row for (row,) in world.holds().values()]
    assert [(row["borrowed_ms"], row["in_quota_ms"]) for row in rows] == [(0, 100), (100, 300)]


def test_what_a_reclaim_ended_is_refunded_and_its_next_run_is_its_second_attempt(world: World) -> None:
    world.register()
    lease = world.ask("eve", gpus=4)
    world.begin(lease, "x")
    world.pass_ms(500)
    owner = world.ask("ann", "lab")
    assert owner in world.leases
    world.pass_ms(5_000)
    again = world.ask("eve")
    world.begin(again, "x")
    world.pass_ms(100)
    world.end(again)
    world.settle()
    rows = world.holds()
    lost, second = rows["x", lease][0], rows["x", again][0]
    assert (lost["attempt"], lost["outcome"], lost["borrowed_ms"], lost["refunded_ms"]) == (1, "reclaimed", 500, 500)
    assert (second["attempt"], second["refunded_ms"], second["borrowed_ms"]) == (2, 0, 100)


def test_what_a_reclaim_made_worthless_is_charged_to_no_budget_at_once(world: World) -> None:
    world.register()
    lease = world.ask("eve", gpus=4)
    for ms in (10, 100, 500):
        world.begin(lease)
        world.pass_ms(BEGAN_MS if ms > BEGAN_MS else 0)  # it is told of
        world.pass_ms(ms)
        if ms < 500:
            world.end(lease)
    world.pass_ms(0)
    assert world.spent(GUESTS) == 4 * (10 + 130 + 530)
    world.ask("ann", "lab")
    assert world.spent(GUESTS) == 4 * 140, "the first ones are worth what they were"
    history = world.scheduler.state.accounts.of(GUESTS).history
    assert Fraction(history.amount, GPU_MILLI << 16) == 4 * 130, "of the first one the scheduler saw the grant alone"
    world.write()
    world.knows_the_ledger()
    assert world.spent(GUESTS) == world.charged(GUESTS) == 4 * 140
    world.register()
    world.settle()
    world.holds()
    assert world.spent(GUESTS) == 4 * 140


def test_a_reclaimed_cell_whose_end_nobody_told_is_refunded_too(world: World) -> None:
    world.register()
    lease = world.ask("eve", gpus=4)
    world.begin(lease)
    world.pass_ms(500)
    world.step(ev.LeaseEnded(lease), LeaseEnd.RECLAIMED)
    del world.leases[lease]
    world.pass_ms(PATIENCE_MS)
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"], row["refunded_ms"]) == ("reclaimed", 500, 500)
    assert world.spent(GUESTS) == world.charged(GUESTS) == 0


def test_a_reclaimed_cell_that_is_told_to_the_next_broker_is_refunded_once(world: World) -> None:
    world.register()
    first, second = world.ask("eve"), world.ask("eva")
    for lease in (first, second):
        world.begin(lease)
    world.pass_ms(500)
    world.write()
    world.is_linked = False
    world.leave(first, LeaseEnd.RECLAIMED)
    world.new_broker()
    world.register()
    world.pass_ms(200)
    assert world.spent(GUESTS) == 700
    world.settle()
    world.holds()
    assert world.spent(GUESTS) == world.charged(GUESTS) == 700


def test_slices_count_as_their_part_of_a_gpu_before_a_restart_and_after_it(world: World) -> None:
    world.slots = SLICES
    world.register()
    lease = world.ask("ann", "lab", gpus=2)
    world.begin(lease)
    world.pass_ms(1_000)
    assert world.spent(LAB) == 250
    world.end(lease)
    world.settle()
    (used,) = world.ledger.usage("project")
    assert used.gpu_ms == only(world.holds())["gpu_ms"] == 250
    world.new_broker()
    assert world.spent(LAB) == world.charged(LAB) == 250
    history = world.scheduler.state.accounts.of(LAB).history
    assert history.amount == 250_000 << 16, "as it counts when it is new"


def play(world: World, chance: random.Random) -> bool:
    """A history at random. Whether any agent died with what only it knew."""
    has_died = False
    for _ in range(chance.randint(5, 40)):
        world.pass_ms(chance.choice((0, 1, 15, 40, 400, 9_000)))
        match chance.choice("aaabbbbeeeelwwukrdxo"):
            case "a":
                world.ask(chance.choice("stuv"), chance.choice(("lab", "guests")), chance.choice((1, 1, 2, 4)))
            case "b":
                free = [lease for lease, held in world.leases.items() if held.cell is None]
                if free:
                    world.begin(chance.choice(free))
            case "e":
                running = [lease for lease, held in world.leases.items() if held.cell is not None]
                if running:
                    world.end(chance.choice(running))
            case "l":
                if world.leases:
                    world.leave(chance.choice(list(world.leases)))
            case "w":
                world.write(chance.choice((None, None, 1, 3)))
            case "u":
                world.is_linked = world.is_registered = False
            case "k":
                world.knows_the_ledger()
            case "r":
                world.register()
            case "d":
                world.is_linked = world.is_registered = False
                world.step(ev.AgentLost(AgentId("a")))
            case "x":
                world.leases, world.unrecorded, has_died = {}, {}, True
                world.is_linked = world.is_registered = False
            case "o":
                world.pass_ms(PATIENCE_MS)
    world.settle()
    return has_died


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_each_lease_and_cell_is_in_the_ledger_once(world: World, seed: int) -> None:
    world.slots = SLICES if seed % 2 else world.slots
    has_died = play(world, random.Random(seed))
    rows = world.holds()
    for project in (LAB, GUESTS):
        assert world.spent(project) >= world.charged(project), "the scheduler counts from the grant"
    assert world.scheduler.state.accounts.credits(GUESTS).earned == 0
    world.queue.append((world.credit_book.take_entries(), None, None))
    world.write()
    has = [world.scheduler.state.accounts.credits(project) for project in (LAB, GUESTS)]
    world.knows_the_ledger()
    assert [world.scheduler.state.accounts.credits(project) for project in (LAB, GUESTS)] == has
    tenancies = []
    for slots, granted_ms, ended_ms in sql(world.url, "SELECT slots, granted_at_ms, ended_at_ms FROM leases"):
        tenancies += [(slot, granted_ms, ended_ms) for slot in msgspec.json.decode(slots)]
    for one, other in itertools.pairwise(sorted(tenancies)):
        assert one[0] != other[0] or one[2] <= other[1], f"{one[0]} has two tenants"
    if not has_died:
        for done in world.ran:
            (row,) = rows[done.cell, done.lease]
            assert int(row["held_ms"]) <= done.ended_ms - done.began_ms  # type: ignore[call-overload]
