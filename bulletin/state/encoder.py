"""The one pickler. A stream is a pickle of one value, with a preamble for what each side has of its own.

Both sides give the first places of the memo to their own namespace and to the transaction, so that functions find their
globals, and the functions that make values find what the receiver lends them.
"""

import builtins
import contextlib
import copyreg
import io
import pickle
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar, copy_context
from itertools import islice
from types import CodeType
from typing import Any

import xxhash

from bulletin.cpython import pickle_memo
from bulletin.cpython.class_layout import count_slots
from bulletin.cpython.refcounts import find_dict_sharers, take_out_temporaries, take_out_unheld

from . import reducers
from .handles import Handle
from .leaves import CONTAINERS, Leaves, find_in
from .load_transaction import RECEIVER, Reduced, Unpicklable
from .memory import Finder, Region, Widen
from .node_kinds import KINDS_OF_NODES
from .object_paths import Stayed, kind_of, path_to
from .plain_instances import DISPATCH, is_plain
from .reducers import Reducer, addresses, left_out
from .reducers.classes import reduce_class
from .reducers.functions import AskedOnce, reduce_function
from .reducers.generic import reduce_generic
from .silence import silence
from .table import Unit

#: Puts the namespace, the transaction and the built-ins into the first places of the memo.
PREAMBLE = pickle_memo.ground_preamble(memo_indexes=(0, 1, 2))
#: The place of the first object after the preamble.
FIRST_PLACE = 3
#: As deep as a value may be nested: more than Python's own limit, with a stack of its own.
_DEEP_LIMIT, _DEEP_STACK_BYTES = 400_000, 1 << 29
_MANY_STAYED = 16


