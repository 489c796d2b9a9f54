"""Records of arrays, `r[0]` of one with fields: each looks at the memory of its array, and is written through."""

import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .arrays import address_of, owner_of, reduce_memory, settle


def is_record(kind: type) -> bool:
    """Tell whether a type is one of numpy's scalars with fields."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and kind in {numpy.void, numpy.record}


def reduce_record(encoder: Encoding, record: Any) -> Reduced:
    """Reduce a record to its place in the memory of its array; leave one without, which never changes, to pickle."""
    owner = owner_of(record)
    if owner is record or record.dtype.hasobject or not record.nbytes:
        return NotImplemented
    make, made_of = reduce_memory(encoder, _seen(record, owner), record)
    return make_record, (RECEIVER, make, *made_of[1:])


def _seen(record: Any, owner: object) -> Any:
    """Return a plain array without axes over the memory of a record, which is its owner's."""
    numpy = sys.modules["numpy"]
    found = {"data": (address_of(record), not record.flags.writeable), "shape": (record.nbytes,), "typestr": "|u1"}
    return numpy.asarray(_OwnedMemory(found, owner)).view(record.dtype).reshape(())


class _OwnedMemory:
    """Memory by its address, with its owner."""

    def __init__(self, found: dict[str, Any], base: object) -> None:
        self.__array_interface__ = {**found, "version": 3}
        self.base = base


def make_record(transaction: LoadTransaction, make: Any, *made_of: Any) -> Any:
    """Make the record of that place, or return the existing one, if it looks there already."""
    old = transaction.take_existing()
    made = make(transaction, *made_of)[()]
    is_there = type(old) is type(made) and old.dtype == made.dtype and address_of(old) == address_of(made)
    return old if is_there and old.flags.writeable == made.flags.writeable else settle(transaction, old, made)
