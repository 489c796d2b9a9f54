"""The shared object table: what both sides of a session have, each object under one number, and what they agree on.

After a dump the pickler's memo has each object's place in the stream; after the load the unpickler's memo has its
counterpart at the same place. So one number, drawn by the sender, names an object on both sides.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from .exchange import Exchange
from .leaves import Leaves
from .memory import Region
from .modules import Known

#: Not in the table: it is equal wherever it is.
ABSENT = -1
#: To walk through what has a longer stream takes some milliseconds.
_LARGE_BYTES = 1 << 15


@dataclass(slots=True)
class Unit:
    """One value as it was found: compared and sent as a whole. Its root is a name's value, or a definition."""

    root: object
    digest: bytes
    #: The objects of the stream by their place; None where only the stream holds one, or where identity says nothing.
    nodes: list[object]
    regions: list[Region]
    #: The id of the definition that the root is; empty if it is none.
    uid: str = ""
    #: The numbers of the nodes, once they have some.
    oids: list[int] = field(default_factory=list, repr=False)
    #: Atoms of its large arrays, in the order of their numbers in the stream.
    leaves: list[Leaves] = field(default_factory=list, repr=False)
    #: Knows the value again as it was here, without a stream; None where only encoding can. See `witness`.
    witness: Any = field(default=None, repr=False)
    #: Knows it again with many others at once; see `joint_witness`.
    joint: Any = field(default=None, repr=False)
    #: It was met again as it was; and no witness can know it, for what it is made of or how much that is.
    is_steady: bool = False
    is_beyond: bool = False
    #: The stream, while the exchange lasts.
    data: bytes = field(default=b"", repr=False)
    #: How long the stream was, once it is gone; 0 where it was never written here.
    size: int = field(default=0, repr=False)

    @property
    def stream_bytes(self) -> int:
        """How long its stream is, or was."""
        return len(self.data) or self.size

    @property
    def bytes_beside(self) -> int:
        """How much of its content is not in the stream: memory, and leaves as they were packed."""
        return sum(region.size for region in self.regions) + sum(leaves.size for leaves in self.leaves)

    @property
    def is_worth_a_walk(self) -> bool:
        """Tell whether a witness is to be tried: of what is large, only where it does not change with each cell."""
        return not self.is_beyond and (self.is_steady or self.size <= _LARGE_BYTES)

    def end_joint(self) -> None:
        """Have those that were known together with this one be known for themselves: it has changed, or is gone."""
        if self.joint is not None:
            self.joint.end()
            self.joint = None

    def is_as(self, other: "Unit") -> bool:
        """Tell whether the content is the same, and all objects and memory in it are the same ones."""
        return self is other or (
            self.digest == other.digest
            and len(self.nodes) == len(other.nodes)
            and all(map(is_, self.nodes, other.nodes))
            and [max(region.rid, -1) for region in self.regions] == [max(region.rid, -1) for region in other.regions]
        )


