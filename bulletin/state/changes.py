"""What a cell changed: by content and by binding, decided on the executor's side."""

from collections import deque
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from . import ambient, names
from .capture import Captured, explain, is_definition
from .codec import Digest, Encoder, Writer
from .landing import HERE, Landing
from .reducers import arrays, frames, functions
from .report import Stayed, kind_of

#: Values that are what they are: a name has changed only if it is bound to another.
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), ModuleType, type(NotImplemented))
#: Values that several names may hold without a change to one being seen through another.
_STEADY = (*_ATOMS, tuple, frozenset, range, slice, type, FunctionType, BuiltinFunctionType, CodeType)
_STEADY_MODULES = frozenset(
    {"datetime", "decimal", "fractions", "pathlib", "uuid", "re", "zoneinfo", "numpy.dtypes", "numpy", "enum"}
)


class _Unit:
    """One name's value, or one function or class, as it is now."""

    def __init__(self, digest: bytes | None, encoder: Encoder | None) -> None:
        self.digest = digest  # None: it cannot be pickled
        self._encoder = encoder

    def touches(self, sent: Mapping[int, tuple[int, object]], encoder: Encoder, root: int) -> bool:
        """True where it shares a mutable value or memory with what `encoder` sent; `root` apart."""
        mine = self._encoder
        assert mine is not None
        if not mine.owners.keys().isdisjoint(encoder.owners):
            return True
        common = (sent.keys() & mine.memo.copy().keys()) - mine.guarded - encoder.guarded - {root}
        return any(not _is_steady(sent[key][1]) for key in common)


class Baseline:
    """The executor's side as it was before the cell. Made by `restore`, used once by `changes`."""

    def __init__(
        self,
        namespace: dict[str, Any],
        came: dict[str, object],
        keep: frozenset[str],
        landing: Landing,
        arrived: ambient.Ambient,
    ) -> None:
        self.came = came  # what the notebook has under these names
        self.bound = {name: namespace[name] for name in names.users(namespace, keep)}
        self.keep = keep
        self.landing = landing  # keeps alive what only weak references hold
        self.alive: list[object] = []
        self.definitions: dict[str, object] = {}
        self.units = _survey(namespace, self.bound, self.definitions, self.alive, is_kept=False)
        self.ambient = ambient.snapshot(arrived)


def changes(namespace: dict[str, Any], baseline: Baseline, *, extra: Mapping[str, object] | None = None) -> Captured:
    """What the notebook must learn of a cell, however it ended.

    Parameters
    ----------
    namespace, baseline
        The executor's, and what `restore` gave for this cell.
    extra
        Values to return beside the names, such as the result or the exception. One that cannot travel is left out.

    Returns
    -------
    Captured
        Names bound anew and names whose value changed, with all names that share mutable values with those; functions
        and classes whose content changed; deleted names. `stayed` has what could not travel.
    """
    now = {name: namespace[name] for name in names.users(namespace, baseline.keep)}
    definitions = dict(baseline.definitions)
    units = _survey(namespace, now, definitions, baseline.alive, is_kept=True)
    answer = _Answer(namespace, baseline, now, units, definitions, dict(extra or {}))
    while True:
        captured = answer.attempt()
        if captured is not None:
            return captured


