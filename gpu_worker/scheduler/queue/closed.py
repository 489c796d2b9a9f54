"""Which requests a walk down the queue looks at no more, and what it found among the others."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from bulletin.ids import ProjectId
from gpu_worker.scheduler.accounts.account import Account, Rank
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape


class NextInTree(NamedTuple):
    """Who is next somewhere in the tree."""

    project: ProjectId
    entry: QueueEntry
    is_covered: bool  #: whether the project, or one between it and here, is guaranteed what is asked for
    is_covered_above: bool = False  #: whether one that it is in is, here or further up


class RankedNext(NamedTuple):
    """Who is next in a project, and the rank of that among those of the projects beside it."""

    found: NextInTree | None
    rank: Rank
    standing: int | None  #: the credits that the rank counts, if it does
    changes: int  #: of the tree and of all, when this was found
    last_ms: int  #: until when it holds if nothing changes but credits


class Prospects(Protocol):
    """Who might find a running cell to take."""

    @property
    def are_for_shares(self) -> bool:
        """Whether those who borrow might, too, in this step."""

    def has(self, account: Account, entry: QueueEntry, *, is_covered: bool) -> bool:
        """Whether there may be a cell for a request of this project."""


class Closed:
    """Requests that a walk looks at no more: those of other lanes, then by shape, or by shape in one project."""

    def __init__(self, lane: Lane, shapes: Iterable[Shape] = (), prospects: Prospects | None = None) -> None:
        self.lane, self.prospects = lane, prospects
        self.shapes = {shape for shape in shapes if shape.lane != lane}
        self._hopeless: set[Shape] = set()  #: looked at only where somebody may have to leave for them
        self._in_projects: set[tuple[ProjectId, Shape]] = set()
        self.is_narrowed = False  #: whether more is closed than other lanes
        self.known: dict[ProjectId, RankedNext] = {}  #: what was found since then

    def close(self, shape: Shape) -> None:
        """Look at no more requests of a shape."""
        self.shapes.add(shape)
        self.is_narrowed = True

    def close_but_to_takers(self, shapes: Iterable[Shape]) -> None:
        """Look at requests of these shapes only where somebody may have to leave for them."""
        self._hopeless.update(shapes)
        self.is_narrowed = True

    def reopen_hopeless(self) -> None:
        """Look at all requests again but those whose shape is closed."""
        self._hopeless.clear()
        self.known.clear()

    def is_hopeless(self, shape: Shape) -> bool:
        """Whether a shape is closed but to those for whom somebody may have to leave."""
        return shape in self._hopeless

    def are_hopeless(self, shapes: Iterable[Shape]) -> bool:
        """Whether all these shapes are closed, at least to those for whom nobody leaves."""
        return bool(self._hopeless) and all(shape in self._hopeless or shape in self.shapes for shape in shapes)

    def close_in(self, project: ProjectId, shape: Shape) -> None:
        """Look at no more requests of a shape in a project."""
        self._in_projects.add((project, shape))
        self.is_narrowed = True

    def has(self, project: ProjectId, shape: Shape) -> bool:
        """Whether requests of a shape in a project are looked at no more."""
        return shape in self.shapes or (project, shape) in self._in_projects

    def has_all(self, shapes: Iterable[Shape]) -> bool:
        """Whether all these shapes are closed in all projects."""
        return self.shapes.issuperset(shapes)
