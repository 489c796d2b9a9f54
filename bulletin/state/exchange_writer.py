"""How what differs becomes an exchange: numbers for its objects, streams, memory; and the table in step with it."""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from .atoms import ATOMS
from .exchange import Exchange, PickleStream, RegionContent
from .handles import Handle
from .leaves import Leaves
from .memory import Region, Widen, changed_runs
from .names import RESULT, RESULT_NAME
from .table import ABSENT, Unit
from .table_diff import TableDiff, is_plain

_ATOMS = frozenset(ATOMS)


class ExchangeWriter:
    """Packs what a `TableDiff` has found. `pack` once, then `commit` when the other side has it."""

    def __init__(self, diff: TableDiff) -> None:
        self._diff, self._table, self._encoder = diff, diff.table, diff.encoder
        self._pending: dict[int, int] = {}
        self._alive: list[Unit] = []  # the ids of whose nodes are in `_pending`
        self._next_oid, self._next_rid = max(diff.table.next_oid, 1), diff.table.next_rid
        #: What was new or changed, and the regions and leaves that go.
        self._changed: list[Unit] = []
        self._changed_definitions: dict[str, object] = {}
        self._inside: list[Unit] = []
        self._sent: dict[int, Region] = {}
        self._leaves: dict[int, Leaves] = {}  # by their numbers
        self._lids: dict[int, int] = {}  # and back, by their serials

    @property
    def packed(self) -> tuple[list[Unit], list[object]]:
        """The units, and the functions and classes, that `pack` has found to be new or changed."""
        return self._changed, list(self._changed_definitions.values())

    def forget(self) -> None:
        """Let go of all units."""
        for units in (self._alive, self._changed, self._inside):
            units.clear()
        self._changed_definitions.clear()

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
        exchange = Exchange(self._table.version, 0, 0, 0)
        sent: dict[int, Region] = {}
        changed = self._changed_definitions = self._diff.changed_definitions()
        if changed:
            unit = self._encoder.encode(list(changed.values()), "a definition", inline=frozenset(changed), is_ours=True)
            self._write(exchange, "definitions", unit, sent)
        units = self._changed = self._diff.changed_units()
        for unit in units:
            self._number(unit)
        held = {name: self._diff.names[name] for name in bound}
        plain = {name: value for name, value in held.items() if type(value) in _ATOMS or self._diff.is_plain(value)}
        if plain:
            self._write(exchange, "plain", self._encoder.encode(plain, "a name", is_ours=True), sent, is_new=False)
        for unit in units:
            self._write(exchange, "unit", unit, sent)
        if orphans:
            unit = self._with_definitions(
                exchange, lambda: self._encoder.encode(orphans, "a value", is_ours=True), sent
            )
            self._write(exchange, "orphans", unit, sent, is_new=False)
        for key, value in (extra or {}).items():
            self._write_extra(exchange, key, value, sent)
        if modules is not None:
            self._write(
                exchange, "modules", self._encoder.encode([modules], "a module", is_ours=True), sent, is_new=False
            )
            exchange.streams.insert(0, exchange.streams.pop())
        for region in sent.values():
            exchange.memory.append(self._content(region))
        numbered = ((name, self.number_of(value)) for name, value in held.items() if name not in plain)
        exchange.bound = {name: oid for name, oid in numbered if oid != ABSENT}
        exchange.leaves = {lid: leaves.pack() for lid, leaves in self._leaves.items()}
        exchange.next_oid, exchange.next_rid = self._next_oid, self._next_rid
        exchange.next_lid = self._table.next_lid + len(self._lids)
        self._sent, self._inside = sent, self._encode_inside(units)
        return exchange

    def _encode_inside(self, units: Sequence[Unit]) -> list[Unit]:
        """Encode the roots inside these units that nobody looked at: both sides have them alike when these are there.

        Otherwise they would go once more with the next cell that reads them.
        """
        found = []
        for root in self._table.roots_inside(units):
            if id(root) not in self._diff.units:
                with suppress(Exception):  # one that cannot be encoded is as it was agreed upon
                    found.append(self._encoder.encode(root, "a value"))
        return found

    def _write_extra(self, exchange: Exchange, key: str, value: object, sent: dict[int, Region]) -> None:
        """Write a value beside the names. An error that cannot travel is left out: its text goes besides."""
        if not is_plain(value) and self._diff.is_inside(value) and self.number_of(value) != ABSENT:
            exchange.known[key] = self.number_of(value)  # a model that a cell shows in the end need not come for that
            return
        unit: Unit | None = None
        try:
            unit = self._encoder.encode({key: value}, key, is_ours=True)
        except Widen:
            raise
        except Exception:  # noqa: BLE001  whatever a value's own code raises
            does_stay = True
        else:
            stayed = [held for _, held in self._encoder.stayed]
            does_stay = bool(stayed) if key == RESULT else any(held is value for held in stayed)
        if does_stay:
            if key == RESULT:
                self._keep_result(exchange, value, sent)
            return
        self._diff.files.update(self._encoder.files)
        unit = self._with_definitions(
            exchange, lambda: self._encoder.encode({key: value}, key, is_ours=True), sent, unit
        )
        self._write(exchange, "error" if key == "error" else "extra", unit, sent, is_new=False)

    def _keep_result(self, exchange: Exchange, value: object, sent: dict[int, Region]) -> None:
        """Write a result that stays here, or of which a part does, as the value of a name: handles lead back to it."""
        unit = self._with_definitions(exchange, lambda: self._diff.encode(RESULT_NAME, value), sent)
        self._diff.stayed += self._encoder.stayed
        self._diff.files.update(self._encoder.files)
        self._diff.units[id(value)] = unit
        self._number(unit)
        self._changed.append(unit)
        self._write(exchange, "unit", unit, sent)
        exchange.known[RESULT] = self.number_of(value)

    def _with_definitions(
        self, exchange: Exchange, encode: Callable[[], Unit], sent: dict[int, Region], unit: Unit | None = None
    ) -> Unit:
        """Write the functions and classes that were met in a unit alone, and return the unit, then encoded anew.

        `unit` is what `encode` gave just now; without it, `encode` is called first.
        """
        unit = unit or encode()
        unknown = {uid: held for uid, held in self._encoder.definitions.items() if uid not in self._diff.definitions}
        if not unknown:
            return unit
        for uid, held in unknown.items():
            self._diff.see_definition(uid, held, follow=False)
        new = self._changed_definitions = self._diff.changed_definitions()
        whole = self._encoder.encode(list(new.values()), "a definition", inline=frozenset(new), is_ours=True)
        self._write(exchange, "definitions", whole, sent)
        return encode()

    def _number(self, unit: Unit) -> None:
        """Give numbers to the unit's objects and memory that have none."""
        known, pending = self._table.oids, self._pending
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

    def number_of(self, value: object) -> int:
        """Return the number that an object has, or gets by this exchange; ABSENT if it has none."""
        found = self._table.oids.get(id(value))
        return self._pending.get(id(value), ABSENT) if found is None else found

    def _oids_of(self, unit: Unit) -> list[int]:
        return [ABSENT if node is None else self.number_of(node) for node in unit.nodes]

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
        lids = [self._lid_of(leaves) for leaves in unit.leaves]
        numbers = array("i", oids).tobytes()
        exchange.streams.append(PickleStream(kind, unit.data, numbers, rids, self.number_of(unit.root), lids))

    def _lid_of(self, leaves: Leaves) -> int:
        lid = self._table.lids.get(leaves.serial)
        if lid is None and leaves.serial not in self._lids:
            lid = self._lids[leaves.serial] = self._table.next_lid + len(self._lids)
            self._leaves[lid] = leaves
        return self._lids[leaves.serial] if lid is None else lid

    def _content(self, region: Region) -> RegionContent:
        known = self._table.regions.get(region.rid)
        now = region.digests()
        if known is region and region.agreed is not None and len(region.agreed) == len(now):
            runs = changed_runs(region.agreed, now, region.size)
            whole = region.read() if runs else memoryview(b"")
            pieces = [(start, whole[start:end]) for start, end in runs]
            return RegionContent(region.rid, region.size, False, region.is_guarded, pieces, now)
        return RegionContent(region.rid, region.size, True, region.is_guarded, [(0, region.read())], now)

    def commit(self, exchange: Exchange) -> None:
        """Note in the table that the other side has the exchange."""
        table = self._table
        definitions = [self._diff.definitions[uid] for uid in self._changed_definitions]
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
        table.learn_leaves(self._leaves)
        table.forward(exchange)
