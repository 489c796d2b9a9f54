"""Memory that a witness knows: of arrays of numpy, and of buffers of pyarrow, which never move."""

import sys
from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from bulletin.cpython.raw_memory import first_field_of

from .block_digests import digests_of
from .encoding import Encoding
from .memory import Finder, Region
from .reducers.arrays import address_of, owner_of

#: Larger memory is asked for its digests, which are not computed anew where it is watched.
_SMALL_BYTES = 1 << 12
_LAYOUT = attrgetter("shape", "strides", "flags.num")
_NUMBER, _AGREED = attrgetter("rid"), attrgetter("agreed")


class MemoryFound(NamedTuple):
    """The memory of a value, as whoever walked through it met it."""

    #: Arrays that own their memory or that are kept apart, dense and of plain types.
    arrays: list[Any]
    #: Buffers that never change their place, as (address, size).
    buffers: list[tuple[int, int]]
    #: The ids of values of frames, each with that of the block that has them.
    blocks: dict[int, int]
    #: The ids of those arrays that are in frames and indexes, which copy-on-write keeps apart.
    framed: set[int]
    #: Indexes that are ranges, which have an array where somebody has asked for it.
    ranges: list[Any]


class AgreedMemory:
    """Arrays and regions: where they are, how they are laid out, and what is in them."""

    __slots__ = (
        "_arrays", "_bytes", "_digests", "_large", "_layouts", "_regions", "_starts", "_starts_bytes", "_views",
    )  # fmt: skip

    def __init__(self, arrays: list[Any], regions: list[Region]) -> None:
        self._arrays, self._layouts = arrays, list(map(_LAYOUT, arrays))
        self._starts = list(map(first_field_of, arrays))
        self._starts_bytes = b"".join(self._starts)
        self._regions, self._digests = regions, [region.digests() for region in regions]
        self._views = [region.read() for region in regions if region.size <= _SMALL_BYTES]
        self._large = [region for region in regions if region.size > _SMALL_BYTES]
        self._bytes = b"".join(self._views)

    @classmethod
    def joined(cls, several: Iterable["AgreedMemory"]) -> "AgreedMemory":
        """Make one of several, each as it was when it was made."""
        made = cls([], [])
        for one in several:
            for name in cls.__slots__:
                setattr(made, name, getattr(made, name) + getattr(one, name))
        return made

    @property
    def is_large(self) -> bool:
        """Whether it may take long to look at."""
        return bool(self._large)

    def is_as_written(self) -> bool:
        """Tell whether the bytes are those of which the encoder has just made digests."""
        small = [region for region in self._regions if region.size <= _SMALL_BYTES]
        digests = [digests_of(view) for view in self._views]
        return digests == [region.digests() for region in small] and b"".join(self._views) == self._bytes

    def is_as_agreed(self, finder: Finder) -> bool:
        """Tell whether all memory is where it was and has the content that both sides have agreed on."""
        if self._large:
            finder.begin()  # it is read anew, once in an exchange
        # Where memory is comes first: what has moved must not be read.
        if b"".join(self._starts) != self._starts_bytes or list(map(_LAYOUT, self._arrays)) != self._layouts:
            return False
        if list(map(_AGREED, self._regions)) != self._digests or min(map(_NUMBER, self._regions), default=0) < 0:
            return False
        if b"".join(self._views) != self._bytes:
            return False
        return not self._large or all(region.digests() == region.agreed for region in self._large)


