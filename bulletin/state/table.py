"""The shared object table: what both sides of a session have, each object under one number, and what they agree on.

After a dump the pickler's memo has each object's place in the stream; after the load the unpickler's memo has the twin
at the same place. So one number, drawn by the sender, names an object on both sides.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from .memory import Region
from .modules import Known

#: Not in the table: it is equal wherever it is.
ABSENT = -1


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
    #: The numbers of the nodes, once settled.
    oids: list[int] = field(default_factory=list, repr=False)
    #: The stream, while the exchange lasts.
    data: bytes = field(default=b"", repr=False)

    def is_as(self, other: "Unit") -> bool:
        """Whether the content is the same, and all objects and memory in it are the same ones."""
        return (
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
    #: Number -> object, and back. Whatever is here is kept alive, so its address stays its own.
    objects: dict[int, Any] = field(default_factory=dict)
    oids: dict[int, int] = field(default_factory=dict)
    #: By the root's number.
    units: dict[int, Unit] = field(default_factory=dict)
    #: By the definition's id.
    definitions: dict[str, Unit] = field(default_factory=dict)
    regions: dict[int, Region] = field(default_factory=dict)
    #: What the executor has of the notebook's own modules. The notebook's half only.
    modules: Known = field(default_factory=Known)
    #: How many units hold an object.
    _held: Counter[int] = field(default_factory=Counter)

    def oid_of(self, value: object) -> int:
        """The number of an object; ABSENT if it has none."""
        return self.oids.get(id(value), ABSENT)

    def unit_of(self, root: object) -> Unit | None:
        """What was last agreed of a root."""
        return self.units.get(self.oid_of(root))

    def learn(self, oids: Iterable[int], values: Iterable[object]) -> None:
        """From now on these objects have these numbers. ABSENT stands for none."""
        objects, known = self.objects, self.oids
        pairs = [pair for pair in zip(oids, values, strict=True) if pair[0] != ABSENT]
        if objects.keys().isdisjoint([oid for oid, _ in pairs]):
            objects.update(pairs)
            known.update([(id(value), oid) for oid, value in pairs])
            return
        for oid, value in pairs:
            before = objects.get(oid)
            if before is not value:
                if before is not None and known.get(id(before)) == oid:
                    del known[id(before)]
                objects[oid] = value
            known[id(value)] = oid

    def settle(self, units: Iterable[Unit], definitions: Iterable[Unit]) -> None:
        """Both sides have these as they are here, all with numbers. What only their older ones held is forgotten."""
        before: list[Unit | None] = []
        for unit in units:
            self._hold(unit, 1)
            oid = self.oids[id(unit.root)]
            before.append(self.units.get(oid))
            self.units[oid] = unit
        for unit in definitions:
            self._hold(unit, 1)
            before.append(self.definitions.get(unit.uid))
            self.definitions[unit.uid] = unit
        for old in before:
            if old is not None:
                self._hold(old, -1)

    def drop(self, roots: Iterable[int], rids: Iterable[int]) -> None:
        """Forget these units, all objects that no other unit holds, and this memory.

        The notebook says what memory it is: the two may find it in different places, and what one side has forgotten
        the other cannot change in part.
        """
        for oid in roots:
            unit = self.units.pop(oid, None)
            if unit is not None:
                self._hold(unit, -1)
        for rid in rids:
            self.regions.pop(rid, None)

    def _hold(self, unit: Unit, step: int) -> None:
        if step > 0:
            unit.data = b""
            unit.oids = [ABSENT if node is None else self.oids.get(id(node), ABSENT) for node in unit.nodes]
        held = self._held
        if step > 0:
            held.update(unit.oids)
        else:
            for oid in unit.oids:
                count = held[oid] = held[oid] - 1
                if not count and oid != ABSENT:
                    self._forget(oid)

    def _forget(self, oid: int) -> None:
        del self._held[oid]
        value = self.objects.pop(oid, None)
        if value is not None and self.oids.get(id(value)) == oid:
            del self.oids[id(value)]

    def clear(self) -> None:
        """Forget everything: the other side is gone, or the two have lost each other."""
        self.version = self.next_oid = self.next_rid = 0
        self.modules = Known()
        for part in (self.objects, self.oids, self.units, self.definitions, self.regions, self._held):
            part.clear()
