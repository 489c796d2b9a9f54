"""When those who wait have waited for their patience: of each user of a project, one request at a time is late then.

A late request stands before all others that are in quota, or borrow, as it does. So nobody is passed for ever, and many
requests of one user are no way to the front. Those that wait for a node of their user's own stand before nobody else's:
all of them may be late, and none is instead of one that waits for the pool.
"""

from collections.abc import Mapping
from heapq import heappop, heappush

import msgspec

from bulletin.ids import ProjectId, RequestId, UserName
from gpu_worker.scheduler.accounts.account import Account, User
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.late_lines import LateRequest
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.life import RequestStatus
from gpu_worker.scheduler.leases.shapes import QueueEntry

Owner = tuple[ProjectId, UserName]


class Patience:
    """A timer for each user of a project who has requests in line and none that is late."""

    def __init__(self) -> None:
        self._timers: dict[Owner, int] = {}
        self._heap: list[tuple[int, Owner]] = []  #: with timers that hold no longer
        #: Projects of whose limit it is noted until when others use it, as of how many changes.
        self.noted_limits: dict[ProjectId, int] = {}

    def look_again(self, project: ProjectId) -> None:
        """Have what is noted of a project's limit found anew: who is put first there may have changed."""
        self.noted_limits[project] = -1  # as of no count of changes

    @property
    def next_ms(self) -> int | None:
        """When the next request becomes late, or earlier; None is never."""
        return self._heap[0][0] if self._heap else None

    def set(self, owner: Owner, at_ms: int | None) -> None:
        """Look at a user at this time and no other; None is never."""
        if at_ms is None:
            self._timers.pop(owner, None)
            while self._heap and self._timers.get(self._heap[0][1]) != self._heap[0][0]:
                heappop(self._heap)
        elif self._timers.get(owner) != at_ms:
            self._timers[owner] = at_ms
            heappush(self._heap, (at_ms, owner))

    def expect(self, owner: Owner, at_ms: int) -> None:
        """Look at a user at this time, or earlier where that was expected already."""
        if at_ms < self._timers.get(owner, at_ms + 1):
            self.set(owner, at_ms)

    def pop_due(self, now_ms: int) -> list[Owner]:
        """Take out the users whose time has come, in its order."""
        due = []
        while self._heap and self._heap[0][0] <= now_ms:
            at_ms, owner = heappop(self._heap)
            if self._timers.get(owner) == at_ms:
                del self._timers[owner]
                due.append(owner)
        return due

    def expect_request(self, accounts: Accounts, request: Request) -> None:
        """Look at the user of a request that is in line, at the latest, when it has waited for its patience."""
        user = accounts.user_of(request.project, request.user)
        at_ms = _late_ms(accounts, user, request) if request.standing is RequestStatus.QUEUED else None
        if at_ms is not None:
            self.expect((request.project, request.user), at_ms)

    def watch(self, accounts: Accounts, pending: Mapping[RequestId, Request], owner: Owner) -> None:
        """Note anew when a request of a user is late next."""
        found = next_late(accounts, pending, owner)
        self.set(owner, None if found is None else found[0])

    @staticmethod
    def note_late(accounts: Accounts, request: Request) -> None:
        """Note where a request is late: its user has no other one then, and limits and guarantees are kept for it.

        On a node of its user's own there are none, and it is in nobody else's way.
        """
        if not request.is_late_in_pool:
            return
        accounts.user_of(request.project, request.user).late = request.id
        entry = request.entry
        key = entry.key
        late = LateRequest(request.project, request.user, key.walltime_ms, entry.shape, request.since_ms, key.turn)
        for at in accounts.of(request.project).path:
            at.late[request.id] = entry.shape.cost
            at.late_lines.add(request.id, late)
        accounts.of(request.project).note_change()

    @staticmethod
    def rename_late(accounts: Accounts, request: Request, to: RequestId) -> None:
        """Have what is kept for a late request be kept for one that stands in its place, and is noted next."""
        if not request.is_late_in_pool:
            return
        for at in accounts.of(request.project).path:
            at.late = {to if name == request.id else name: cost for name, cost in at.late.items()}
            at.late_lines.rename(request.id, to)

    @staticmethod
    def forget_late(accounts: Accounts, request: Request, *, is_granted: bool) -> None:
        """Note that a late request waits no longer: who was let pass others so is not let do so again for a while.

        On a node of its user's own it has passed nobody.
        """
        if request.lane == "own":
            return
        user, now_ms = accounts.user_of(request.project, request.user), accounts.now_ms
        user.late = None
        if is_granted:
            user.late_grant_ms = now_ms
        for at in lets_pass(accounts, request) if is_granted else ():
            at.late_grant_ms = now_ms
        for at in accounts.of(request.project).path:
            at.late.pop(request.id, None)
            at.late_lines.discard(request.id)
        accounts.of(request.project).note_change()

    def change_lane(self, accounts: Accounts, request: Request, entry: QueueEntry) -> QueueEntry:
        """Give up what a request that is late has, where it waits for its user's own node from now on, or no longer.

        Returns its entry there. It is not late in the pool where another one of its user is, or was so lately.
        """
        if request.lane == entry.shape.lane or "own" not in (request.lane, entry.shape.lane):
            return entry
        self.expect((request.project, request.user), accounts.now_ms)  # it, or another one, may be late now
        if entry.key.is_early:
            return entry
        self.forget_late(accounts, request, is_granted=False)
        user = accounts.user_of(request.project, request.user)
        since_ms, patience_ms = max(request.since_ms, user.late_grant_ms), accounts.qos[request.qos].patience_ms
        if entry.shape.lane == "own" or (user.late is None and since_ms + patience_ms <= accounts.now_ms):
            return entry
        return msgspec.structs.replace(entry, key=entry.key._replace(is_early=True, since_ms=0))


