"""Reference counts: which objects a pickler's stream alone holds, and whose own dict somebody else holds too.

How many references a loop holds itself (the variable, the argument of the call) differs between versions of Python, so
it is measured when this module is imported, in loops of the same form as those that count.
"""

import sys
from collections.abc import Iterable, Mapping, Set as AbstractSet
from typing import Any

from .class_layout import holds_slots_only


def _count_in_a_loop() -> int:
    """Measure the reference count that a loop like those below sees of an object in the list of nodes alone."""
    nodes = [object()]
    count_of = sys.getrefcount
    for memo_index in range(1):
        value = nodes[memo_index]
        found = count_of(value)
    return found


#: Of what the list of nodes and the pickler's memo hold, and nobody else: in a loop, and counted by `map`.
HELD_BY_STREAM = _count_in_a_loop() + 1
HELD_BY_STREAM_MAPPED = min(map(sys.getrefcount, [object()])) + 1
#: Of an instance's own dict once the memo is cleared: the instance and the variable hold it.
HELD_BY_INSTANCE = HELD_BY_STREAM - 1


def is_held_elsewhere(value: object) -> bool:
    """Tell whether anybody holds a value besides the one variable of the caller's that it comes from."""
    return sys.getrefcount(value) > _HELD_BY_CALLER


def _count_for_a_caller() -> int:
    """Measure the reference count that a function sees of an object that a variable of its caller holds alone."""

    def count_of(value: object) -> int:
        return sys.getrefcount(value)

    made = object()
    return count_of(made)


_HELD_BY_CALLER = _count_for_a_caller()


def take_out_temporaries(nodes: list[object], root: object, besides: Mapping[int, int]) -> bool:
    """Set to None the nodes that nobody but the stream holds, and then those that only these have held.

    Called while the memo of the pickler is full.

    Parameters
    ----------
    nodes
        The objects of the stream by their place. Changed.
    root
        Never taken out.
    besides
        By the id of an object, how many of ours hold it besides: regions of memory, notes of reducers.

    Returns
    -------
    bool
        Whether there were objects of C code among them: what only such a one held shows when it is gone, so
        `take_out_unheld` is to be called once the memo is cleared.
    """
    counts, most = list(map(sys.getrefcount, nodes)), HELD_BY_STREAM_MAPPED + max(besides.values(), default=0)
    if min(counts) > most:  # mostly, and this is quick to see
        return False
    temporary: list[object] = []
    for memo_index in [memo_index for memo_index, count in enumerate(counts) if count <= most]:
        value = nodes[memo_index]
        if value is not root and counts[memo_index] <= HELD_BY_STREAM_MAPPED + besides.get(id(value), 0):
            temporary.append(value)
            nodes[memo_index] = None
    value = None
    return bool(temporary) and _take_out_their_parts(nodes, temporary, besides)


def _take_out_their_parts(nodes: list[object], temporary: list[object], besides: Mapping[int, int]) -> bool:
    """Set to None the nodes that only temporary containers hold; uses up `temporary`.

    Returns True if some of the containers were of C code, which does not show what it holds.
    """
    has_opaque = False
    memo_indexes: dict[int, int] = {}
    inside: dict[int, int] = {}
    count_of = sys.getrefcount
    while temporary:
        container: Any = temporary.pop()
        kind = type(container)
        own = None
        if kind in {list, tuple, set, frozenset}:
            parts: Any = container
        elif kind is dict:
            parts = container.values()
        else:
            own = getattr(container, "__dict__", None)
            has_opaque = has_opaque or own is None or not holds_slots_only(kind, 0)
            parts = () if own is None else (own,)
        del container
        if parts and not memo_indexes:
            memo_indexes.update(zip(map(id, nodes), range(len(nodes)), strict=True))
        if own is not None and id(own) not in memo_indexes:  # its class says itself what goes: parts go on their own
            parts = own.values()
        own = None
        for part in parts:
            memo_index = memo_indexes.get(id(part))
            if memo_index is None or nodes[memo_index] is None:
                continue
            seen = inside[id(part)] = inside.get(id(part), 0) + 1
            if count_of(part) <= HELD_BY_STREAM + seen + besides.get(id(part), 0):
                nodes[memo_index] = None
                temporary.append(part)
        part = parts = None
    return has_opaque


def take_out_unheld(nodes: list[object], root: object, besides: Mapping[int, int]) -> None:
    """Set to None the nodes that nothing but `nodes` holds, and then those that only these have held.

    Called once the memo of the pickler is cleared.
    """
    count_of = sys.getrefcount
    has_found = True
    while has_found:
        has_found = False
        for memo_index in range(len(nodes)):
            value = nodes[memo_index]
            if value is not root and value is not None and count_of(value) < HELD_BY_STREAM + besides.get(id(value), 0):
                nodes[memo_index] = None
                has_found = True
        value = None


def find_dict_sharers(nodes: list[object], kinds: AbstractSet[type], known: AbstractSet[int]) -> set[int]:
    """Find the ids of instances whose own dict somebody else holds too, as `vars(x)`; none of those in `known`.

    Sets to None the nodes that are the own dict of the instance before them: it is found through its instance. Called
    once the memo of the pickler is cleared.

    Parameters
    ----------
    nodes
        The objects of the stream by their place. Changed.
    kinds
        The types whose instances are asked.
    known
        Ids of instances that are not asked.
    """
    found: set[int] = set()
    count_of = sys.getrefcount
    if not kinds or kinds.isdisjoint(map(type, nodes)):
        return found
    held = None
    last = len(nodes) - 1
    for memo_index, value in enumerate(nodes):
        if type(value) in kinds and id(value) not in known:
            held = getattr(value, "__dict__", None)
            if held is None:
                continue
            if memo_index < last and nodes[memo_index + 1] is held:  # pickle goes on with it
                nodes[memo_index + 1] = None
            if count_of(held) > HELD_BY_INSTANCE:
                found.add(id(value))
    return found


def add_unshared(instances: Iterable[Any], sizes: list[int], found: list[object]) -> bool:
    """Add what each of these instances has in its own dict; return False where somebody else holds such a dict, too.

    Parameters
    ----------
    instances
        Of classes whose instances are all attributes.
    sizes, found
        Lists that the sizes of the dicts, and the types, keys and values, are added to.
    """
    count_of = sys.getrefcount
    for value in instances:
        held = value.__dict__
        if count_of(held) > HELD_BY_INSTANCE:
            return False
        sizes.append(len(held))
        found += (type(value), type(held))
        found += held
        found += held.values()
    return True
