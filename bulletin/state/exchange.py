"""One exchange as bytes: a sealed manifest in the first part, large pieces in the others."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import xxhash

Buffer: TypeAlias = bytes | bytearray | memoryview

#: Smaller pieces stay in the manifest: a part of their own would cost more than it saves.
APART_BYTES = 1 << 16
_SEAL_BYTES = 16


class Damaged(Exception):
    """The bytes are not those that the other side wrote."""


@dataclass(slots=True)
class PickleStream:
    """A pickle and what its places mean.

    `kind` is "modules", "definitions", "plain", "unit", "orphans", "extra", or "error", an extra that can be missing.
    """

    kind: str
    data: Any
    #: The numbers of its objects by their place, four bytes each; the regions that it uses, in order.
    oids: Any
    rids: list[int]
    #: Of a unit: the number of its root.
    root: int = -1
    #: The numbers of the leaves that it uses, in order.
    leaves: list[int] = field(default_factory=list)


@dataclass(slots=True)
class RegionContent:
    """A region's content, or the runs of it that changed, as (first byte, bytes); and the digests of all its blocks."""

    rid: int
    size: int
    is_whole: bool
    is_guarded: bool
    runs: list[tuple[int, Any]]
    digests: bytes


@dataclass(slots=True)
class Exchange:
    """What goes over in one exchange. `base` is the version of the table that it builds upon; 0 is an empty one."""

    base: int
    next_oid: int
    next_rid: int
    next_lid: int
    #: The roots of units, the regions and the leaves that both sides forget. The notebook alone decides.
    dropped: list[int] = field(default_factory=list)
    dropped_regions: list[int] = field(default_factory=list)
    dropped_leaves: list[int] = field(default_factory=list)
    streams: list[PickleStream] = field(default_factory=list)
    memory: list[RegionContent] = field(default_factory=list)
    #: Number -> atoms of a large array that the other side does not have, as `Leaves.pack` writes them.
    leaves: dict[int, Any] = field(default_factory=dict)
    #: Names of values in the table.
    bound: dict[str, int] = field(default_factory=dict)
    #: Values beside the names that are in the table.
    known: dict[str, int] = field(default_factory=dict)
    #: What else is said.
    tail: dict[str, Any] = field(default_factory=dict)

    def pack(self) -> list[Buffer]:
        """Write the exchange as parts: the manifest with its seal, then the large pieces.

        A large piece is not copied: it is the memory of a value.
        """
        apart: list[Buffer] = []

        def piece(data: Any) -> Any:
            if memoryview(data).nbytes < APART_BYTES:
                return bytes(data)
            apart.append(data)
            return len(apart)

        streams = [(s.kind, piece(s.data), piece(s.oids), s.rids, s.root, s.leaves) for s in self.streams]
        memory = [
            (m.rid, m.size, m.is_whole, m.is_guarded, [(start, piece(data)) for start, data in m.runs], m.digests)
            for m in self.memory
        ]
        leaves = {lid: piece(packed) for lid, packed in self.leaves.items()}
        sizes = [memoryview(part).nbytes for part in apart]
        counts = (self.base, self.next_oid, self.next_rid, self.next_lid)
        dropped = (self.dropped, self.dropped_regions, self.dropped_leaves)
        head = ((*counts, *dropped), streams, memory, leaves, self.bound, self.known, self.tail, sizes)
        body = pickle.dumps(head, protocol=5)
        return [xxhash.xxh3_128_digest(body) + body, *apart]

    @classmethod
    def unpack(cls, parts: Sequence[Buffer]) -> "Exchange":
        """Read an exchange that `pack` wrote. Large pieces stay in the memory in which they came.

        Raises
        ------
        Damaged
            If the seal or the sizes do not fit; nothing has been loaded.
        """
        whole = memoryview(parts[0])
        if whole.nbytes <= _SEAL_BYTES or xxhash.xxh3_128_digest(whole[_SEAL_BYTES:]) != bytes(whole[:_SEAL_BYTES]):
            raise Damaged("the stream is damaged or incomplete")
        *head, sizes = pickle.loads(whole[_SEAL_BYTES:])
        came = [memoryview(part).nbytes for part in parts[1:]]
        if came != sizes:
            raise Damaged(f"{len(sizes)} buffers of {sum(sizes)} bytes were sent, {len(came)} of {sum(came)} came")

        def piece(data: Any) -> Any:
            return parts[data] if isinstance(data, int) else data

        counts, streams, memory, leaves, bound, known, tail = head
        base, next_oid, next_rid, next_lid, dropped, dropped_regions, dropped_leaves = counts
        return cls(
            base,
            next_oid,
            next_rid,
            next_lid,
            dropped,
            dropped_regions,
            dropped_leaves,
            streams=[
                PickleStream(kind, piece(data), piece(oids), rids, root, used)
                for kind, data, oids, rids, root, used in streams
            ],
            memory=[
                RegionContent(rid, size, is_whole, is_guarded, [(start, piece(data)) for start, data in runs], digests)
                for rid, size, is_whole, is_guarded, runs, digests in memory
            ],
            leaves={lid: piece(packed) for lid, packed in leaves.items()},
            bound=bound,
            known=known,
            tail=tail,
        )
