"""What an exchange is about: values of names and all definitions that they reach, each compared with the table.

The same for both sides: the notebook asks what a cell needs that the executor does not have, the executor asks what a
cell has changed.
"""

from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from . import definition_ids, names
from .atoms import ATOMS
from .encoder import Encoder
from .exchange import Exchange, PickleStream, RegionContent
from .handles import Handle
from .memory import Finder, Region, Widen, changed_runs
from .object_paths import Stayed, kind_of
from .reducers.functions import is_importable
from .reducers.named import travels_by_name
from .table import ABSENT, Table, Unit


def is_plain(value: object) -> bool:
    """Tell whether a value travels with its name, since it has no content or is found by its own name."""
    kind = type(value)  # and not `isinstance`, which asks the value itself
    if issubclass(kind, BuiltinFunctionType):  # `numbers.append` is a value, `len` is not
        owner: Any = getattr(value, "__self__", None)
        return owner is None or issubclass(type(owner), ModuleType | type)
    if issubclass(kind, ModuleType):
        module: Any = value
        return travels_by_name(module)
    if kind is tuple:  # the empty one is everywhere the same, and pickle gives it no place
        return not value
    return kind in ATOMS or issubclass(kind, FunctionType | type)


class TableDiff:
    """Names, and units for what they hold. `run` once, then `pack`, and `commit` when the other side has it."""

    def __init__(self, namespace: dict[str, Any], table: Table, *, wide: Iterable[Region] = ()) -> None:
        self.namespace, self.table = namespace, table
        self.encoder = Encoder(namespace, Finder(table.regions.values(), wide))
        #: The names, each with its value as it was found.
        self.names: dict[str, object] = {}
        #: By the id of the root; by the id of the definition.
        self.units: dict[int, Unit] = {}
        self.definitions: dict[str, Unit] = {}
        self.stayed: list[tuple[Stayed, object]] = []
        self.files: dict[str, None] = {}
        self.imports: dict[str, None] = {}
        self.attributes: set[str] = set()
        self.modules: dict[str, None] = {}
        self._queue: deque[tuple[str, object]] = deque()
        self._later: deque[tuple[str, object]] = deque()
        #: Ids of what the units hold, but for those that were not asked yet.
        self._cache_inside: set[int] = set()
        self._cache_pending: list[Unit] = []
        self._pending: dict[int, int] = {}
        self._alive: list[Unit] = []  # the ids of whose nodes are in `_pending`
        self._next_oid, self._next_rid = max(table.next_oid, 1), table.next_rid
        self._is_open = False  # all names of the namespace have been added
        self._is_narrow = False  # nothing but what `look_at` was given counts
        #: Of the last `pack`: what was new or changed, the regions that go, and extra values that could not.
        self._changed: list[Unit] = []
        self._changed_definitions: dict[str, object] = {}
        self._inside: list[Unit] = []
        self._sent: dict[int, Region] = {}
        self.refused: list[str] = []

    def add(self, found: Iterable[str], held: Mapping[str, object] | None = None) -> None:
        """Add these names of the namespace, or of `held`, with what they hold, to what `run` looks at."""
        held = self.namespace if held is None else held
        for name in found:
            if name in held and name not in self.names and name not in names.FIXED:
                value = held[name]
                self.names[name] = value
                self._queue.append((name, value))

    def run(self, *, follow: bool) -> None:
        """Look at everything, and with `follow` also at names that functions look up.

        Raises
        ------
        Widen
            If another diff is needed that knows of a larger region.
        """
        while self._queue or self._later:
            if not self._queue:
                name, value = self._later.popleft()
                if not self._is_inside(value):
                    self._see(name, value, follow=follow)
                continue
            name, value = self._queue.popleft()
            if self._is_plain(value):
                self._see_plain(value, follow=follow)
            elif id(value) in self.units:
                continue
            elif self.table.unit_of(value) is not None:
                self._see(name, value, follow=follow)
            else:  # what both sides know as units comes first: it may hold this
                self._later.append((name, value))

    def _is_plain(self, value: object) -> bool:
        """Tell whether a value travels with its name: as `is_plain`, or as the handle of a value that is lost.

        Such a handle has no number, and no unit can have it as its root.
        """
        return is_plain(value) or (type(value) is Handle and self.table.oid_of(value) == ABSENT)

    def _is_inside(self, value: object) -> bool:
        """Tell whether a unit holds it: a name of such an object needs no unit of its own."""
        for unit in self._cache_pending:
            self._cache_inside.update(map(id, unit.nodes))
        self._cache_pending.clear()
        return id(value) in self._cache_inside

    def look_again(self, units: Iterable[Unit], definitions: Iterable[Unit]) -> None:
        """Encode what was agreed before, whether or not a name leads to it now."""
        for unit in units:
            if id(unit.root) not in self.units:
                self._see("a value", unit.root, follow=False)
        for unit in definitions:
            self._see_definition(unit.uid, unit.root, follow=False)

    def look_at(self, roots: Iterable[object], definitions: Iterable[object]) -> None:
        """Encode these roots and definitions, with the roots inside them, and nothing else that they lead to."""
        self._is_narrow = True
        for root in roots:
            self._see("a value", root, follow=False)
        for root in self.table.roots_inside(self.units.values()):
            self._see("a value", root, follow=False)
        for definition in definitions:
            self._see_definition(definition_ids.uid_of(definition), definition, follow=False)

    def _see_plain(self, value: Any, *, follow: bool) -> None:
        if isinstance(value, ModuleType):
            self.modules[value.__name__] = None
        elif isinstance(value, FunctionType | type) and not is_importable(value):
            self._see_definition(definition_ids.uid_of(value), value, follow=follow)

    def _see(self, name: str, value: object, *, follow: bool) -> None:
        try:
            unit = self.encoder.encode(value, name)
        except Widen:
            raise
        except Exception as problem:  # noqa: BLE001  whatever a value's own code raises means that it cannot travel
            unit = self.encoder.encode_handle(value, _left(name, value, problem))
        self.units[id(value)] = unit
        self._cache_pending.append(unit)
        self._after(follow=follow)

    def _see_definition(self, uid: str, value: Any, *, follow: bool) -> None:
        if uid in self.definitions:
            return
        self.encoder.is_digest = True
        try:
            unit = self.encoder.encode(value, self.encoder.called(value), uid=uid)
        finally:
            self.encoder.is_digest = False
        self.definitions[uid] = unit
        self._after(follow=follow)

    def _after(self, *, follow: bool) -> None:
        encoder = self.encoder
        met, found, is_dynamic = dict(encoder.definitions), list(encoder.names), encoder.is_dynamic
        self.stayed += encoder.stayed
        self.files.update(encoder.files)
        self.imports.update(encoder.imports)
        self.attributes |= encoder.attributes
        self.modules.update(encoder.modules)
        if follow:
            self.add(found)
            if is_dynamic and not self._is_open:
                self._is_open = True
                self.add(names.users(self.namespace))
        for uid, definition in met.items() if not self._is_narrow else ():
            self._see_definition(uid, definition, follow=follow)

    # --- what is new

    def changed_units(self) -> list[Unit]:
        """List the units that the other side does not have as they are."""
        found = []
        for unit in self.units.values():
            known = self.table.unit_of(unit.root)
            if known is None or not unit.is_as(known):
                found.append(unit)
        return found

    def changed_definitions(self) -> dict[str, object]:
        """Return, by id, the functions and classes that the other side does not have as they are."""
        found = {}
        for uid, unit in self.definitions.items():
            known = self.table.definitions.get(uid)
            if known is None or not unit.is_as(known):
                found[uid] = unit.root
        return found

    @property
    def packed(self) -> tuple[list[Unit], list[object]]:
        """The units, and the functions and classes, that `pack` has found to be new or changed."""
        return self._changed, list(self._changed_definitions.values())

    # --- packing

    def pack(
        self,
        bound: Iterable[str],
        *,
        modules: object = None,
        extra: Mapping[str, object] | None = None,
        orphans: list[object] | None = None,
    ) -> Exchange:
        """Write an exchange: everything that the other side does not have, and what these names are bound to.

        `modules` is what is said of the notebook's own modules; `extra` are values beside the names; `orphans` are
        objects that no name leads to any more.
        """
        exchange = Exchange(self.table.version, 0, 0)
        sent: dict[int, Region] = {}
        changed = self._changed_definitions = self.changed_definitions()
        if changed:
            unit = self.encoder.encode(list(changed.values()), "a definition", inline=frozenset(changed), is_ours=True)
            self._write(exchange, "definitions", unit, sent)
        units = self._changed = self.changed_units()
        for unit in units:
            self._number(unit)
        plain = {name: value for name in bound if self._is_plain(value := self.names[name])}
        if plain:
            self._write(exchange, "plain", self.encoder.encode(plain, "a name", is_ours=True), sent, is_new=False)
        for unit in units:
            self._write(exchange, "unit", unit, sent)
        if orphans:
            unit = self._with_definitions(exchange, lambda: self.encoder.encode(orphans, "a value", is_ours=True), sent)
            self._write(exchange, "orphans", unit, sent, is_new=False)
        self.refused.clear()
        for key, value in (extra or {}).items():
            self._write_extra(exchange, key, value, sent)
        if modules is not None:
            self._write(
                exchange, "modules", self.encoder.encode([modules], "a module", is_ours=True), sent, is_new=False
            )
            exchange.streams.insert(0, exchange.streams.pop())
        for region in sent.values():
            exchange.memory.append(self._content(region))
        exchange.bound = {
            name: self._oid_of(self.names[name])
            for name in bound
            if name not in plain and self._oid_of(self.names[name]) != ABSENT
        }
        exchange.next_oid, exchange.next_rid = self._next_oid, self._next_rid
        self._sent, self._inside = sent, self._encode_inside(units)
        return exchange

    def _encode_inside(self, units: Sequence[Unit]) -> list[Unit]:
        """Encode the roots inside these units that nobody looked at: both sides have them alike when these are there.

        Otherwise they would go once more with the next cell that reads them.
        """
        found = []
        for root in self.table.roots_inside(units):
            if id(root) not in self.units:
                with suppress(Exception):  # one that cannot be encoded is as it was agreed upon
                    found.append(self.encoder.encode(root, "a value"))
        return found

    def unused_regions(self, dropped: Collection[int]) -> list[int]:
        """List known memory that no unit uses once the other side has this, and has forgotten these roots."""
        table = self.table
        kept = [unit for oid, unit in table.units.items() if oid not in dropped and id(unit.root) not in self.units]
        kept += [unit for uid, unit in table.definitions.items() if uid not in self.definitions]
        found = (*kept, *self.units.values(), *self.definitions.values())
        used = {region.rid for unit in found for region in unit.regions}
        used.update(table.regions_left(self.namespace.values()))
        return [rid for rid in table.regions if rid not in used]

    def _write_extra(self, exchange: Exchange, key: str, value: object, sent: dict[int, Region]) -> None:
        is_behind = type(value) is Handle or any(held is value for _, held in self.stayed)
        if not is_behind and not is_plain(value) and self._is_inside(value) and self._oid_of(value) != ABSENT:
            exchange.known[key] = self._oid_of(value)  # a model that a cell shows in the end need not come for that
            return
        try:
            unit = self.encoder.encode({key: value}, key, is_ours=True)
        except Widen:
            raise
        except Exception:  # noqa: BLE001  as above; the caller says what is missing
            self.refused.append(key)
            return
        if any(held is value for _, held in self.encoder.stayed):
            self.refused.append(key)
            return
        self.files.update(self.encoder.files)
        unit = self._with_definitions(
            exchange, lambda: self.encoder.encode({key: value}, key, is_ours=True), sent, unit
        )
        self._write(exchange, "extra", unit, sent, is_new=False)

    def _with_definitions(
        self, exchange: Exchange, encode: Callable[[], Unit], sent: dict[int, Region], unit: Unit | None = None
    ) -> Unit:
        """Write the functions and classes that were met in a unit alone, and return the unit, then encoded anew.

        `unit` is what `encode` gave just now; without it, `encode` is called first.
        """
        unit = unit or encode()
        unknown = {uid: held for uid, held in self.encoder.definitions.items() if uid not in self.definitions}
        if not unknown:
            return unit
        for uid, held in unknown.items():
            self._see_definition(uid, held, follow=False)
        new = self._changed_definitions = self.changed_definitions()
        whole = self.encoder.encode(list(new.values()), "a definition", inline=frozenset(new), is_ours=True)
        self._write(exchange, "definitions", whole, sent)
        return encode()

    def _number(self, unit: Unit) -> None:
        """Give numbers to the unit's objects and memory that have none."""
        known, pending = self.table.oids, self._pending
        oids, next_oid = unit.oids, self._next_oid
        for node in unit.nodes:
            key = id(node)
            if node is None or (type(node) is Handle and key not in known):  # this one stands for what is lost
                oids.append(ABSENT)
            elif key in known:
                oids.append(known[key])
            elif key in pending:
                oids.append(pending[key])
            else:
                pending[key] = next_oid
                oids.append(next_oid)
                next_oid += 1
        self._next_oid = next_oid
        self._alive.append(unit)
        for region in unit.regions:
            if region.rid < 0 and region.is_held:
                region.rid = self._next_rid
                self._next_rid += 1

    def _oid_of(self, value: object) -> int:
        found = self.table.oids.get(id(value))
        return self._pending.get(id(value), ABSENT) if found is None else found

    def _oids_of(self, unit: Unit) -> list[int]:
        return [ABSENT if node is None else self._oid_of(node) for node in unit.nodes]

    def _write(
        self, exchange: Exchange, kind: str, unit: Unit, sent: dict[int, Region], *, is_new: bool = True
    ) -> None:
        if is_new and not unit.oids:
            self._number(unit)
        oids = unit.oids or self._oids_of(unit)
        rids = []
        for region in unit.regions:
            rid = region.rid
            if rid == -1:  # nobody holds what looks at it: it is new each time
                rid = region.rid = -2 - len(sent)
            sent[id(region)] = region
            rids.append(rid)
        exchange.streams.append(
            PickleStream(kind, unit.data, array("i", oids).tobytes(), rids, self._oid_of(unit.root))
        )

    def _content(self, region: Region) -> RegionContent:
        known = self.table.regions.get(region.rid)
        now = region.digests()
        if known is region and region.agreed is not None and len(region.agreed) == len(now):
            runs = changed_runs(region.agreed, now, region.size)
            whole = region.read() if runs else memoryview(b"")
            pieces = [(start, whole[start:end]) for start, end in runs]
            return RegionContent(region.rid, region.size, False, region.is_guarded, pieces, now)
        return RegionContent(region.rid, region.size, True, region.is_guarded, [(0, region.read())], now)

    def commit(self, exchange: Exchange) -> None:
        """Note in the table that the other side has the exchange."""
        table = self.table
        definitions = [self.definitions[uid] for uid in self._changed_definitions]
        for unit in definitions:  # they travelled together, and not one by one
            unit.oids = self._oids_of(unit)
        for unit in (*self._changed, *definitions):
            table.learn(unit.oids, unit.nodes)
        for region in self._sent.values():
            if region.rid >= 0:
                region.agreed = region.digests()
                table.regions[region.rid] = region
        for unit in self._inside:
            unit.oids = self._oids_of(unit)
        table.settle((*self._changed, *self._inside), definitions)
        table.drop(exchange.dropped, exchange.dropped_regions)
        table.next_oid, table.next_rid = exchange.next_oid, exchange.next_rid
        table.version += 1


def _left(name: str, value: object, problem: Exception) -> Stayed:
    """Describe a value that no stream can hold, for messages."""
    if isinstance(problem, RecursionError):
        return Stayed(name, f"{kind_of(value)} that is nested too deeply", name, str(problem))
    return Stayed(name, kind_of(value), name, " ".join(str(problem).split()) or kind_of(problem))
