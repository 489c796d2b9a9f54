"""Both sides' arrival of values: the executor's before a cell, the notebook's after it."""

import gc
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from bulletin.errors import CannotReturn, CannotSend

from . import ambient, identity, modules, names
from .capture import Captured
from .changes import Baseline
from .codec import Reader
from .decoder import Decoder
from .handles import IN_NOTEBOOK, ON_WORKER
from .landing import Landing
from .memory import Region
from .parcel import Buffer, Damaged, Memory, Parcel, Stream
from .report import Stayed, kind_of
from .survey import Survey, attempt
from .table import Table

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Applied:
    """What a cell has done to the notebook."""

    bound: tuple[str, ...]
    deleted: tuple[str, ...]
    extra: dict[str, Any]
    stayed: list[Stayed]


def restore(
    parts: Sequence[Buffer], namespace: dict[str, Any], table: Table, *, keep: Collection[str] = frozenset()
) -> Baseline:
    """Make the executor's namespace that of the notebook, as far as the cell needs it; all other names are absent.

    Parameters
    ----------
    parts, namespace
        What `capture` made, and the executor's namespace. Large parts may become the memory of arrays.
    table
        The executor's half of the table.
    keep
        Names of the executor's own, left alone.

    Returns
    -------
    Baseline
        For `changes` after the cell.

    Raises
    ------
    CannotSend
        If a value cannot be loaded here. Table and namespace are then empty.
    """
    kept = frozenset(keep)
    arrival = _Arrival(namespace, table, IN_NOTEBOOK)
    try:
        parcel = Parcel.unpack(parts)
        if parcel.base == 0:
            table.clear()
            identity.forget()
        elif parcel.base != table.version:
            raise Damaged(f"it builds upon state {parcel.base} of this executor, which is at {table.version}")
        for name in names.users(namespace, kept):
            del namespace[name]
        arrival.read(parcel)
        arrival.commit()
    except Exception as problem:
        table.clear()
        for name in names.users(namespace, kept):
            del namespace[name]
        kind = f"value that cannot be loaded there ({_said(problem)})"
        raise CannotSend(arrival.at, arrival.at, kind) from problem
    ambient.settle(parcel.tail["ambient"], is_overlay=True)
    ambient.learn_sources(parcel.tail["sources"])
    came = {name: namespace[name] for name in arrival.bound if names.is_users(name)}
    arrival.agree()
    baseline = Baseline(
        table, came, kept, arrival.landing.alive, ambient.snapshot(parcel.tail["ambient"]), modules.snapshot()
    )
    roots = {oid: table.units[oid] for oid in parcel.bound.values() if oid in table.units}
    baseline.units = list(roots.values())
    baseline.definitions = [table.definitions[uid] for uid in parcel.tail["reached"] if uid in table.definitions]
    return baseline


def apply(parts: Sequence[Buffer], namespace: dict[str, Any], *, sent: Captured) -> Applied:
    """Take what a cell changed into the notebook: all of it, or nothing.

    Parameters
    ----------
    parts, namespace
        What `changes` made, and the notebook's namespace.
    sent
        What `capture` gave for this cell. Its table is in step with the executor's afterwards, or empty.

    Raises
    ------
    CannotReturn
        If something cannot be loaded here. The notebook and all its objects are then as before.
    """
    table = sent.table
    sent.commit()
    arrival = _Arrival(namespace, table, ON_WORKER)
    try:
        parcel = Parcel.unpack(parts)
        if parcel.base != table.version:
            raise Damaged(f"it builds upon state {parcel.base} of this notebook, which is at {table.version}")
        arrival.read(parcel)
        arrival.delete([*parcel.tail["deleted"], *(stayed.name for stayed in parcel.tail["lost"])])
        arrival.commit()
    except BaseException as problem:
        arrival.undo()
        table.clear()
        if not isinstance(problem, Exception):
            raise
        raise CannotReturn(arrival.at, _said(problem)) from problem
    if isinstance(arrival.told, modules.Changes):
        table.modules = modules.apply(arrival.told, table.modules)
    ambient.settle(parcel.tail["ambient"], is_overlay=False)
    ambient.learn_sources(parcel.tail["sources"])
    arrival.agree()
    return Applied(tuple(arrival.bound), tuple(parcel.tail["deleted"]), arrival.extra, parcel.tail["stayed"])


