"""What a cell would send, name by name, told before anything is sent."""

from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pickle import dumps
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FunctionType, ModuleType
from typing import Any

from bulletin.errors import CannotSend, name_kind

from . import hooks
from .capture import Captured, capture
from .handles import Handle, parts
from .load_transaction import LoadTransaction
from .memory import Region
from .modules import Shipment
from .names import is_registered
from .needs import Needs
from .object_paths import Stayed, kind_of
from .stream_reader import Reader
from .table import ABSENT, Table, Unit
from .table_diff import is_plain


class Fate(Enum):
    """What would become of a value."""

    SENT = "to be sent"
    THERE = "there already"
    BY_NAME = "imported there"
    STAYS = "stays here"
    REFUSED = "cannot be sent"


@dataclass(frozen=True, slots=True)
class Row:
    """One name, one source of a module, or one value inside another that stays behind.

    `size_bytes` is the value's whole content, with all memory that it looks at; `sent_bytes` what of it would move.
    Content that several names share is counted as sent once, for the first. `note` says more, in one sentence.
    """

    name: str
    kind: str
    fate: Fate
    size_bytes: int = 0
    sent_bytes: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows in the order in which the cell reaches the names; what is refused or stays behind comes last.

    `total_bytes` is all that would move, and `rest_bytes` what of it belongs to no row: names, settings of the
    notebook, states of random number generators. `refused` are the errors that the cell would meet, in the order
    of its names: with any, nothing would be sent. `is_open` where the cell may look up any name, so that all go.
    """

    rows: tuple[Row, ...]
    total_bytes: int
    rest_bytes: int
    refused: tuple[CannotSend, ...] = ()
    is_open: bool = False


def rehearse(namespace: dict[str, Any], needs: Needs, *, table: Table) -> Plan:
    """Find out what `capture` would send for a cell. The table stays as it is.

    A name that `capture` would refuse is left out, and the others are looked at without it.

    Raises
    ------
    ModulesTooLarge
        If the notebook's own modules are more than may travel.
    """
    refused: dict[str, CannotSend] = {}
    while True:
        reads = tuple(name for name in needs.reads if name not in refused)
        try:
            captured = capture(namespace, replace(needs, reads=reads), table=table)
        except CannotSend as error:
            refused[error.name] = error
        else:
            in_order = [refused[name] for name in needs.reads if name in refused]
            return replace(plan_of(captured, in_order), is_open=needs.everything)


def plan_of(captured: Captured, refused: list[CannotSend]) -> Plan:
    """Make the plan of what was captured without the names that were refused; these get a row each."""
    sources = list(_sources(captured))
    rows = [*_NameRows(captured, {row.name for row in sources}).count_names(), *sources]
    told = {error.path for error in refused}
    rows += [Row(error.path, _last_word(error.kind), Fate.REFUSED) for error in refused]
    for stayed in captured.stayed:
        if stayed.path not in told:
            told.add(stayed.path)
            rows.append(_untransferable_row(stayed))
    total = sum(memoryview(part).nbytes for part in captured.parts)
    return Plan(tuple(rows), total, total - sum(row.sent_bytes for row in rows), tuple(refused))


class _NameRows:
    """Counts what belongs to which name: streams by their root, and each region for the first that looks at it.

    `elsewhere` are modules that have a row already.
    """

    def __init__(self, captured: Captured, elsewhere: Collection[str]) -> None:
        exchange, self._diff, self._elsewhere = captured.exchange, captured.diff, elsewhere
        self._streams = {
            stream.root: memoryview(stream.data).nbytes
            + memoryview(stream.oids).nbytes
            + sum(memoryview(exchange.leaves[lid]).nbytes for lid in stream.leaves if lid in exchange.leaves)
            for stream in exchange.streams
            if stream.kind == "unit"
        }
        self._memory = {
            memory.rid: sum(memoryview(data).nbytes for _, data in memory.runs) for memory in exchange.memory
        }
        self._bound = exchange.bound
        self._first: dict[int, str] = {}  # the name that a value, or a region, was counted for
        self._definitions = {id(unit.root): unit for unit in self._diff.definitions.values()}
        self._weights = {
            id(unit.root): unit.stream_bytes + _code_bytes(unit.root) for unit in self._definitions.values()
        }
        self._shares = self._share_out(
            sum(memoryview(stream.data).nbytes for stream in exchange.streams if stream.kind == "definitions")
        )

    def _share_out(self, written: int) -> dict[int, int]:
        """Divide the one stream of all changed definitions by the size of each; return bytes by id of the object."""
        changed = [id(value) for value in self._diff.changed_definitions().values()]
        whole = sum(self._weights[key] for key in changed)
        return {key: written * self._weights[key] // whole for key in changed}

    def count_names(self) -> Iterator[Row]:
        """Yield a row for each name whose value does not stay behind, and one for definitions that no name leads to.

        What several names share is counted for the first, so this works once.
        """
        owned = self._owned()
        behind = {id(held) for _, held in self._diff.stayed}
        for name, value in self._diff.names.items():
            is_told = isinstance(value, ModuleType) and value.__name__ in self._elsewhere
            if not is_told and id(value) not in behind and not is_registered(name):
                yield self._count_name(name, value, owned)
        nameless = owned.get("", [])
        if nameless:
            fate, size, sent = self._add_up("", nameless)
            many = "1 definition" if len(nameless) == 1 else f"{len(nameless)} definitions"
            yield Row("other functions and classes", many, fate, size, sent, self._of_libraries(nameless))

    def _of_libraries(self, nameless: list[Unit]) -> str:
        """Say which of these definitions the notebook has put into libraries: they go with cells that name none."""
        roots = {id(unit.root) for unit in nameless}
        put = [found for name, found in self._diff.names.items() if is_registered(name) and isinstance(found, dict)]
        places = [place for found in put for place, value in found.items() if id(value) in roots]
        return f"Among them, as you set it: {', '.join(dict.fromkeys(map(hooks.label, places)))}." if places else ""

    def _count_name(self, name: str, value: object, owned: Mapping[str, list[Unit]]) -> Row:
        kind = word_for(value)
        if isinstance(value, Handle):
            return self._of_handle(name, value)
        if id(value) in self._definitions:
            first = self._first.setdefault(id(value), name)
            if first != name:
                return Row(name, kind, _fate(is_sent=id(value) in self._shares), note=f"The same one as {first}.")
            return Row(name, kind, *self._add_up(name, owned[name]))
        if isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type) and is_plain(value):
            return Row(name, kind, Fate.BY_NAME)
        if is_plain(value):
            size = _atom_bytes(value)
            return Row(name, kind, Fate.SENT, size, size)
        return self._count_unit(name, self._diff.units[id(value)])

    def _of_handle(self, name: str, handle: Handle) -> Row:
        kind, _, where = parts(handle)
        if self._diff.table.oid_of(handle) == ABSENT:
            return Row(name, kind, Fate.SENT, note=f"It {where}; the cell gets what stands for it.")
        return Row(name, kind, Fate.THERE, note="A cell left it on the pool.")

    def _count_unit(self, name: str, unit: Unit) -> Row:
        kind, size = word_for(unit.root), _size(unit)
        written = self._streams.get(self._bound.get(name, ABSENT))
        first = self._first.setdefault(id(unit.root), name)
        if first != name:
            return Row(name, kind, _fate(is_sent=written is not None), size, note=f"The same one as {first}.")
        if written is None:
            return Row(name, kind, Fate.THERE, size)
        moved, shared = self._count_memory(name, unit.regions)
        is_part = self._diff.table.unit_of(unit.root) is not None and moved + written < size
        note = f"It shares memory with {shared}." if shared else "Only the parts that changed." if is_part else ""
        return Row(name, kind, Fate.SENT, size, written + moved, note)

    def _count_memory(self, name: str, regions: list[Region]) -> tuple[int, str]:
        """Count regions for this name that were not counted for another.

        Return their bytes that go, and the name where the first of the others was counted.
        """
        moved, shared = 0, ""
        for region in regions:
            first = self._first.setdefault(id(region), name)
            if first == name:
                moved += self._memory.pop(region.rid, 0)
            else:
                shared = shared or first
        return moved, shared

    def _owned(self) -> dict[str, list[Unit]]:
        """Sort definitions by the name that leads to them: a class has its methods, and a function those inside it."""
        found: dict[str, list[Unit]] = {}
        names = {id(value): name for name, value in reversed(self._diff.names.items())}
        heads = {names[key] for key in self._definitions if key in names}
        for key, unit in self._definitions.items():
            head = str(getattr(unit.root, "__qualname__", "")).partition(".")[0]
            owner = names.get(key) or (head if head in heads else "")
            found.setdefault(owner, []).append(unit)
        return found

    def _add_up(self, name: str, units: list[Unit]) -> tuple[Fate, int, int]:
        size = sent = 0
        is_sent = False
        for unit in units:
            share = self._shares.get(id(unit.root))
            size += unit.bytes_beside
            if share is None:
                size += self._weights[id(unit.root)]
            else:
                size += share
                is_sent = True
                sent += share + self._count_memory(name, unit.regions)[0]
        return _fate(is_sent=is_sent), size, sent


def _fate(*, is_sent: bool) -> Fate:
    return Fate.SENT if is_sent else Fate.THERE


def _size(unit: Unit) -> int:
    return unit.stream_bytes + array("i").itemsize * len(unit.nodes) + unit.bytes_beside


def _atom_bytes(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, bytes) else len(dumps(value, 2)) - 3  # without the start and the end


def _code_bytes(definition: object) -> int:
    """Estimate what its code takes: units that are compared have a token in its place."""
    code = getattr(definition, "__code__", None)
    rest, size = [code] if isinstance(code, CodeType) else [], 0
    while rest:
        code = rest.pop()
        size += len(code.co_code) + len(code.co_linetable) + len(code.co_exceptiontable)
        size += sum(len(name) for name in (*code.co_names, *code.co_varnames))
        rest += [part for part in code.co_consts if isinstance(part, CodeType)]
    return size


def _sources(captured: Captured) -> Iterator[Row]:
    """Yield a row for each package of the notebook's own modules whose sources would be sent."""
    texts: dict[str, int] = {}
    for stream in captured.exchange.streams:
        if stream.kind == "modules":
            (shipment,), _ = Reader(stream.data, {}, LoadTransaction({}, Table(), "")).read()
            assert isinstance(shipment, Shipment)
            texts = {digest: len(text.encode("utf-8", "surrogatepass")) for digest, text in shipment.texts.items()}
    packages: dict[str, list[tuple[str, str | None, int]]] = {}
    for name, entry in captured.known.entries.items():
        size = sum(texts.pop(digest, 0) for digest in (entry.digest, entry.on_file) if digest is not None)
        if size:
            packages.setdefault(name.partition(".")[0], []).append((name, entry.file, size))
    for package, found in packages.items():
        size = sum(size for _, _, size in found)
        if len(found) == 1:
            name, file, _ = found[0]
            yield Row(name, "your module", Fate.SENT, size, size, f"Its source is {file}.")
        else:
            yield Row(package, "your package", Fate.SENT, size, size, f"The sources of {len(found)} modules.")


def _untransferable_row(stayed: Stayed) -> Row:
    what = name_kind(stayed.kind)
    note = f"{what[0].upper()}{what[1:]} cannot travel. The cell gets a placeholder, which says so when it is used."
    return Row(stayed.path, _last_word(stayed.kind), Fate.STAYS, note=note)


def _last_word(kind: str) -> str:
    """Cut a description of a type down to its name, without its module and what else is said of it."""
    return kind.partition(" that ")[0].rpartition(".")[2]


#: What people say for the types whose names are not what they say.
_WORDS = {"ndarray": "array", "NoneType": "None", "builtin_function_or_method": "function"}


def word_for(value: object) -> str:
    """Say what a value is, for people: the name of its type, "function", "class", "module"."""
    if isinstance(value, Handle):
        return parts(value)[0]
    if isinstance(value, type):
        return "class"
    if isinstance(value, FunctionType | BuiltinFunctionType | BuiltinMethodType):
        return "function"
    kind = _last_word(kind_of(value))
    return _WORDS.get(kind, kind)