class WitnessedMemory:
    """The memory of one unit, and what an encoder knows of it once it has met it."""

    __slots__ = ("_alone", "_blocks", "_guarded", "_guards", "_owned", "_ranges", "agreed")

    def __init__(self, found: MemoryFound, regions: list[Region], guards: list[tuple[Any, Region]]) -> None:
        self.agreed = AgreedMemory(found.arrays, regions)
        self._blocks, self._ranges = found.blocks, found.ranges
        framed = [array for array in found.arrays if id(array) in found.framed]
        self._guarded = frozenset(key for array in framed for key in (id(array), id(owner_of(array))))
        self._alone = [id(array) for array in found.arrays if id(array) not in found.framed]
        #: Those of one array alone, with the array; and the others.
        self._guards = guards
        apart = {id(region) for _, region in guards}
        self._owned = [region for region in regions if id(region) not in apart]

    @classmethod
    def joined(cls, several: Sequence["WitnessedMemory"]) -> "WitnessedMemory":
        """Make one of several that one encoder has met, each as it was when it was made."""
        made = cls(MemoryFound([], [], {}, set(), []), [], [])
        made.agreed = AgreedMemory.joined([one.agreed for one in several])
        made._guarded = frozenset[int]().union(*(one._guarded for one in several))
        for one in several:
            made._blocks.update(one._blocks)
            made._ranges += one._ranges
            made._alone += one._alone
            made._guards += one._guards
            made._owned += one._owned
        return made

    def claim(self, encoder: Encoding) -> bool:
        """Have the encoder and its finder know of the arrays, as if they had been written.

        False where they were, or others were, so that these would be written otherwise.
        """
        finder = encoder.finder
        encoder.guarded |= self._guarded
        for index in self._ranges:
            array = index._cache.get("_data")
            if array is not None:
                encoder.guarded |= {id(array), id(owner_of(array))}
        if any(encoder.blocks.setdefault(values, block) != block for values, block in self._blocks.items()):
            return False
        if not all(map(finder.is_known, self._owned)):
            return False
        if not encoder.guarded.isdisjoint(self._alone):
            return False
        return all(
            finder.find_or_add_guarded(array, array, region.address, region.size) is region
            for array, region in self._guards
        )


def is_plain_array(array: Any) -> bool:
    """Tell whether an array of numpy is dense, and has no objects, fields or notes in it."""
    dtype, flags = array.dtype, array.flags
    return (
        dtype.isbuiltin == 1
        and not dtype.hasobject
        and dtype.metadata is None
        and bool(flags.c_contiguous or flags.f_contiguous)
        and int.from_bytes(first_field_of(array), sys.byteorder) == address_of(array)
    )


def witnessed(encoder: Encoding, found: MemoryFound, regions: list[Region]) -> "WitnessedMemory | None":
    """Make what a unit's memory is known by, which the encoder has just written; None where it is not all known.

    It is not where a region is of anything else than what was met, or where it may move or end without being noticed.
    """
    by_place = {(region.address, region.size): region for region in regions if not region.is_guarded}
    left = {id(region) for region in regions}
    guards = []
    for array in found.arrays:
        if (id(array) in encoder.guarded) != (id(array) in found.framed):
            return None
        if not array.nbytes:
            continue
        place = address_of(array), array.nbytes
        if id(array) in found.framed:
            region = encoder.finder.guard_of(array)
            if region is None or (region.address, region.size) != place:
                return None
            guards.append((array, region))
        else:
            region = by_place.get(place)
            if region is None or array.base is not None or region.owner is not array:
                return None
        left.discard(id(region))
    for address, size in found.buffers:
        around = [region for region in by_place.values() if region.address <= address and address + size <= region.end]
        if not around or not _is_still(around[0].owner):
            return None
        left.discard(id(around[0]))
    if left or any(region.device is not None or not region.is_held for region in regions):
        return None
    made = WitnessedMemory(found, regions, guards)
    return made if made.agreed.is_as_written() else None


def _is_still(owner: object) -> bool:
    """Tell whether an owner of memory has it in the same place as long as it lives."""
    kind = type(owner)
    return kind is bytearray or (kind.__module__ == "pyarrow.lib" and kind.__name__.endswith("Buffer"))


def all_claimed(encoder: Encoding, blocks: Collection[tuple[int, int]]) -> bool:
    """Tell whether the encoder has written each of these values with this very block."""
    return all(encoder.blocks.get(values) == block for values, block in blocks)
