"""Which requests a walk down the queue looks at no more, and what it found among the others."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from bulletin.ids import ProjectId, RequestId, UserName
from gpu_worker.scheduler.accounts.account import Account, Rank
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.queue.basis import Basis
from gpu_worker.scheduler.queue.takers import Prospects

T = TypeVar("T")


class NextInTree(msgspec.Struct, frozen=True):
    """Who is next somewhere in the tree."""

    project: ProjectId
    entry: QueueEntry
    is_covered: bool  #: whether the project, or one between it and here, is guaranteed what is asked for
    is_covered_above: bool = False  #: whether one that it is in is, here or further up


class RankedNext(msgspec.Struct, frozen=True):
    """Who is next in a project, and the rank of that among those of the projects beside it."""

    found: NextInTree | None
    rank: Rank
    standing: int | None  #: the credits that the rank counts, if it does
    basis: Basis
    last_ms: int  #: until when it holds if nothing changes but credits
    skips_hopeless: bool = False  #: whether somebody was not looked at who may come first once they are not hopeless
    closings: int = -1  #: how many there were in the walk that it holds for


class Closed:
    """Requests that a walk looks at no more: those of other lanes, then by shape, or by shape in one project."""

    def __init__(self, lane: Lane, shapes: Iterable[Shape] = (), prospects: Prospects | None = None) -> None:
        self.lane, self.prospects = lane, prospects
        self.shapes = {shape for shape in shapes if shape.lane != lane}
        self._hopeless: set[Shape] = set()  #: looked at only where somebody may have to leave for them
        self._taken: set[Shape] = set()  #: the same, of those that a guarantee covers
        self._unfree: set[Shape] = set()  #: the same, of those that borrow
        #: Whether there may be room for somebody. Then a covered request that finds none keeps its project's turn
        #: until it is looked at, so that what is behind it comes no earlier before those of other projects.
        self.has_room_left = True
        self.are_all_hopeless = False  #: whether that is so for all shapes
        self._in_projects: set[tuple[ProjectId, Shape]] = set()
        self.closings = 0  #: how often more was closed
        #: Whether what is found holds in this walk alone: more is closed than other lanes, or shares are looked at.
        self.are_for_shares = self.is_narrowed = prospects is not None and prospects.are_for_shares
        self.known: dict[ProjectId, RankedNext] = {}  #: what was found since then
        #: Whether there may be room for a request, also as a covered one; and how all was when that was found.
        self.room_cache: dict[tuple[RequestId, bool], tuple[tuple[int, int, bool], bool]] = {}

    def close(self, shape: Shape) -> None:
        """Look at no more requests of a shape."""
        self._close(self.shapes, (shape,))

    def close_but_to_takers(self, shapes: Iterable[Shape]) -> None:
        """Look at requests of these shapes only where somebody may have to leave for them."""
        self._close(self._hopeless, shapes)

    def close_covered_but_to_takers(self, shapes: Iterable[Shape]) -> None:
        """Look at covered requests of these shapes only where somebody may have to leave for them."""
        self._close(self._taken, shapes)

    def close_borrowed_but_to_takers(self, shapes: Iterable[Shape]) -> None:
        """Look at requests of these shapes that no guarantee covers only where somebody may have to leave for them."""
        self._close(self._unfree, shapes)

    def close_to_borrowers(self) -> None:
        """Look at requests that no guarantee covers only where there is room, or something may be full."""
        if self.prospects is not None and self.prospects.are_for_borrowers:
            self.prospects.are_for_borrowers = False
            self.closings += 1

    def close_all_but_to_takers(self) -> None:
        """Look at any request only where somebody may have to leave for it."""
        self.closings += not self.are_all_hopeless
        self.are_all_hopeless = self.is_narrowed = True

    def reopen_hopeless(self) -> None:
        """Look at all requests again but those whose shape is closed."""
        self._hopeless.clear()
        self._taken.clear()
        self._unfree.clear()
        self.are_all_hopeless = False
        self.known = {name: one for name, one in self.known.items() if not one.skips_hopeless}

    def is_hopeless(self, shape: Shape) -> bool:
        """Whether a shape is closed but to those for whom somebody may have to leave."""
        return self.are_all_hopeless or shape in self._hopeless

    def is_hopeless_where_covered(self, shape: Shape) -> bool:
        """Whether that is so, or at least for covered requests of the shape."""
        return self.is_hopeless(shape) or shape in self._taken

    def is_hopeless_where_borrowed(self, shape: Shape) -> bool:
        """Whether that is so, or at least for requests of the shape that no guarantee covers."""
        return self.is_hopeless(shape) or shape in self._unfree

    def close_in(self, project: ProjectId, shape: Shape) -> None:
        """Look at no more requests of a shape in a project."""
        self._close(self._in_projects, ((project, shape),))

    def _close(self, closed: set[T], more: Iterable[T]) -> None:
        before = len(closed)
        closed.update(more)
        self.closings += len(closed) > before
        self.is_narrowed = True

    def has(self, project: ProjectId, shape: Shape) -> bool:
        """Whether requests of a shape in a project are looked at no more."""
        return shape in self.shapes or (project, shape) in self._in_projects

    def select(self, account: Account) -> list[tuple[UserName, Shape]]:
        """List those of a project's own users who are first with a request of a shape, without those closed."""
        name, shapes, here = account.project.id, self.shapes, self._in_projects
        open_ = [(user, shape) for _, user, shape in account.firsts if shape not in shapes]
        return [one for one in open_ if (name, one[1]) not in here] if here else open_

    def has_all(self, shapes: Iterable[Shape]) -> bool:
        """Whether all these shapes are closed in all projects."""
        return self.shapes.issuperset(shapes)
