"""The late requests of a project, by what they ask for: many alike are asked about once."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from bulletin.ids import ProjectId, RequestId, UserName
from gpu_worker.scheduler.leases.shapes import Shape


class LateRequest(NamedTuple):
    """What decides whether a late request could start."""

    project: ProjectId
    user: UserName
    walltime_ms: int
    shape: Shape


class HeldInside(NamedTuple):
    """A late request of a project that a limit inside that one holds back, for whom its own is kept, too, by then."""

    request: RequestId
    until_ms: int  #: when the limits inside let it through, at the latest
    kept: int  #: what cells that are over by then do not leave it; thousandths of a GPU


class LateLines(msgspec.Struct):
    """A line of each shape, the one that is late for the longest time first."""

    lines: dict[Shape, dict[RequestId, int]] = msgspec.field(default_factory=dict)  #: each with its number
    requests: dict[RequestId, LateRequest] = msgspec.field(default_factory=dict)
    last: int = 0  #: the number of the one that came last

    def add(self, request: RequestId, late: LateRequest) -> None:
        """Put a request behind all others; one that is there asks for this from now on, and keeps its place."""
        number, shape = self.discard(request), late.shape
        if number is None:
            self.last += 1
            self.lines.setdefault(shape, {})[request] = self.last
        else:
            line = self.lines.get(shape, {}) | {request: number}
            self.lines[shape] = dict(sorted(line.items(), key=lambda one: one[1]))
        self.requests[request] = late

    def discard(self, request: RequestId) -> int | None:
        """Take a request out, and return its number; None where it was not there."""
        late = self.requests.pop(request, None)
        if late is None:
            return None
        shape = late.shape
        line = self.lines[shape]
        number = line.pop(request)
        if not line:
            del self.lines[shape]
        return number

    def foremost(
        self, fits: Callable[[Shape], bool], may_start: Callable[[RequestId, LateRequest], bool]
    ) -> RequestId | None:
        """Find the one that is late for the longest time of those that cost something, fit, and may start."""
        found: tuple[int, RequestId] | None = None
        for shape, line in self.lines.items():
            if not shape.cost or not fits(shape):
                continue
            able = ((number, name) for name, number in line.items() if may_start(name, self.requests[name]))
            one = next(able, None)
            found = one if found is None or (one is not None and one < found) else found
        return None if found is None else found[1]

    def first(self, costs: Mapping[RequestId, int], fits: Callable[[Shape], bool]) -> RequestId | None:
        """Find the one that is late for the longest time of those that cost something and whose shape fits."""
        found: tuple[int, RequestId] | None = None
        for shape, line in self.lines.items():
            if not shape.cost:
                continue
            one = next(((number, name) for name, number in line.items() if costs[name] > 0), None)
            if one is not None and (found is None or one < found) and fits(shape):
                found = one
        return None if found is None else found[1]
