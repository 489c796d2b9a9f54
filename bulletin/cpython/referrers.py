"""What the garbage collector knows: who holds an object, and what a view or an iterator of C code looks at."""

import gc
import sys
from collections.abc import Iterable, Set as AbstractSet
from types import MappingProxyType, ModuleType
from typing import Any


def holders_of(*values: object) -> list[Any]:
    """List the containers, instances and closures that hold one of these. An instance may stand for its own dict.

    A frame that runs, and most containers of C code, are not among them.
    """
    return gc.get_referrers(*values)


def held_by_others(ids: AbstractSet[int], ours: Iterable[object]) -> set[int]:
    """Return those of these ids whose objects more holds than these containers of ours, and what only they keep alive.

    All references from our containers are counted; what has no others is ours as well, and its references count. So it
    takes as long as there is in them, and not as long as the heap is. A reference that is not seen here counts as one
    of others; where there is too much to count, all are held by others.
    """
    counted: dict[int, list[Any]] = {}
    waiting = list({id(container): container for container in ours}.values())  # each once: nothing counts twice
    own = set(map(id, waiting))
    while waiting:
        touched: dict[int, None] = {}
        for held in gc.get_referents(waiting.pop()):
            if type(held) in _HOLD_NOTHING:
                continue
            entry = counted.setdefault(id(held), [held, 0])
            entry[1] += 1
            touched[id(held)] = None
        held = None
        for key in touched:
            entry = counted[key]
            if key not in own and sys.getrefcount(entry[0]) == entry[1] + _OF_AN_ENTRY:
                own.add(key)
                waiting.append(entry[0])
        if len(counted) > _MOST_COUNTED:
            return set(ids)
    return set(ids) - own


_HOLD_NOTHING = frozenset({str, int, float, bytes, bool, type(None)})


def _count_in_an_entry() -> int:
    """Measure the reference count of an object that an entry like those above holds alone."""
    entry: list[Any] = [object(), 0]
    return sys.getrefcount(entry[0])


_OF_AN_ENTRY = _count_in_an_entry()
#: Looking through so much takes as long as looking through a heap.
_MOST_COUNTED = 100_000


def behind_proxy(proxy: MappingProxyType[Any, Any]) -> Any:
    """Return the mapping that a read-only view looks at."""
    return gc.get_referents(proxy)[0]


def only_part_of(value: Any) -> list[Any]:
    """Return, in a list, what an object of C code looks at that has room for one pointer and nothing else; else none.

    A call of such a type with it gives another that looks at the same.
    """
    kind = type(value)
    size = object.__basicsize__ + _POINTER_BYTES * (1 + bool(kind.__weakrefoffset__))
    if kind.__basicsize__ != size or kind.__itemsize__ or kind.__dictoffset__ or not gc.is_tracked(value):
        return []
    parts = [part for part in gc.get_referents(value) if part is not kind]
    return parts if len(parts) == 1 else []


_POINTER_BYTES = 8


def class_of_attributes(attributes: Any) -> type | None:
    """Find the class whose own dict this is; None if it is no class's, or has no `__module__` in it."""
    if type(attributes) is not dict:
        return None
    owners = (getattr(held, "__objclass__", None) for held in attributes.values())
    if "__module__" in attributes:
        for owner in (*owners, *gc.get_referrers(attributes)):
            if isinstance(owner, type) and behind_proxy(vars(owner)) is attributes:
                return owner
    return None


def module_of_globals(spoken: dict[str, Any]) -> ModuleType | None:
    """Find the module whose globals this dict is, though no name leads to it; None if it is no module's."""
    return next((held for held in gc.get_referrers(spoken) if type(held) is ModuleType), None)


def dict_of_iterator(iterator: Iterable[Any]) -> dict[Any, Any] | None:
    """Return the dict that an iterator of its keys, values or items goes through.

    None where the iterator has come to its end.
    """
    return next((part for part in gc.get_referents(iterator) if isinstance(part, dict)), None)


def id_behind_iterator(iterator: Iterable[Any]) -> list[int]:
    """List the id of what an iterator of a dict goes through; nothing where it has come to its end."""
    return list(map(id, gc.get_referents(iterator)[:1]))


def arguments_of_local(local: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a `threading.local` was made with: each thread that asks for it calls its `__init__` with that."""
    _, args, *rest = gc.get_referents(local)
    options = next((part for part in rest if type(part) is dict and part and all(type(key) is str for key in part)), {})
    return args, options
