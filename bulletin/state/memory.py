"""Memory that arrays look at, as regions: known on both sides by one number, compared and sent in blocks.

A region is a range of addresses and the object that owns them. Several arrays, tensors or buffers may look at one; it
travels once, and only blocks that the other side does not have.
"""

import ctypes
import gc
import sys
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from mmap import mmap
from typing import Any, Protocol

from bulletin.cpython.raw_memory import view_of

from .block_digests import BLOCK_BYTES, DIGEST_BYTES, BlockDigests, digests_of


class Widen(Exception):
    """Two ranges overlap that were taken for apart; with `region` known from the start they are one."""

    def __init__(self, region: "Region") -> None:
        super().__init__(region)
        self.region = region


class Device(Protocol):
    """How to reach memory that the processor cannot."""

    def read(self, owner: Any) -> memoryview:
        """Copy all of the owner's memory to the host."""

    def write(self, owner: Any, offset: int, data: Any) -> None:
        """Put bytes into the owner's memory, from the byte `offset` on."""


class Region:
    """A range of this side's memory.

    `agreed` are the digests of its blocks as both sides last had them; None while only this side knows it. A guarded
    region is never written in place: copy-on-write may show it to others (see `reducers.pandas_frames`).
    """

    __slots__ = (
        "_blocks", "_content", "_now", "address", "agreed", "device", "is_guarded", "is_held", "owner", "rid", "size",
    )  # fmt: skip

    def __init__(
        self,
        owner: object,
        address: int,
        size: int,
        *,
        rid: int = -1,
        is_guarded: bool = False,
        device: Device | None = None,
    ) -> None:
        self.owner, self.address, self.size = owner, address, size
        self.rid, self.is_guarded, self.device = rid, is_guarded, device
        #: Whether somebody else than a stream holds what looks at it.
        self.is_held = rid >= 0
        self.agreed: bytes | None = None
        self._now: bytes | None = None
        self._blocks = BlockDigests()
        self._content: Any = None

    @classmethod
    def arriving(cls, content: Any, *, rid: int, is_guarded: bool) -> "Region":
        """Make a region for content that is not yet in memory of its own: its first user decides where it `land`s."""
        region = cls(None, 0, memoryview(content).nbytes, rid=rid, is_guarded=is_guarded)
        region._content = content
        return region

    def land(self, owner: object = None, address: int = 0, device: Device | None = None) -> None:
        """Put the content into the memory of `owner`; without one, the bytes that came become the memory."""
        if self.address:
            return
        content, self._content = self._content, None
        if owner is not None:
            self.owner, self.address, self.device = owner, address, device
            self.write(0, content)
            return
        # What was received into memory of its own is adopted; any other view may be of somebody's.
        is_own = isinstance(content, bytearray) or isinstance(memoryview(content).obj, mmap)
        if not is_own or memoryview(content).readonly:
            content = bytearray(content)
        self.owner, self.address = content, ctypes.addressof(ctypes.c_char.from_buffer(content))

    def read(self) -> memoryview:
        """Return a view of its bytes; of a device, a copy."""
        if self.device is not None:
            return self.device.read(self.owner)
        return view_of(self.address, self.size)

    def write(self, offset: int, data: Any) -> None:
        """Put bytes into it, from the byte `offset` on."""
        if self.device is not None:
            self.device.write(self.owner, offset, data)
        else:
            self.read()[offset : offset + memoryview(data).nbytes] = memoryview(data).cast("B")

    def digests(self) -> bytes:
        """Return the digest of each block as it is now: computed once per exchange, then remembered."""
        if self._now is None:
            view = self.read()
            self._now = digests_of(view) if self.device is not None else self._blocks.compute(view, self.address)
        return self._now

    def forget(self) -> None:
        """Make `digests` read the memory again, since it may have been written."""
        self._now = None

    def take_as_it_came(self) -> None:
        """Take the digests that came with the content for its own, until it may have been written."""
        if self.agreed is not None:
            self._now = self.agreed
            self._blocks.expect(self.agreed)

    def is_there(self) -> bool:
        """Tell whether the owner still has its memory here: arrays and storages can be resized."""
        owner: Any = self.owner
        if hasattr(owner, "data_ptr"):
            start, size = owner.data_ptr(), owner.nbytes
            return bool(start <= self.address and self.end <= start + (size() if callable(size) else size))
        if hasattr(owner, "__array_interface__") and hasattr(owner, "nbytes"):
            start = owner.__array_interface__["data"][0]
            return bool(start <= self.address and self.end <= start + owner.nbytes) or owner.base is not None
        return True

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.size


