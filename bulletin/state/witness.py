"""What a small value was like when it was agreed upon, from near: where that holds, it need not be pickled to say so.

A witness has, for each object that a value is made of, what that holds: the very objects, by their identity, and the
bytes of its memory. If all of them are the same, so is the stream that the encoder would write, with the same objects
and regions. Any doubt is a no, and the encoder decides as ever.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import is_
from typing import Any, NamedTuple, TypeAlias

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


#: Gives what objects of one sort hold: the sizes of their containers, and the very objects, one after another; None
#: where one shares its own dict.
Look: TypeAlias = Callable[[Sequence[Any]], tuple[list[int], list[object]] | None]
#: The objects that a value is made of, by how what they hold is asked for. Atoms and tuples are in what they hold.
#: What is asked for itself is not in here: an instance's own dict would count as held by somebody else.
Parts: TypeAlias = Mapping[Look, tuple[Any, ...]]
#: What was found so.
Seen: TypeAlias = Mapping[Look, tuple[list[int], tuple[object, ...]]]


def in_dicts(dicts: Sequence[dict[Any, Any]]) -> tuple[list[int], list[object]]:
    """Return the sizes of dicts, with their keys and values."""
    filled = list(filter(None, dicts))  # most are empty: those of functions
    sides = chain.from_iterable(zip(filled, map(dict.values, filled), strict=True))
    return list(map(len, dicts)), list(chain.from_iterable(sides))


def in_lists(lists: Sequence[Any]) -> tuple[list[int], list[object]]:
    """Return the sizes of lists and sets, with what is in them."""
    return list(map(len, lists)), list(chain.from_iterable(filter(None, lists)))


def in_instances(instances: Sequence[Any]) -> tuple[list[int], list[object]] | None:
    """Return the sizes of instances that are all attributes, with these; None where somebody else holds such a dict."""
    sizes: list[int] = []
    found: list[object] = []
    return (sizes, found) if add_unshared(instances, sizes, found) else None


class Inquiry:
    """Looks at objects that say in a tuple what they are."""

    __slots__ = ("one",)

    def __init__(self, one: Callable[[Any], tuple[Any, ...]]) -> None:
        self.one = one

    def __call__(self, others: Sequence[Any]) -> tuple[list[int], list[object]]:
        """Return the type of each, and what it says."""
        said = zip(zip(map(type, others), strict=True), map(self.one, others), strict=True)
        return [], list(chain.from_iterable(chain.from_iterable(said)))


def look(parts: Parts) -> Seen | None:
    """Return what all of these hold now; None where an instance shares its own dict."""
    seen = {}
    for ask, objects in parts.items():
        found = ask(objects)
        if found is None:
            return None
        seen[ask] = found[0], tuple(found[1])
    return seen


def is_still(parts: Parts, seen: Seen) -> bool:
    """Tell whether all parts hold the very objects that they held."""
    try:
        for ask, objects in parts.items():
            found = ask(objects)
            sizes, content = seen[ask]
            if found is None or len(found[1]) != len(content) or found[0] != sizes:
                return False
            if not all(map(is_, found[1], content)):
                return False
    except (AttributeError, ValueError):  # a frame half-way, an empty cell of a closure
        return False
    return True


class Witness:
    """Knows one unit's value again. `notes` are what the encoder would note of it."""

    __slots__ = ("kinds", "memory", "named", "notes", "parts", "seen")

    def __init__(
        self,
        parts: Parts,
        seen: Seen,
        kinds: frozenset[type],
        memory: WitnessedMemory | None,
        notes: Notes,
        by_name: Mapping[type, bool],
    ) -> None:
        self.parts, self.seen, self.memory, self.notes = parts, seen, memory, notes
        #: Classes whose instances go plainly.
        self.kinds = kinds
        others = chain.from_iterable(objects for ask, objects in parts.items() if type(ask) is Inquiry)
        #: Classes that go by name, as long as they are what their modules have under it.
        self.named = [kind for kind in {*kinds, *map(type, others)} if by_name[kind]]

    def holds(self, encoder: Encoding) -> bool:
        """Tell whether the encoder would write the same stream of the same objects and memory.

        Where it does, the encoder and its finder know of this value's memory as if they had met it.
        """
        return (
            are_kinds_as_ever(encoder, self.kinds, self.named)
            and self.is_still_so()
            and are_own(self.notes.definitions)
            and (self.memory is None or self.memory.agreed.is_as_agreed(encoder.finder))
            and self.claim(encoder)
        )

    def claim(self, encoder: Encoding) -> bool:
        """Have the encoder know of this value's memory as if it had met it; False where it has met it otherwise."""
        return self.memory is None or self.memory.claim(encoder)

    def is_still_so(self) -> bool:
        """Tell whether all parts hold the very objects that they held; memory aside."""
        return is_still(self.parts, self.seen)


def are_kinds_as_ever(encoder: Encoding, kinds: Iterable[type], named: Iterable[type]) -> bool:
    """Tell whether instances of these classes still go plainly, and those go by name."""
    return all(map(encoder.goes_plainly, kinds)) and all(map(encoder.by_name.__getitem__, named))


def are_own(definitions: Mapping[str, object]) -> bool:
    """Tell whether these functions and classes still go by these ids, and not by a name."""
    return list(map(definition_ids.uid_of, definitions.values())) == list(definitions) and not any(
        map(is_importable, definitions.values())
    )
