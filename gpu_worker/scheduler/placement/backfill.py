"""A head of the line: the first that waits for running cells of some kind. It holds the node where it can start first.

What it may take back counts as over once that is given back: a cell of a day that borrows is no reason for others in
quota to pass it. Others may pass it on other nodes. On its own they may if they have ended, by their walltime, before
it can start there, or can be given back by then, or if what they take is more than it needs. So no GPU idles for it
while others fit, and it starts no later for that.
What is hot there leaves before a cell that it begins could end too late. (After EASY, Lifka, JSSPP 1995.)
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from bulletin.ids import AgentId, LeaseId, ProjectId, SlotId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import Amount
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node, NodeKind
from gpu_worker.scheduler.placement.keep_time import kept_on
from gpu_worker.scheduler.placement.node_timeline import FOREVER_MS, NodeTimeline
from gpu_worker.scheduler.placement.reclaim import VictimSelection, gives_back
from gpu_worker.scheduler.placement.room import Claims
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State


class Head:
    """The first request of a walk that waits for running cells of some nodes, and the one that is held for it."""

    def __init__(
        self,
        state: State,
        request: Request,
        claims: dict[AgentId, list[Shape]],
        kinds: frozenset[NodeKind],
        before: Iterable["Head"] = (),
    ) -> None:
        self._state, self.request, self.shape = state, request, request.entry.shape
        self.kinds = kinds  #: of nodes whose cells it waits for
        self.account = state.accounts.of(request.project)
        covered = state.accounts.is_covered(self.account, request.entry)
        #: It is covered by a guarantee and has waited for its patience: others that are covered do not pass it either.
        self.is_before_covered = covered and not request.entry.key.is_early
        self._ahead = {agent: tuple(shapes) for agent, shapes in claims.items()}  #: what those ahead of it are to have
        #: Heads before it that could have some of the slots of a node that it could, and not all.
        self._before = [one for one in before if not kinds.isdisjoint(one.kinds)]
        self._taker = request if state.is_covered(request) else None  #: that may take cells back by its guarantee
        self._given_back_cache: dict[LeaseId, int] | None = None
        self._gives_back: dict[ProjectId, bool] = {}
        self._held_cache: tuple[int, Node] | None = None

    @property
    def held(self) -> tuple[int, Node] | None:
        """When it can start, by the walltimes of what runs, and where that is first; None where no node will do.

        Found when it is first asked for: while all is busy nobody needs to know.
        """
        if self._held_cache is None:
            best: tuple[int, int, Node] | None = None
            for earliest_ms, seq, agent in sorted(self._earliest()):
                if best is not None and (earliest_ms, seq) >= best[:2]:
                    break
                node = self._state.nodes[agent]
                at_ms = self._start_ms(node)
                if at_ms is not None and (best is None or (at_ms, seq) < best[:2]):
                    best = at_ms, seq, node
            if best is not None:
                at_ms, _, node = best
                alone_ms = self._timeline(node).start_ms(self.shape) if node.agent in self._ahead else None
                self._held_cache = at_ms if alone_ms is None else alone_ms, node
        return self._held_cache

    def _earliest(self) -> Iterator[tuple[int, int, AgentId]]:
        """Bound when it can start on each node, from when so many slots of the lane have ended, of whatever kind."""
        state, shape = self._state, self.shape
        for node in state.nodes.values():
            if not node.is_drained and self.is_of(node):
                ends_ms = 0 if self._takes_on(node) else state.ends_ms(node, shape.lane)[shape.need - 1]
                yield max(state.accounts.now_ms, ends_ms), node.seq, node.agent

    def _start_ms(self, node: Node) -> int | None:
        """When it can start there, once those ahead have what they claim, so that it is over before a planned drain."""
        at_ms, longest_ms = self._free_ms(node), node.kind.longest_ms
        if at_ms is None or longest_ms is None:
            return at_ms
        return at_ms if at_ms - self._state.accounts.now_ms + self.shape.walltime_ms <= longest_ms else None

    def _free_ms(self, node: Node) -> int | None:
        shape = self.shape
        if node.is_drained or not self.is_of(node):
            return None
        ahead = self._ahead.get(node.agent, ())
        is_counted = node.is_all(shape) and not self._kept_ms(node) and not self._takes_on(node)
        if not ahead and is_counted and not self._before:
            return max(self._state.accounts.now_ms, self._state.ends_ms(node, shape.lane)[shape.need - 1])
        timeline = self._timeline(node)
        for other in ahead:
            at_ms = timeline.start_ms(other)
            if at_ms is not None:
                timeline.seat(other, at_ms + self._state.settings.start_ms + other.walltime_ms)
        return timeline.start_ms(shape)

    def _timeline(self, node: Node) -> NodeTimeline:
        now_ms, given_back_ms = self._state.accounts.now_ms, self._given_back_ms
        timeline = NodeTimeline(self._state, node, now_ms, self._kept_ms(node), given_back_ms)
        for one in self._before:
            if one.held is not None and one.holds(node):
                until_ms = one.held[0] + self._state.settings.start_ms + one.shape.walltime_ms
                timeline.put(tuple(one.kept_slots(self.shape)), one.shape, until_ms)
        return timeline

    @property
    def _given_back_ms(self) -> dict[LeaseId, int]:
        """When cells are over at the latest that it may take back."""
        if self._given_back_cache is None:
            state, request = self._state, self._taker
            plan = None if request is None else VictimSelection(state, state.accounts, request)
            self._given_back_cache = plan.given_back_ms(self.shape.lane) if plan is not None else {}
        return self._given_back_cache

    def _takes_on(self, node: Node) -> bool:
        """Whether it may take a cell back on the node."""
        return bool(self._given_back_ms) and not self._given_back_ms.keys().isdisjoint(node.leases)

    def _kept_ms(self, node: Node) -> dict[LeaseId, int]:
        """Until when hot leases of the node are kept from it."""
        return kept_on(self._state, node, self.account, self.shape.cost)

    @property
    def is_covered(self) -> bool:
        """Whether a guarantee covers it: it may take back what is borrowed."""
        return self._taker is not None

    def is_of(self, node: Node) -> bool:
        """Whether it waits for cells of the node."""
        return node.kind in self.kinds

    def holds(self, node: Node) -> bool:
        """Whether the node is the one that is held."""
        held = self.held
        return held is not None and held[1] is node

    def is_left_free(self, node: Node, shape: Shape, slots: tuple[SlotId, ...]) -> bool:
        """Whether it starts no later although such a request takes these slots, for as long as it likes."""
        held = self.held
        if held is None or held[1] is not node:
            return True
        if self._is_counted(node, shape):
            return self._has_enough(node, shape, held[0])
        timeline = self._timeline(node)
        timeline.take(slots, shape)
        at_ms = timeline.start_ms(self.shape)
        return at_ms is not None and at_ms <= held[0]

    def is_left_beside(self, node: Node, shape: Shape, slots: tuple[SlotId, ...], claims: Claims) -> bool:
        """Whether it starts no later on the node though such a request has these slots of cells that it takes back.

        Others are to have what they claim there, before both of them.
        """
        starts = list[int | None]()
        for taken in ((), slots):
            timeline = self._timeline(node)
            for other in claims.get(node.agent, ()):
                at_ms = timeline.start_ms(other)
                if at_ms is not None:
                    timeline.seat(other, at_ms + self._state.settings.start_ms + other.walltime_ms)
            if taken:
                timeline.take(taken, shape)
            starts.append(timeline.start_ms(self.shape))
        before_ms, at_ms = starts
        return at_ms is not None and (before_ms is None or at_ms <= before_ms)

    def is_left_room(self, node: Node, shape: Shape) -> bool:
        """Whether it starts no later although such a request takes what is hot there, for as long as it likes.

        Which hot leases leave for it is not known yet, so all must do.
        """
        held = self.held
        if held is None or held[1] is not node:
            return True
        if self._is_counted(node, shape):
            return self._has_enough(node, shape, held[0])
        if not shape.wants.is_more and len(self._lent_by_others(node, shape)) >= shape.need:
            return True
        mine, its = (node.serving(one.lane, one.wants.kind) for one in (self.shape, shape))
        if set(mine) != set(its):
            is_more = self.shape.wants.is_more and shape.wants.is_more
            return not is_more and len(set(its).difference(self.kept_slots(shape))) >= shape.need
        timeline = self._timeline(node)
        timeline.seat(shape, FOREVER_MS)
        at_ms = timeline.start_ms(self.shape)
        return at_ms is not None and at_ms <= held[0]

    def _lent_by_others(self, node: Node, shape: Shape) -> list[SlotId]:
        """List what is free or hot and kept for heads before it, who start only when such a request is over."""
        others = [head for head in self._before if head.is_over_before(node, shape)]
        kept = frozenset[SlotId]().union(*(head.kept_slots(shape) for head in others))
        tenants = {slot: node.tenants[slot] for slot in kept.intersection(node.serving(shape.lane, shape.wants.kind))}
        leases = self._state.leases
        return [slot for slot, name in tenants.items() if name is None or leases[name].phase is Phase.HOT]

    def kept_slots(self, other: Shape) -> frozenset[SlotId]:
        """Choose the slots that it has when it starts: those first that another request could not use, and busy ones.

        None where that could use the same slots: they are counted.
        """
        held = self.held
        if held is None:
            return frozenset()
        at_ms, node = held
        mine, its = (node.serving(one.lane, one.wants.kind) for one in (self.shape, other))
        if set(mine) == set(its):
            return frozenset()
        until = self._timeline(node).until_ms
        ready = [slot for slot in mine if until(slot) <= at_ms]
        ready.sort(key=lambda slot: (slot in its, -until(slot)))
        return frozenset(ready[: self.shape.need])

    def _is_counted(self, node: Node, shape: Shape) -> bool:
        """Whether both of them need nothing but slots of the node, and any of a lane."""
        is_all = node.is_all(shape) and node.is_all(self.shape) and shape.lane == self.shape.lane
        return is_all and not self._before and not self._kept_ms(node) and not self._takes_on(node)

    def _has_enough(self, node: Node, shape: Shape, at_ms: int) -> bool:
        """Whether it has its slots at this time though such a request has some."""
        return bisect_right(self._state.ends_ms(node, shape.lane), at_ms) - shape.need >= self.shape.need

    def is_over_before(self, node: Node, shape: Shape, later_ms: int = 0, *, is_given_back: bool = False) -> bool:
        """Whether the node is the one that is held, and such a request would have ended before the head can start.

        It begins so much later, and need not have ended if it can be given back by then.
        """
        held, stays_ms = self.held, shape.walltime_ms
        if is_given_back and (qos := self._state.qos[shape.qos]).preemption is not Preemption.NEVER:
            stays_ms = min(stays_ms, qos.min_runtime_ms + qos.grace_ms)
        end_ms = self._state.accounts.now_ms + later_ms + self._state.settings.start_ms + stays_ms
        return held is not None and held[1] is node and end_ms <= held[0]

    def is_delayed(self, node: Node, shape: Shape, gone: Iterable[Lease], until_ms: int) -> bool:
        """Whether it could start there sooner, once these cells have gone, if another request had not their place."""
        now_ms, starts = self._state.accounts.now_ms, list[int]()
        given_back_ms = self._given_back_ms | dict.fromkeys((lease.id for lease in gone), now_ms)
        for is_taken in (False, True):
            timeline = NodeTimeline(self._state, node, now_ms, self._kept_ms(node), given_back_ms)
            if is_taken:
                timeline.seat(shape, until_ms)
            at_ms = timeline.start_ms(self.shape)
            starts.append(FOREVER_MS if at_ms is None else at_ms)
        return starts[0] < starts[1]

    def end_ms(self, lease: Lease) -> int:
        """Find when a cell is over at the latest: by its walltime, or given back to the head."""
        return min(self._state.end_ms(lease), self._given_back_ms.get(lease.id, FOREVER_MS))

    def takes_from(self, borrower: Account) -> bool:
        """Whether it may take back what this project borrows from now on."""
        if self._taker is None:
            return False
        name = borrower.project.id
        if name not in self._gives_back:
            self._gives_back[name] = gives_back(self._state, self.account, self.shape.cost, borrower)
        return self._gives_back[name]

    def needs_of_hot(self) -> Amount:
        """Select what it needs of hot leases on the node that is held, unless those ahead are to have some of it."""
        held, shape, state = self.held, self.shape, self._state
        if held is None or held[1].agent in self._ahead:
            return Amount(0)
        at_ms, node = held
        lacks = Amount(shape.need, shape.wants.cpus, shape.wants.memory_bytes).less(node.free(shape))
        for lease in map(state.leases.__getitem__, node.leases):
            if lease.phase is not Phase.HOT and self.end_ms(lease) <= at_ms:
                lacks = lacks.less(node.part_of(lease, shape))
        return lacks
