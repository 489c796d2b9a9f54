"""Who waits for a node of their own, and who for the pool: the own one goes first, where it has room now.

Where it has none, a request waits for the pool, as it would without it; one that the pool could never serve waits for
the own one, and whoever would delay it there waits for the pool, too. Nobody loses the time that they have waited by
changing from one to the other.
"""

from collections.abc import Iterable

from bulletin.ids import AgentId, UserName
from gpu_worker.scheduler.actions import Reason
from gpu_worker.scheduler.admission.refusals import find_never
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.life import RequestStatus
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.nodes.own_nodes import shape_of
from gpu_worker.scheduler.placement.backfill import Head
from gpu_worker.scheduler.placement.feasible import may_hold
from gpu_worker.scheduler.placement.room import hot_leases, missing
from gpu_worker.scheduler.state import State


def settle(state: State) -> list[tuple[Request, Reason]]:
    """Let each request of who has brought a node wait where it is to; return those that can run nowhere any more.

    Only users are looked at of whom something has changed: to look at all who wait costs as much as to decide.
    """
    nodes, nowhere = state.own_nodes, list[tuple[Request, Reason]]()
    nodes.pop_over(state.accounts.now_ms)
    if not nodes.by_owner and not nodes.absent and not nodes.settled:
        return nowhere
    mine: dict[UserName, list[Request]] = {}
    for request in state.pending.values():
        if request.lane == "own" or nodes.is_any_of(request.user):
            mine.setdefault(request.user, []).append(request)
    rules, before, nodes.settled = _rules(state), nodes.settled, {}
    for user, requests in mine.items():
        known: object = rules, _signature(state, user, requests)
        if before.get(user) != known:
            settling = _OneUser(state)
            nowhere += settling.settle(requests)
            # Until one that has room has begun, time alone may let another go first.
            known = None if settling.is_about_to_start else (rules, _signature(state, user, requests))
        nodes.settled[user] = known
    return nowhere


def _rules(state: State) -> object:
    """Sum up what may change for all at once: quotas, allowances, and what the pool has shown."""
    accounts, catalog = state.accounts, state.slot_catalog
    awaited = bool(catalog.awaited), catalog.has_gpus, catalog.offer_count
    return accounts, accounts.turns, accounts.allowances.changes, accounts.capacity, awaited


def _signature(state: State, user: UserName, requests: Iterable[Request]) -> object:
    """Sum up what decides where a user's requests wait: they themselves, and what goes on on the nodes of theirs."""
    nodes = [(node.agent, node.seq, node.changes, node.kind.longest_ms) for node in state.own_nodes.of(user)]
    gone = tuple(state.own_nodes.absent.get(user, {}).items())
    return nodes, gone, [(one.id, one.entry, one.standing, one.project, one.walltime_ms) for one in requests]


class _OneUser:
    """Looks at the requests of a user in their order: what those ahead are to have on nodes of theirs, others have not.

    The first that the pool could never serve, and that waits for a node of theirs, is passed there by those alone
    who do not delay it, as it is in the walk of the line.
    """

    def __init__(self, state: State) -> None:
        self._state, self._claims, self._heads = state, dict[AgentId, list[Shape]](), list[Head]()
        self.is_about_to_start = False

    def settle(self, requests: Iterable[Request]) -> list[tuple[Request, Reason]]:
        """Let each wait where it is to; return those that can run nowhere."""
        found = [(one, self._settle_one(one)) for one in sorted(requests, key=lambda one: one.entry.key)]
        return [(request, reason) for request, reason in found if reason is not None]

    def _settle_one(self, request: Request) -> Reason | None:
        """Let a request wait where it is to; say why if that is nowhere."""
        state = self._state
        qos, catalog = state.qos[request.qos], state.slot_catalog
        own = shape_of(request, "own", qos, catalog, state.own_nodes)
        in_pool = shape_of(request, catalog.lane_for(request.gpus), qos, catalog, state.own_nodes)
        could_be_own = state.own_nodes.could_hold(request.user, own)
        is_queued = request.standing is RequestStatus.QUEUED
        node = self._find_room(request, own) if is_queued else None
        never = find_never(state, request, in_pool) if node is None else None
        is_own = node is not None or (could_be_own and never is not None)
        if never is not None and not is_own:
            return never  # it still is what it was: who is refused is told that their node is gone
        state.reshape(request, own.lane if is_own else in_pool.lane)
        if node is not None:
            self.is_about_to_start = True
            self._claims.setdefault(node.agent, []).append(own)
        elif is_own and is_queued:
            self._hold(request)
        return None

    def _hold(self, request: Request) -> None:
        """Hold a node of theirs for a request that waits for no other, unless one ahead of it waits for the same."""
        nodes = self._state.own_nodes.of(request.user)
        kinds = frozenset(node.kind for node in nodes if node.holds(request.entry.shape))
        if not any(kinds & head.kinds for head in self._heads):
            self._heads.append(Head(self._state, request, self._claims, kinds))

    def _find_room(self, request: Request, shape: Shape) -> Node | None:
        """Find a node of its user's own where a request could start now, beside those ahead."""
        nodes = self._state.own_nodes.of(request.user)
        return next((node for node in nodes if self._has_room(node, request, shape)), None)

    def _has_room(self, node: Node, request: Request, shape: Shape) -> bool:
        state = self._state
        if not may_hold(state, node, shape):
            return False
        lacks = missing(state, node, shape, self._claims)
        for lease in hot_leases(state, node, shape, state.accounts.of(request.project)):
            lacks = lacks.less(node.part_of(lease, shape))
        return lacks.is_nothing and not any(_delays(head, node, shape) for head in self._heads)


def _delays(head: Head, node: Node, shape: Shape) -> bool:
    """Whether one that waits for the node would start later if such a request began there now."""
    return head.holds(node) and not head.is_over_before(node, shape) and not head.is_left_room(node, shape)
