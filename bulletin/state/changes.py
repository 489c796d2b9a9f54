"""What a cell has changed: by content and by binding, decided on the executor's side."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import ambient, modules, names, registration_names, registrations
from .exchange import Buffer
from .exchange_writer import ExchangeWriter
from .memory import Region, attempt
from .name_order import late_names
from .object_paths import Stayed
from .table import Table, Unit
from .table_diff import TableDiff, is_plain
from .weak_targets import HeldBeside

#: Under names that the cell binds before it deletes them: where one is gone afterwards, the cell has come to that.
UNSENT = object()


@dataclass(slots=True)
class Baseline:
    """The executor's side as it was before the cell. Made by `restore`, used once by `changes`."""

    table: Table
    #: What the notebook has under these names.
    came: dict[str, object]
    keep: frozenset[str]
    #: Keeps alive what only weak references hold.
    alive: list[object]
    ambient: ambient.Ambient
    modules: modules.Before
    #: Names of recent results that the cell itself binds.
    underscores: list[str] = field(default_factory=list)
    #: Names that the notebook has, that the cell may delete, and whose values it does not need.
    unsent: list[str] = field(default_factory=list)
    #: All names of the user's, in their order, and those that the cell itself deletes, by its text.
    order: list[str] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    #: What was agreed of the roots and the definitions that came with the cell.
    units: list[Unit] = field(default_factory=list)
    definitions: list[Unit] = field(default_factory=list)


@dataclass(slots=True)
class Changed:
    """What goes back to the notebook: its bytes, and what they hold."""

    parts: list[Buffer]
    #: Names that the notebook binds.
    names: list[str]
    stayed: list[Stayed]
    #: The same, and names whose values have changed.
    touched: list[str] = field(default_factory=list)


def changes(namespace: dict[str, Any], baseline: Baseline, *, extra: Mapping[str, object] | None = None) -> Changed:
    """Collect what the notebook must learn of a cell, however it ended.

    Parameters
    ----------
    namespace, baseline
        The executor's, and what `restore` gave for this cell.
    extra
        Values to return beside the names: the result, of which handles go where something cannot travel, and the
        exception, which is then left out.

    Returns
    -------
    Changed
        Names bound anew, values and definitions whose content changed, whatever name they have, deleted names. `stayed`
        has what could not travel: the notebook gets handles.
    """
    deleted = [name for name in (*baseline.came, *baseline.unsent) if name not in namespace]
    for name in baseline.unsent:
        if namespace.get(name) is UNSENT:
            del namespace[name]
    changed: Changed = attempt(lambda wide: _attempt(namespace, baseline, deleted, dict(extra or {}), wide))
    return changed


def _attempt(
    namespace: dict[str, Any], baseline: Baseline, deleted: list[str], extra: dict[str, object], wide: list[Region]
) -> Changed:
    table = baseline.table
    diff, beside = TableDiff(namespace, table, wide=wide), HeldBeside(table)
    diff.encoder.forgotten = beside.forgotten
    diff.add([*names.users(namespace, baseline.keep), *baseline.underscores])
    registered = registration_names.named(registrations.observe(namespace))
    diff.add(registered, registered)
    diff.run(follow=False)
    diff.look_again(baseline.units, baseline.definitions)
    diff.look_back(follow=False)
    came = baseline.came
    bound = [name for name, value in diff.names.items() if name not in came or came[name] is not value]
    told = modules.changed_since(baseline.modules) or None
    writer = ExchangeWriter(diff)
    exchange = writer.pack(bound, modules=told, extra=extra, orphans=_orphans(diff, baseline))
    stayed = [stayed for stayed, value in diff.stayed if table.oid_of(value) < 0]
    stayed += registrations.take_stayed()
    exchange.tail = {
        "deleted": deleted,
        "late": tuple(late_names(baseline.order, names.users(namespace, baseline.keep), baseline.deletes)),
        "held": beside.take_note(
            _nodes(diff, table), writer.number_of, _ours(namespace, baseline, diff, writer, extra)
        ),
        "stayed": stayed,
        "ambient": ambient.changed_since(baseline.ambient),
        "sources": ambient.sources(diff.files),
    }
    packed = exchange.pack()
    bound = [name for name in bound if name not in registered]
    touched = [name for name in _touched(diff, writer, bound) if name not in registered]
    writer.commit(exchange)
    return Changed(packed, bound, stayed, touched)