class Encoder(pickle.Pickler):
    """A pickler that knows the notebook: its namespace is never copied, its functions and classes keep their identity.

    Parameters
    ----------
    namespace
        Whose functions and classes these are. It is never copied: the receiver's own namespace takes its place.
    finder
        Where memory is found.

    `encode` takes one value after another; each gives a stream of its own.
    """

    def __init__(self, namespace: Mapping[str, object], finder: Finder) -> None:
        self._file = io.BytesIO()
        super().__init__(self._file, protocol=5)
        self.dispatch_table = {**DISPATCH, **copyreg.dispatch_table}
        self.namespace = namespace
        self.finder = finder
        self.inline: frozenset[str] = frozenset()  # ids of definitions to write in full; others are referred to
        self.is_digest = False  # code as a token: only this side reads the stream
        self.guarded: set[int] = set()  # arrays that copy-on-write keeps apart; see `reducers.pandas_frames`
        self.blocks: dict[int, int] = {}  # arrays in frames -> the block that travels with it
        self.forgotten: Callable[[], frozenset[int]] = frozenset  # ids of what weak references alone lead to
        self.dict_sharers: set[int] = set()  # instances whose own dict somebody else holds, as `vars(x)`
        self.codes: list[CodeType] = []  # kept alive, so that their ids in tokens stay true
        self.own_variables: frozenset[ContextVar[Any]] | None = None
        self._travelling: set[int] = set()  # ids of values whose parts were asked about and can travel
        self._is_probe = False  # it finds that out
        self._probe: Encoder | None = None
        self._kinds: dict[type, Reducer | None] = dict(reducers.EXACT)
        self._usual: set[type] = set()
        self._plainly: dict[type, bool] = {}
        self.by_name: Mapping[type, bool] = AskedOnce()
        self._places: dict[type, Mapping[int, reducers.Place]] = {}  # where modules hold instances of a type
        self._importable: dict[int, tuple[object, str]] = {}  # functions and classes that go by name, and their modules
        shared = (namespace, RECEIVER, vars(builtins))  # `exec(code, own)` puts the built-ins into `own`
        self._ground: dict[int, tuple[int, object]] = {
            id(part): (memo_index, part) for memo_index, part in enumerate(shared)
        }
        self._begin("", None)

    @property
    def kinds(self) -> Collection[type]:
        """The types of all values that were met, but for those of which it is known beforehand how they are written."""
        return list(islice(self._kinds, len(reducers.EXACT), None))

    def _begin(self, name: str, root: object, *, is_ours: bool = False) -> None:
        self._name, self._root, self._is_ours = name, root, is_ours
        self.definitions: dict[str, object] = {}  # every definition met, by id
        self.names: dict[str, None] = {}  # names of the namespace that functions and classes met here look up
        self.is_dynamic = False  # one of them may look up any name
        self.files: dict[str, None] = {}  # where their code came from
        self.imports: dict[str, None] = {}  # modules that they may import
        self.attributes: set[str] = set()  # names that they spell
        self.homes: set[str] = set()  # modules of functions and classes that go by their names
        self.modules: dict[str, None] = {}  # modules that travel by name
        self.regions: list[Region] = []  # in the order of their numbers in the stream
        self.leaves: list[Leaves] = []  # likewise
        self.stayed: list[tuple[Stayed, object]] = []  # what a handle stands for
        self._numbers: dict[int, int] = {}
        self._users: list[list[int]] = []  # of each region, the ids of what looks at it
        self.alive: list[object] = []  # temporaries whose ids are in use
        self.met: set[type] = set()  # the types of what is not written without asking anybody
        self._has_opaque = False  # objects of C code that were made for the stream may be all that holds others

    def encode(
        self,
        root: object,
        name: str = "",
        *,
        inline: frozenset[str] = frozenset(),
        uid: str = "",
        is_ours: bool = False,
    ) -> Unit:
        """Pickle a value, and return it as a unit with its stream.

        Parameters
        ----------
        root, name
            The value, and what it is called in messages; without a name, what `called` finds for it.
        inline
            Definitions to write in full, besides the root where it is one.
        uid
            The id of the root where it is a definition.
        is_ours
            The root is a container of this package's, and not a value.
        """
        self._begin(name, root, is_ours=is_ours)
        self.inline = inline | {uid} if uid else inline
        self._file.seek(0)
        self._file.truncate()
        containers = self._set_ground(root)
        try:
            with silence():
                self.dump(root)
        except RecursionError:
            with silence():
                self._dump_deep(root)
        data = self._file.getvalue()
        nodes = self._nodes(root)
        self.clear_memo()
        if self._has_opaque:
            take_out_unheld(nodes, root, self._besides())
        self.alive = []  # nobody is to find what a stream was made of held here
        lent = find_dict_sharers(nodes, self._usual, self.dict_sharers) if self._usual else set()
        if lent:
            self.dict_sharers |= lent
            del data, nodes  # they would count as holders
            return self.encode(root, name, inline=inline, uid=uid, is_ours=is_ours)
        if is_ours:
            nodes[FIRST_PLACE] = None
        if self.regions:
            held = set(map(id, nodes))
            for region, users in zip(self.regions, self._users, strict=True):
                region.is_held = region.is_held or not held.isdisjoint(users)
        seal = xxhash.xxh3_128(data)
        seal.update(containers)
        for region in () if self._is_probe else self.regions:
            seal.update(region.digests())
        for leaves in self.leaves:
            seal.update(leaves.serial.to_bytes(8))
        return Unit(
            root, seal.digest(), nodes, self.regions, uid, leaves=self.leaves, data=PREAMBLE + containers + data
        )

    def _set_ground(self, root: object) -> bytes:
        """Put what each side has of its own into the first places of the memo, and behind it large containers of atoms.

        Returns the opcodes that put these there for the reader.
        """
        found = find_in(root, self._ground.keys())
        if not found:
            pickle_memo.set_memo(self, self._ground)
            return b""
        memo, numbered = dict(self._ground), []
        for container, leaves in found:
            memo[id(container)] = len(memo), container
            numbered.append((CONTAINERS.index(type(container)), len(self.leaves)))
            self.leaves += leaves
        pickle_memo.set_memo(self, memo)
        return pickle_memo.ground_containers(numbered)

    def encode_handle(self, root: object, stayed: Stayed) -> Unit:
        """Pickle a handle in the place of a value that no stream can hold, and note the value in `stayed`."""
        stand_in = _HandleInStream(stayed)
        unit = self.encode(stand_in, stayed.name)
        self.stayed.append((stayed, root))
        nodes = [root if node is stand_in else node for node in unit.nodes]
        return Unit(root, unit.digest, nodes, unit.regions, data=unit.data)

    def _dump_deep(self, root: object) -> None:
        """Dump once more, in a thread whose stack is large. Raises RecursionError if that is not enough either."""
        self._begin(self._name, root, is_ours=self._is_ours)
        self._file.seek(0)
        self._file.truncate()
        self._set_ground(root)
        problems: list[BaseException] = []

        def dump() -> None:
            try:
                self.dump(root)
            except BaseException as problem:  # noqa: BLE001  raised again in the caller's thread
                problems.append(problem)

        limit, size = sys.getrecursionlimit(), threading.stack_size(_DEEP_STACK_BYTES)
        sys.setrecursionlimit(_DEEP_LIMIT)
        try:
            thread = threading.Thread(target=copy_context().run, args=(dump,), name="bulletin-deep")
            thread.start()
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(limit)
        if problems:
            raise problems[0]

    def _nodes(self, root: object) -> list[object]:
        """List the objects of the stream by their place, without atoms and what the stream alone holds: None there."""
        found = pickle_memo.read_memo(self)
        nodes: list[object] = [None] * len(found)
        for memo_index, value in found.values():
            if KINDS_OF_NODES[type(value)]:
                nodes[memo_index] = value
        if id(root) in found:  # a definition is the root of its own unit, and nothing in those of others
            nodes[found[id(root)][0]] = root
        found.clear()
        value = None
        nodes[:FIRST_PLACE] = [None] * FIRST_PLACE
        self._has_opaque = take_out_temporaries(nodes, root, self._besides())
        return nodes

    def _besides(self) -> Counter[int]:
        """Count, by the id of an object, what of ours holds it besides the stream."""
        if not self.regions and not self.alive:
            return Counter()
        return Counter([*(id(region.owner) for region in self.regions if region.rid < 0), *map(id, self.alive)])

    def region(self, region: Region, address: int, user: object) -> tuple[int, int]:
        """Return the number of a region in this stream, and the offset of an address in it.

        A region that the stream does not have yet is added. `user` is the object that looks at it.
        """
        number = self._numbers.get(id(region))
        if number is None:
            number = self._numbers[id(region)] = len(self.regions)
            self.regions.append(region)
            self._users.append([])
        self._users[number].append(id(user))
        return number, address - region.address

    def leaves_number(self, leaves: Leaves) -> int:
        """Add the atoms of an array to the stream, and return their number in it."""
        self.leaves.append(leaves)
        return len(self.leaves) - 1

    def try_to_send(self, value: object, parts: object) -> bool:
        """Tell whether these parts of a value can travel, by an encoder of its own, which need not ask once more."""
        if self._is_probe or id(value) in self._travelling:
            return True
        probe = self._probe = self._probe or Encoder(self.namespace, Finder(()))
        probe._is_probe, probe.finder = True, Finder(())
        try:
            with contextlib.suppress(Widen):  # of memory, which travels
                probe.encode(parts, "parts", is_ours=True)
            can_travel = not probe.stayed
        except Exception:  # noqa: BLE001  whatever a value's own code raises
            can_travel = False
        probe.clear_memo()
        probe._begin("", None)  # it holds nothing on to the values
        self._travelling |= {id(value)} if can_travel else set()
        return can_travel

    def goes_plainly(self, kind: type) -> bool:
        """Tell whether instances of a class are their attributes, which pickle writes without asking anybody."""
        known = self._plainly.get(kind)
        if known is None:
            reducer = self._kinds[kind] if kind in self._kinds else self._choose(kind)
            is_usual = reducer is None and kind in self._usual and kind not in self._places
            asked: object = getattr(kind, "__getattribute__", None)
            is_seen = is_usual and asked is object.__getattribute__ and not count_slots(kind)
            known = self._plainly[kind] = bool(is_seen and kind.__dictoffset__)
        return known

    def _choose(self, kind: type, value: object = None) -> Reducer | None:
        """Choose how values of a type are written, and note it for this exchange; None is pickle's own way."""
        reducer = reducers.of_family(kind)
        if reducer in reducers.DICT_SHARERS or (reducer is None and is_plain(kind)):
            self._usual.add(kind)
        if reducer is None and kind not in self._usual:
            reducer = reduce_generic
        elif reducer is None and left_out.sets_own_state(kind):
            reducer = left_out.reduce_setting
        if value is not None:
            self._kinds[kind] = reducer
        if reducer is None or reducer is reduce_generic or reducer in reducers.OF_INSTANCES:
            places = reducers.places_of(kind)
            if places:
                self._places[kind] = places
        return reducer

    def reducer_override(self, value: Any) -> Reduced:
        """Choose how a value is written. Pickle asks for everything but plain numbers, strings and containers."""
        if id(value) in self._importable:  # asked once in an exchange, and met in every stream
            self.homes.add(self._importable[id(value)][1])
            return NotImplemented
        kind = type(value)
        reducer = self._kinds[kind] if kind in self._kinds else self._choose(kind, value)
        self.met.add(kind)
        if kind in self._places:
            place = self._places[kind].get(id(value))
            if place is not None and reducers.is_in_place(value, place):
                return reducers.reduce_constant(self, value, place)
        if reducer is None:
            found = addresses.reduce_addressing(value)
            is_sharer = self.dict_sharers and found is NotImplemented and id(value) in self.dict_sharers
            return reducers.reduce_dict_sharer(value) if is_sharer else found
        try:
            found = reducer(self, value)
            if found is NotImplemented:
                found = reduce_generic(self, value)
                if found is NotImplemented and (reducer is reduce_class or reducer is reduce_function):
                    self._importable[id(value)] = value, value.__module__
        except Exception as problem:
            if isinstance(problem, RecursionError | MemoryError | Widen):  # no fault of the value
                raise
            return self._stay(value, problem)
        return found

    def _stay(self, value: object, problem: Exception) -> Reduced:
        """Note that a value cannot travel, and why; reduce it to a handle."""
        if not self._name:
            self._name = self.called(self._root)
        path = self._name
        if value is not self._root:
            path = self._path_to(value) if len(self.stayed) < _MANY_STAYED else f"a value in {path}"
        kind = (problem.kind if isinstance(problem, Unpicklable) else None) or kind_of(value)
        stayed = Stayed(self._name, kind, path, " ".join(str(problem).split()) or kind_of(problem))
        self.stayed.append((stayed, value))
        return Handle.make, (RECEIVER, stayed.kind, path, False)

    def _path_to(self, value: object) -> str:
        """Write, as a person would, the way to a value in the root, or in one of the values of a root of ours."""
        root = self._root
        if not self._is_ours:
            return path_to(self._name, root, value) or f"a value inside {self._name}"
        held = root.items() if isinstance(root, dict) else [(self.called(part), part) for part in root]  # type: ignore[attr-defined]
        return next((path for name, part in held if (path := path_to(name, part, value))), self._name)

    def called(self, definition: object) -> str:
        """Return the name by which the notebook knows a function or class; else its own name."""
        own = getattr(definition, "__name__", self._name)
        if self.namespace.get(own) is definition:
            return str(own)
        return next((name for name, held in list(self.namespace.items()) if held is definition), str(own))


class _HandleInStream:
    """Stands in the root's place while `encode_handle` pickles; it is reduced to the handle."""

    def __init__(self, stayed: Stayed) -> None:
        self.stayed = stayed

    def __reduce__(self) -> Reduced:
        return Handle.make, (RECEIVER, self.stayed.kind, self.stayed.path, False)
