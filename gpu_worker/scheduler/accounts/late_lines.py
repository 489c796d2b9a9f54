"""The late requests of a project, by what they ask for: many alike are asked about once."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from bulletin.ids import ProjectId, RequestId, UserName
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape


class LateRequest(NamedTuple):
    """What decides whether a late request could start."""

    project: ProjectId
    user: UserName
    walltime_ms: int
    shape: Shape
    since_ms: int  #: where it stands among those that are late
    turn: int  #: below 0 for one that an admin put first


class HeldInside(NamedTuple):
    """A late request of a project that a limit inside that one holds back, for whom its own is kept, too, by then."""

    request: RequestId
    until_ms: int  #: when the limits inside let it through, at the latest
    kept: int  #: what cells that are over by then do not leave it; thousandths of a GPU


class FirstByHand(NamedTuple):
    """A request that an admin put first, for which its project's limit is kept from its own users."""

    request: RequestId
    cost: int
    until_ms: int  #: what is over by then is not in its way


#: Late requests of one project that ask for the same.
Line = tuple[Shape, ProjectId]


class LateLines(msgspec.Struct):
    """A line of each shape and project, the one that is late for the longest time first."""

    lines: dict[Line, dict[RequestId, int]] = msgspec.field(default_factory=dict)  #: each with its number
    requests: dict[RequestId, LateRequest] = msgspec.field(default_factory=dict)
    placed: dict[RequestId, None] = msgspec.field(default_factory=dict)  #: those for which room is made in this walk
    last: int = 0  #: the number of the one that came last

    def add(self, request: RequestId, late: LateRequest) -> None:
        """Put a request behind all others; one that is there asks for this from now on, and keeps its place."""
        number, key = self.discard(request), (late.shape, late.project)
        if number is None:
            self.last += 1
            self.lines.setdefault(key, {})[request] = self.last
        else:
            line = self.lines.get(key, {}) | {request: number}
            self.lines[key] = dict(sorted(line.items(), key=lambda one: one[1]))
        self.requests[request] = late

    def rename(self, request: RequestId, to: RequestId) -> None:
        """Know a request by another name from now on; it keeps its place."""
        late = self.requests[request]
        line = self.lines[late.shape, late.project]
        self.lines[late.shape, late.project] = {to if name == request else name: line[name] for name in line}
        self.requests[to] = self.requests.pop(request)

    def discard(self, request: RequestId) -> int | None:
        """Take a request out, and return its number; None where it was not there."""
        late = self.requests.pop(request, None)
        if late is None:
            return None
        self.placed.pop(request, None)
        key = late.shape, late.project
        line = self.lines[key]
        number = line.pop(request)
        if not line:
            del self.lines[key]
        return number

    def is_alike_before(self, entry: QueueEntry, late: RequestId) -> bool:
        """Whether a request is late, too, asks for the same, and stands before: who is first in line is asked first.

        What is kept for either one is for whoever is asked first: who became late first may stand behind.
        """
        mine, its = self.requests.get(entry.id), self.requests[late]
        is_alike = mine is not None and (mine.shape, mine.project) == (its.shape, its.project)
        return is_alike and entry.key.since_ms <= its.since_ms

    def note_placed(self, request: RequestId, *, is_placed: bool) -> None:
        """Note that room is made for a request, or no longer is."""
        if is_placed and request in self.requests:
            self.placed[request] = None
        else:
            self.placed.pop(request, None)

    def foremost(
        self,
        fits: Callable[[Shape], bool],
        lets_through: Callable[[Shape, ProjectId], bool],
        may_start: Callable[[LateRequest], bool],
    ) -> RequestId | None:
        """Find the one that is late for the longest time of those that cost something, fit, and may start.

        For whom room is made already may. Of a project that lets nobody through that asks for so much nobody is asked.
        """
        found: tuple[int, RequestId] | None = None
        for (shape, project), line in self.lines.items():
            if not shape.cost or not fits(shape):
                continue
            is_open = lets_through(shape, project)
            able = (
                (number, name)
                for name, number in (line.items() if is_open or self.placed else ())
                if name in self.placed or (is_open and may_start(self.requests[name]))
            )
            one = next(able, None)
            found = one if found is None or (one is not None and one < found) else found
        return None if found is None else found[1]

    def first(self, costs: Mapping[RequestId, int], fits: Callable[[Shape], bool]) -> RequestId | None:
        """Find the one that is late for the longest time of those that cost something and whose shape fits."""
        found: tuple[int, RequestId] | None = None
        for (shape, _), line in self.lines.items():
            if not shape.cost:
                continue
            one = next(((number, name) for name, number in line.items() if costs[name] > 0), None)
            if one is not None and (found is None or one < found) and fits(shape):
                found = one
        return None if found is None else found[1]
