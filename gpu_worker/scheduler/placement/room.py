"""What a request lacks on a node: questions only, answered on counts."""

from collections.abc import Mapping, Sequence

from bulletin.ids import AgentId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.leases.leases import LEAVING, Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import LANES, Amount
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.keep_time import is_kept_from, kept_until_ms
from gpu_worker.scheduler.state import State

#: What requests ahead are to have on a node.
Claims = Mapping[AgentId, list[Shape]]


def needed(shape: Shape) -> Amount:
    """Sum up what such a request takes of a node."""
    return Amount(shape.need, shape.wants.cpus, shape.wants.memory_bytes)


def missing(state: State, node: Node, shape: Shape, claims: Claims, *, at_once: bool = False) -> Amount:
    """Compute what such a request lacks there once all that leaves has left, and those ahead have what they claim.

    `at_once` leaves out cells that have a grace: those ahead have their places first.
    """
    lacks = needed(shape).less(node.free(shape))
    if node.is_all(shape):
        claimed = sum(one.need for one in claims.get(node.agent, ()) if one.lane == shape.lane)
        counts = node.lanes[shape.lane]
        if not at_once:
            return Amount(lacks.slots - counts.leaving + claimed)
        return Amount(lacks.slots - (counts.leaving - counts.reclaiming) + max(0, claimed - counts.reclaiming))
    for lease in map(state.leases.__getitem__, node.leases):
        if lease.phase in LEAVING and not (at_once and lease.phase is Phase.RECLAIMING):
            lacks = lacks.less(node.part_of(lease, shape))
    return beside(node, shape, lacks, claims.get(node.agent, ()))


def beside(node: Node, shape: Shape, lacks: Amount, claimed: Sequence[Shape]) -> Amount:
    """Compute what such a request lacks there once others have what they claim of it."""
    if not claimed:
        return lacks
    serving = set(node.serving(shape.lane, shape.wants.kind))
    for one in claimed:
        shared = len(serving.intersection(node.serving(one.lane, one.wants.kind)))
        lacks = lacks.less(Amount(-min(one.need, shared), -one.wants.cpus, -one.wants.memory_bytes))
    return lacks


def is_spare(state: State, node: Node, shape: Shape, promised: Sequence[Shape], slow: Sequence[Shape] = ()) -> bool:
    """Whether those to whom a node is promised have it no later although such a request takes what is free there.

    That is: what leaves is enough for them, and they wait for cells that have a grace either way, or for none. Those of
    them that are `slow` wait for such cells whatever is free.
    """
    if not promised:
        return True
    lacks, given_back = beside(node, shape, Amount(0).less(node.free(shape)), promised), Amount(0)
    for lease in map(state.leases.__getitem__, node.leases):
        if lease.phase is Phase.RECLAIMING:
            given_back = given_back.less(node.part_of(lease, shape))
        elif lease.phase in LEAVING:
            lacks = lacks.less(node.part_of(lease, shape))
    with_it = needed(shape).less(Amount(0).less(lacks))
    later = beside(node, shape, Amount(0), slow)
    is_in_time = with_it.less(later).is_nothing or not lacks.less(later).is_nothing
    return is_in_time and with_it.less(Amount(0).less(given_back)).is_nothing


def hot_leases(state: State, node: Node, shape: Shape, account: Account | None = None) -> list[Lease]:
    """Hot leases of the node that such a request may have the place of, least recently used first.

    With `account`, that of the request's project, without those that are kept from it, and other kept ones last.
    """
    leases = [state.leases[hot] for lane in LANES for hot in node.lanes[lane].hot_leases]
    if not shape.wants.is_more:
        leases = [lease for lease in leases if lease.lane == shape.lane]
    else:
        leases.sort(key=lambda lease: lease.used)
    if account is None or not state.accounts.keeps_hot:
        return leases
    leases = [lease for lease in leases if not is_kept_from(state, lease, account, shape.cost)]
    return sorted(leases, key=lambda lease: kept_until_ms(state, lease) is not None)
