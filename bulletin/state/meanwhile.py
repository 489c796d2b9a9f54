"""A cell that runs while the notebook goes on: what both have changed is laid aside instead of overwritten."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from . import registrations
from .capture import Captured
from .exchange import Exchange, PickleStream, RegionContent
from .library_places import LibraryPlace
from .memory import Region, attempt
from .table import ABSENT, Table
from .table_diff import TableDiff

_GONE = object()


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """The notebook as it was when the cell left it. Made by `depart`, right after `capture`, used once by `apply`."""

    #: What its names held.
    before: Mapping[str, object]
    #: What libraries' plain variables held.
    libraries: dict[LibraryPlace, Any] = field(default_factory=dict)
    #: The notebook's values are not to be touched: all that the cell changed is laid aside.
    is_aside: bool = False

    def is_rebound(self, name: str, namespace: Mapping[str, Any]) -> bool:
        """Tell whether the notebook has bound or deleted the name since."""
        return namespace.get(name, _GONE) is not self.before.get(name, _GONE)


def depart(namespace: Mapping[str, Any], captured: Captured, *, is_aside: bool = False) -> Meanwhile:
    """Let the notebook go on while the cell is under way: what was captured is copied, so that it stays as it is.

    The table is from now on in step with an executor that takes it in.
    """
    captured.parts = [bytes(part) for part in captured.parts]
    captured.commit()
    captured.exchange = Exchange.unpack(captured.parts)
    return Meanwhile(dict(namespace), registrations.depart(), is_aside)


@dataclass(slots=True)
class Aside:
    """What of an arriving exchange is not for the notebook: chosen by `lay_aside`, filled while it is read."""

    meanwhile: Meanwhile
    #: The names that led to what both have changed, each with the number of its value.
    names: dict[str, int] = field(default_factory=dict)
    #: Numbers of what is made anew, beside what the notebook has.
    detached: set[int] = field(default_factory=set)
    values: dict[str, Any] = field(default_factory=dict)
    #: The notebook's names for what the cell changed in place.
    changed: list[str] = field(default_factory=list)

    def takes(self, name: str, namespace: Mapping[str, Any]) -> bool:
        """Tell whether the value of this name is laid aside."""
        return self.meanwhile.is_aside or name in self.names or self.meanwhile.is_rebound(name, namespace)

    def collect(self, objects: Mapping[int, Any]) -> None:
        """Take the new values of names that the cell did not bind itself."""
        for name, oid in self.names.items():
            if name not in self.values and oid in objects:
                self.values[name] = objects[oid]


def lay_aside(exchange: Exchange, namespace: dict[str, Any], sent: Captured, meanwhile: Meanwhile) -> Aside:
    """Detach from the table all objects that both sides have changed, with whatever comes together with them.

    They lose their numbers, so that what arrives is made anew, and memory that changed in part is made whole.
    """
    table = sent.table
    coming = {
        stream.root: stream for stream in exchange.streams if stream.kind == "unit" and stream.root in table.units
    }
    apart = set(coming) if meanwhile.is_aside else _changed_here(coming, namespace, table)
    apart = _with_all_they_share(apart, coming, table)
    aside = Aside(meanwhile)
    rids: set[int] = set()
    for root in apart:
        rids.update(coming[root].rids)
        aside.detached.update(oid for oid in (*_numbers(coming[root]), *table.units[root].oids) if oid != ABSENT)
    aside.names = {
        name: oid for name, value in meanwhile.before.items() if (oid := table.oid_of(value)) in aside.detached
    }
    aside.changed = [
        name for name, value in meanwhile.before.items() if table.oid_of(value) in coming and name not in aside.names
    ]
    aside.names |= {name: oid for name, oid in exchange.bound.items() if oid in aside.detached}
    for oid in aside.detached:
        value = table.objects.pop(oid, None)
        if value is not None and table.oids.get(id(value)) == oid:
            del table.oids[id(value)]
    captured = {memory.rid: memory for memory in sent.exchange.memory}
    exchange.memory = [
        _whole(memory, table.regions.pop(memory.rid, None), captured.get(memory.rid)) if memory.rid in rids else memory
        for memory in exchange.memory
    ]
    return aside


def _changed_here(coming: Mapping[int, PickleStream], namespace: dict[str, Any], table: Table) -> set[int]:
    """Find, of the units that come, those that the notebook has changed since; return their numbers."""

    def look(wide: list[Region]) -> TableDiff:
        diff = TableDiff(namespace, table, wide=wide)
        diff.look_at([table.units[root].root for root in coming], [])
        return diff

    diff: TableDiff = attempt(look)
    return {table.oid_of(unit.root) for unit in diff.changed_units()}


def _with_all_they_share(apart: set[int], coming: Mapping[int, PickleStream], table: Table) -> set[int]:
    """Return these with all units that have an object or memory in common with one of them: they stay together."""
    oids = {
        root: {oid for oid in _numbers(stream) if oid in table.objects and _may_change(table.objects[oid])}
        for root, stream in coming.items()
    }
    while True:
        held = {oid for root in apart for oid in oids[root]}
        rids = {rid for root in apart for rid in coming[root].rids}
        wider = {root for root in coming if oids[root] & held or rids.intersection(coming[root].rids)}
        if wider <= apart:
            return apart
        apart |= wider


def _may_change(value: Any) -> bool:
    """Tell whether a value may change. What is equal by content for ever, or found by its name, does not."""
    kind: Any = type(value)
    if issubclass(kind, type | FunctionType | BuiltinFunctionType | ModuleType):
        return False
    is_by_content = kind.__hash__ not in {None, object.__hash__} and kind.__eq__ is not object.__eq__
    return not is_by_content or kind.__dictoffset__ != 0


def _numbers(stream: PickleStream) -> list[int]:
    return array("i", bytes(stream.oids)).tolist()


def _whole(change: RegionContent, known: Region | None, captured: RegionContent | None) -> RegionContent:
    """Complete a region's content, of which only changes have come, from what was sent or from this side's memory."""
    if change.is_whole:
        return change
    if captured is not None and captured.is_whole:
        content = bytearray(captured.runs[0][1])
    elif known is not None:
        content = bytearray(known.read())
    else:
        return change  # reading it says what is missing
    for start, data in change.runs:
        content[start : start + memoryview(data).nbytes] = data
    return replace(change, is_whole=True, runs=[(0, content)])
