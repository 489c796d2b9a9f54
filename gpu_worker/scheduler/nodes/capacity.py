"""What nodes offer together, and what of it may be given to somebody."""

from collections.abc import Iterable

from gpu_worker.scheduler.leases.resources import lane_of
from gpu_worker.scheduler.nodes.node import Node, NodeKind
from gpu_worker.scheduler.nodes.slot_catalog import SlotCatalog


def capacity(nodes: Iterable[Node], catalog: SlotCatalog) -> int:
    """Add up what the slots of nodes cost, in thousandths of a GPU."""
    slots = [slot for node in nodes for slot in node.slots.values()]
    return sum(catalog.cost_of(lane_of(slot), slot.milli) for slot in slots)


def available(nodes: Iterable[Node], catalog: SlotCatalog) -> int:
    """Add up what is in use or may be given: of a drained node, what cells use that run to their end."""
    there = list(nodes)
    drained = [node for node in there if node.is_drained]
    return capacity(there, catalog) - capacity(drained, catalog) + sum(node.used for node in drained)


def kinds_in_use(nodes: Iterable[Node]) -> tuple[NodeKind, ...]:
    """List the kinds of nodes that are not drained; those that are to be hold what is over by then."""
    return tuple(dict.fromkeys(node.kind for node in nodes if not node.is_drained))
