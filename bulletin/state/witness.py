"""What a small value was like when it was agreed upon, from near: where that holds, it need not be pickled to say so.

A witness has, for each object that a value is made of, what that holds: the very objects, by their identity, and the
bytes of its memory. If all of them are the same, so is the stream that the encoder would write, with the same objects
and regions. Any doubt is a no, and the encoder decides as ever.
"""

from collections.abc import Callable, Mapping
from operator import is_
from typing import Any, NamedTuple

from bulletin.cpython.refcounts import add_unshared

from . import definition_ids
from .encoding import Encoding
from .reducers.functions import is_importable
from .witnessed_memory import WitnessedMemory


class Notes(NamedTuple):
    """What an encoder notes of a value beside its stream; see `Encoding`."""

    definitions: Mapping[str, object]
    names: tuple[str, ...]
    is_dynamic: bool
    files: tuple[str, ...]
    imports: tuple[str, ...]
    attributes: frozenset[str]
    homes: frozenset[str]
    modules: tuple[str, ...]
    kinds: frozenset[type]


class WitnessedParts(NamedTuple):
    """The objects that a value is made of, by how what they hold is asked for. Atoms and tuples are in what they hold.

    What is asked for itself is not in here: an instance's own dict would count as held by somebody else.
    """

    dicts: tuple[dict[Any, Any], ...]
    lists: tuple[Any, ...]
    #: Instances of classes in Python that are all attributes.
    instances: tuple[Any, ...]
    #: Others, with what gives a tuple of all that they are.
    others: tuple[tuple[Callable[[Any], tuple[Any, ...]], Any], ...]

    def look(self) -> tuple[list[int], list[object]] | None:
        """Return the sizes of all containers, and what all parts hold; None where an instance shares its own dict."""
        found: list[object] = []
        sizes = [*map(len, self.dicts), *map(len, self.lists)]
        for held in self.dicts:
            found += held
            found += held.values()
        for held in self.lists:
            found += held
        if not add_unshared(self.instances, sizes, found):
            return None
        for ask, other in self.others:
            found.append(type(other))
            found += ask(other)
        return sizes, found


class Witness:
    """Knows one unit's value again. `notes` are what the encoder would note of it."""

    __slots__ = ("_content", "_kinds", "_memory", "_named", "_parts", "_sizes", "notes")

    def __init__(
        self,
        parts: WitnessedParts,
        seen: tuple[list[int], list[object]],
        kinds: frozenset[type],
        memory: WitnessedMemory | None,
        notes: Notes,
        by_name: Mapping[type, bool],
    ) -> None:
        self._parts, self._kinds, self._memory, self.notes = parts, kinds, memory, notes
        self._sizes, self._content = tuple(seen[0]), tuple(seen[1])
        #: Classes that go by name, as long as they are what their modules have under it.
        self._named = [kind for kind in {*kinds, *(type(other) for _, other in parts.others)} if by_name[kind]]

    def holds(self, encoder: Encoding) -> bool:
        """Tell whether the encoder would write the same stream of the same objects and memory.

        Where it does, the encoder and its finder know of this value's memory as if they had met it.
        """
        if not all(map(encoder.goes_plainly, self._kinds)) or not all(map(encoder.by_name.__getitem__, self._named)):
            return False
        if not self.is_still_so():
            return False
        for uid, definition in self.notes.definitions.items():
            if definition_ids.uid_of(definition) != uid or is_importable(definition):
                return False
        return self._memory is None or self._memory.holds(encoder)

    def is_still_so(self) -> bool:
        """Tell whether all parts hold the very objects that they held; memory aside."""
        try:
            seen = self._parts.look()
        except (AttributeError, ValueError):  # a frame half-way, an empty cell of a closure
            return False
        if seen is None or len(seen[1]) != len(self._content) or tuple(seen[0]) != self._sizes:
            return False
        return all(map(is_, seen[1], self._content))
