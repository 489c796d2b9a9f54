"""Who waits for a node of their own, and who for the pool: the own one goes first, where it has room now.

Where it has none, a request waits for the pool, as it would without it; one that the pool could never serve waits for
the own one. Nobody loses the time that they have waited by changing from one to the other.
"""

from bulletin.ids import AgentId
from gpu_worker.scheduler.actions import Reason
from gpu_worker.scheduler.admission.refusals import find_never
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.life import RequestStatus
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.nodes.own_nodes import shape_of
from gpu_worker.scheduler.placement.feasible import may_hold
from gpu_worker.scheduler.placement.room import hot_leases, missing
from gpu_worker.scheduler.state import State

#: What those ahead are to have, by node.
Claims = dict[AgentId, list[Shape]]


def settle(state: State) -> list[tuple[Request, Reason]]:
    """Let each request of who has brought a node wait where it is to; return those that can run nowhere any more.

    Once there are no such nodes any more, nobody waits for one from the next time on.
    """
    if not state.own_nodes.by_owner and not state.own_nodes.were_there:
        return []
    state.own_nodes.were_there = bool(state.own_nodes.by_owner)
    claims: Claims = {}
    nowhere = list[tuple[Request, Reason]]()
    mine = [one for one in state.pending.values() if one.lane == "own" or one.user in state.own_nodes.by_owner]
    for request in sorted(mine, key=lambda one: one.entry.key):
        reason = _settle_one(state, request, claims)
        if reason is not None:
            nowhere.append((request, reason))
    return nowhere


def _settle_one(state: State, request: Request, claims: Claims) -> Reason | None:
    """Let a request wait where it is to; say why if that is nowhere."""
    qos, catalog = state.qos[request.qos], state.slot_catalog
    own = shape_of(request, "own", qos, catalog, state.own_nodes)
    in_pool = shape_of(request, catalog.lane_for(request.gpus), qos, catalog, state.own_nodes)
    could_be_own = state.own_nodes.could_hold(request.user, own)
    node = _find_room(state, request, own, claims) if request.standing is RequestStatus.QUEUED else None
    never = find_never(state, request, in_pool) if node is None else None
    if node is not None:
        claims.setdefault(node.agent, []).append(own)
    is_own = node is not None or (could_be_own and never is not None)
    state.reshape(request, own.lane if is_own else in_pool.lane)
    return None if is_own else never


def _find_room(state: State, request: Request, shape: Shape, claims: Claims) -> Node | None:
    """Find a node of its user's own where a request could start now, beside those ahead."""
    nodes = state.own_nodes.of(request.user)
    return next((node for node in nodes if _has_room(state, node, request, shape, claims)), None)


def _has_room(state: State, node: Node, request: Request, shape: Shape, claims: Claims) -> bool:
    if not may_hold(state, node, shape):
        return False
    lacks = missing(state, node, shape, claims)
    for lease in hot_leases(state, node, shape, state.accounts.of(request.project)):
        lacks = lacks.less(node.part_of(lease, shape))
    return lacks.is_nothing
