"""What differs between two sets of quotas: as data for the ledger, and as sentences for the log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.quotas.values import Word
from gpu_worker.quotas.words import NEW_QOS, PROJECT_WORDS, QOS_WORDS
from gpu_worker.scheduler.projects import Project, QoS


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One setting that is not as it was.

    A project or class of service that came or went is one change with the field "": `before` or `after` is None, and
    the other side has all that is set in it, in one text.
    """

    what: Literal["project", "qos"]
    name: str
    field: str  #: the word of the quota file
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """A sentence for the log, without a full stop."""
        thing = f"{self.what} {self.name!r}"
        if self.field:
            return f"{self.field} of {thing}: {self.before} -> {self.after}"
        return f"{thing} removed, had {self.before}" if self.after is None else f"{thing} added, with {self.after}"


def changes(
    before: tuple[Sequence[Project], Sequence[QoS]], after: tuple[Sequence[Project], Sequence[QoS]]
) -> Iterator[Change]:
    """Each difference once: projects, then classes of service; those that were there first, in their order."""
    yield from _between("project", _by_id(before[0]), _by_id(after[0]), PROJECT_WORDS, Project(id=ProjectId("")))
    yield from _between("qos", _by_name(before[1]), _by_name(after[1]), QOS_WORDS, NEW_QOS)


def _by_id(projects: Sequence[Project]) -> dict[str, Project]:
    return {one.id: one for one in projects}


def _by_name(classes: Sequence[QoS]) -> dict[str, QoS]:
    return {one.name: one for one in classes}


def _between(
    what: Literal["project", "qos"],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    words: Sequence[Word],
    default: Any,
) -> Iterator[Change]:
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after:
            yield Change(what=what, name=name, field="", before=_all(before[name], words, default), after=None)
        elif name not in before:
            yield Change(what=what, name=name, field="", before=None, after=_all(after[name], words, default))
        else:
            for word in words:
                was, now = getattr(before[name], word.field), getattr(after[name], word.field)
                if was != now:
                    shown = word.kind.show
                    yield Change(what=what, name=name, field=word.name, before=shown(was), after=shown(now))


def _all(one: Any, words: Sequence[Word], default: Any) -> str:
    values = ((word, getattr(one, word.field)) for word in words)
    said = [f"{word.name} {word.kind.show(value)}" for word, value in values if value != getattr(default, word.field)]
    return ", ".join(said) or "nothing set"
