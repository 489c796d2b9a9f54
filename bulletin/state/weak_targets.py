"""Values to which weak references lead, and that nothing holds any more but what the two sides know of each other.

A table keeps what it has alive, and a weak dictionary would go on having it for ever: with each cell it would be sent
once more, and be kept for that.
"""

from collections.abc import Callable, Iterable
from weakref import getweakrefcount

from bulletin.cpython.referrers import held_by_others

from .handles import Handle
from .table import Table, Unit


class WeakTargets:
    """What only one table holds, of the notebook, for one exchange; it is looked for when a weak reference is met."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._found: frozenset[int] | None = None

    def forgotten(self) -> frozenset[int]:
        """Tell the ids of what only the table holds.

        Where something has stayed on the other side, that may hold what is not held here: then nothing is forgotten.
        """
        if self._found is None:
            self._found = self._look()
        return self._found

    def _look(self) -> frozenset[int]:
        objects = self._table.objects
        if any(type(value) is Handle for value in objects.values()):
            return frozenset()
        ids = {id(value) for value in objects.values() if getweakrefcount(value)}
        units = [*self._table.units.values(), *self._table.definitions.values()]
        there = [objects[oid] for oid in self._table.held_there if oid in objects]  # one holder more, so it is held
        forgotten = frozenset(ids - held_by_others(ids, (objects, *units, *(unit.nodes for unit in units))))
        del there
        return forgotten

    def holders(self) -> list[Unit]:
        """List the units that lead there; without them nothing does. Of the values themselves there is none."""
        found = self._found
        units = self._table.units.values() if found else ()
        return [
            unit for unit in units if found and id(unit.root) not in found and not found.isdisjoint(map(id, unit.nodes))
        ]


class HeldBeside:
    """What weak references lead to on the executor, and more holds than the notebook's names: a library's registry."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._is_asked = bool(table.held_there)  # which may be let go of

    def forgotten(self) -> frozenset[int]:
        """Note that a weak reference was met. Nothing is forgotten on this side."""
        self._is_asked = True
        return frozenset()

    def take_note(
        self, nodes: Iterable[object], number: Callable[[object], int], ours: Iterable[object]
    ) -> list[int] | None:
        """Note, and list, the numbers of what more holds than our containers do; None if no reference was met.

        What only our containers keep alive is ours as well.
        """
        if not self._is_asked:
            return None
        targets = {id(node): node for node in nodes if getweakrefcount(node)}
        found = held_by_others(targets.keys(), (targets, *ours))
        self._table.held_there = frozenset(oid for key in found if (oid := number(targets[key])) >= 0)
        return list(self._table.held_there)
