"""The notebook's side before a cell: what the cell needs and the executor does not have."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any

from bulletin.errors import UNLOADABLE, CannotSend

from . import ambient, hand_made_modules, hooks, lookups, modules, names, reducers, registration_names, registrations
from .exchange import Buffer, Exchange
from .exchange_writer import ExchangeWriter
from .handles import LOST, Handle, parts
from .memory import Region, attempt
from .needs import Needs
from .object_paths import Stayed
from .table import ABSENT, Table
from .table_diff import TableDiff
from .weak_targets import WeakTargets


@dataclass(slots=True)
class Captured:
    """Values on their way: their parts, and what was left behind. The large parts are the values' own memory.

    Whoever waits for an answer keeps the whole: the answer refers to it.
    """

    parts: list[Buffer]
    #: Each name that goes, with its size in bytes; 0 where the executor has it.
    names: dict[str, int]
    stayed: list[Stayed]
    diff: TableDiff = field(repr=False)
    writer: ExchangeWriter = field(repr=False)
    exchange: Exchange = field(repr=False)
    known: modules.Known = field(repr=False)
    #: All of the ambient state, also what the executor has already.
    around: ambient.Ambient = field(repr=False)
    #: Modules that the cell imports, as its text spells them.
    imports: tuple[str, ...] = field(repr=False)
    #: Top names of all modules that the cell, and what it reaches, imports or has values of.
    libraries: frozenset[str] = field(repr=False)
    _is_committed: bool = field(default=False, repr=False)

    @property
    def table(self) -> Table:
        """The notebook's half of the table, which it was captured against."""
        return self.diff.table

    def commit(self) -> None:
        """Note in the table that the executor has all of it. A second call changes nothing."""
        if not self._is_committed:
            self._is_committed = True
            self.writer.commit(self.exchange)
            self.table.modules, self.table.ambient = self.known, self.around
            if self.exchange.tail["reached"] is not None:
                self.table.reached = self.exchange.tail["reached"]

    def forget(self) -> None:
        """Let go of all values, once the answer is here: whoever keeps this does not keep those."""
        self.diff.names.clear()
        self.diff.units.clear()
        self.writer.forget()


def capture(
    namespace: dict[str, Any], needs: Needs, *, table: Table | None = None, wanted: Collection[str] = ()
) -> Captured:
    """Collect what the cell needs, with all that its functions and classes look up in their turn.

    Parameters
    ----------
    namespace, needs
        The notebook's, and what `needs` says of the cell.
    table
        The notebook's half of the table that it shares with the executor. Without one the executor has nothing.
    wanted
        Names to send as well, as if the cell read them.

    Returns
    -------
    Captured
        `stayed` has values that the executor gets a handle for.

    Raises
    ------
    CannotSend
        If a name that the cell reads itself holds what cannot travel.
    ModulesTooLarge
        If the notebook's own modules are more than may travel.
    """
    direct = [name for name in dict.fromkeys((*needs.reads, *wanted)) if name in namespace and name not in names.FIXED]
    table = Table() if table is None else table
    captured: Captured = attempt(lambda wide: _attempt(namespace, needs, direct, table, wide))
    return captured


def _attempt(namespace: dict[str, Any], needs: Needs, direct: list[str], table: Table, wide: list[Region]) -> Captured:
    diff = TableDiff(namespace, table, wide=wide)
    targets = WeakTargets(table)
    diff.encoder.forgotten = targets.forgotten
    diff.add(direct)
    if needs.everything:
        diff.add(names.users(namespace))
    hand_made_modules.note_imports(needs.imports)
    registered = registration_names.named(registrations.observe(namespace))
    diff.run(follow=True)
    if hand_made_modules.note_imports(diff.imports):
        registered = registration_names.named(registrations.observe(namespace))
    for _ in registered:  # what is in one may reach another
        reached = _libraries(diff, needs) | hooks.HOMES
        reached |= registrations.lent_to(reached)
        diff.add([name for name in registered if name.removeprefix(names.REGISTERED) in reached], registered)
        if table.held_there:  # a library that the cell does not need may be what holds it, and is to let go of it
            diff.add([name for name, found in registered.items() if table.oid_of(found) >= 0], registered)
        diff.run(follow=True)
    diff.look_again(targets.holders(), ())
    diff.look_back(follow=True)
    left = {id(held) for _, held in diff.stayed}
    for name in direct:
        value = diff.names[name]
        if (type(value) is Handle or id(value) in left) and not names.is_history(name):
            _check(diff, name)
    spelled = modules.submodules(diff.modules, needs.attributes | diff.attributes)
    imports = (*needs.imports, *diff.imports, *spelled)
    shipment, known = modules.out(imports, table.modules, diff.modules, _reached(diff, needs, table))
    writer = ExchangeWriter(diff)
    exchange = writer.pack(diff.names, modules=shipment or None)
    exchange.dropped = _dropped([*namespace.values(), *registered.values()], diff)
    exchange.dropped_regions = diff.unused_regions(exchange.dropped)
    exchange.dropped_leaves = diff.unused_leaves(exchange.dropped)
    around, reaches = ambient.out(), list(diff.definitions)
    exchange.tail = {
        **ambient.news(around, table.ambient),
        "sources": ambient.sources(diff.files),
        "reached": None if reaches == table.reached else reaches,
        "underscores": _underscores(namespace, needs),
        "unsent": [name for name in needs.deletes if name in namespace and name not in diff.names],
        "deletes": list(needs.unbinds),
        "order": names.users(namespace) if needs.everything else [],
    }
    stayed = [stayed for stayed, _ in diff.stayed]
    homes = modules.imports_through({*_homes(diff, needs), *diff.homes}, known)
    return Captured(
        exchange.pack(),
        _sizes(diff, writer),
        stayed,
        diff,
        writer,
        exchange,
        known,
        around,
        tuple(needs.imports),
        frozenset(home.partition(".")[0] for home in homes),
    )


