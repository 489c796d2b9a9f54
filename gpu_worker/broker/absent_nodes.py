"""The nodes that should be there and are not: since when, and what is known of why."""

from collections.abc import Callable, Collection, Iterator

import msgspec

from bulletin.wire import messages as wire

#: So many at most are remembered that no admin has registered.
_MOST = 1000


class _Absence(msgspec.Struct, frozen=True):
    since_ms: int | None  #: None: it has not been there since the broker was started
    problem: str
    is_registered: bool  #: and is to be there only for as long as it is


class AbsentNodes:
    """Remembers who was lost, or could not be let in."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._absences: dict[str, _Absence] = {}

    def note_lost(self, node: str, heard_ms: int, *, is_registered: bool) -> None:
        """Note that a node was there, and was heard last then."""
        self._absences[node] = _Absence(heard_ms, "", is_registered)
        while len(self._absences) > _MOST:
            del self._absences[next(iter(self._absences))]

    def note_problem(self, node: str, problem: str) -> bool:
        """Note why a registered node is not let in; return whether that is news: once, until it is there again.

        Each time another reason is none: a node says what it likes.
        """
        known = self._absences.get(node)
        self._absences[node] = _Absence(None if known is None else known.since_ms, problem, is_registered=True)
        return known is None or not known.problem

    def forget(self, node: str) -> None:
        """Note that a node is there, or is to be no more."""
        self._absences.pop(node, None)

    def listed(self, registered: Collection[str], present: Collection[str]) -> Iterator[wire.AbsentNode]:
        """List the registered nodes that are not there, and others that were."""
        now_ms = self._now_ms()
        self._absences = {
            node: one for node, one in self._absences.items() if node in registered or not one.is_registered
        }
        for node in sorted({*registered, *self._absences} - {*present}):
            absence = self._absences.get(node, _Absence(None, "", is_registered=True))
            ago_ms = None if absence.since_ms is None else max(0, now_ms - absence.since_ms)
            yield wire.AbsentNode(node=node, absent_ms=ago_ms, problem=absence.problem)
