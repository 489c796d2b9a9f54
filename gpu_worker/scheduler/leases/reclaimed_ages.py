"""How long those have waited whose cells were reclaimed: who asks for the same again stands where it stood."""

import msgspec

from bulletin.ids import ProjectId, SessionId, UserName
from bulletin.units import HOUR_MS
from gpu_worker.scheduler.leases.resources import Wants

#: For how long it is known.
_KEPT_MS = HOUR_MS


class Wanted(msgspec.Struct, frozen=True):
    """What a cell was granted. Who asks for something else asks anew."""

    user: UserName
    project: ProjectId
    qos: str
    need: int
    wants: Wants


class Age(msgspec.Struct, frozen=True):
    """Where a request stands among equals, and what it lost before."""

    due: int  #: in tens of seconds
    seq: int
    shared: int = 0  #: how often its cell was taken back for somebody's share
    passed_for: frozenset[ProjectId] = frozenset()  #: in which it was let pass others since it was late


class ReclaimedAges:
    """The ages of reclaimed cells, by session, each until it is asked for."""

    def __init__(self) -> None:
        self._kept: dict[SessionId, tuple[Wanted, Age | None, int]] = {}  # the oldest first
        self._unused: dict[SessionId, tuple[Wanted, int, int]] = {}  # likewise: how often a cell went for shares

    def keep(self, session: SessionId, wanted: Wanted, age: Age | None, now_ms: int) -> None:
        """Its cell is reclaimed now; without an age where it began before this scheduler."""
        self._kept.pop(session, None)
        for old in [old for old, (_, _, since_ms) in self._kept.items() if since_ms + _KEPT_MS <= now_ms]:
            del self._kept[old]
        self._kept[session] = wanted, age, now_ms

    def keep_shares(self, session: SessionId, wanted: Wanted, shared: int, now_ms: int) -> None:
        """Note how often a cell has gone for shares that was lost or not begun: it asks anew, and stands behind."""
        self._unused.pop(session, None)
        for old in [old for old, (_, _, since_ms) in self._unused.items() if since_ms + _KEPT_MS <= now_ms]:
            del self._unused[old]
        self._unused[session] = wanted, shared, now_ms

    def take_shares(self, session: SessionId, wanted: Wanted, now_ms: int) -> int:
        """Take out how often the cell that the session asks for once more has gone for shares."""
        before, shared, since_ms = self._unused.pop(session, (None, 0, 0))
        return shared if before == wanted and now_ms < since_ms + _KEPT_MS else 0

    def is_expected(self, session: SessionId, now_ms: int) -> bool:
        """Whether the session has a cell that was reclaimed, and is to run again."""
        return session in self._kept and now_ms < self._kept[session][2] + _KEPT_MS

    def take(self, session: SessionId, wanted: Wanted, now_ms: int) -> Age | None:
        """Take out the age of what was reclaimed, if that is what the session asks for: it is known no more."""
        before, age, since_ms = self._kept.pop(session, (None, None, 0))
        return age if before == wanted and now_ms < since_ms + _KEPT_MS else None

    def drop(self, session: SessionId) -> None:
        """Its cell ended after all."""
        self._kept.pop(session, None)