def _homes(diff: TableDiff, needs: Needs) -> set[str]:
    """List the modules that the cell gets something of, by their full names."""
    values = diff.names.values()
    kinds = {*map(type, values), *diff.encoder.kinds, *diff.kinds}
    definitions = [value for value in values if isinstance(value, FunctionType | type)]
    homes = {*diff.modules, *diff.imports, *needs.imports, *_ALWAYS}
    return homes.union(home for home in map(_HOME, (*kinds, *definitions)) if isinstance(home, str))


#: Modules whose kinds any value may have inside.
_ALWAYS = frozenset(kind.__module__ for kind in reducers.EXACT)
_HOME = attrgetter("__module__")


def _libraries(diff: TableDiff, needs: Needs) -> set[str]:
    """List the packages that the cell gets something of, by their top names."""
    return {home.partition(".")[0] for home in _homes(diff, needs)}


def _reached(diff: TableDiff, needs: Needs, table: Table) -> set[str] | None:
    """List the packages that the cell gets anything of, by their top names; None where it may load any."""
    if not table.modules.entries:
        return set()  # there is none that it could reach
    spelled = needs.attributes | diff.attributes
    if needs.everything or diff.is_open or not _LOADERS.isdisjoint(spelled):
        return None
    return _libraries(diff, needs) | {home.partition(".")[0] for home in diff.homes}


#: Names of what loads modules that nobody spells.
_LOADERS = frozenset({
    "__import__", "exec_module", "import_module", "load", "loads", "modules", "read_pickle", "reload", "resolve_name",
    "run_module", "run_path", "Unpickler", "walk_packages",
})  # fmt: skip


def _underscores(namespace: dict[str, Any], needs: Needs) -> list[str]:
    """List the names of recent results that the cell binds itself, or the `with gpu:` block that it calls."""
    bound = [name for name in needs.writes if names.is_users_underscore(name)]
    code = getattr(namespace.get(names.CALL), "__code__", None) if names.CALL in needs.reads else None
    if isinstance(code, CodeType) and any(map(names.is_users_underscore, lookups.attributes(code))):
        stored = [name for name, verb in lookups.operations(code) if verb == "STORE"]
        bound += [name for name in dict.fromkeys(stored) if names.is_users_underscore(name)]
    return bound


def _check(diff: TableDiff, name: str) -> None:
    """Raise CannotSend if a name holds what cannot travel."""
    value = diff.names[name]
    if type(value) is Handle and diff.table.oid_of(value) == ABSENT:
        kind, _, _ = parts(value)
        raise CannotSend(name, name, f"{'value' if kind == UNLOADABLE else kind} that {LOST}")
    for stayed, held in diff.stayed:
        if held is value:
            raise CannotSend(name, name, stayed.kind)


def _dropped(values: Iterable[object], diff: TableDiff) -> list[int]:
    """List the roots that are none of these values any more. The executor may forget them."""
    held = set(map(id, values))
    table = diff.table
    return [oid for oid, unit in table.units.items() if id(unit.root) not in held and id(unit.root) not in diff.units]


def _sizes(diff: TableDiff, writer: ExchangeWriter) -> dict[str, int]:
    units, definitions = writer.packed
    changed = {id(unit.root): unit for unit in units}
    written = set(map(id, definitions))
    by_root = {id(unit.root): len(unit.data) for unit in diff.definitions.values() if id(unit.root) in written}
    found = {}
    for name, value in diff.names.items():
        if names.is_registered(name):
            continue
        unit = changed.get(id(value))
        found[name] = by_root.get(id(value), 0)
        if unit is not None:
            found[name] = len(unit.data) + unit.bytes_beside
    return found
