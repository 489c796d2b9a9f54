"""In which order a namespace has its names: new ones, and those that were unbound in between, come last."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

Namespace: TypeAlias = dict[str, Any]


class LateNames(NamedTuple):
    """Names that a cell has put behind the others, in their order; and those of them that were there before."""

    names: list[str]
    again: list[str]


def late_names(before: Sequence[str], after: Iterable[str], deletes: Collection[str]) -> LateNames:
    """Find what a cell has put at the end of a namespace: what is new, and what it had deleted before it bound it.

    Parameters
    ----------
    before, after
        The names in their order, before the cell and after it.
    deletes
        Those that the cell deletes itself, by its text: of the last ones before the cell, their places do not tell.
    """
    place = {name: index for index, name in enumerate(before)}
    late, again, last = list[str](), list[str](), -1
    for name in after:
        index = place.get(name, -1)
        if index < 0:
            late.append(name)
        elif late or index < last or name in deletes:
            late.append(name)
            again.append(name)
        else:
            last = index
    return LateNames(late, again)


def put_last(namespace: Namespace, names: Iterable[str]) -> None:
    """Put these names, those of them that are bound, behind all others, in this order."""
    for name in names:
        if name in namespace:
            namespace[name] = namespace.pop(name)
