"""The atoms of a large array of objects as one piece: compared by their addresses, pickled apart, sent once.

An atom never changes. So an array that holds the very same ones in the same order is as it was, and to see that costs a
digest of addresses. In a stream, each text would have a place of its own, for nothing.
"""

import importlib
import pickle
import sys
import weakref
from itertools import count
from typing import Any

import xxhash

from bulletin.cpython.pickle_memo import dumps_without_memo
from bulletin.cpython.raw_memory import view_of

from .atoms import REPEATED_ATOMS, usual_nan
from .exchange import Buffer

#: An array of fewer goes object by object: that keeps what its objects share with the rest of the value.
MIN_LEAVES = 1000
_KINDS = frozenset({*REPEATED_ATOMS, bool, type(None)})
_serials = count(1)


class Leaves:
    """Atoms in their order. As long as this lives they live, so that their addresses say which they are."""

    __slots__ = ("__weakref__", "items", "serial", "size")

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        #: No other of this process has it.
        self.serial = next(_serials)
        #: How many bytes they are, once they were packed.
        self.size = 0

    def pack(self) -> bytes:
        """Pickle them. What is in there several times is one object for whoever loads it, too."""
        numpy: Any = sys.modules["numpy"]
        addresses = numpy.sort(numpy.frombuffer(_addresses(_as_array(self.items)), numpy.intp))
        has_twice = bool((addresses[1:] == addresses[:-1]).any())
        packed = pickle.dumps(self.items, protocol=5) if has_twice else dumps_without_memo(self.items)
        self.size = len(packed)
        return packed


def load(packed: Buffer) -> Leaves:
    """Load what `pack` gave. A NaN is the object that most people's are."""
    items: list[Any] = pickle.loads(packed)
    if float in set(map(type, items)):
        nan = usual_nan()
        items = [item if item == item else nan for item in items]
    found = _alive.setdefault(_key_of(_as_array(items)), Leaves(items))
    found.size = memoryview(packed).nbytes
    return found


def leaves_of(flat: Any) -> Leaves | None:
    """Return the atoms that a contiguous array of objects holds; None where it holds anything else, or few."""
    if flat.size < MIN_LEAVES:
        return None
    key = _key_of(flat)
    found = _alive.get(key)
    if found is None and _KINDS.issuperset(map(type, items := flat.tolist())):
        found = _alive[key] = Leaves(items)
    return found


#: By the digest of their addresses.
_alive: weakref.WeakValueDictionary[bytes, Leaves] = weakref.WeakValueDictionary()


def _key_of(flat: Any) -> bytes:
    return xxhash.xxh3_128_digest(_addresses(flat))


def _addresses(flat: Any) -> memoryview:
    """Return the memory of a contiguous array of objects: the address of each."""
    return view_of(flat.__array_interface__["data"][0], flat.nbytes)


def _as_array(items: list[Any]) -> Any:
    numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
    return numpy.fromiter(items, dtype=object, count=len(items))
