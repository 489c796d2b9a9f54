"""Both sides' arrival of values: the executor's before a cell, the notebook's after it."""

import gc
import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from bulletin.errors import CannotReturn, CannotSend

from . import ambient, identity, modules, names
from .capture import Captured
from .changes import Baseline
from .codec import Reader, unit_as_read
from .decoder import Decoder
from .handles import IN_NOTEBOOK, ON_WORKER
from .inplace import fill_dict, fill_list
from .interrupts import Interrupts
from .landing import Landing
from .meanwhile import Aside, Meanwhile, lay_aside
from .memory import Region
from .parcel import Buffer, Damaged, Memory, Parcel, Stream
from .report import Stayed, kind_of
from .silence import silence
from .survey import Survey, attempt
from .table import Table, Unit

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Applied:
    """What a cell has done to the notebook."""

    bound: tuple[str, ...]
    deleted: tuple[str, ...]
    extra: dict[str, Any]
    stayed: list[Stayed]
    #: With `meanwhile`: values of names that the notebook keeps as they are, and names of values that changed in place.
    aside: dict[str, Any]
    changed: tuple[str, ...]


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
        with _undisturbed():
            arrival.read(parcel)
        arrival.commit()
        arrival.write_memory()
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
    baseline.underscores = parcel.tail["underscores"]
    roots = {oid: table.units[oid] for oid in parcel.bound.values() if oid in table.units}
    baseline.units = list(roots.values())
    baseline.definitions = [table.definitions[uid] for uid in parcel.tail["reached"] if uid in table.definitions]
    return baseline


def apply(
    parts: Sequence[Buffer], namespace: dict[str, Any], *, sent: Captured, meanwhile: Meanwhile | None = None
) -> Applied:
    """Take what a cell changed into the notebook: all of it, or nothing.

    Parameters
    ----------
    parts, namespace
        What `changes` made, and the notebook's namespace.
    sent
        What `capture` gave for this cell. Its table is in step with the executor's afterwards, or empty.
    meanwhile
        What `depart` gave, where the notebook went on while the cell ran. Values that both have changed are then laid
        aside, and so is the value of a name that the notebook has bound since. Settings, the environment and random
        states stay the notebook's own.

    Raises
    ------
    CannotReturn
        If something cannot be loaded here. The notebook and all its objects are then as before.
    KeyboardInterrupt
        If the stop button was pressed; then the same holds, or all of it has landed.
    """
    try:
        with Interrupts() as interrupts, _undisturbed():
            return _land(parts, namespace, sent, interrupts, meanwhile)
    except BaseException:  # also where the stop button was pressed too late to undo anything
        sent.table.clear()
        raise


def _land(
    parts: Sequence[Buffer],
    namespace: dict[str, Any],
    sent: Captured,
    interrupts: Interrupts,
    meanwhile: Meanwhile | None,
) -> Applied:
    table = sent.table
    arrival = _Arrival(namespace, table, ON_WORKER)
    try:
        parcel = _take_in(parts, sent, arrival, interrupts, meanwhile)
    except BaseException as problem:
        failed = arrival.undo()
        drawn = {kind: found for kind, found in sent.parcel.tail["ambient"].items() if kind in _DRAWN}
        with suppress(Exception):  # a generator of another kind than it was when the cell was sent
            ambient.settle(drawn, is_overlay=False)
        if not isinstance(problem, Exception):
            raise
        raise CannotReturn(arrival.at, _said(problem, failed)) from problem
    arrival.write_memory()
    arrival.delete()
    if meanwhile is not None:
        parcel.tail["ambient"] = {}
    unsettled = _settle(parcel, arrival.told, table)
    try:
        interrupts.release()
        arrival.agree()
    except Exception:  # noqa: BLE001  the values are here; what is lost is what both sides know of them
        table.clear()
    finally:
        interrupts.hold()
    stayed = [*parcel.tail["stayed"], *unsettled]
    return Applied(
        tuple(arrival.bound), tuple(arrival.gone), arrival.extra, stayed, arrival.laid_aside, arrival.changed
    )


def _take_in(
    parts: Sequence[Buffer],
    sent: Captured,
    arrival: "_Arrival",
    interrupts: Interrupts,
    meanwhile: Meanwhile | None,
) -> Parcel:
    """All that can fail, and can be undone. Interrupts are held in the end, whatever the end is."""
    try:
        interrupts.release()
        sent.commit()
        parcel = Parcel.unpack(parts)
        if parcel.base != sent.table.version:
            raise Damaged(f"it builds upon state {parcel.base} of this notebook, which is at {sent.table.version}")
        if meanwhile is not None:
            arrival.aside = lay_aside(parcel, arrival.namespace, sent, meanwhile)
        arrival.read(parcel)
        arrival.commit()
        interrupts.hold()
    except BaseException:
        interrupts.hold()
        raise
    return parcel


