"""Values to which weak references lead, and that nothing holds any more but what the two sides know of each other.

A table keeps what it has alive, and a weak dictionary would go on having it for ever: with each cell it would be sent
once more, and be kept for that.
"""

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
        return frozenset(ids - held_by_others(ids, (objects, *units, *(unit.nodes for unit in units))))

    def holders(self) -> list[Unit]:
        """List the units that lead there; without them nothing does. Of the values themselves there is none."""
        found = self._found
        units = self._table.units.values() if found else ()
        return [
            unit for unit in units if found and id(unit.root) not in found and not found.isdisjoint(map(id, unit.nodes))
        ]