class _Arrival:
    """Reads a parcel into a namespace and a table, and can take it back from the namespace and all objects.

    Names are bound as they come: code of the user's may run while later values load, and look them up.
    """

    def __init__(self, namespace: dict[str, Any], table: Table, far: str) -> None:
        self.namespace, self.table = namespace, table
        self.landing = Landing(namespace, table, far)
        self._before: dict[str, object] = {}
        self._regions: dict[int, Region] = {}
        self._patches: list[tuple[Region, Memory]] = []
        self._memory: dict[int, Memory] = {}
        self._roots: list[object] = []
        self._definitions: list[object] = []
        self._made: list[object] = []
        self.parcel: Parcel | None = None
        self.told: modules.Shipment | modules.Changes | None = None
        self.at = ""  # the name whose value is being read
        self.bound: dict[str, None] = {}
        self.extra: dict[str, Any] = {}

    def read(self, parcel: Parcel) -> None:
        """Load everything. Known memory is written by `commit` only."""
        self.parcel = parcel
        self._memory = {memory.rid: memory for memory in parcel.memory}
        waiting: dict[int, list[str]] = {}
        for name, oid in parcel.bound.items():
            waiting.setdefault(oid, []).append(name)
        coming = {stream.root for stream in parcel.streams}
        for oid in waiting.keys() - coming:
            self._bind_all(waiting[oid], self.table.objects[oid])
        was_enabled = gc.isenabled()
        gc.disable()  # nothing that is loaded is garbage, and looking for some takes longer than loading
        try:
            for stream in parcel.streams:
                bound = waiting.get(stream.root, [])
                self.at = bound[0] if bound else ""
                self._take(stream, self._load(stream), bound)
        finally:
            if was_enabled:
                gc.enable()
        self.at = ""

    def _take(self, stream: Stream, value: Any, bound: list[str]) -> None:
        match stream.kind:
            case "modules":
                self.told = value[0]
                self._follow(self.told)
            case "definitions":
                self._definitions += value
            case "plain":
                for name, held in value.items():
                    self._bind(name, held)
            case "unit":
                self._roots.append(value)
                self._bind_all(bound, value)
            case "extra":
                self.extra.update(value)

    def _follow(self, told: modules.Shipment | modules.Changes) -> None:
        if isinstance(told, modules.Shipment):
            modules.settle(told)
        else:
            modules.follow(told)

    def _load(self, stream: Stream) -> Any:
        oids = array("i")
        oids.frombytes(stream.oids)
        self.landing.regions = [self._region(rid) for rid in stream.rids]
        reader: Reader | Decoder
        if self.table.objects.keys().isdisjoint(oids):
            reader = Reader(stream.data, self.namespace, self.landing)
        else:
            twins = list(map(self.table.objects.get, oids))
            reader = Decoder(bytes(stream.data), self.namespace, self.landing, twins)
        value, made = reader.read()
        self.table.learn(oids, made)
        self._made.append(made)  # ids of objects that this side replaced stay their own until the end
        return value

    def _region(self, rid: int) -> Region:
        """The region of that number: the known one, or one that is arriving."""
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

    def _bind_all(self, bound: list[str], value: Any) -> None:
        for name in bound:
            self._bind(name, value)

    def _bind(self, name: str, value: Any) -> None:
        """IPython holds on to the containers of its history, so those are filled and not replaced."""
        own = self.namespace.get(name)
        if name in names.HISTORY and isinstance(own, dict) and isinstance(value, dict):
            own.update(value)
        elif name in names.HISTORY and isinstance(own, list) and isinstance(value, list):
            own[:] = value
        else:
            self._remember(name)
            self.namespace[name] = value
        self.bound[name] = None

    def _remember(self, name: str) -> None:
        self._before.setdefault(name, self.namespace.get(name, _ABSENT))

    def delete(self, gone: Sequence[str]) -> None:
        """Unbind these names."""
        for name in gone:
            self._remember(name)
            self.namespace.pop(name, None)

    def commit(self) -> None:
        """Change definitions and known memory. What can fail comes first; writing memory cannot."""
        self.landing.commit()
        self.landing.become()
        for region, memory in self._patches:
            for start, data in memory.runs:
                region.write(start, data)
            region.agreed = memory.digests

    def undo(self) -> None:
        """Bind the names to what they were, and put every object back into its old state."""
        self.landing.undo()
        for name, value in self._before.items():
            if value is _ABSENT:
                self.namespace.pop(name, None)
            else:
                self.namespace[name] = value

    def agree(self) -> None:
        """Note in the table what this side has now of all that came."""
        parcel, table = self.parcel, self.table
        assert parcel is not None
        for region in self._regions.values():
            if region.rid >= 0 and region.address:
                table.regions[region.rid] = region
        survey: Survey = attempt(self._survey)
        table.settle(survey.units.values(), survey.definitions.values())
        table.drop(parcel.dropped)
        table.next_oid, table.next_rid = parcel.next_oid, parcel.next_rid
        table.version += 1

    def _survey(self, wide: Sequence[Region]) -> Survey:
        survey = Survey(self.namespace, self.table, wide=wide)
        survey.look_at(self._roots, self._definitions)
        return survey


def _said(problem: BaseException) -> str:
    text = " ".join(str(problem).split()) or kind_of(problem)
    return text if isinstance(problem, Damaged | LookupError) else f"{type(problem).__name__}: {text}"
