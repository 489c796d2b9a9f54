"""The fast way to read a stream of which this side has nothing yet, and what can be said of its value at once."""

import builtins
import io
import pickle
from typing import Any

import xxhash

from bulletin.cpython import pickle_memo

from . import half_read
from .calling_frame import call_from
from .encoder import FIRST_PLACE, PREAMBLE
from .exchange import Buffer
from .load_transaction import LoadTransaction, Namespace
from .table import ABSENT, Unit


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
