"""The one pickler and unpickler: records in one stream that share a memo, large buffers beside it, a seal in front.

A stream is a seal (xxh3_128 of the rest), a preamble that gives the first memo places to what each side has already
(the namespace, the landing, values that both sides hold under a name), then one pickle per record.
"""

import copyreg
import io
import pickle
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol, TypeAlias

import cloudpickle
import xxhash

from . import reducers
from .landing import HERE, Namespace, Reduced, refuse

Buffer: TypeAlias = bytes | bytearray | memoryview
Reducer: TypeAlias = Callable[[Any, Any], Reduced]

#: Smaller buffers stay in the stream: a frame of their own would cost more than it saves.
OUT_OF_BAND_BYTES = 4096
_SEAL_BYTES = 16


class Damaged(Exception):
    """The bytes are not those that the other side wrote."""


class Sink(Protocol):
    """Where a pickler writes."""

    def write(self, data: bytes, /) -> object:
        """Take the bytes."""


class Encoder(pickle.Pickler):
    """A pickler that knows the notebook: its namespace is shared ground, its functions and classes keep their identity.

    Parameters
    ----------
    namespace
        Whose functions and classes these are. It is never copied: the receiver's own namespace takes its place.
    sink
        Where the bytes go. `Writer` and `digest` are the two users.
    keep_out
        Called with each large contiguous buffer, which then stays out of the stream.
    known
        Ids of functions and classes that the receiver has in this very state: sent as a reference.
    held
        Name -> value that the receiver holds under the same name: sent as a reference wherever it is met.
    by_token
        For digests only: definitions other than the root, and code, are written as tokens.
    shared
        Memory (by its owner's id) of which several arrays are sent; see `reducers.arrays`.
    """

    def __init__(
        self,
        namespace: Mapping[str, object],
        sink: Sink,
        keep_out: Callable[[memoryview], None],
        *,
        known: frozenset[str] = frozenset(),
        held: Mapping[str, object] | None = None,
        by_token: bool = False,
        shared: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        def take(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < OUT_OF_BAND_BYTES:
                return True
            keep_out(raw)
            return False

        super().__init__(sink, protocol=5, buffer_callback=take)
        self.dispatch_table = {**_DISPATCH, **copyreg.dispatch_table}
        self.namespace = namespace
        self.known = known
        self.by_token = by_token
        self.shared = shared or {}
        self.root: object = None  # the one definition that a digest writes in full
        self.definitions: dict[str, object] = {}  # every definition met, by id
        self.names: dict[str, None] = {}  # names of the namespace that functions and classes met here look up
        self.is_dynamic = False  # one of them may look up any name
        self.files: dict[str, None] = {}  # where their code came from
        self.codes: list[CodeType] = []  # kept alive, so that their ids in tokens stay true
        self.cell_homes: dict[int, tuple[str, int]] = {}
        self.owners: dict[
            int, list[tuple[int, int, int]]
        ] = {}  # owner's id -> (array's id, first byte, end) of arrays met
        self.guarded: set[int] = set()  # arrays and owners that copy-on-write keeps apart; see `reducers.frames`
        self.regions: dict[int, Any] = {}
        self._privates: dict[int, dict[str, Any]] = {}
        self.alive: list[object] = []  # temporaries whose ids are in use
        self._reducers: dict[type, Reducer | None] = dict(reducers.EXACT)
        memo: dict[int, tuple[int, object]] = {id(namespace): (0, namespace), id(HERE): (1, HERE)}
        for value in (held or {}).values():
            memo.setdefault(id(value), (len(memo), value))
        self.memo = memo

    def private(self, spoken: dict[str, Any]) -> dict[str, Any]:
        """Globals that belong to no module, as one dict for all functions that share them."""
        if id(spoken) not in self._privates:
            self._privates[id(spoken)] = {name: value for name, value in spoken.items() if name != "__builtins__"}
        return self._privates[id(spoken)]

    def reducer_override(self, value: Any) -> Reduced:
        """Pickle asks here about everything but plain numbers, strings and containers."""
        kind = type(value)
        try:
            reducer = self._reducers[kind]
        except KeyError:
            reducer = self._reducers[kind] = reducers.of_family(kind)
        return NotImplemented if reducer is None else reducer(self, value)


class Writer:
    """A stream in the making. `write` one record after another, then `close`."""

    def __init__(self, namespace: Mapping[str, object], **options: Any) -> None:
        self._file = io.BytesIO()
        self._file.write(bytes(_SEAL_BYTES))
        self._file.write(_preamble(options.get("held") or {}))
        self.buffers: list[memoryview] = []
        self.encoder = Encoder(namespace, self._file, self.buffers.append, **options)

    def write(self, record: object) -> int:
        """Append one record; its size in bytes, buffers included."""
        start, known = self._file.tell(), len(self.buffers)
        self.encoder.dump(record)
        return self._file.tell() - start + sum(buffer.nbytes for buffer in self.buffers[known:])

    def close(self) -> bytes:
        """The stream, sealed."""
        view = self._file.getbuffer()
        view[:_SEAL_BYTES] = xxhash.xxh3_128_digest(view[_SEAL_BYTES:])
        view.release()
        return self._file.getvalue()


class Reader(pickle.Unpickler):
    """Loads the records of a stream one by one.

    Raises
    ------
    Damaged
        If the seal does not fit; nothing has been loaded.
    """

    def __init__(
        self,
        stream: Buffer,
        buffers: Sequence[Buffer],
        namespace: Namespace,
        landing: object,
        held: Mapping[str, object],
    ) -> None:
        whole = memoryview(stream)
        if whole.nbytes <= _SEAL_BYTES or xxhash.xxh3_128_digest(whole[_SEAL_BYTES:]) != bytes(whole[:_SEAL_BYTES]):
            raise Damaged("the stream is damaged or incomplete")
        file = io.BytesIO(stream)
        file.seek(_SEAL_BYTES)
        super().__init__(file, buffers=_writable(buffers))
        self._shared_ground: dict[object, object] = {0: namespace, 1: landing}
        self._held = held
        self.read()  # the preamble

    def persistent_load(self, pid: object) -> object:
        """What this side has in place of the sender's."""
        if isinstance(pid, int):
            return self._shared_ground[pid]
        return self._held[str(pid)]

    def read(self) -> Any:
        """The next record."""
        return self.load()


class Digest:
    """What a value holds, as a number: of its pickle, and of each large buffer."""

    def __init__(self, namespace: Mapping[str, object], seen: dict[int, tuple[object, int, bytes]]) -> None:
        self._stream = xxhash.xxh3_128()
        self._buffers: list[bytes] = []
        self.encoder = Encoder(namespace, _HashSink(self._stream), _hasher(seen, self._buffers), by_token=True)

    def of(self, value: object) -> bytes:
        """Sixteen bytes, and sixteen more for each large buffer."""
        self.encoder.dump(value)
        return b"".join([self._stream.digest(), *self._buffers])


def _hasher(seen: dict[int, tuple[object, int, bytes]], found: list[bytes]) -> Callable[[memoryview], None]:
    """Hashes each buffer once. A function and not a method: a cycle with the encoder would keep large memos alive."""

    def take(buffer: memoryview) -> None:
        owner, size_bytes, digest = seen.get(id(buffer.obj), (None, -1, b""))
        if owner is not buffer.obj or size_bytes != buffer.nbytes:
            digest = xxhash.xxh3_128_digest(buffer)
            seen[id(buffer.obj)] = (buffer.obj, buffer.nbytes, digest)
        found.append(digest)

    return take


class _HashSink:
    """Lets a pickler write into a hash."""

    def __init__(self, stream: Any) -> None:
        self.write: Callable[[bytes], object] = stream.update


def _writable(buffers: Sequence[Buffer]) -> Iterator[Buffer]:
    """Buffers become the memory of arrays, so a read-only one is copied; pickle marks again what was read-only."""
    for buffer in buffers:
        yield bytearray(buffer) if memoryview(buffer).readonly else buffer


def _preamble(held: Mapping[str, object]) -> bytes:
    """Opcodes that put what the receiver has into the first memo places: the C unpickler takes no memo from outside."""
    parts: list[bytes] = [pickle.PROTO + b"\x05"]
    places: dict[int, None] = {}
    pids: list[bytes] = [pickle.BININT1 + b"\x00", pickle.BININT1 + b"\x01"]
    for name, value in held.items():
        if id(value) not in places:
            places[id(value)] = None
            encoded = name.encode()
            pids.append(pickle.BINUNICODE + struct.pack("<I", len(encoded)) + encoded)
    for pid in pids:
        parts += [pid, pickle.BINPERSID, pickle.MEMOIZE, pickle.POP]
    return b"".join([*parts, pickle.NONE, pickle.STOP])


_DISPATCH: dict[type, Callable[[Any], Reduced]] = {**cloudpickle.Pickler.dispatch_table, io.TextIOWrapper: refuse}
