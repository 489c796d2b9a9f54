"""The late requests of a project, by what they ask for: many alike are asked about once."""

from collections.abc import Callable, Mapping

import msgspec

from bulletin.ids import RequestId
from gpu_worker.scheduler.leases.shapes import Shape


class LateLines(msgspec.Struct):
    """A line of each shape, the one that is late for the longest time first."""

    lines: dict[Shape, dict[RequestId, int]] = msgspec.field(default_factory=dict)  #: each with its number
    shapes: dict[RequestId, Shape] = msgspec.field(default_factory=dict)
    last: int = 0  #: the number of the one that came last

    def add(self, request: RequestId, shape: Shape) -> None:
        """Put a request behind all others; one that is there has the shape from now on, and keeps its place."""
        number = self.discard(request)
        if number is None:
            self.last += 1
            self.lines.setdefault(shape, {})[request] = self.last
        else:
            line = self.lines.get(shape, {}) | {request: number}
            self.lines[shape] = dict(sorted(line.items(), key=lambda one: one[1]))
        self.shapes[request] = shape

    def discard(self, request: RequestId) -> int | None:
        """Take a request out, and return its number; None where it was not there."""
        shape = self.shapes.pop(request, None)
        if shape is None:
            return None
        line = self.lines[shape]
        number = line.pop(request)
        if not line:
            del self.lines[shape]
        return number

    def foremost(self) -> RequestId | None:
        """Find the one that is late for the longest time of those that cost something."""
        firsts = [next(iter(line.items())) for shape, line in self.lines.items() if shape.cost]
        return min(firsts, key=lambda one: one[1])[0] if firsts else None

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
