"""What a reducer sees of the encoder that asks it: what it looks up, and what it notes for whoever packs the stream."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import CodeType
from typing import Any, Protocol

from .leaves import Leaves
from .memory import Finder, Region


class Encoding(Protocol):
    """One stream that is being written. A reducer fills the notes, and changes nothing else."""

    #: Whose functions and classes these are.
    namespace: Mapping[str, object]
    #: Where memory is found.
    finder: Finder
    #: Ids of definitions to write in full; others are referred to.
    inline: frozenset[str]
    #: Code as a token: only this side reads the stream.
    is_digest: bool
    #: Arrays that copy-on-write keeps apart.
    guarded: set[int]
    #: Arrays in frames, with the block that travels with each.
    blocks: dict[int, int]
    #: Instances whose own dict somebody else holds.
    dict_sharers: set[int]
    #: Tells the ids of what weak references alone lead to: nobody but the table holds it.
    forgotten: Callable[[], frozenset[int]]
    #: Every definition met, by id.
    definitions: dict[str, object]
    #: Names of the namespace that functions and classes met here look up.
    names: dict[str, None]
    #: Whether one of them may look up any name.
    is_dynamic: bool
    #: Where their code came from.
    files: dict[str, None]
    #: Modules that they may import.
    imports: dict[str, None]
    #: Names that they spell.
    attributes: set[str]
    #: Modules of functions and classes that go by their names.
    homes: set[str]
    #: Modules that travel by name.
    modules: dict[str, None]
    #: Whether the other side finds a class by its module and name.
    by_name: Mapping[type, bool]
    #: Code objects, kept so that their ids in tokens stay true.
    codes: list[CodeType]
    #: Context variables that the namespace has, once that was asked in this exchange.
    own_variables: frozenset[ContextVar[Any]] | None
    #: Temporaries whose ids are in use.
    alive: list[object]

    def goes_plainly(self, kind: type) -> bool:
        """Tell whether instances of a class are their attributes, which pickle writes without asking anybody."""
        ...

    def try_to_send(self, value: object, parts: object) -> bool:
        """Tell whether these parts of a value can travel."""
        ...

    def leaves_number(self, leaves: Leaves) -> int:
        """Return the number of these atoms in this stream."""
        ...

    def region(self, region: Region, address: int, user: object) -> tuple[int, int]:
        """Return the number of a region in this stream, and the offset of an address in it."""
        ...
