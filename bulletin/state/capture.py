"""The notebook's side before a cell: what the cell needs, in one stream."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from bulletin.errors import CannotSend

from . import ambient, names
from .codec import Encoder, Writer
from .needs import Needs
from .reducers import arrays
from .report import Stayed, locate


@dataclass(frozen=True, slots=True)
class Captured:
    """Values on their way: a stream, the large buffers beside it, and what was left behind.

    The buffers are the values' own memory. Whoever waits for an answer keeps the whole: the answer refers to it.
    `remote`, of `changes` only, is what the executor keeps for its next `restore`: name -> value that cannot travel.
    """

    stream: bytes
    buffers: list[memoryview]
    names: dict[str, int]
    stayed: list[Stayed]
    values: Mapping[str, object] = field(default_factory=dict, repr=False)
    definitions: Mapping[str, object] = field(default_factory=dict, repr=False)
    remote: Mapping[str, object] = field(default_factory=dict, repr=False)


def capture(namespace: dict[str, Any], needs: Needs, *, wanted: Collection[str] = ()) -> Captured:
    """What the cell needs, with all that its functions and classes look up in their turn.

    Parameters
    ----------
    namespace, needs
        The notebook's, and what `needs` says of the cell.
    wanted
        Names to send as well, as if the cell read them.

    Returns
    -------
    Captured
        `names` has each name with its size in bytes. `stayed` has names that only a function or a dynamic look-up might
        ask for, and that cannot travel.

    Raises
    ------
    CannotSend
        If a name that the cell reads itself cannot travel.
    """
    direct = [name for name in dict.fromkeys((*needs.reads, *wanted)) if name in namespace and name not in names.FIXED]
    plan = _Plan(namespace, frozenset(name for name in direct if not names.is_history(name)))
    plan.add(direct)
    if needs.everything:
        plan.add(names.users(namespace))
    while True:
        captured = plan.attempt()
        if captured is not None:
            return captured


class _Plan:
    """Names to send, refined by trying: an attempt finds names that are needed too, or cannot go, or share memory."""

    def __init__(self, namespace: dict[str, Any], direct: frozenset[str]) -> None:
        self._namespace = namespace
        self._direct = direct
        self._names: dict[str, None] = {}
        self._stayed: dict[str, Stayed] = {}
        self._shared: dict[int, tuple[int, int]] = {}

    def add(self, found: Iterable[str]) -> None:
        """Send these as well. The class of a value goes before it."""
        for name in found:
            value = self._namespace[name]
            cls = type(value).__name__
            if type(value).__module__ == "__main__" and self._namespace.get(cls) is type(value):
                self._names[cls] = None
            self._names[name] = None

    def attempt(self) -> Captured | None:
        """The stream; or None, with the plan improved. Each None adds a name, a loss or a window, so attempts end."""
        writer = Writer(self._namespace, shared=self._shared)
        encoder = writer.encoder
        sizes: dict[str, int] = {}
        queue = deque(sorted(self._names, key=lambda name: not is_definition(self._namespace[name])))
        is_late = False
        while queue:
            name = queue.popleft()
            if name in sizes or name in self._stayed:
                continue
            value = self._namespace[name]
            writer.write(("name", name))
            try:
                sizes[name] = writer.write(value)
            except Exception as problem:  # noqa: BLE001  whatever a value's own code raises means that it cannot travel
                self._leave(name, value, problem)
                return None
            found = names.users(self._namespace) if encoder.is_dynamic else list(encoder.names)
            before = len(self._names)
            self.add(other for other in found if other not in self._names and other not in names.FIXED)
            new = list(self._names)[before:]
            queue.extendleft(
                sorted(new, key=lambda name: is_definition(self._namespace[name]))
            )  # so definitions come first
            is_late |= bool(new) and not is_definition(value)
        overlaps = arrays.overlaps(encoder.owners)
        if is_late or overlaps.keys() - self._shared.keys():
            self._shared = overlaps
            return None
        writer.write(None)
        writer.write(
            {"ambient": ambient.out(), "sources": ambient.sources(encoder.files), "buffers": len(writer.buffers)}
        )
        values = {name: self._namespace[name] for name in sizes}
        return Captured(writer.close(), writer.buffers, sizes, list(self._stayed.values()), values, encoder.definitions)

    def _leave(self, name: str, value: object, problem: Exception) -> None:
        """Leave out a name that cannot travel, and at once all others of which the same is true."""
        stayed = explain(self._namespace, name, value, problem)
        if name in self._direct:
            raise CannotSend(name, stayed.path, stayed.kind) from problem
        self._stayed[name] = stayed
        for other in self._names:
            held = self._namespace[other]
            if (
                other not in self._stayed
                and other not in self._direct
                and (why := problem_of(self._namespace, held)) is not None
            ):
                self._stayed[other] = explain(self._namespace, other, held, TypeError(why))


def is_definition(value: object) -> bool:
    """True for what goes first: other values may need it while they are made."""
    return isinstance(value, ModuleType | FunctionType | type)


class _Nowhere:
    def write(self, data: bytes, /) -> None:
        """Forget the bytes: only whether they can be made is asked."""


def problem_of(namespace: Mapping[str, object], value: object) -> str | None:
    """Why a value cannot be pickled; None if it can."""
    try:
        Encoder(namespace, _Nowhere(), lambda _: None).dump(value)
    except Exception as problem:  # noqa: BLE001  whatever a value's own code raises means that it cannot travel
        return str(problem) or type(problem).__name__
    return None


def explain(namespace: Mapping[str, object], name: str, value: object, problem: Exception) -> Stayed:
    """Where the offender is."""
    found = locate(name, value, lambda part: problem_of(namespace, part))
    return found if found.why else Stayed(found.name, found.kind, found.path, str(problem))
