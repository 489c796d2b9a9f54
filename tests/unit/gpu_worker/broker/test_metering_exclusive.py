"""Who had a node for themselves is in the ledger, with what all of it is charged, whatever becomes of its broker."""

import csv
import io

import msgspec

from bulletin.ids import AgentId
from gpu_worker.broker.export import CELL_FIELDS, write_csv
from gpu_worker.broker.metering import PATIENCE_MS
from gpu_worker.broker.records import EXCLUSIVE
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.prices import Price
from tests.unit.gpu_worker.broker.metered_pool import SETTINGS, World


def alone(world: World) -> None:
    """Let a class give nodes, of four GPUs at two and a half times the usual price."""
    qos = tuple(msgspec.structs.replace(one, can_be_exclusive=True) for one in SETTINGS.qos)
    world.settings = msgspec.structs.replace(SETTINGS, qos=qos, prices=(Price("model", 250),))
    world.new_broker()
    world.register()


def told(world: World) -> dict[str, tuple[bool, int, int]]:
    """Of each cell whether it was alone on its node, how many slots it had, and what it was charged."""
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    return {cell: (row["is_exclusive"], row["milli"], row["charged_milli"]) for cell, row in rows.items()}


def test_each_cell_says_whether_nobody_else_was_on_its_node_and_what_it_was_charged(world: World) -> None:
    alone(world)
    lease = world.ask("ann", "lab", 4, is_exclusive=True)
    world.begin(lease, "alone")
    world.pass_ms(2_000)
    world.write()
    world.new_broker()  # which hears of it from the agent
    world.register()
    world.pass_ms(1_000)
    world.end(lease)
    world.leave(lease)
    other = world.ask("eve", "lab", 4)
    world.begin(other, "beside")
    world.pass_ms(2_000)
    world.end(other)
    world.settle()
    assert told(world) == {"alone": (True, 4_000, 10_000), "beside": (False, 4_000, 10_000)}
    noted, *_ = world.ledger.event_payloads(EXCLUSIVE)
    assert (noted["user"], noted["gpus"], noted["charged_milli"]) == ("ann", 4, 10_000)
    text = io.StringIO()
    write_csv(world.ledger.each_cell(), CELL_FIELDS, text)
    exported = csv.DictReader(io.StringIO(text.getvalue()))
    assert {row["cell"]: row["is_exclusive"] for row in exported} == {"alone": "True", "beside": "False"}


def test_so_does_one_that_was_lost_with_its_node(world: World) -> None:
    alone(world)
    lease = world.ask("ann", "lab", 4, is_exclusive=True)
    world.begin(lease, "lost")
    world.pass_ms(2_000)
    world.step(ev.AgentLost(AgentId("a")))
    world.is_registered = world.is_linked = False
    world.leases.clear()
    world.pass_ms(PATIENCE_MS)
    world.step(ev.Tick())
    world.write()
    assert told(world) == {"lost": (True, 4_000, 10_000)}
