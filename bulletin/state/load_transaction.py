"""What the receiving side lends to values while they are made: its namespace, its memory, its old objects, an undo."""

from collections.abc import Callable, Iterable, Sequence
from types import CellType
from typing import Any, NamedTuple, TypeAlias

from bulletin.cpython.referrers import held_by_others, holders_of

from . import definition_ids
from .leaves import CONTAINERS, Leaves
from .memory import Region
from .table import Table

Namespace: TypeAlias = dict[str, Any]
#: What `__reduce_ex__` may return, or NotImplemented.
Reduced: TypeAlias = Any


class Unpicklable(TypeError):
    """A value that pickle could carry only by lying about it: an open file, a held lock.

    `kind` is the type to name to people instead of the value's own, where that would not tell them why.
    """

    def __init__(self, why: str, kind: str | None = None) -> None:
        super().__init__(why)
        self.kind = kind


class NotHere(LookupError):
    """A stream refers to something that this side should have and has not."""


class _Receiver:
    """Stands, on the sending side, for the receiver's `LoadTransaction`."""


RECEIVER = _Receiver()


class Mark(NamedTuple):
    """How much was noted by a moment of a loading."""

    undo: int
    changes: int
    at_end: int
    replaced: int


class LoadTransaction:
    """One loading of values: owned by `ExchangeReader`, used by the functions that pickle calls to make values.

    Old objects are changed as the streams load, and every change notes how it is undone. Functions, classes and memory
    that this side had are changed at the end, by `commit`: user code may run while values load, and reads them.
    """

    def __init__(self, namespace: Namespace, table: Table, absence: str) -> None:
        """Begin. `absence` says what became of a value that did not come, as in "stayed in the notebook"."""
        self.namespace, self.table, self.absence = namespace, table, absence
        self.regions: Sequence[Region] = ()  # of the stream that is being loaded
        self.leaves: Sequence[Leaves] = ()  # likewise, the atoms of its large arrays
        self.existing: Any = None  # what this side has in place of the object that is being made
        self.old: set[int] = set()  # ids of definitions and cells that were here before
        self.fresh: set[int] = set()  # ids of definitions that this transaction made
        #: By the id of a class that is made: by id, instances that get their state when it is complete, and that.
        self.waiting: dict[int, dict[int, tuple[Any, Any]]] = {}
        self.blank: dict[int, Callable[[], None]] = {}  # by the id of such a class, to make it as it was at first
        self.half_read: list[Any] = []  # see `half_read.HalfRead`: of the stream that is being loaded
        self.alive: list[object] = []  # weakly referenced values, and whatever must outlive the loading
        self.replaced: list[tuple[object, object]] = []  # old objects that could not take their new state, and what did
        self.read: list[list[object]] = []  # the objects of each stream so far; so their ids stay their own
        self._read: set[int] = set()  # ids of those in the first so many
        self._counted = 0
        self._changes: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self._at_end: list[Callable[[], object]] = []
        self._undo: list[tuple[Any, ...]] = []

    def take_existing(self) -> Any:
        """Hand out the old object, once, to a function that knows what to do with it; None where there is none."""
        existing, self.existing = self.existing, None
        return existing

    def note_read_and_tell(self, value: object) -> bool:
        """Note what earlier streams had, and return whether this was in one: it is as on the other side by now."""
        for made in self.read[self._counted :]:
            self._read.update(map(id, made))
        self._counted = len(self.read)
        return id(value) in self._read

    def container(self, pid: tuple[int, int], old: Any = None) -> Any:
        """Make a large container of atoms; or fill the old one of the same type with them, undoably."""
        kind, number = pid
        made: Any = CONTAINERS[kind]()
        if type(old) is type(made):
            self.undoable(_refill, old, old.copy())
            old.clear()
        target = old if type(old) is type(made) else made
        if type(target) is dict:
            target.update(zip(self.leaves[number].items, self.leaves[number + 1].items, strict=True))
        else:
            (target.extend if type(target) is list else target.update)(self.leaves[number].items)
        if old is not None and target is not old:
            self.replaced.append((old, target))
        return target

    def made(self, definition: object) -> None:
        """Note a new function, class or cache: it may be filled at once, and is kept so that its id stays its own."""
        self.fresh.add(id(definition))
        self.alive.append(definition)

    def forget_made(self, count: int) -> None:
        """Forget the new definitions behind the first `count` values kept: they are half made, and are made anew.

        Most classes stay, as their bases know them; what they got is taken from them, and they are filled again.
        """
        for definition in self.alive[count:]:
            if id(definition) in self.blank:
                self.blank[id(definition)]()
            elif id(definition) in self.fresh:
                self.fresh.discard(id(definition))
                definition_ids.untrack(definition)

    def undoable(self, undo: Callable[..., object], *args: Any) -> None:
        """Note the call that changes back what is about to change; it must do nothing where that did not change."""
        self._undo.append((undo, args))

    def later(self, change: Callable[[], None], undo: Callable[[], None]) -> None:
        """Note a change to be made by `commit`."""
        self._changes.append((change, undo))

    def at_end(self, act: Callable[[], object]) -> None:
        """Note for `finish` what cannot fail and cannot be undone, as to bring an iterator of Python's to its end."""
        self._at_end.append(act)

    def commit(self) -> None:
        """Make the noted changes."""
        for change, undo in self._changes:
            self._undo.append((undo, ()))
            change()
        self._changes.clear()

    def replace_references(self, ours: Iterable[object] = ()) -> None:
        """Put what replaced an old object wherever the old one is held: in containers, instances and closures.

        A frame that runs, and containers of C code, keep the old one. `ours` are containers that need no replacing:
        nobody is asked for what only they and this transaction hold, as most parts of frames.
        """
        ids = {id(old) for old, fresh in self.replaced if old is not fresh}
        held = held_by_others(ids, (self.replaced, self._undo, *ours)) if ids else ids
        last: dict[int, object] = {}
        for old, fresh in reversed(self.replaced):  # what took one's place may be replaced itself, in a later stream
            last[id(old)] = last.get(id(fresh), fresh)
        replaced = {id(old): (old, last[id(old)]) for old, _ in self.replaced if id(old) in held}
        if not replaced:
            return
        own = {id(self.replaced), id(replaced), *map(id, replaced.values()), *map(id, self.replaced)}
        own |= {id(part) for part in (self.alive, self._undo, self.table.objects)}
        for holder in holders_of(*(old for old, _ in replaced.values())):
            if id(holder) not in own:
                self._replace_in(holder, replaced)

    def _replace_in(self, holder: Any, replaced: dict[int, tuple[object, object]]) -> None:
        kind = type(holder)
        if kind is list:
            for index, value in enumerate(holder):
                if id(value) in replaced:
                    self.undoable(holder.__setitem__, index, value)
                    holder[index] = replaced[id(value)][1]
        elif kind is dict:
            for key, value in list(holder.items()):
                if id(value) in replaced:
                    self.undoable(holder.__setitem__, key, value)
                    holder[key] = replaced[id(value)][1]
        elif kind is CellType:
            self.undoable(setattr, holder, "cell_contents", holder.cell_contents)
            holder.cell_contents = replaced[id(holder.cell_contents)][1]
        elif kind.__module__ == "itertools" and hasattr(kind, "__setstate__"):  # what it holds is in its state
            state = (*holder.__reduce__(), None)[2]
            if type(state) is tuple:
                self.undoable(holder.__setstate__, state)
                holder.__setstate__(tuple(replaced.get(id(part), (part, part))[1] for part in state))
        elif not isinstance(holder, type):
            try:
                attributes = object.__getattribute__(holder, "__dict__")  # until somebody asks they are in no dict
            except AttributeError:
                return
            if type(attributes) is dict:
                self._replace_in(attributes, replaced)

    def finish(self) -> None:
        """Do what cannot fail, and cannot be undone. What was before is let go of."""
        self._undo.clear()
        for act in self._at_end:
            act()

    def forget(self) -> None:
        """Let go of all that was read: it holds the transaction in its turn, and would live until it is collected."""
        for noted in (self.read, self.alive, self.replaced, self.half_read, self.waiting, self.blank, self._changes):
            noted.clear()

    def mark(self) -> Mark:
        """Return how far the loading has come, for `undo`."""
        return Mark(len(self._undo), len(self._changes), len(self._at_end), len(self.replaced))

    def undo(self, mark: Mark = Mark(0, 0, 0, 0)) -> list[Exception]:  # noqa: B008  it never changes
        """Change back what was changed since the mark, the last first, and return the errors that were met.

        One that fails does not stop the others.
        """
        failed: list[Exception] = []
        while len(self._undo) > mark.undo:
            undo, args = self._undo.pop()
            try:
                undo(*args)
            except Exception as problem:  # noqa: BLE001  it may be code of the user's
                failed.append(problem)
        for noted, kept in ((self._changes, mark.changes), (self._at_end, mark.at_end), (self.replaced, mark.replaced)):
            del noted[kept:]
        return failed


def _refill(container: Any, before: Any) -> None:
    container.clear()
    (container.extend if type(container) is list else container.update)(before)


def refuse(value: object) -> Reduced:
    """Raise Unpicklable: a reducer for what pickle or cloudpickle would carry by making something else of it."""
    raise Unpicklable(f"cannot pickle {type(value).__name__!r} object")