def changed_runs(before: bytes, now: bytes, size: int) -> list[tuple[int, int]]:
    """Find the runs of blocks whose digests differ: the first byte of each, and the byte behind it."""
    runs: list[tuple[int, int]] = []
    if before == now:
        return runs
    for number in range(len(now) // DIGEST_BYTES):
        digest_slice = slice(number * DIGEST_BYTES, (number + 1) * DIGEST_BYTES)
        if before[digest_slice] != now[digest_slice]:
            start, end = number * BLOCK_BYTES, min((number + 1) * BLOCK_BYTES, size)
            if runs and runs[-1][1] == start:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((start, end))
    return runs


class Finder:
    """Finds the region of an address, for one exchange; makes a new one where none is known. Regions never overlap."""

    def __init__(self, known: Iterable[Region], wide: Iterable[Region] = ()) -> None:
        self._exact: dict[tuple[int, int], Region] = {}
        self._sorted: list[tuple[int, int]] = []
        #: By address and size; and which array each is for.
        self._guarded: dict[tuple[int, int], list[Region]] = {}
        self._guards: dict[int, Region] = {}
        self._alive: list[object] = []  # whose ids are in use
        self._waiting: tuple[Iterable[Region], Iterable[Region]] | None = known, wide

    def begin(self) -> None:
        """Take in what is known, and have it read anew: once, when memory is first asked for in the exchange.

        A cell that reaches none does not pay for what others have.
        """
        if self._waiting is None:
            return
        known, wide = self._waiting
        self._waiting, wide = None, list(wide)
        for region in wide:
            self._add(region)
        for region in known:
            region.forget()
            place = region.address, region.size
            if region.is_guarded:
                self._guarded.setdefault(place, []).append(region)
            elif region.size and not any(over.address <= region.address and region.end <= over.end for over in wide):
                self._exact.setdefault(place, region)
        self._sorted = sorted(self._exact)

    def _add(self, region: Region) -> None:
        if region.size and not region.is_guarded and (region.address, region.size) not in self._exact:
            self._exact[region.address, region.size] = region
            insort(self._sorted, (region.address, region.size))

    def is_known(self, region: Region) -> bool:
        """Tell whether any range inside this region would be found to be in it."""
        if self._waiting is not None:
            self.begin()
        return self._exact.get((region.address, region.size)) is region

    def guard_of(self, array: object) -> Region | None:
        """Return the region that was found for one array alone; None where nobody asked for it."""
        return self._guards.get(id(array))

    def find_or_add(self, owner: object, address: int, size: int, device: Device | None = None) -> Region:
        """Return the region around a range. Where none is known that still has its memory, add one of just this range.

        Raises
        ------
        Widen
            If the range overlaps one that is known and does not lie inside it.
        """
        self.begin()
        while True:
            found = self._exact.get((address, size)) or self._around(address, size)
            if found is None:
                found = Region(owner, address, size, device=device)
                self._add(found)
                return found
            if found.is_there():
                return found
            del self._exact[found.address, found.size]
            self._sorted.remove((found.address, found.size))

    def find_or_add_guarded(self, array: object, dense: object, address: int, size: int) -> Region:
        """Return a region for one array alone, whatever else looks at this memory; where none is known, add one.

        `dense` is the array, or a copy of it.
        """
        self.begin()
        found = self._guards.get(id(array))
        if found is None:
            known = self._guarded.get((address, size), [])
            found = next((region for region in known if region.owner is array), known[-1] if known else None)
            if found is None:
                found = Region(dense, address, size, is_guarded=True)
            else:
                known.remove(found)
            self._guards[id(array)] = found
            self._alive.append(array)
        return found

    def _around(self, address: int, size: int) -> Region | None:
        position = bisect_right(self._sorted, (address, sys.maxsize))
        if position:
            before = self._exact[self._sorted[position - 1]]
            if before.end >= address + size:
                return before
            if before.end > address:
                raise Widen(Region(before.owner, before.address, address + size - before.address))
        if position < len(self._sorted):
            after = self._exact[self._sorted[position]]
            if after.address < address + size:
                raise Widen(Region(after.owner, address, max(address + size, after.end) - address))
        return None


def attempt(make: Callable[[list[Region]], Any]) -> Any:
    """Call `make` with the regions that are known to be wider, until it raises Widen no more.

    Garbage is not collected meanwhile.
    """
    wide: list[Region] = []
    was_enabled = gc.isenabled()
    try:
        gc.disable()  # what is noted here is no garbage, and looking for some takes longer than all the rest
        while True:
            try:
                return make(wide)
            except Widen as found:
                wide.append(found.region)
    finally:
        if was_enabled:
            gc.enable()