class _Answer:
    """What to send back, refined by trying, as `capture` does it."""

    def __init__(
        self,
        namespace: dict[str, Any],
        baseline: Baseline,
        now: dict[str, object],
        units: dict[str, _Unit],
        definitions: dict[str, object],
        extra: dict[str, object],
    ) -> None:
        self._namespace, self._baseline, self._now, self._units = namespace, baseline, now, units
        self._extra = extra
        self._stayed: list[Stayed] = []
        self._unbound: list[Stayed] = []  # names whose value stayed: the notebook's old one is no longer true
        self._shared: dict[int, tuple[int, int]] = {}
        self._names: dict[str, None] = {}
        self._known = {uid: value for uid, value in definitions.items() if uid in baseline.definitions}
        self._definition_ids = frozenset(map(id, definitions.values()))
        self._left: set[str] = set()  # names whose value stays
        self._stuck: set[str] = set()  # definitions that cannot go back as they are now
        self._updated: dict[str, object] = {}  # definitions of the notebook that changed
        for uid, value in list(self._known.items()):
            unit = units[_key(uid)]
            if unit.digest is None:
                self._stayed.append(explain_definition(namespace, value))
            elif unit.digest != baseline.units[_key(uid)].digest:
                self._updated[uid] = self._known.pop(uid)
        for name, value in now.items():
            self._consider(name, value)
        self._deleted = [name for name in baseline.came if name not in now]

    def _consider(self, name: str, value: object) -> None:
        """Sort one name into changed, unchanged, or not able to travel."""
        is_same = name in self._baseline.bound and self._baseline.bound[name] is value
        unit = self._units.get(name)
        if unit is None:
            if not is_same:
                self._names[name] = None
        elif unit.digest is None:
            was = self._baseline.units.get(name)
            if not (is_same and was is not None and was.digest is None):
                self._leave(name, value)
        elif not is_same or unit.digest != self._baseline.units[name].digest:
            self._names[name] = None

    def _leave(self, name: str, value: object, problem: Exception | None = None) -> None:
        stayed = explain(self._namespace, name, value, problem or TypeError("it cannot be pickled"))
        self._left.add(name)
        self._stayed.append(stayed)
        self._unbound.append(stayed)
        self._names.pop(name, None)

    def attempt(self) -> Captured | None:
        """The stream; or None, with more to send, less to send, or more memory known as shared. So attempts end."""
        held = {name: value for name, value in self._baseline.came.items() if self._is_held(name, value)}
        writer = Writer(self._namespace, held=held, known=frozenset(self._known), shared=self._shared)
        for uid, value in self._updated.items():
            writer.write(("definition", uid))
            try:
                writer.write(value)
            except Exception:  # noqa: BLE001  whatever a value's own code raises means that it cannot travel
                self._stayed.append(explain_definition(self._namespace, value))
                self._known[uid] = self._updated.pop(uid)
                self._stuck.add(uid)
                return None
        sizes: dict[str, int] = {}
        for name in sorted(self._names, key=lambda name: not is_definition(self._now[name])):
            writer.write(("name", name))
            try:
                sizes[name] = writer.write(self._now[name])
            except Exception as problem:  # noqa: BLE001  whatever a value's own code raises means that it cannot travel
                self._leave(name, self._now[name], problem)
                return None
        for key, value in self._extra.items():
            writer.write(("extra", key))
            try:
                writer.write(value)
            except Exception as problem:  # noqa: BLE001  as above
                if key == "result":  # the user knows it as `_`; an error is shown in any case
                    self._stayed.append(explain(self._namespace, "_", value, problem))
                del self._extra[key]
                return None
        if self._has_more(writer, held):
            return None
        writer.write(None)
        tail = {
            "deleted": self._deleted,
            "stayed": self._stayed,
            "unbound": self._unbound,
            "ambient": ambient.changed_since(self._baseline.ambient),
            "sources": ambient.sources(writer.encoder.files),
            "buffers": len(writer.buffers),
        }
        writer.write(tail)
        remote = {name: value for name, value in self._now.items() if name in self._units and name not in self._names}
        remote = {
            name: value for name, value in remote.items() if name in self._left or self._units[name].digest is None
        }
        return Captured(writer.close(), writer.buffers, sizes, self._stayed, remote=remote)

    def _is_held(self, name: str, value: object) -> bool:
        """True where the notebook has this very value, unchanged. Definitions have their ids for that."""
        unit = self._units.get(name)
        is_bound = name not in self._names and self._now.get(name) is value
        return is_bound and unit is not None and unit.digest is not None and id(value) not in self._definition_ids

    def _has_more(self, writer: Writer, held: Mapping[str, object]) -> bool:
        """Add what shares mutable values or memory with what is sent, and what the encoder saw to be shared."""
        encoder = writer.encoder
        overlaps = arrays.overlaps(encoder.owners)
        is_more = bool(overlaps.keys() - self._shared.keys())
        self._shared = overlaps
        if not (self._names or self._updated or self._extra):
            return is_more
        sent = encoder.memo.copy()
        for key in (id(self._namespace), id(HERE), *map(id, held.values())):
            sent.pop(key, None)
        for name in held:
            if self._units[name].touches(sent, encoder, id(held[name])):
                self._names[name] = None
                is_more = True
        for uid in list(self._known):
            unit = self._units[_key(uid)]
            if unit.digest is not None and uid not in self._stuck and unit.touches(sent, encoder, 0):
                self._updated[uid] = self._known.pop(uid)
                is_more = True
        return is_more


def explain_definition(namespace: Mapping[str, object], value: object) -> Stayed:
    """Why a function or class cannot go back as it is now."""
    name = str(getattr(value, "__name__", kind_of(value)))
    return explain(namespace, name, value, TypeError("it cannot be pickled"))


def _is_steady(value: object) -> bool:
    kind = type(value)
    if isinstance(value, _STEADY) or frames.is_guarded(kind):
        return True
    if kind.__module__ in _STEADY_MODULES and not hasattr(kind, "__array_function__"):
        return True
    return callable(value) and not hasattr(kind, "__getattr__") and functions.is_importable(value)


def _key(uid: str) -> str:
    """Where a definition's unit is kept, apart from all names."""
    return f"#{uid}"


def _survey(
    namespace: dict[str, Any],
    bound: Mapping[str, object],
    definitions: dict[str, object],
    alive: list[object],
    *,
    is_kept: bool,
) -> dict[str, _Unit]:
    """Digests of all names but atoms, and of all definitions in `definitions`, which grows by those that are met."""
    seen: dict[int, tuple[object, int, bytes]] = {}
    units: dict[str, _Unit] = {}
    queue: deque[tuple[str, object]] = deque((_key(uid), value) for uid, value in definitions.items())
    queue.extend((name, value) for name, value in bound.items() if type(value) not in _ATOMS)
    while queue:
        key, value = queue.popleft()
        if key in units:
            continue
        digest = Digest(namespace, seen)
        encoder = digest.encoder
        encoder.root = value if key.startswith("#") else None
        try:
            found = digest.of(value)
        except Exception:  # noqa: BLE001  whatever a value's own code raises means that it cannot travel
            units[key] = _Unit(None, None)
            continue
        alive += encoder.codes
        units[key] = _Unit(found, encoder if is_kept else None)
        for uid, definition in encoder.definitions.items():
            if uid not in definitions:
                definitions[uid] = definition
                queue.append((_key(uid), definition))
    return units
