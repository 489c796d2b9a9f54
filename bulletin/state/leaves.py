"""The atoms of a large container as one piece: compared by their addresses, pickled apart, sent once.

An atom never changes. So an array, list, dict or set that holds the very same ones in the same order is as it was, and
to see that costs a digest of addresses. In a stream, each text would have a place of its own, for nothing.
"""

import pickle
import sys
import weakref
from collections.abc import Collection
from itertools import count, islice
from typing import Any

import xxhash

from bulletin.cpython.pickle_memo import dumps_without_memo
from bulletin.cpython.raw_memory import addresses_in, view_of

from .atoms import REPEATED_ATOMS, usual_nan
from .exchange import Buffer

#: A container of fewer goes object by object: that keeps what its objects share with the rest of the value.
MIN_LEAVES = 1000
#: What is made of leaves before the rest of a stream is read, by the number that says so there.
CONTAINERS: tuple[type, ...] = (list, dict, set)
_LOOKED_INTO: frozenset[type] = frozenset({*CONTAINERS, tuple})
#: So many containers of a value are looked at for large ones; the others go object by object.
_MOST_LOOKED_AT = 1000
#: Where none of the first is a text, pickle alone is as fast.
_FIRST = 100
_TEXTS = frozenset({str, bytes})
_KINDS = frozenset({*REPEATED_ATOMS, bool, type(None)})
#: Of a dict or a set, whatever tells one from another: two NaN would become one.
_KEYS = _KINDS - {float, complex}
_serials = count(1)


class Leaves:
    """Atoms in their order. As long as this lives they live, so that their addresses say which they are."""

    __slots__ = ("__weakref__", "items", "kinds", "serial", "size")

    def __init__(self, items: tuple[Any, ...], kinds: frozenset[type]) -> None:
        self.items, self.kinds = items, kinds
        #: No other of this process has it.
        self.serial = next(_serials)
        #: How many bytes they are, once they were packed.
        self.size = 0

    def pack(self) -> bytes:
        """Pickle them. What is in there several times is one object for whoever loads it, too."""
        items = list(self.items)
        packed = pickle.dumps(items, protocol=5) if _may_have_twice(self.items) else dumps_without_memo(items)
        self.size = len(packed)
        return packed


def load(packed: Buffer) -> Leaves:
    """Load what `pack` gave. A NaN is the object that most people's are."""
    items: list[Any] = pickle.loads(packed)
    if float in set(map(type, items)):
        items = [item if item == item else usual_nan() for item in items]
    found = _known(tuple(items))
    assert found is not None
    found.size = memoryview(packed).nbytes
    return found


def leaves_of(flat: Any) -> Leaves | None:
    """Return the atoms that a contiguous array of objects holds; None where it holds anything else, or few."""
    if flat.size < MIN_LEAVES:
        return None
    found = _alive.get(xxhash.xxh3_128_digest(view_of(flat.__array_interface__["data"][0], flat.nbytes)))
    return found or _known(tuple(flat.tolist()))


def find_in(root: object, skipped: Collection[int]) -> list[tuple[Any, list[Leaves]]]:
    """Find the large lists, dicts and sets of texts that a value is, or has in its containers, with their atoms.

    Containers of these ids are not looked into; nor are instances.
    """
    found: list[tuple[Any, list[Leaves]]] = []
    waiting: list[Any] = [root]
    seen = set(skipped)
    while waiting and len(seen) < _MOST_LOOKED_AT:
        value = waiting.pop()
        if type(value) not in _LOOKED_INTO or id(value) in seen:
            continue
        seen.add(id(value))
        if len(value) >= MIN_LEAVES and type(value) is not tuple:
            leaves = _of_container(value)
            if leaves:
                found.append((value, leaves))
                continue
        if len(value) <= _MOST_LOOKED_AT:
            parts = value.values() if type(value) is dict else value
            waiting += [part for part in parts if type(part) in _LOOKED_INTO]
    return found


def _of_container(value: Any) -> list[Leaves]:
    """Return the atoms of a list or a set, or the keys and the values of a dict; nothing where it holds others, too."""
    parts = (value, value.values()) if type(value) is dict else (value,)
    if all(_TEXTS.isdisjoint(map(type, islice(part, _FIRST))) for part in parts):
        return []
    kinds = _KINDS if type(value) is list else _KEYS
    found = [_known(tuple(value), kinds)]
    if type(value) is dict and found[0] is not None:
        found.append(_known(tuple(value.values())))
    return [leaves for leaves in found if leaves is not None] if None not in found else []


#: By the digest of their addresses.
_alive: weakref.WeakValueDictionary[bytes, Leaves] = weakref.WeakValueDictionary()


def _known(items: tuple[Any, ...], wanted: frozenset[type] = _KINDS) -> Leaves | None:
    """Return the leaves that these items are, if they are atoms of these kinds."""
    key = xxhash.xxh3_128_digest(addresses_in(items))
    found = _alive.get(key)
    if found is None:
        kinds = frozenset(map(type, items))
        if not kinds <= wanted:
            return None
        found = _alive[key] = Leaves(items, kinds)
    return found if found.kinds <= wanted else None


def _may_have_twice(items: tuple[Any, ...]) -> bool:
    """Tell whether an item is there several times; True where finding it out would take longer than it saves."""
    numpy: Any = sys.modules.get("numpy")
    if not hasattr(numpy, "sort"):
        return True
    addresses = numpy.sort(numpy.frombuffer(addresses_in(items), numpy.intp))
    return bool((addresses[1:] == addresses[:-1]).any())
