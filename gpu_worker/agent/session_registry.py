"""The sessions of a node: those that have their lease, and those that have ended while a kernel may still come."""

import secrets
from typing import NamedTuple

from bulletin.ids import LeaseId, UserName
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.session import Session

#: How many sessions of one user at most are remembered that have ended, so that nobody pushes out those of others.
_FINISHED_LIMIT = 32
#: How much of the agent's memory they take together, about; the newest is kept whatever it takes.
_FINISHED_BYTES = 64 * 2**20


class _FinishedSession(NamedTuple):
    session: Session
    finished_ms: int


class SessionRegistry:
    """Finds a session by its lease, its ticket, or the connection of its kernel."""

    def __init__(self) -> None:
        #: Sessions from Prepare to LeaseOver.
        self.running: dict[LeaseId, Session] = {}
        #: Sessions whose executor is gone while their kernel may still come for what their last cell has left.
        self._finished: dict[LeaseId, _FinishedSession] = {}
        self._by_route: dict[bytes, Session] = {}

    def of_user(self, user: UserName) -> list[Session]:
        """List all sessions of a user, those first that have ended."""
        return [session for session in self._all() if session.prepare.user == user]

    def _all(self) -> list[Session]:
        return [*(finished.session for finished in self._finished.values()), *self.running.values()]

    @property
    def has_untaken(self) -> bool:
        """Whether a session that has ended has what its notebook has not taken yet."""
        last = [session.cells.last for session, _ in self._finished.values()]
        return any(cell is not None and cell.lost is None for cell in last)

    def by_route(self, route: bytes) -> Session | None:
        """Find the session whose kernel uses this connection."""
        return self._by_route.get(route)

    def by_ticket(self, lease: LeaseId, ticket: str) -> Session | None:
        """Find the session of a lease, also one that is over, if this is its ticket."""
        finished = self._finished.get(lease)
        session = finished.session if finished is not None else self.running.get(lease)
        return session if session is not None and _has_ticket(session, ticket) else None

    def find_rings(self, ticket: str) -> tuple[int, ...] | None:
        """Find the descriptors of the shared-memory rings of the session that has this ticket."""
        for session in self.running.values():
            if _has_ticket(session, ticket):
                return session.executor.rings
        return None

    def connect(self, route: bytes, session: Session) -> None:
        """Let the session be the one that this connection speaks for, instead of the connection that did."""
        if session.kernel.route is not None:
            self._by_route.pop(session.kernel.route, None)
        self._by_route[route] = session

    def drop_route(self, route: bytes) -> None:
        """Forget a connection that is gone; its kernel attaches again by another."""
        session = self._by_route.pop(route, None)
        if session is not None and session.kernel.route == route:
            session.kernel.route = None

    def disconnect(self, session: Session) -> None:
        """Let no connection speak for the session."""
        self._by_route = {route: other for route, other in self._by_route.items() if other is not session}

    def finish(self, session: Session, *, is_wanted: bool) -> None:
        """Move a session that has ended out of the way; keep it if its kernel may want (`is_wanted`) what is left."""
        lease = session.prepare.lease
        self.running.pop(lease, None)
        self._finished[lease] = _FinishedSession(session, now_ms())
        if not is_wanted:
            self._forget(lease)
            return
        user = session.prepare.user
        its = {name: one.session for name, one in self._finished.items() if one.session.prepare.user == user}
        while len(its) > _FINISHED_LIMIT or sum(one.memory_bytes for one in its.values()) > _FINISHED_BYTES:
            oldest = next(iter(its))
            if oldest == lease:
                return
            self._forget(oldest)
            del its[oldest]

    def forget_finished(self, keep_ms: int) -> None:
        """Forget sessions that have ended if their kernel has all of them, or has not come for so long."""
        for lease, (session, finished_ms) in list(self._finished.items()):
            if session.cells.last is None or now_ms() - finished_ms > keep_ms:
                self._forget(lease)

    def _forget(self, lease: LeaseId) -> None:
        session, _ = self._finished.pop(lease)
        session.forget()
        self.disconnect(session)


def _has_ticket(session: Session, ticket: str) -> bool:
    return secrets.compare_digest(ticket.encode(), session.prepare.ticket.encode())
