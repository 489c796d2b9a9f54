"""How an exchange is read into a namespace and a table, so that all of it can be taken back."""

from array import array
from collections.abc import Collection, Mapping, Sequence
from types import NoneType
from typing import Any

from bulletin.errors import UNLOADABLE

from . import modules, names, registrations
from .atoms import has_nan
from .decoder import Decoder
from .exchange import Buffer, Damaged, Exchange, PickleStream, RegionContent
from .handles import NOT_KEPT, Handle
from .inplace import fill_dict, fill_list
from .leaves import Leaves, load
from .load_transaction import LoadTransaction, NotHere, Unpicklable
from .meanwhile import Aside
from .memory import Region, attempt
from .name_order import put_last
from .names import RESULT, RESULT_NAME
from .object_paths import Stayed, kind_of
from .stream_reader import CameAnew, Reader, unit_as_read, units_as_they_came
from .table import ABSENT, Table, Unit
from .table_diff import TableDiff

_ABSENT = object()


class ExchangeReader:
    """Reads an exchange into a namespace and a table, and can take it back from the namespace and all objects.

    `read` and `commit` can be undone; `write_memory` and `delete` cannot fail; `update_table` is about the table alone.

    Names are bound as they come: code of the user's may run while later values load, and look them up.
    """

    def __init__(self, namespace: dict[str, Any], table: Table, absence: str, *, may_leave: bool = False) -> None:
        """Begin. With `may_leave` a new value that cannot be loaded stays on the other side, under a handle here."""
        self.namespace, self.table = namespace, table
        self.transaction = LoadTransaction(namespace, table, absence)
        self._before: dict[str, object] = {}
        self._regions: dict[int, Region] = {}
        self._leaves: dict[int, Leaves] = {}
        self._patches: list[tuple[Region, RegionContent]] = []
        self._writes: list[tuple[memoryview, memoryview]] = []
        self._memory: dict[int, RegionContent] = {}
        self._roots: list[object] = []
        self._came: dict[int, Buffer] = {}  # by the id of the root, the stream that it was read from
        self._as_came: list[Unit] = []  # what is known of others, by a witness
        self._as_read: dict[int, Unit] = {}  # by the id of the root, what is known of it without looking
        self._anew: dict[int, CameAnew] = {}
        self._definitions: list[object] = []
        self.exchange: Exchange | None = None
        self.told: modules.Shipment | modules.Changes | None = None
        self.at, self._at_oid = "", ABSENT  # the name that is being bound, and the root that is being read
        self.bound: dict[str, None] = {}
        self.extra: dict[str, Any] = {}
        self.gone: list[str] = []  # names to unbind in the end
        self.aside: Aside | None = None
        self.laid_aside: dict[str, Any] = {}
        self.changed: tuple[str, ...] = ()
        self.left: list[Stayed] = []
        self._may_leave = may_leave
        self._registered: dict[str, Any] = {}
        self.looked_at: Collection[Unit] = ()  # units of this side that somebody keeps

    @property
    def reading(self) -> str:
        """Return a name of the value that is being read; empty where it has none."""
        root = self.table.objects.get(self._at_oid)
        known = (name for name, held in self.namespace.items() if held is root and names.is_users(name))
        return self.at or ("" if root is None else next(known, ""))

    def is_aside(self, name: str) -> bool:
        """Tell whether the value of this name is laid aside, since the notebook keeps its own."""
        return self.aside is not None and self.aside.takes(name, self.namespace)

    def read(self, exchange: Exchange) -> None:
        """Load everything. Known memory is written by `write_memory` only."""
        self.exchange = exchange
        self._memory = {memory.rid: memory for memory in exchange.memory}
        coming = {stream.root for stream in exchange.streams}
        parts = {name: oid for name, oid in exchange.bound.items() if oid not in coming}  # or in the table
        waiting: dict[int, list[str]] = {}
        for name, oid in exchange.bound.items() if coming else ():
            if oid in coming:
                waiting.setdefault(oid, []).append(name)
        objects = self.table.objects
        self._bind_all({name: objects[oid] for name, oid in parts.items() if oid in objects})
        for stream in exchange.streams:
            bound = waiting.get(stream.root, [])
            self.at = bound[0] if bound else ""
            self._at_oid = stream.root
            self._take(stream, self._load_or_leave(stream), bound)
        self._bind_all(
            {name: objects[oid] if oid in objects else self._leave(oid, name) for name, oid in parts.items()}
        )
        for key, oid in exchange.known.items():
            self.extra[key] = self.table.objects[oid] if oid in self.table.objects else self._leave(oid, RESULT_NAME)
        self.gone = [name for name in exchange.tail.get("deleted", ()) if not self.is_aside(name)]
        if self.aside is not None:
            self.aside.collect(self.table.objects)
            aside = self.aside.values.items()
            self.laid_aside = {name: value for name, value in aside if not names.is_registered(name)}
            self.changed = tuple(self.aside.changed)
        self.at, self._at_oid = "", ABSENT

    def _take(self, stream: PickleStream, value: Any, bound: list[str]) -> None:
        match stream.kind:
            case "modules":
                self.told = value[0]
                self._follow(self.told)
            case "definitions":
                self._definitions += value
            case "plain":
                self._bind_all(value)
            case "unit":
                self._roots.append(value)
                self._came[id(value)] = stream.data
                self._bind_all(dict.fromkeys(bound, value))
            case "extra" | "error":
                self.extra.update(value)

    def _follow(self, told: modules.Shipment | modules.Changes) -> None:
        if isinstance(told, modules.Shipment):
            modules.settle(told)
        else:
            self.transaction.undoable(modules.keep(told))
            modules.follow(told)

    def _load_or_leave(self, stream: PickleStream) -> Any:
        """Load a stream. What fails costs no other value: a new one is left where it is, an error or result is lost."""
        is_new = type(self.table.objects.get(stream.root)) in (NoneType, Handle)
        is_unit = stream.kind == "unit" and is_new and (self._may_leave or names.is_registered(self.at))
        if not is_unit and stream.kind not in ("error", "extra"):
            return self._load(stream)
        mark = self.transaction.mark()
        self.table.left.pop(stream.root, None)
        try:
            return self._load(stream)
        except (MemoryError, Damaged):
            raise
        except Exception as problem:
            if self.transaction.undo(mark):
                raise
            if stream.kind == "error":
                return {}  # its text has come besides
            if stream.kind == "extra":
                return {RESULT: self._lose_result(describe_problem(problem))}
            self.table.left[stream.root] = stream.rids
            return self._leave(stream.root, self.at or RESULT_NAME, describe_problem(problem))

    def _leave(self, oid: int, name: str, why: str = "") -> Handle:
        """Put a handle in the place of a value that stays on the other side."""
        known = self.table.objects.get(oid)
        if type(known) is Handle:
            return known  # it was left before, and that was told
        handle = Handle(UNLOADABLE, name, self.transaction.absence)
        self.table.learn([oid], [handle])
        if why:
            self.left.append(Stayed(name, f"{UNLOADABLE} ({why})", name, why))
        return handle

    def _lose_result(self, why: str) -> Handle:
        """Make a handle for a result that cannot be loaded here. It has no name, so the other side has let go of it."""
        self.left.append(Stayed("", UNLOADABLE, "", why))
        return Handle(UNLOADABLE, RESULT_NAME, NOT_KEPT)

    def _load(self, stream: PickleStream) -> Any:
        oids = array("i", bytes(stream.oids)).tolist()
        self.transaction.regions = [self._region(rid) for rid in stream.rids]
        self.transaction.leaves = [self._leaves_at(lid) for lid in stream.leaves]
        is_new = self.table.objects.keys().isdisjoint(oids) and not has_nan(stream.data)
        value, made = self._read_new(stream) if is_new else self._decode(stream, oids)
        self.table.learn(oids, made)
        is_simple = is_new and not stream.leaves
        if is_simple and stream.kind == "unit":
            self._anew[id(value)] = CameAnew(stream.data, made, oids, self.transaction.regions)
        unit = unit_as_read(value, stream.data, made, oids) if is_simple else None
        if unit is None:
            self._as_read.clear()  # code of the user's may have run, and changed what came before
        elif stream.kind == "unit":
            self._as_read[id(value)] = unit
        self.transaction.read.append(made)
        return value

    def _read_new(self, stream: PickleStream) -> tuple[Any, list[object]]:
        """Read what is all new, fast; what fails so is read once more by the decoder, which can put steps off.

        That does not help where something is not here.
        """
        mark, made = self.transaction.mark(), len(self.transaction.alive)
        try:
            return Reader(stream.data, self.namespace, self.transaction).read()
        except (MemoryError, Damaged, ImportError, NotHere, Unpicklable):
            raise
        except Exception:  # whatever a class's own code fails with, where its turn is too early
            if self.transaction.undo(mark):
                raise
        self.transaction.forget_made(made)
        return self._decode(stream, [])  # behind the `except`, which keeps alive what was half made

    def _decode(self, stream: PickleStream, oids: list[int]) -> tuple[Any, list[object]]:
        existing = list(map(self.table.objects.get, oids))
        return Decoder(bytes(stream.data), self.namespace, self.transaction, existing).read()

    def _region(self, rid: int) -> Region:
        """Return the region of that number: the known one, or one that is arriving.

        Raises Damaged if only a part has come, and the rest is not here.
        """
        found = self._regions.get(rid)
        if found is not None:
            return found
        memory, known = self._memory[rid], self.table.regions.get(rid)
        if known is not None and known.size == memory.size and not memory.is_whole:
            if not known.is_guarded or not memory.runs:
                self._patches.append((known, memory))
                self._regions[rid] = known
                return known
            content = bytearray(known.read())
            for start, data in memory.runs:
                content[start : start + memoryview(data).nbytes] = data
        elif not memory.is_whole:
            raise Damaged(f"only a part of the memory {rid} came, and the rest is not here")
        else:
            content = memory.runs[0][1]
        found = Region.arriving(content, rid=rid, is_guarded=memory.is_guarded)
        found.agreed = memory.digests
        self._regions[rid] = found
        return found

    def _leaves_at(self, lid: int) -> Leaves:
        """Return the atoms of that number: those that are here, or that are arriving. Raises Damaged without either."""
        assert self.exchange is not None
        found = self._leaves.get(lid) or self.table.leaves.get(lid)
        if found is None:
            if lid not in self.exchange.leaves:
                raise Damaged(f"the leaves {lid} did not come, and are not here")
            found = self._leaves[lid] = load(self.exchange.leaves[lid])
        return found

    def _bind_all(self, held: Mapping[str, Any]) -> None:
        """Bind these names: all at once, where there is nothing to each."""
        is_simple = self.aside is None and names.HISTORY.isdisjoint(held)
        if not is_simple or any(map(names.is_registered, held)):
            for name, value in held.items():
                self._bind(name, value)
            return
        before, find = self._before, self.namespace.get
        before.update((name, find(name, _ABSENT)) for name in held if name not in before)
        self.namespace.update(held)
        self.bound.update(dict.fromkeys(held))

    def _bind(self, name: str, value: Any) -> None:
        """Bind a name, or lay its value aside. IPython holds on to the containers of its history: those are filled."""
        own = self.namespace.get(name)
        if names.is_registered(name):
            self._registered[name.removeprefix(names.REGISTERED)] = value
            return
        if self.aside is not None and name not in self.bound and self.is_aside(name):  # a second time, we bound it
            self.aside.values[name] = value
            return
        if name in names.HISTORY and isinstance(own, dict) and isinstance(value, dict):
            self.transaction.undoable(fill_dict, own, list(dict.items(own)))
            own.update(value)
        elif name in names.HISTORY and isinstance(own, list) and isinstance(value, list):
            self.transaction.undoable(fill_list, own, list(own))
            own[:] = value
        else:
            self._before.setdefault(name, self.namespace.get(name, _ABSENT))
            self.namespace[name] = value
        self.bound[name] = None

    def commit(self) -> None:
        """Change definitions, references to replaced objects and memory of devices, and prepare to write other memory.

        Raises Damaged if that memory has moved or has another size.
        """
        self.transaction.commit()
        self.transaction.replace_references(self._own_lists())
        departed = None if self.aside is None else self.aside.meanwhile.libraries
        for library, found in self._registered.items():
            if type(found) is dict:  # and could be loaded
                registrations.adopt(library, found, self.transaction, departed)
        for region, memory in self._patches:
            if not region.is_there():
                raise Damaged("the memory of an array was moved or resized while the cell ran")
            for start, data in memory.runs:
                self._prepare(region, start, memoryview(data).cast("B"))

    def _own_lists(self) -> list[object]:
        """List the lists of ours that hold objects of what is being read: as they were agreed on, and as they came."""
        assert self.exchange is not None
        units = [self.table.units.get(stream.root) for stream in self.exchange.streams]
        agreed = [unit for unit in (*units, *self.looked_at) if unit is not None]
        witnesses = [unit.witness for unit in agreed if unit.witness is not None]
        return [*self.transaction.read, *witnesses, *(unit.nodes for unit in agreed)]

    def _prepare(self, region: Region, start: int, data: memoryview) -> None:
        if region.device is not None:  # may fail half-way, so it is written now
            before = bytes(region.read()[start : start + data.nbytes])
            self.transaction.undoable(region.write, start, before)
            region.write(start, data)
            return
        target = region.read()[start : start + data.nbytes]
        if target.nbytes != data.nbytes:
            raise Damaged("there is more of an array's memory than the array has")
        self._writes.append((target, data))

    def write_memory(self) -> None:
        """Copy the bytes that have changed. This cannot fail, and there is no way back from it."""
        self.transaction.finish()
        for target, data in self._writes:
            target[:] = data
        for region, memory in self._patches:
            region.agreed = memory.digests

    def delete(self) -> None:
        """Unbind the names that are gone, and put new ones in order. There is no way back: what is bound comes last."""
        for name in self.gone:
            self.namespace.pop(name, None)
        late, again = ((), ()) if self.exchange is None or self.aside is not None else self.exchange.tail["late"]
        put_last(self.namespace, [name for name in late if name in again or self._before.get(name) is _ABSENT])

    def undo(self) -> list[Exception]:
        """Bind the names to what they were, and change all objects back. Return the errors that this met."""
        failed = self.transaction.undo()
        for name, value in self._before.items():
            if value is _ABSENT:
                self.namespace.pop(name, None)
            else:
                self.namespace[name] = value
        return failed

    def update_table(self) -> None:
        """Note in the table what this side has now of all that came."""
        exchange, table = self.exchange, self.table
        assert exchange is not None
        for region in self._regions.values():
            if region.rid >= 0 and region.size:
                region.land()  # that of a value that was left: the other side knows that it came
                table.regions[region.rid] = region
        roots = [root for root in self._roots if id(root) not in self._as_read]
        roots += table.roots_inside(self._as_read.values())
        if roots or self._definitions:
            diff: TableDiff = attempt(lambda wide: self._diff(roots, wide))
            read = self._as_came or self._as_read.values()
            table.settle((*read, *diff.units.values()), diff.definitions.values())
        else:
            table.settle(self._as_read.values(), ())
        table.learn_leaves(self._leaves)
        table.forward(exchange)

    def _diff(self, roots: list[object], wide: Sequence[Region]) -> TableDiff:
        diff, is_all_new = self._fresh_diff(wide), self._anew.keys() >= set(map(id, self._roots))
        if self._roots and is_all_new and not wide and not self._may_leave:  # the notebook would have to note more
            self._as_came = units_as_they_came(self._roots, self._anew, self._as_read, diff.encoder)
            if self._as_came:
                roots = self.table.roots_inside(self._as_came)
                diff.join(self._as_came)
            else:
                diff = self._fresh_diff(wide)
        diff.look_at(roots, self._definitions, self._came)
        return diff

    def _fresh_diff(self, wide: Sequence[Region]) -> TableDiff:
        diff = TableDiff(self.namespace, self.table, wide=wide)
        if self._regions:
            diff.encoder.finder.begin()
        for region in self._regions.values():  # what came with its digests is not hashed once more
            region.take_as_it_came()
        return diff


def describe_problem(problem: BaseException, failed: Sequence[Exception] = ()) -> str:
    """Say what went wrong, and the first of what then went wrong in undoing it."""
    text = " ".join(str(problem).split()) or kind_of(problem)
    said = text if isinstance(problem, Damaged | LookupError) else f"{type(problem).__name__}: {text}"
    return f"{said} (and something did not take its old state back: {describe_problem(failed[0])})" if failed else said
