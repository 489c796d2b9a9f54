"""What a class's own code was given while that was still being filled is given to it once more, when it is whole.

A list that leads to an instance is made before that, and filled after it. A `__setstate__` that copies or counts what
such a list holds meets it empty, and pickle would leave it at that. The sender says how long each container is: what is
shorter when its turn comes is not whole yet.
"""

from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple, TypeAlias

from .atoms import ATOMS
from .encoding import Encoding
from .filling import build
from .inplace import attributes_of, fill_dict
from .load_transaction import LoadTransaction

#: Containers in a state, and how long each of them is where it comes from.
Lengths: TypeAlias = tuple[tuple[Any, ...], tuple[float, ...]]

_MAX_PARTS, _MAX_DEPTH = 200, 3
_KINDS = (list, dict, set, deque)
_PLAIN = frozenset({*_KINDS, tuple, frozenset})


class HalfRead(NamedTuple):
    """Containers that a class's own code met too short, with their lengths, and what gives it its state once more."""

    met: list[tuple[Any, float]]
    again: Callable[[], None]


def set_state(value: Any, state: tuple[LoadTransaction, Any, Lengths]) -> None:
    """Give an instance its state by its class's own `__setstate__`."""
    transaction, own, lengths = state
    give_state(transaction, value, own, lengths)


def give_state(
    transaction: LoadTransaction, value: Any, state: Any, lengths: Lengths, then: Callable[[], object] = lambda: None
) -> None:
    """Give an instance its state and do what is to follow; both once more in `finish` if something was half read."""
    met = [(part, whole) for part, whole in zip(*lengths, strict=True) if _length(part) < whole]
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
    """Give their state once more to those that met containers which have become whole since."""
    noted, transaction.half_read = transaction.half_read, []
    for half_read in noted:
        if any(_length(container) >= whole for container, whole in half_read.met):
            half_read.again()


def lengths_in(encoder: Encoding, state: Any) -> Lengths:
    """Say how long the containers in a state are, not far inside; only what pickle writes as it is is looked into."""
    found: dict[int, Any] = {}
    level, count = [state], 0
    for _ in range(_MAX_DEPTH + 1):
        inside: list[Any] = []
        for part in level:
            kind = type(part)
            if issubclass(kind, _KINDS) and _length(part):
                found[id(part)] = part
            if kind not in _PLAIN and not encoder.goes_plainly(kind):
                continue
            for held in _parts(part):
                count += 1
                if count > _MAX_PARTS:
                    break
                if type(held) not in ATOMS:
                    inside.append(held)
        level = inside
    containers = tuple(found.values())
    return containers, tuple(map(_length, containers))


def _length(container: Any) -> float:
    """Count the items of a container, past what its class makes of `len`; what came as a handle grows no more."""
    kind: Any = next((kind for kind in _KINDS if issubclass(type(container), kind)), None)
    return inf if kind is None else kind.__len__(container)


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
    elif kind in _PLAIN:
        yield from value
    elif not issubclass(kind, type):
        yield from (attributes_of(value) or {}).values()
