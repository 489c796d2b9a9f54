"""Instances that keep the address of what they hold, in a number or a text, or as a key: it is that of each side.

A library makes keys of `id(x)` and finds `x` by them, and asks on the other side for the address that `x` has there.
"""

import re
from typing import Any, NamedTuple

from bulletin.state.inplace import attributes_of, fill_dict, slots_held
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .containers import make_instance

#: What is longer is looked at no further, and no text.
_MOST, _LONGEST = 64, 200
_ADDRESS = re.compile(r"\d{10,20}")
#: What is less is no address.
_LOWEST = 1 << 32


class Addressed(NamedTuple):
    """An attribute that is the address of what another one holds, or of the instance: a number, or inside a text."""

    name: str
    #: The other attribute; None is the instance itself.
    held_by: str | None
    around: tuple[str, str] | None


def _addressed(value: Any, attributes: dict[str, Any]) -> list[Addressed]:
    owners: dict[int, str | None] | None = None
    found = []
    for name, held in attributes.items():
        kind = type(held)
        if kind is int and held > _LOWEST:
            address, around = held, None
        elif kind is str and 10 <= len(held) <= _LONGEST and (match := _ADDRESS.search(held)):
            address, around = int(match[0]), (held[: match.start()], held[match.end() :])
        else:
            continue
        if owners is None:
            owners = {**{id(part): key for key, part in attributes.items()}, id(value): None}
        if address in owners:
            found.append(Addressed(name, owners[address], around))
    return found


def _keyed(attributes: dict[str, Any]) -> list[tuple[dict[Any, Any], list[int]]]:
    """List the dicts that have addresses of what they hold among their keys, with these keys."""
    dicts = [held for held in attributes.values() if type(held) is dict and int in set(map(type, held))]
    found = [(held, [key for key, part in held.items() if type(key) is int and key == id(part)]) for held in dicts]
    return [(held, keys) for held, keys in found if keys]


def reduce_addressing(value: Any) -> Reduced:
    """Reduce an instance that has addresses to its attributes, with these told apart; others are left to pickle.

    Each instance is asked: another one of its class may have none yet.
    """
    held = attributes_of(value)
    if not held or len(held) > _MOST:
        return NotImplemented
    addressed, keyed = _addressed(value, held), _keyed(held)
    if not addressed and not keyed:
        return NotImplemented
    attributes = {**held, **dict.fromkeys(one.name for one in addressed)}
    state = (RECEIVER, attributes, list(map(tuple, addressed)), keyed, slots_held(value))
    return make_instance, (RECEIVER, type(value), False), state, None, None, fill_addressing


def fill_addressing(
    value: Any,
    state: tuple[LoadTransaction, dict[str, Any], list[tuple[Any, ...]], list[Any], list[tuple[str, Any]]],
) -> None:
    """Give an instance its attributes, and the addresses that these have on this side."""
    _, attributes, addressed, keyed, slots = state
    own = object.__getattribute__(value, "__dict__")
    own.update(attributes)
    for one in map(Addressed._make, addressed):
        address = id(value if one.held_by is None else own[one.held_by])
        own[one.name] = address if one.around is None else f"{one.around[0]}{address}{one.around[1]}"
    for held, addresses in keyed:
        keys = set(addresses)
        fill_dict(held, [(id(part) if type(key) is int and key in keys else key, part) for key, part in held.items()])
    for slot, part in slots:
        object.__setattr__(value, slot, part)
