"""Nodes that were in the pool before the scheduler was started: until they are back, nobody can say what none has."""

from collections.abc import Iterable


class AwaitedNodes:
    """Those that are not back yet, and for how long they may come."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self.until_ms: int | None = None  #: None: nobody waits for any
        self.has_gpus = False  #: whether a GPU is to come back with them

    def __bool__(self) -> bool:
        return self.until_ms is not None

    @property
    def names(self) -> tuple[str, ...]:
        """List those that are not back yet."""
        return tuple(self._names)

    def expect(self, names: Iterable[str], until_ms: int, *, has_gpus: bool = False) -> None:
        """Wait for these nodes until then, and for no others."""
        self._names = dict.fromkeys(names)
        self.until_ms = until_ms if self._names else None
        self.has_gpus = has_gpus and bool(self._names)

    def note(self, name: str) -> None:
        """Note that a node is there."""
        self._names.pop(name, None)

    def pop_over(self, now_ms: int) -> bool:
        """Wait no longer if all are back, or the time is over; tell whether that is since now."""
        if self.until_ms is None or (self._names and now_ms < self.until_ms):
            return False
        self.expect((), now_ms)
        return True
