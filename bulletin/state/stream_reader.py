"""The fast way to read a stream of which this side has nothing yet, and what can be said of its value at once."""

import builtins
import io
import pickle
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import xxhash

from bulletin.cpython import pickle_memo

from . import half_read
from .calling_frame import call_from
from .encoder import FIRST_PLACE, PREAMBLE, Encoder
from .exchange import Buffer
from .load_transaction import LoadTransaction, Namespace
from .memory import Region
from .table import ABSENT, Unit
from .witness_walk import Walk


class Reader(pickle.Unpickler):
    """Loads a stream of which this side has nothing yet."""

    def __init__(self, data: bytes, namespace: Namespace, transaction: LoadTransaction) -> None:
        super().__init__(io.BytesIO(data))
        self._ground = (namespace, transaction, vars(builtins))

    def persistent_load(self, pid: Any) -> object:
        """Return what stands here for the sender's namespace (0), transaction (1), built-ins (2), or for leaves."""
        return self._ground[pid] if type(pid) is int else self._ground[1].container(pid)

    def read(self) -> tuple[Any, list[object]]:
        """Load the stream; return its value, and its objects by their place in the memo."""
        self._ground[1].half_read.clear()
        value = call_from(self._ground[0], self.load)
        half_read.finish(self._ground[1])
        return value, pickle_memo.objects_in_order(self)


class CameAnew(NamedTuple):
    """What a value was made of that this side had nothing of: its stream, objects, their numbers, and its memory."""

    data: Buffer
    made: list[object]
    oids: list[int]
    regions: list[Region]

    def unit(self, root: object, encoder: Encoder) -> Unit | None:
        """Make the unit of the value, with a witness of how it came; None where it has none.

        None of its parts runs code of the user's when it is loaded, so it is what was sent. Should this side write
        another stream of it, it counts as changed once it is written at all, and goes back as it is.
        """
        if any(isinstance(part, set | frozenset) and len(part) > 1 for part in self.made):
            return None  # whose order is each side's own
        walk = Walk(encoder, root)
        notes = walk.claim_as_read()
        nodes = [part if oid != ABSENT else None for part, oid in zip(self.made, self.oids, strict=True)]
        seal = xxhash.xxh3_128(memoryview(self.data)[len(PREAMBLE) :])
        for region in self.regions:
            seal.update(region.digests())
        unit = Unit(root, seal.digest(), nodes, self.regions, oids=self.oids)
        unit.witness = walk.witness(unit, notes)
        unit.size = memoryview(self.data).nbytes
        return None if unit.witness is None else unit


#: What pickle writes without asking anybody, in an order that is the same on both sides.
_SIMPLE = frozenset({dict, list, tuple, str, bytes})


def unit_as_read(root: object, data: Buffer, made: list[object], oids: list[int]) -> Unit | None:
    """Make the unit that `Encoder.encode` would give for a value just read; None where only encoding can say it.

    A value gives its own stream again if it is made of plain containers and atoms, and if no two of its parts have
    become one: Python has each text of one letter once, and the sender may have had two. Anything else is made by a
    function, which has a place in the stream too, unless it is in pickle's register of short names.

    Parameters
    ----------
    root, data, made, oids
        The value, its stream, and the stream's objects by their place with their numbers.
    """
    parts = made[FIRST_PLACE:]
    is_certain = _SIMPLE.issuperset(map(type, parts)) and len(set(map(id, parts))) == len(parts)
    if not is_certain or pickle_memo.EXTENSIONS:
        return None
    nodes = [part if oid != ABSENT else None for part, oid in zip(made, oids, strict=True)]
    return Unit(root, xxhash.xxh3_128_digest(memoryview(data)[len(PREAMBLE) :]), nodes, [], oids=oids)


def units_as_they_came(
    roots: Sequence[object], anew: Mapping[int, CameAnew], as_read: Mapping[int, Unit], encoder: Encoder
) -> list[Unit]:
    """Return the units of all these values if none ran code of the user's when it was loaded; else none.

    Parameters
    ----------
    roots, anew, as_read
        The values; by their ids, what those were made of that are new; and what is known of plain ones in any case.
    encoder
        Knows of the values' memory afterwards. It has met nothing yet.
    """
    units: dict[int, Unit] = {}
    for root in roots:
        unit = anew[id(root)].unit(root, encoder) or as_read.get(id(root))
        if unit is None:
            return []
        units[id(root)] = unit
    return list(units.values())