def lets_pass(accounts: Accounts, request: Request) -> list[Account]:
    """List the projects that a late request is in and whose turn it is to stand before projects beside them."""
    if not request.is_late_in_pool:
        return []
    patience_ms = accounts.qos[request.qos].patience_ms if request.qos in accounts.qos else 0
    path = accounts.of(request.project).path
    return [at for at in path if accounts.now_ms >= at.late_grant_ms + patience_ms]


def as_waited(request: Request, patience_ms: int, now_ms: int) -> QueueEntry:
    """Make the entry that a request has once its class has this patience: one that is late may not be any more."""
    entry, key = request.entry, request.entry.key
    if key.is_early or request.since_ms + patience_ms <= now_ms:
        return entry
    return msgspec.structs.replace(entry, key=key._replace(is_early=True, since_ms=0))


def next_late(accounts: Accounts, pending: Mapping[RequestId, Request], owner: Owner) -> tuple[int, QueueEntry] | None:
    """Find which request of a user is late next, and when; None where none is in line that is not late and may be."""
    account = accounts.by_id.get(owner[0])  # a reservation may be no more
    user = None if account is None else account.users.get(owner[1])
    if user is None:
        return None
    entries = [entry for line in user.lines.values() for _, entry in line]
    times = [(_late_ms(accounts, user, pending[entry.id]), entry) for entry in entries]
    able = [(at_ms, entry.key, entry) for at_ms, entry in times if at_ms is not None]
    first = min(able, default=None, key=lambda one: one[:2])
    return None if first is None else (first[0], first[2])


def _late_ms(accounts: Accounts, user: User, request: Request) -> int | None:
    """When a request is late; None where it is already, or another one of its user is in its place."""
    patience_ms = accounts.qos[request.qos].patience_ms
    if request.lane == "own":
        return request.since_ms + patience_ms if request.entry.key.is_early else None
    return None if user.late is not None else max(request.since_ms, user.late_grant_ms) + patience_ms