#: What code of the user's that runs while its values load may change in passing.
_DRAWN = ("random", "numpy", "torch", "folder")
#: What to call the kinds of ambient state, in the order in which they are set: the time zone is in the environment.
_CALLED = {
    "random": "random",
    "numpy": "numpy.random",
    "torch": "torch.random",
    "folder": "os.getcwd()",
    "environ": "os.environ",
    "settings": "the settings of libraries",
}


def _settle(parcel: Parcel, told: object, table: Table) -> list[Stayed]:
    """Bring this process into the state that the cell left there: as far as it can be, and what cannot be is said."""
    steps: list[tuple[str, Callable[[], None]]] = []
    changed = parcel.tail["ambient"]
    for kind, called in _CALLED.items():
        if kind in changed:
            steps.append((called, partial(ambient.settle, {kind: changed[kind]}, is_overlay=False)))
    steps.append(("the source of a cell", partial(ambient.learn_sources, parcel.tail["sources"])))
    if isinstance(told, modules.Changes):
        known, table.modules = table.modules, modules.Known()  # should it fail, nobody knows what the executor has
        steps.append(("a module of the notebook", partial(_apply_modules, told, known, table)))
    failed = []
    for called, step in steps:
        try:
            step()
        except Exception as problem:  # noqa: BLE001  a library of another version may raise anything
            failed.append(Stayed(called, "state that cannot be set here", called, _said(problem)))
    return failed