def _nodes(diff: TableDiff, table: Table) -> Iterator[object]:
    """List the objects of all units that were met, and of the table."""
    for unit in (*diff.units.values(), *diff.definitions.values()):
        yield from (node for node in unit.nodes if node is not None)
    yield from table.objects.values()


def _ours(namespace: dict[str, Any], baseline: Baseline, diff: TableDiff, *others: object) -> list[object]:
    """List all that we hold the notebook's values in."""
    table, units = baseline.table, [*diff.units.values(), *diff.definitions.values()]
    units += [*baseline.units, *baseline.definitions, *table.units.values(), *table.definitions.values()]
    ours = [namespace, baseline, baseline.came, table, table.objects, diff, diff.encoder, diff.names, diff.units]
    return [*ours, *units, *(unit.nodes for unit in units), *others]


def _touched(diff: TableDiff, writer: ExchangeWriter, bound: list[str]) -> list[str]:
    units, definitions = writer.packed
    roots = {id(unit.root) for unit in units} | {id(value) for value in definitions}
    found = dict.fromkeys(bound)
    for name, value in diff.names.items():
        if name in found or is_plain(value):
            continue
        is_part = id(value) not in diff.units  # of another name's value
        if id(value) in roots or (is_part and any(node is value for unit in units for node in unit.nodes)):
            found[name] = None
    return list(found)


def whole(namespace: dict[str, Any], touched: Collection[str], *, extra: Mapping[str, object] | None = None) -> Changed:
    """Collect, for a notebook that did not send the cell, all that the cell bound or changed, complete.

    Parameters
    ----------
    namespace, touched
        The executor's, and the names of it that the cell has bound or changed.
    extra
        As for `changes`.

    Returns
    -------
    Changed
        Values under these names, and under those that their functions look up. Nothing is deleted, and no ambient state
        is set. For an `apply` whose `sent` is a capture of nothing.
    """
    changed: Changed = attempt(lambda wide: _whole(namespace, touched, dict(extra or {}), wide))
    return changed


def _whole(
    namespace: dict[str, Any], touched: Collection[str], extra: dict[str, object], wide: list[Region]
) -> Changed:
    table = Table()
    table.version = 1  # a notebook that has sent nothing is there
    diff = TableDiff(namespace, table, wide=wide)
    diff.add(name for name in touched if names.is_users(name))
    diff.run(follow=True)
    bound = list(diff.names)
    writer = ExchangeWriter(diff)
    exchange = writer.pack(bound, extra=extra)
    stayed = [stayed for stayed, _ in diff.stayed]
    sources = ambient.sources(diff.files)
    exchange.tail = {"deleted": [], "late": ((), ()), "held": None, "stayed": stayed, "ambient": {}, "sources": sources}
    return Changed(exchange.pack(), bound, stayed, bound)


def _orphans(diff: TableDiff, baseline: Baseline) -> list[object]:
    """List objects inside what has changed that nothing leads to any more. The notebook may hold them elsewhere."""
    now = {id(unit.root): unit for unit in diff.units.values()}
    lost: dict[int, object] = {}
    for unit in baseline.units:
        found = now.get(id(unit.root))
        if found is None or not found.is_as(unit):
            lost.update((id(node), node) for node in unit.nodes if node is not None)
    for unit in baseline.definitions:
        if not diff.definitions[unit.uid].is_as(unit):
            lost.update((id(node), node) for node in unit.nodes if node is not None)
    if lost:
        for unit in (*now.values(), *diff.definitions.values()):
            for node in unit.nodes:
                lost.pop(id(node), None)
    return list(lost.values())
