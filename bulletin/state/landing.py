"""What the receiving side lends to values while they are made: its namespace, its definitions, an undo for changes."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Namespace: TypeAlias = dict[str, Any]
#: What `__reduce_ex__` may return, or NotImplemented.
Reduced: TypeAlias = Any


class Unpicklable(TypeError):
    """A value that pickle could carry only by lying about it: an open file, a held lock."""


class NotHere(LookupError):
    """A stream refers to something that this side should have and has not."""


class _Here:
    """Stands, on the sending side, for the receiver's `Landing`."""


HERE = _Here()


class Landing:
    """One arrival of values: owned by `restore` or `apply`, used by the functions that pickle calls to make values.

    What this side has already is not touched while records load. `later` collects the changes to it and `commit` makes
    them, all or none.
    """

    def __init__(self, namespace: Namespace, remote: Mapping[str, object] | None = None) -> None:
        self.namespace = namespace
        self.remote = remote or {}
        self.old: set[int] = set()  # ids of definitions and cells that were here before
        self.fresh: set[int] = set()  # ids of definitions that this landing made
        self.alive: list[object] = []  # weakly referenced values, and whatever must outlive the loading
        self._changes: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def made(self, definition: object) -> None:
        """A new function, class or cache: it is filled at once, and kept so that its id stays its own."""
        self.fresh.add(id(definition))
        self.alive.append(definition)

    def later(self, change: Callable[[], None], undo: Callable[[], None]) -> None:
        """Note a change to something that this side had before."""
        self._changes.append((change, undo))

    def commit(self) -> None:
        """Make the noted changes; if one fails, unmake those made."""
        done: list[Callable[[], None]] = []
        try:
            for change, undo in self._changes:
                done.append(undo)
                change()
        except BaseException:
            for undo in reversed(done):
                undo()
            raise
        self._changes.clear()


def refuse(value: object) -> Reduced:
    """A reducer for what pickle or cloudpickle would carry by making something else of it."""
    raise Unpicklable(f"cannot pickle {type(value).__name__!r} object")