@dataclass(slots=True)
class Table:
    """One side's half. Both halves change in step, by one exchange at a time; `version` counts them."""

    version: int = 0
    next_oid: int = 0
    next_rid: int = 0
    next_lid: int = 0
    #: Number -> object, and back. Whatever is here is kept alive, so its address stays its own.
    objects: dict[int, Any] = field(default_factory=dict)
    oids: dict[int, int] = field(default_factory=dict)
    #: By the root's number.
    units: dict[int, Unit] = field(default_factory=dict)
    #: By the definition's id.
    definitions: dict[str, Unit] = field(default_factory=dict)
    regions: dict[int, Region] = field(default_factory=dict)
    #: Number -> atoms of a large array; and back, by their serial.
    leaves: dict[int, Leaves] = field(default_factory=dict)
    lids: dict[int, int] = field(default_factory=dict)
    #: By the number of a value that could not be loaded on this side, the memory that came with it.
    left: dict[int, list[int]] = field(default_factory=dict)
    #: What the executor has of the notebook's own modules. The notebook's half only.
    modules: Known = field(default_factory=Known)
    #: The ambient state of the notebook that went with the cell before, by kind: what is as it was is not sent again.
    ambient: dict[str, Any] = field(default_factory=dict)
    #: Numbers of what weak references lead to, and something beside the namespace holds on the executor: a library's
    #: registry.
    held_there: frozenset[int] = frozenset()
    #: The ids of the functions and classes that the cell before reached: those may be thousands, and mostly the same.
    reached: list[str] = field(default_factory=list)
    #: How many units hold an object.
    _held: Counter[int] = field(default_factory=Counter)

    def oid_of(self, value: object) -> int:
        """Return the number of an object; ABSENT if it has none."""
        return self.oids.get(id(value), ABSENT)

    def unit_of(self, root: object) -> Unit | None:
        """Return what was last agreed of a root; None if nothing was."""
        return self.units.get(self.oid_of(root))

    def roots_inside(self, units: Iterable[Unit]) -> list[object]:
        """List the roots of other units that these hold: with these, all that is in those goes over, too."""
        units = list(units)
        coming = {id(unit.root) for unit in units}
        inside = {id(node) for unit in units for node in unit.nodes if node is not None}
        roots = [unit.root for unit in self.units.values()]
        return [root for root in roots if id(root) in inside and id(root) not in coming]

    def regions_left(self, values: Iterable[object]) -> list[int]:
        """List the memory that came with those of these values that could not be loaded on this side."""
        held = set(map(id, values)) if self.left else ()
        return [rid for oid, rids in self.left.items() if id(self.objects.get(oid)) in held for rid in rids]

    def learn(self, oids: Sequence[int], values: Sequence[object]) -> None:
        """Give these objects these numbers from now on. ABSENT stands for none."""
        objects, known = self.objects, self.oids
        values = [value for oid, value in zip(oids, values, strict=True) if oid != ABSENT]
        oids = [oid for oid in oids if oid != ABSENT]
        if objects.keys().isdisjoint(oids):
            objects.update(zip(oids, values, strict=True))
            known.update(zip(map(id, values), oids, strict=True))
            return
        for oid, value in zip(oids, values, strict=True):
            before = objects.get(oid)
            if before is not value:
                if before is not None and known.get(id(before)) == oid:
                    del known[id(before)]
                objects[oid] = value
            known[id(value)] = oid

    def learn_leaves(self, found: Mapping[int, Leaves]) -> None:
        """Give these atoms these numbers from now on."""
        self.leaves.update(found)
        self.lids.update((leaves.serial, lid) for lid, leaves in found.items())

    def settle(self, units: Iterable[Unit], definitions: Iterable[Unit]) -> None:
        """Take these units as what both sides have now; all their objects have numbers.

        Objects that only their older units held are forgotten.
        """
        before: list[Unit] = []
        for unit in units:
            oid = self.oids[id(unit.root)]
            before += self._take_in(unit, self.units.get(oid))
            self.units[oid] = unit
        for unit in definitions:
            before += self._take_in(unit, self.definitions.get(unit.uid))
            self.definitions[unit.uid] = unit
        for old in before:
            self._let_go(old)

    def _take_in(self, unit: Unit, old: Unit | None) -> list[Unit]:
        """Hold the objects of a unit; return the older unit, in a list, where its objects are to be let go of."""
        unit.size, unit.data = unit.stream_bytes, b""
        if old is not None and old is not unit:
            old.end_joint()
        if not unit.oids:
            number = self.oids.get
            unit.oids = [ABSENT if node is None else number(id(node), ABSENT) for node in unit.nodes]
        if old is not None and old.oids == unit.oids:
            return []
        self._held.update(unit.oids)
        return [] if old is None else [old]

    def drop(self, roots: Iterable[int], rids: Iterable[int], lids: Iterable[int]) -> None:
        """Forget these units, all objects that no other unit holds, this memory and these leaves.

        The notebook says what memory and leaves these are: the two may find memory in different places, and what one
        side has forgotten the other cannot change in part.
        """
        for oid in roots:
            unit = self.units.pop(oid, None)
            if unit is not None:
                unit.end_joint()
                self._let_go(unit)
        for rid in rids:
            self.regions.pop(rid, None)
        for lid in lids:
            leaves = self.leaves.pop(lid, None)
            if leaves is not None and self.lids.get(leaves.serial) == lid:
                del self.lids[leaves.serial]

    def forward(self, exchange: Exchange) -> None:
        """Forget what the exchange says is forgotten, and come to the version after it."""
        self.drop(exchange.dropped, exchange.dropped_regions, exchange.dropped_leaves)
        self.next_oid, self.next_rid, self.next_lid = exchange.next_oid, exchange.next_rid, exchange.next_lid
        self.version += 1

    def _let_go(self, unit: Unit) -> None:
        held = self._held
        for oid in unit.oids:
            count = held[oid] = held[oid] - 1
            if not count and oid != ABSENT:
                self._forget(oid)

    def _forget(self, oid: int) -> None:
        del self._held[oid]
        self.left.pop(oid, None)
        value = self.objects.pop(oid, None)
        if value is not None and self.oids.get(id(value)) == oid:
            del self.oids[id(value)]

    def clear(self) -> None:
        """Forget everything: the other side is gone, or the two have lost each other."""
        self.version = self.next_oid = self.next_rid = self.next_lid = 0
        self.modules = Known()
        self.ambient, self.reached, self.held_there = {}, [], frozenset()
        for objects in (self.objects, self.oids, self.units, self.definitions, self._held):
            objects.clear()
        for memory in (self.regions, self.leaves, self.lids, self.left):
            memory.clear()
