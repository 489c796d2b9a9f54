"""What an executor holds of a notebook, from the notebook's half of the table: as both had it after the last cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from . import names
from .handles import Handle, parts
from .library_places import is_of_library
from .plan import word_for
from .table import ABSENT, Table


class Home(Enum):
    """Where a value is."""

    BOTH = "both"
    THERE = "there"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Holding:
    """A value, by its name or by the path to it. `array_bytes` is the memory of the arrays in it."""

    name: str
    kind: str
    home: Home
    array_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Holdings:
    """All that an executor holds of a notebook.

    Memory that several values share is counted once in `array_bytes`, and in full for each of them.

    `nameless` counts values that were sent and that no name here holds any more. `modules` are the notebook's own
    whose source the executor has.
    """

    values: tuple[Holding, ...]
    array_bytes: int
    nameless: int
    modules: tuple[str, ...]


def holdings(namespace: Mapping[str, object], table: Table) -> Holdings:
    """List what the table says of the notebook's names.

    Nothing is read or compared: a value that has changed since is as it was sent.
    """
    values: list[Holding] = []
    told: set[int] = set()  # ids of handles, which several values may hold
    roots = {id(unit.root): unit for unit in table.units.values()}
    definitions = {id(unit.root): unit for unit in table.definitions.values()}
    inside: list[Handle] = []
    for name, value in namespace.items():
        if not names.is_users(name):
            continue
        unit = roots.get(id(value)) or definitions.get(id(value))
        if isinstance(value, Handle):
            told.add(id(value))
            values.append(Holding(name, word_for(value), _home(value, table)))
        elif unit is not None:
            values.append(Holding(name, word_for(value), Home.BOTH, unit.bytes_beside))
            inside += [node for node in unit.nodes if isinstance(node, Handle)]
    for handle in inside:
        if id(handle) not in told:
            told.add(id(handle))
            values.append(Holding(parts(handle)[1], word_for(handle), _home(handle, table)))
    held = {id(value) for value in namespace.values()}
    return Holdings(
        tuple(values),
        sum(region.size for region in table.regions.values()),
        sum(root not in held and not _is_of_library(unit.root) for root, unit in roots.items()),
        tuple(name for name, entry in table.modules.entries.items() if entry.digest),
    )


def _is_of_library(value: object) -> bool:
    """Tell whether it is what the notebook has put into a library, here or where it cannot be loaded here."""
    return names.is_registered(parts(value)[1]) if isinstance(value, Handle) else is_of_library(value)


def _home(handle: Handle, table: Table) -> Home:
    return Home.GONE if table.oid_of(handle) == ABSENT else Home.THERE
