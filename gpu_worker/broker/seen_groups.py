"""The hub groups that paid for something: which there are, since when, and how many of one user. Pure.

They come by the hub's word, and some people name their groups themselves: so many of one user are known, and so many
in all. One that nobody used for longer than any budget lasts is forgotten.
"""

from collections.abc import Collection, Iterable

import msgspec

from bulletin.ids import UserName
from bulletin.units import DAY_MS
from gpu_worker.scheduler.policy.group_rules import HubGroup

#: So many are known in all, and so many of one user who was the first of each.
MOST_GROUPS, MOST_OF_USER = 2_000, 50
#: Nothing was used for so long: no budget remembers it.
FORGET_MS = 35 * DAY_MS
#: So many properties of a group are kept, and so long a name or value of one.
_MOST_PROPERTIES, _MOST_LETTERS = 50, 255
#: What the ledger calls what it has of them.
SEEN = "hub-group"


class SeenGroup(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger keeps of a group, once for each thing that happens to it."""

    name: str
    user: UserName  #: whose group it was when it was first seen
    properties: tuple[tuple[str, str], ...] = ()
    is_forgotten: bool = False


class SeenGroups:
    """Those that are known, with when each was used last."""

    def __init__(self, before: Iterable[SeenGroup] = (), now_ms: int = 0) -> None:
        """Take what was kept of an earlier broker, the oldest first."""
        self._known: dict[str, SeenGroup] = {}
        self._used_ms: dict[str, int] = {}
        for one in before:
            self._known[one.name] = one
        self._known = {name: one for name, one in self._known.items() if not one.is_forgotten}
        self._used_ms = dict.fromkeys(self._known, now_ms)

    @property
    def groups(self) -> list[HubGroup]:
        """The groups, as rules look at them."""
        return [HubGroup(one.name, one.properties) for one in self._known.values()]

    def note(
        self,
        name: str,
        user: UserName,
        now_ms: int,
        properties: tuple[tuple[str, str], ...] | None = None,
        named: Collection[str] = (),
    ) -> SeenGroup | None:
        """Note that a group is used; return what is new of it, None where nothing is.

        `properties` are what the hub says now; None is that it was not asked. Those that the quota file names take no
        place of others. Raises TooManyGroups.
        """
        known = self._known.get(name)
        if known is None:
            counted = [] if name in named else [one for one in self._known.values() if one.name not in named]
            if len(counted) >= MOST_GROUPS:
                raise TooManyGroups(
                    f"The pool knows {MOST_GROUPS} groups of this hub, and no more can come. Tell the pool's admins."
                )
            if sum(one.user == user for one in counted) >= MOST_OF_USER:
                raise TooManyGroups(
                    f"You were the first in {MOST_OF_USER} groups that used this pool lately, and that is as many as "
                    "one may. Use another project with --project, or tell the pool's admins."
                )
            found = SeenGroup(name=name, user=user, properties=properties or ())
        else:
            found = known if properties is None else msgspec.structs.replace(known, properties=properties)
        self._known[name], self._used_ms[name] = found, now_ms
        return None if found == known else found

    def forget(self, in_use: Collection[str], now_ms: int) -> list[SeenGroup]:
        """Forget those that nothing was used of for long, except for those `in_use`; return what is to be kept."""
        for name in self._known.keys() & set(in_use):
            self._used_ms[name] = now_ms
        old = [name for name, at_ms in self._used_ms.items() if now_ms - at_ms > FORGET_MS]
        for name in old:
            del self._used_ms[name]
        return [msgspec.structs.replace(self._known.pop(name), is_forgotten=True) for name in old]


class TooManyGroups(Exception):
    """No more groups can be known. The message is a sentence for the user."""


def readable(properties: object) -> tuple[tuple[str, str], ...]:
    """Take of a group's properties those that rules can ask for, as texts: no lists, nothing nested, no long ones."""
    if not isinstance(properties, dict):
        return ()
    found = []
    for name, value in properties.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, str | bool | int | float) and max(len(name), len(text)) <= _MOST_LETTERS:
            found.append((name, text))
    return tuple(sorted(found)[:_MOST_PROPERTIES])


def recalled(payloads: list[object], now_ms: int) -> SeenGroups:
    """Take in what the ledger has of groups that earlier brokers saw."""
    return SeenGroups((msgspec.convert(one, SeenGroup) for one in payloads), now_ms)
