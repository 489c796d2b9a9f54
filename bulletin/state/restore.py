"""Both sides' arrival of values: the executor's before a cell, the notebook's after it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bulletin.errors import CannotReturn, CannotSend

from . import ambient, names
from .capture import Captured, is_definition
from .changes import Baseline
from .codec import Buffer, Damaged, Reader
from .landing import Landing
from .report import Stayed, kind_of

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Applied:
    """What a cell has done to the notebook."""

    bound: tuple[str, ...]
    deleted: tuple[str, ...]
    extra: dict[str, Any]
    stayed: list[Stayed]


def restore(
    stream: Buffer,
    buffers: Sequence[Buffer],
    namespace: dict[str, Any],
    *,
    keep: Collection[str] = frozenset(),
    remote: Mapping[str, object] | None = None,
) -> Baseline:
    """Make the executor's namespace that of the notebook, as far as it came; what did not come is absent.

    Parameters
    ----------
    stream, namespace
        What `capture` made, and the executor's namespace.
    buffers
        They become the memory of arrays; read-only ones are copied first.
    keep
        Names of the executor's own, left alone.
    remote
        `Captured.remote` of the last `changes`: values that could not travel, bound where none came under their name.

    Returns
    -------
    Baseline
        For `changes` after the cell.

    Raises
    ------
    CannotSend
        If a value cannot be loaded here. The namespace is then of no use.
    """
    kept = frozenset(keep)
    for name in names.users(namespace, kept):
        if not is_definition(namespace[name]):
            del namespace[name]
    landing = Landing(namespace, remote)
    arrival = _Arrival(landing, {})
    try:
        arrival.read(stream, buffers)
        landing.commit()
    except Exception as problem:
        kind = f"value that cannot be loaded there ({_said(problem)})"
        raise CannotSend(arrival.at, arrival.at, kind) from problem
    for name in names.users(namespace, kept):
        if name not in arrival.bound:
            del namespace[name]
    came = {name: namespace[name] for name in arrival.bound if names.is_users(name)}
    for name, value in landing.remote.items():
        namespace.setdefault(name, value)
    ambient.settle(arrival.tail["ambient"], is_overlay=True)
    ambient.learn_sources(arrival.tail["sources"])
    return Baseline(namespace, came, kept, landing, arrival.tail["ambient"])


def apply(
    stream: Buffer,
    buffers: Sequence[Buffer],
    namespace: dict[str, Any],
    *,
    sent: Captured | None = None,
    handle: Callable[[Stayed], object] | None = None,
) -> Applied:
    """Take what a cell changed into the notebook: all of it, or nothing.

    Parameters
    ----------
    stream, buffers, namespace
        What `changes` made, and the notebook's namespace.
    sent
        What `capture` gave for this cell, so that the answer's references mean the values that were sent, even if a
        name has been bound anew since.
    handle
        What to bind to a name whose value stayed. Without it the name is unbound, since its old value is false.

    Raises
    ------
    CannotReturn
        If something cannot be loaded here. The namespace, its functions and classes are then as before.
    """
    landing = Landing(namespace)
    arrival = _Arrival(landing, sent.values if sent is not None else namespace)
    try:
        arrival.read(stream, buffers)
        landing.commit()
    except BaseException as problem:
        arrival.undo()
        if not isinstance(problem, Exception):
            raise
        raise CannotReturn(arrival.at, _said(problem)) from problem
    tail = arrival.tail
    for name in tail["deleted"]:
        namespace.pop(name, None)
    for stayed in tail["unbound"]:
        if handle is not None:
            namespace[stayed.name] = handle(stayed)
        else:
            namespace.pop(stayed.name, None)
    ambient.settle(tail["ambient"], is_overlay=False)
    ambient.learn_sources(tail["sources"])
    return Applied(tuple(arrival.bound), tuple(tail["deleted"]), arrival.extra, tail["stayed"])


class _Arrival:
    """Reads the records of a stream into a namespace, and can take it back.

    Names are bound as they come: code of the user's may run while later values load, and look them up.
    """

    def __init__(self, landing: Landing, held: Mapping[str, object]) -> None:
        self._landing = landing
        self._held = held
        self._before: dict[str, object] = {}
        self.at = ""  # the name whose value is being read
        self.bound: dict[str, None] = {}
        self.extra: dict[str, Any] = {}
        self.tail: dict[str, Any] = {}

    def read(self, stream: Buffer, buffers: Sequence[Buffer]) -> None:
        namespace = self._landing.namespace
        reader = Reader(stream, buffers, namespace, self._landing, self._held)
        while (key := reader.read()) is not None:
            what, name = key
            self.at = name if what == "name" else ""
            value = reader.read()
            if what == "name":
                self._before[name] = namespace.get(name, _ABSENT)
                self._bind(name, value)
            elif what == "extra":
                self.extra[name] = value
        self.at = ""
        self.tail = reader.read()
        if self.tail["buffers"] != len(buffers):
            raise Damaged(f"{self.tail['buffers']} buffers were sent, {len(buffers)} came")

    def _bind(self, name: str, value: Any) -> None:
        """IPython holds on to the containers of its history, so those are filled and not replaced."""
        namespace = self._landing.namespace
        own = namespace.get(name)
        if name in names.HISTORY and isinstance(own, dict) and isinstance(value, dict):
            own.update(value)
        elif name in names.HISTORY and isinstance(own, list) and isinstance(value, list):
            own[:] = value
        else:
            namespace[name] = value
            self.bound[name] = None

    def undo(self) -> None:
        """Bind the names that were read to what they were."""
        namespace = self._landing.namespace
        for name, value in self._before.items():
            if value is _ABSENT:
                namespace.pop(name, None)
            else:
                namespace[name] = value


def _said(problem: BaseException) -> str:
    text = " ".join(str(problem).split()) or kind_of(problem)
    return text if isinstance(problem, Damaged | LookupError) else f"{type(problem).__name__}: {text}"
