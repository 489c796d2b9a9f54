"""What a class's own code was given while that was still being filled is given to it once more, when it is whole.

A list that leads to an instance is made before that, and filled after it. A `__setstate__` that copies or counts what
such a list holds meets it empty, and pickle would leave it at that.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .atoms import ATOMS
from .filling import build
from .inplace import attributes_of, fill_dict
from .load_transaction import LoadTransaction

#: Pickle fills containers in batches of this length: one of another length is whole.
_BATCH = 1000
_MAX_PARTS, _MAX_DEPTH = 200, 3
_KINDS = (list, dict, set, deque)


class HalfRead(NamedTuple):
    """Containers with their lengths as a class's own code met them, and what gives it its state once more."""

    met: list[tuple[Any, int]]
    again: Callable[[], None]


def set_state(value: Any, state: tuple[LoadTransaction, Any]) -> None:
    """Give an instance its state by its class's own `__setstate__`."""
    transaction, own = state
    give_state(transaction, value, own)


def give_state(transaction: LoadTransaction, value: Any, state: Any, then: Callable[[], object] = lambda: None) -> None:
    """Give an instance its state and do what is to follow; both once more in `finish` if something was half read."""
    met = find_unfilled(state)
    before = dict(state) if met and type(state) is dict else None
    build(value, state, transaction.namespace)
    then()

    def again() -> None:
        if before is not None:  # it may have taken something out
            fill_dict(state, before)
        build(value, state, transaction.namespace)
        then()

    if met:
        transaction.half_read.append(HalfRead(met, again))


def finish(transaction: LoadTransaction) -> None:
    """Give their state once more to those that met containers which have grown since."""
    noted, transaction.half_read = transaction.half_read, []
    for half_read in noted:
        if any(_length(container) != length for container, length in half_read.met):
            half_read.again()
    transaction.half_read.clear()


def find_unfilled(state: Any) -> list[tuple[Any, int]]:
    """List the containers in a state, not far inside, that may be filled yet, with their lengths."""
    found: list[tuple[Any, int]] = []
    level, count = [state], 0
    for _ in range(_MAX_DEPTH):
        inside: list[Any] = []
        for part in level:
            found += _as_unfilled(part)
            for held in _parts(part):
                count += 1
                if type(held) not in ATOMS:
                    inside.append(held)
                if count > _MAX_PARTS:
                    return found
        level = inside
    return found + [met for part in level for met in _as_unfilled(part)]


def _as_unfilled(value: Any) -> list[tuple[Any, int]]:
    """Return a container that may be filled yet and its length, in a list; none for what is whole."""
    length = _length(value) if issubclass(type(value), _KINDS) else None
    return [(value, length)] if length is not None and length % _BATCH == 0 else []


def _length(container: Any) -> int:
    """Count the items of a container, past what its class makes of `len`."""
    kind: Any = next(kind for kind in _KINDS if issubclass(type(container), kind))
    length: int = kind.__len__(container)
    return length


def leads_to(root: Any, target: object) -> bool:
    """Tell whether a value is found inside a container, not far; only plain containers and attributes are looked at."""
    level, count = [root], 0
    visited = {id(root)}
    while level and count <= _MAX_PARTS:
        inside: list[Any] = []
        for part in level:
            for held in _parts(part):
                count += 1
                if held is target:
                    return True
                if count > _MAX_PARTS:
                    return False
                if type(held) not in ATOMS and id(held) not in visited:
                    visited.add(id(held))
                    inside.append(held)
        level = inside
    return False


def _parts(value: Any) -> Iterator[Any]:
    kind = type(value)
    if kind is dict:
        yield from value.values()
    elif kind in (list, tuple, set, frozenset, deque):
        yield from value
    elif not issubclass(kind, type):
        yield from (attributes_of(value) or {}).values()
