"""The hub groups that paid for something: which there are, since when, and how many of one user. Pure.

They come by the hub's word, and some people name their groups themselves: so many of one user are known, and so many
in all. One that nobody used for longer than any budget lasts is forgotten.
"""

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256

import msgspec

from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS
from gpu_worker.scheduler.policy.group_rules import HubGroup

#: So many are known in all, and so many of one user who was the first of each.
MOST_GROUPS, MOST_OF_USER = 2_000, 50
#: Nothing was used for so long: no budget remembers it.
FORGET_MS = 35 * DAY_MS
#: So long a name or value of a property is kept.
_MOST_LETTERS = 255
#: What the ledger calls what it has of them.
SEEN = "hub-group"
#: At which letter of such a name that of the group begins, the first being 1.
SEEN_GROUP_AT = len(SEEN) + 18


class SeenGroup(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger keeps of a group, once for each thing that happens to it."""

    name: str
    user: UserName  #: whose group it was when it was first seen
    properties: tuple[tuple[str, str], ...] = ()
    is_forgotten: bool = False


class SeenGroups:
    """Those that are known, with when each was used last."""

    def __init__(self, before: Iterable[tuple[int, SeenGroup]] = (), used_ms: Mapping[str, int] | None = None) -> None:
        """Take what was kept of earlier brokers and when, the oldest first, and when groups were used last by then."""
        kept = {one.name: (at_ms, one) for at_ms, one in before}
        self._known = {name: one for name, (_, one) in kept.items() if not one.is_forgotten}
        #: Those that earlier brokers have forgotten: what was used of them long ago was used inside what they were in.
        self.forgotten = [HubGroup(name, one.properties) for name, (_, one) in kept.items() if one.is_forgotten]
        used = used_ms or {}
        self._used_ms = {name: max(kept[name][0], used.get(name, 0)) for name in self._known}

    @property
    def groups(self) -> list[HubGroup]:
        """The groups, as rules look at them."""
        return [HubGroup(one.name, one.properties) for one in self._known.values()]

    def is_known(self, name: str, properties: tuple[tuple[str, str], ...] | None = None) -> bool:
        """Tell whether to note a group would say nothing new of it."""
        known = self._known.get(name)
        return known is not None and properties in (None, known.properties)

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


def name_event(group: str, at_ms: int) -> str:
    """Name what is new of a group, so that what is said of the same one ends alike."""
    return f"{SEEN}-{at_ms:015}-{sha256(group.encode()).hexdigest()[:16]}"


class TooManyGroups(Exception):
    """No more groups can be known. The message is a sentence for the user."""


def readable(properties: object) -> tuple[tuple[str, str], ...]:
    """Take of a group's properties those that rules can ask for, as texts: no lists, nothing nested, no long ones.

    All of them, however many: which are kept is for those to say who know what rules ask for.
    """
    if not isinstance(properties, dict):
        return ()
    found = []
    for name, value in properties.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if isinstance(value, str | bool | int | float) and max(len(name), len(text)) <= _MOST_LETTERS:
            found.append((name, text))
    return tuple(sorted(found))


def recalled(events: Iterable[tuple[int, object]], used_ms: Mapping[ProjectId, int]) -> SeenGroups:
    """Take in what the ledger has of groups that earlier brokers saw, with its times, and when projects were used."""
    seen = ((at_ms, msgspec.convert(payload, SeenGroup)) for at_ms, payload in events)
    return SeenGroups(seen, {str(project): at_ms for project, at_ms in used_ms.items()})
