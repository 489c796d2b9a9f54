"""A lane's requests in the order in which they are looked at, and which of them are not looked at at all."""

from collections.abc import Generator, Iterable, Iterator
from functools import partial
from typing import Literal

from bulletin.ids import ProjectId, SessionId
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import NodeKind
from gpu_worker.scheduler.placement.ahead import Ahead
from gpu_worker.scheduler.placement.feasible import FeasibleShapes
from gpu_worker.scheduler.placement.places import is_free
from gpu_worker.scheduler.placement.reclaim_prospects import ReclaimProspects
from gpu_worker.scheduler.placement.seats import choose_slots
from gpu_worker.scheduler.queue.closed import Closed
from gpu_worker.scheduler.state import State


class QueueWalk:
    """A lane's requests in order, while those that are reached may be granted and leave the line.

    One for which room is made is taken for granted while others are looked at, so that who comes next is decided as it
    will be then. One that waits for running cells takes nothing of its project's guarantee or limit from others; but
    who only wants to know the order (`is_forecast`) takes all for granted that a connected node can hold.

    `narrow` leaves out, from then on, all that could only pass a request that waits, on nodes that could hold it.
    Shapes are few: the walk ends soon after nothing fits.
    """

    def __init__(self, state: State, lane: Lane, *, is_forecast: bool = False) -> None:
        self._state, self._is_forecast = state, is_forecast
        self._closed = Closed(lane, state.queue.shapes, None if is_forecast else ReclaimProspects(state, lane))
        self._waiters: list[tuple[Shape, frozenset[NodeKind]]] = []  #: who waits, and on which kinds of nodes
        #: One of those that find no room and need the same of a node, with kinds of nodes where nobody stands for it.
        self._exposed: dict[Shape, list[NodeKind]] = {}
        self._feasible_changes = -1  #: as of when
        self._left: list[Shape] = []  #: those for which some room may be left, one of each need
        self._taken = -1  #: as of when that is so
        self._lost: set[Shape] = set()  #: those that may have found some, and find none now
        self._takers_cache: dict[str, frozenset[ProjectId]] = {}  #: by class: projects with cells of a lower one
        self._groups: dict[Shape, list[Shape]] = {}
        self._open: list[list[Shape]] | None = None  #: shapes in line that are not closed, by what they need of a node
        self._fits_cache: dict[Shape, bool] = {}  #: whether such a request finds room on a node held for a head
        self._fits_as_of: tuple[int, ...] = ()  #: all that this depends on
        self._narrowed: list[Shape] = []  #: those for which, as of then, all was left out already
        self._took_cache: frozenset[SessionId] | None = None  #: of which others have taken cells for their shares
        self._is_timed = bool(state.planned_drains)
        self._is_placed = False  #: whether room is made for the request that was looked at last
        self._pool = ""  #: the node pool in which that is
        self._replaces = False  #: whether it has the place of cells that are going
        self._first: Request | None = None

    def take_for_granted(self, pool: str = "", *, replaces: bool = False) -> None:
        """Count the request that was looked at last as one that runs. `pool` is that in which room is made for it.

        `replaces` says that a limit, a guarantee or lenders have it wait for cells that are going.
        """
        self._is_placed, self._pool, self._replaces = True, pool, replaces

    def close_to_borrowers(self) -> None:
        """Have no more room made for who borrows, from now on: they start where something is free."""
        self._closed.close_to_borrowers()

    @property
    def _makes_room(self) -> bool:
        """Whether somebody who borrows may have what is hot or leaves."""
        prospects = self._closed.prospects
        return prospects is None or prospects.are_for_borrowers

    def look_first(self, request: Request) -> None:
        """Look at this request next, and after that again at the one that was looked at last."""
        self._first = request

    def close_in_project(self, request: Request) -> None:
        """Skip, from now on, requests of its project that need what this one does, or more."""
        shape = request.entry.shape
        for other in self._state.accounts.of(request.project).waiting:
            if shape.is_easier(other):
                self._closed.close_in(request.project, other)

    def narrow(self, request: Request, ahead: Ahead, feasible: FeasibleShapes) -> None:
        """Skip, from now on, requests that need what one that waits does, or more, where nothing is left for them.

        Whoever has waited for a share may have one although that one has none: of its own project not where another one
        that needs as much, and stands before, has waited and found none.
        """
        if self._open is None:
            self._open = list(self._alike())
        waits, prospects = request.entry.shape, self._closed.prospects
        may_share = prospects is not None and prospects.are_for_shares
        as_of = feasible.changes, feasible.taken, len(ahead.heads), ahead.blocked.changes, self._makes_room
        if as_of != self._fits_as_of or self._state.accounts.keeps_hot:  # who is counted may change what is kept
            self._fits_cache, self._narrowed, self._fits_as_of = {}, [], as_of
        if not may_share:
            if any(_leaves_out(one, waits) for one in self._narrowed):
                return
            self._narrowed.append(waits)
        if may_share and self._has_no_share(request) and not feasible.has_left(waits):
            self.close_in_project(request)
        in_line, closed = self._state.queue.shapes, self._closed.shapes
        to_takers: list[Shape] = []
        unfree: list[Shape] = []
        for shapes in self._open:
            one = shapes[0]
            if not waits.takes_in(one) or (self._is_timed and waits.walltime_ms > one.walltime_ms):
                continue
            is_feasible = feasible.has_left(one)
            if may_share and not is_feasible:
                to_takers += [shape for shape in shapes if shape in in_line]
                continue
            for shape in shapes:
                if shape not in in_line or shape in closed:
                    continue
                if is_feasible and self._fits_in(feasible, shape, ahead):
                    continue
                if is_feasible and not self._makes_room:
                    unfree.append(shape)
                elif may_share or self._has_takers(shape) or self._may_take(shape, waits, ahead):
                    to_takers.append(shape)
                else:
                    self._closed.close(shape)
            shapes[:] = [shape for shape in shapes if shape in in_line and shape not in closed]
        if to_takers:
            self._closed.close_but_to_takers(to_takers)
        if unfree:
            self._closed.close_borrowed_but_to_takers(unfree)
        self._open = [shapes for shapes in self._open if shapes]

    def _has_no_share(self, request: Request) -> bool:
        """Whether those of its project who stand behind have no share either, since a request that waits has none.

        Who is first for another reason than that they use less may have more than those behind; and who lost a cell for
        a share does not take that one back.
        """
        key, state = request.entry.key, self._state
        is_first_anyway = bool(key.turn) or not key.is_early or key.since_ms != 0
        if is_first_anyway or (request.project, request.user) in state.boosts.until_ms:
            return False
        if request.since_ms + state.qos[request.qos].share_after_ms > state.accounts.now_ms:
            return False
        if self._took_cache is None:
            self._took_cache = frozenset(name for lease in state.leases.values() for name in lease.took)
        return request.session not in self._took_cache

    def _has_takers(self, shape: Shape) -> bool:
        """Whether somebody in line may take a cell of a lower class of their own project for such a request."""
        accounts, known_qos = self._state.accounts, self._state.qos
        if shape.qos not in self._takers_cache:
            priority = known_qos[shape.qos].priority
            waiting = (account for account in accounts.by_id.values() if account.heads)
            takers = (one.project.id for one in waiting if one.used_below(known_qos, priority))
            self._takers_cache[shape.qos] = frozenset(takers)
        return not self._takers_cache[shape.qos].isdisjoint(self._state.queue.heads.get(shape, ()))

    def _alike(self) -> Iterator[list[Shape]]:
        """Group the shapes that the same nodes hold: walltimes count where nodes are to be drained."""
        for shapes in self._state.queue.alike.values():
            if self._is_timed:
                yield from ([shape] for shape in shapes)
            else:
                yield list(shapes)

    @staticmethod
    def _may_take(shape: Shape, waits: Shape, ahead: Ahead) -> bool:
        """Whether such a request may take cells for a shorter time, where one who waits would be over too late."""
        if shape.walltime_ms >= waits.walltime_ms:
            return False
        held = [(head, head.held[1]) for head in ahead.heads if head.held is not None]
        return any(head.is_over_before(node, shape) and not head.is_over_before(node, waits) for head, node in held)

    def skip_hopeless(self, waits: Shape, its_kinds: Iterable[NodeKind], feasible: FeasibleShapes) -> None:
        """Skip, from now on, whoever finds no room now, for whom nobody would leave, and who is stood for.

        That is: on all kinds of nodes that could hold it somebody waits who keeps as much from those behind. One more
        is one that `waits`, on its kinds of nodes.
        """
        where_it_waits = frozenset(kind for kind in its_kinds if not self._is_timed or kind.holds(waits))
        self._waiters.append((waits, where_it_waits))
        if feasible.changes != self._feasible_changes:
            self._feasible_changes = feasible.changes
            self._closed.reopen_hopeless()
            self._groups = {shapes[0]: shapes for shapes in self._alike()}
            mine = [one for one in self._groups if one.lane == self._closed.lane]
            self._left, self._taken, self._lost = [one for one in mine if feasible.has(one)], -1, set()
            self._exposed = {}
            self._expose([one for one in mine if not feasible.has(one)], feasible)
        else:
            self._stand_for(list(self._exposed), self._waiters[-1:])
        if feasible.taken != self._taken:
            self._taken = feasible.taken
            lost = [one for one in self._left if not feasible.has_left(one)]
            self._lost.update(lost)
            self._left = [one for one in self._left if one not in self._lost]
            self._expose(lost, feasible)
        self._closed.has_room_left = bool(self._left)
        if not self._exposed and not self._left and not self._lost:
            self._closed.close_all_but_to_takers()

    def _expose(self, shapes: list[Shape], feasible: FeasibleShapes) -> None:
        """Skip those of these shapes, which find no room from now on, that are stood for by all that wait."""
        self._exposed |= {one: [kind for kind in feasible.kinds if kind.holds(one)] for one in shapes}
        self._stand_for(shapes, self._waiters)

    def _stand_for(self, shapes: Iterable[Shape], waiters: Iterable[tuple[Shape, frozenset[NodeKind]]]) -> None:
        """Skip those of these shapes, which find no room, that are stood for now that these wait, too."""
        for one in shapes:
            left = self._exposed[one]
            for waiter, where in waiters:
                left = [kind for kind in left if kind not in where or not kind.stands_for(waiter, one)]
                if not left:
                    break
            if left:
                self._exposed[one] = left
            else:
                del self._exposed[one]
                if one in self._lost:  # the first that is not covered leaves out all behind it that need as much
                    self._closed.close_covered_but_to_takers(self._groups[one])
                else:
                    self._closed.close_but_to_takers(self._groups[one])

    def _fits_in(self, feasible: FeasibleShapes, shape: Shape, ahead: Ahead) -> bool:
        if shape not in self._fits_cache:
            self._fits_cache[shape] = _fits_in(feasible, shape, ahead, makes_room=self._makes_room)
        return self._fits_cache[shape]

    def __iter__(self) -> Generator[Request]:
        state, queue = self._state, self._state.queue
        aside: list[Request] = []
        served: list[tuple[Request, str, bool]] = []
        try:
            while (request := self._next()) is not None:
                self._is_placed, self._pool, self._replaces = self._is_forecast, "", False
                yield request
                if self._first is not None:
                    continue
                if request.id in state.pending and not self._closed.has_all(queue.shapes):
                    if not self._is_placed:
                        state.accounts.of(request.project).note_passed(request.entry)
                    queue.leave(request.project, request.entry)
                    if self._is_placed and has_node(state, request.entry.shape):
                        served.append((request, self._pool, self._replaces))
                        self._use(request, self._pool, +1, replaces=self._replaces)
                    aside.append(request)
        finally:
            for one, pool, replaces in reversed(served):
                self._use(one, pool, -1, replaces=replaces)
            for request in reversed(aside):
                state.accounts.of(request.project).passed = None
                queue.enter(request.project, request.entry)
                state.patience.expect_request(state.accounts, request)  # its user's timer may have gone meanwhile

    def _next(self) -> Request | None:
        first, self._first = self._first, None
        if first is not None:
            return first
        found = self._state.queue.next(self._closed)
        return None if found is None else self._state.pending[found[1].id]

    def _use(self, request: Request, pool: str, sign: Literal[1, -1], *, replaces: bool) -> None:
        user, cost = (request.project, request.user, request.qos), request.entry.shape.cost
        if request.is_late_in_pool:  # it uses meanwhile what is kept for it
            for at in self._state.accounts.of(request.project).path:
                at.late[request.id] = 0 if sign > 0 else cost
                at.late_lines.note_placed(request.id, is_placed=sign > 0)
        self._state.queue.use(*user, cost, sign, is_awaited=True)
        for holder, amount, _ in self._state.accounts.holders(*user, cost) if replaces else ():
            holder.replacing += sign * amount
        self._state.pools.use(pool, *user, cost, sign)


def _leaves_out(one: Shape, other: Shape) -> bool:
    """Whether all that is left out behind the other, which waits, is left out behind this one."""
    return one.qos == other.qos and one.walltime_ms <= other.walltime_ms and one.takes_in(other)


def _fits_in(feasible: FeasibleShapes, shape: Shape, ahead: Ahead, *, makes_room: bool) -> bool:
    """Whether such a request finds room on a node held for a head, hot or free, and is over before that starts.

    What is hot is room where it `makes_room`.
    """
    for node in (head.held[1] for head in ahead.heads if head.held is not None):
        if not feasible.has_left_on(node, shape):
            continue
        if makes_room and ahead.lets_make_room(node, shape):
            return True
        is_likely = makes_room or is_free(node, shape)
        if is_likely and choose_slots(node, shape, partial(ahead.lets_fill, node, shape)):
            return True
    return False


def has_node(state: State, shape: Shape) -> bool:
    """Whether a connected node that is not drained could hold such a request."""
    return any(node.holds(shape) and not node.is_drained for node in state.nodes.values())
