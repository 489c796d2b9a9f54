"""Makes a history that breaks a promise small: it leaves out what the violation does not need."""

import itertools
from collections.abc import Iterator

import msgspec

from tests.scheduler.promises import history as hi
from tests.scheduler.promises.play import play
from tests.scheduler.promises.violations import Violation


def shrink(history: hi.History, promise: int | None = None) -> tuple[hi.History, Violation | None]:
    """Leave out people, faults, cells, settings and delays as long as the same kind of violation is found."""
    first = _first(history, None, promise)
    if first is None:
        return history, None
    kind = (first.promise, first.what)
    history = _cut(history, first.at_ms)
    is_smaller = True
    while is_smaller:
        is_smaller = False
        skipped = 0
        while (smaller := next(itertools.islice(_smaller(history), skipped, None), None)) is not None:
            skipped += 1
            found = _first(smaller, kind, None)
            if found is not None:  # what comes next has taken the place of what was left out
                history, first, is_smaller, skipped = smaller, found, True, max(0, skipped - 1)
    return history, first


def _cut(history: hi.History, at_ms: int) -> hi.History:
    """Leave out what comes after a time."""
    before = tuple(at for at in history.happenings if at.ms <= at_ms)
    return msgspec.structs.replace(history, happenings=before, until_ms=min(history.until_ms, at_ms))


def _first(history: hi.History, kind: tuple[int, str] | None, promise: int | None) -> Violation | None:
    try:
        judge, _ = play(history)
    except Exception:  # noqa: BLE001  # another failure than the one that is looked for
        return None
    for violation in judge.violations:
        if (kind is None or (violation.promise, violation.what) == kind) and promise in {None, violation.promise}:
            return violation
    return None


def _smaller(history: hi.History) -> Iterator[hi.History]:
    """Offer histories with a little less, the large cuts first."""
    change = msgspec.structs.replace
    happenings = history.happenings
    size = len(happenings) // 2
    while size:
        for begin in range(0, len(happenings), size):
            yield change(history, happenings=happenings[:begin] + happenings[begin + size :])
        size //= 2
    for index, at in enumerate(happenings):
        if isinstance(at.what, hi.Opens) and len(at.what.cells) > 1:
            for cells in (at.what.cells[:1], at.what.cells[:-1]):
                what = change(at.what, cells=cells)
                yield change(history, happenings=(*happenings[:index], hi.At(at.ms, what), *happenings[index + 1 :]))
    if history.delays != hi.Delays():
        yield change(history, delays=hi.Delays())
        for name in history.delays.__struct_fields__:
            if getattr(history.delays, name):
                yield change(history, delays=change(history.delays, **{name: 0}))
    settings = history.settings
    for index, project in enumerate(settings.projects):
        if not any(other.parent == project.id for other in settings.projects):
            rest = (*settings.projects[:index], *settings.projects[index + 1 :])
            yield change(history, settings=change(settings, projects=rest))
        for field in msgspec.structs.fields(type(project)):
            if field.name != "id" and getattr(project, field.name) != field.default:
                plainer = change(project, **{field.name: field.default})
                if plainer.limit_milli is not None and plainer.limit_milli < plainer.guaranteed_milli:
                    continue
                projects = (*settings.projects[:index], plainer, *settings.projects[index + 1 :])
                yield change(history, settings=change(settings, projects=projects))