def _apply_modules(told: modules.Changes, known: modules.Known, table: Table) -> None:
    table.modules = modules.apply(told, known)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What loading needs of this process for a while, put back where no interrupt can prevent it."""
    torch: Any = sys.modules.get("torch")
    has_grads = getattr(torch, "is_grad_enabled", bool)()
    was_enabled = gc.isenabled()
    try:
        gc.disable()  # nothing that is loaded is garbage, and looking for some takes longer than loading
        with silence():
            yield
    finally:
        if was_enabled:
            gc.enable()
        if hasattr(torch, "set_grad_enabled"):
            torch.set_grad_enabled(has_grads)  # a `no_grad` that was interrupted on its way out


class _Arrival:
    """Reads a parcel into a namespace and a table, and can take it back from the namespace and all objects.

    `read` and `commit` can be undone; `write_memory` and `delete` cannot fail; `agree` is about the table alone.

    Names are bound as they come: code of the user's may run while later values load, and look them up.
    """

    def __init__(self, namespace: dict[str, Any], table: Table, far: str) -> None:
        self.namespace, self.table = namespace, table
        self.landing = Landing(namespace, table, far)
        self._before: dict[str, object] = {}
        self._regions: dict[int, Region] = {}
        self._patches: list[tuple[Region, Memory]] = []
        self._writes: list[tuple[memoryview, memoryview]] = []
        self._memory: dict[int, Memory] = {}
        self._roots: list[object] = []
        self._as_read: dict[int, Unit] = {}  # by the id of the root, what is known of it without looking
        self._definitions: list[object] = []
        self._made: list[object] = []
        self.parcel: Parcel | None = None
        self.told: modules.Shipment | modules.Changes | None = None
        self.at = ""  # the name whose value is being read
        self.bound: dict[str, None] = {}
        self.extra: dict[str, Any] = {}
        self.gone: list[str] = []  # names to unbind in the end
        self.aside: Aside | None = None
        self.laid_aside: dict[str, Any] = {}
        self.changed: tuple[str, ...] = ()

    def is_aside(self, name: str) -> bool:
        """Whether the name is the notebook's own by now."""
        return self.aside is not None and self.aside.takes(name, self.namespace)

    def read(self, parcel: Parcel) -> None:
        """Load everything. Known memory is written by `write_memory` only."""
        self.parcel = parcel
        self._memory = {memory.rid: memory for memory in parcel.memory}
        waiting: dict[int, list[str]] = {}
        for name, oid in parcel.bound.items():
            waiting.setdefault(oid, []).append(name)
        coming = {stream.root for stream in parcel.streams}
        parts = [(waiting[oid], oid) for oid in waiting.keys() - coming]  # values in the table, or parts of what comes
        for bound, oid in parts:
            if oid in self.table.objects:
                self._bind_all(bound, self.table.objects[oid])
        for stream in parcel.streams:
            bound = waiting.get(stream.root, [])
            self.at = bound[0] if bound else ""
            self._take(stream, self._load(stream), bound)
        for bound, oid in parts:
            self._bind_all(bound, self.table.objects[oid])
        self.extra.update((key, self.table.objects[oid]) for key, oid in parcel.known.items())
        self.gone = [name for name in parcel.tail.get("deleted", ()) if not self.is_aside(name)]
        if self.aside is not None:
            self.aside.collect(self.table.objects)
            self.laid_aside, self.changed = self.aside.values, tuple(self.aside.changed)
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
            self.landing.undoable(modules.keep(told))
            modules.follow(told)

    def _load(self, stream: Stream) -> Any:
        oids = array("i", bytes(stream.oids)).tolist()
        self.landing.regions = [self._region(rid) for rid in stream.rids]
        reader: Reader | Decoder
        if self.table.objects.keys().isdisjoint(oids):
            reader = Reader(stream.data, self.namespace, self.landing)
        else:
            twins = list(map(self.table.objects.get, oids))
            reader = Decoder(bytes(stream.data), self.namespace, self.landing, twins)
        value, made = reader.read()
        self.table.learn(oids, made)
        unit = unit_as_read(value, stream.data, made, oids) if isinstance(reader, Reader) else None
        if unit is None:
            self._as_read.clear()  # code of the user's may have run, and changed what came before
        elif stream.kind == "unit":
            self._as_read[id(value)] = unit
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
        if self.aside is not None and name not in self.bound and self.is_aside(name):  # a second time, we bound it
            self.aside.values[name] = value
            return
        if name in names.HISTORY and isinstance(own, dict) and isinstance(value, dict):
            self.landing.undoable(fill_dict, own, list(dict.items(own)))
            own.update(value)
        elif name in names.HISTORY and isinstance(own, list) and isinstance(value, list):
            self.landing.undoable(fill_list, own, list(own))
            own[:] = value
        else:
            self._remember(name)
            self.namespace[name] = value
        self.bound[name] = None

    def _remember(self, name: str) -> None:
        self._before.setdefault(name, self.namespace.get(name, _ABSENT))

    def commit(self) -> None:
        """Change definitions and what replaced old objects, and look whether all known memory can be written."""
        self.landing.commit()
        self.landing.become()
        for region, memory in self._patches:
            if not region.is_there():
                raise Damaged("the memory of an array was moved or resized while the cell ran")
            for start, data in memory.runs:
                self._prepare(region, start, memoryview(data).cast("B"))

    def _prepare(self, region: Region, start: int, data: memoryview) -> None:
        if region.device is not None:  # may fail half-way, so it is written now
            before = bytes(region.read()[start : start + data.nbytes])
            self.landing.undoable(region.write, start, before)
            region.write(start, data)
            return
        place = region.read()[start : start + data.nbytes]
        if place.nbytes != data.nbytes:
            raise Damaged("there is more of an array's memory than the array has")
        self._writes.append((place, data))

    def write_memory(self) -> None:
        """Copy the bytes that have changed. This cannot fail, and there is no way back from it."""
        self.landing.finish()
        for place, data in self._writes:
            place[:] = data
        for region, memory in self._patches:
            region.agreed = memory.digests

    def delete(self) -> None:
        """Unbind the names that are gone. There is no way back: a name that is bound again would come last."""
        for name in self.gone:
            self.namespace.pop(name, None)

    def undo(self) -> list[Exception]:
        """Bind the names to what they were, and put every object back into its old state; what failed in doing so."""
        failed = self.landing.undo()
        for name, value in self._before.items():
            if value is _ABSENT:
                self.namespace.pop(name, None)
            else:
                self.namespace[name] = value
        return failed

    def agree(self) -> None:
        """Note in the table what this side has now of all that came."""
        parcel, table = self.parcel, self.table
        assert parcel is not None
        for region in self._regions.values():
            if region.rid >= 0 and region.address:
                table.regions[region.rid] = region
        roots = [root for root in self._roots if id(root) not in self._as_read]
        if roots or self._definitions:
            survey: Survey = attempt(lambda wide: self._survey(roots, wide))
            table.settle((*self._as_read.values(), *survey.units.values()), survey.definitions.values())
        else:
            table.settle(self._as_read.values(), ())
        table.drop(parcel.dropped, parcel.dropped_regions)
        table.next_oid, table.next_rid = parcel.next_oid, parcel.next_rid
        table.version += 1

    def _survey(self, roots: list[object], wide: Sequence[Region]) -> Survey:
        survey = Survey(self.namespace, self.table, wide=wide)
        survey.look_at(roots, self._definitions)
        return survey


def _said(problem: BaseException, failed: Sequence[Exception] = ()) -> str:
    """What went wrong, and what then went wrong in undoing it."""
    text = " ".join(str(problem).split()) or kind_of(problem)
    said = text if isinstance(problem, Damaged | LookupError) else f"{type(problem).__name__}: {text}"
    return f"{said} (and something did not take its old state back: {_said(failed[0])})" if failed else said
