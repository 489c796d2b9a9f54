"""Requests in line, by project, user and shape; and in which order those of one project's users come."""

from bisect import bisect_left, insort
from typing import Literal

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.accounts.account import Account, Rank, User
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.node_pools import NodePools
from gpu_worker.scheduler.leases.resources import Lane, Wants
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.policy.projects import GPU_MILLI
from gpu_worker.scheduler.queue.closed import Closed
from gpu_worker.scheduler.queue.next_request import NextRequest

#: A GPU-hour used, decayed, puts a user's requests back by a minute, and all use by no more than ten.
_USE_A_DELAY, _LATEST_MS = 60, 600_000


class RequestQueue:
    """The requests in line, in the tree of a pool's accounts. What these use changes who is next."""

    def __init__(self, accounts: Accounts, pools: NodePools) -> None:
        self._accounts, self._next = accounts, NextRequest(accounts, pools)
        self.shapes: dict[Shape, int] = {}  #: requests in line, of all projects
        self.alike: dict[tuple[Lane, int, Wants], dict[Shape, None]] = {}  #: those by what they need of a node
        self.heads: dict[Shape, set[ProjectId]] = {}  #: projects whose own users' lines have such a request

    def use(
        self,
        project: ProjectId,
        name: UserName,
        qos: str,
        cost: int,
        sign: Literal[1, -1],
        *,
        charged: int = 0,
        is_awaited: bool = False,
    ) -> None:
        """Count so much more, or less, as in use, as accounts do; whoever uses more is later."""
        self._accounts.use(project, name, qos, cost, sign, charged=charged, is_awaited=is_awaited)
        self._rank_user(project, name, qos)

    def enter(self, project: ProjectId, entry: QueueEntry) -> None:
        """Put a request in line."""
        user = self._accounts.user_of(project, entry.user)
        insort(user.lines.setdefault(entry.shape, []), (entry.key, entry))
        self._count(project, entry.shape, +1)
        self._rank_line(self._accounts.of(project), user, entry.shape)

    def leave(self, project: ProjectId, entry: QueueEntry) -> None:
        """Take a request out of its line."""
        user = self._accounts.user_of(project, entry.user)
        line = user.lines[entry.shape]
        index = bisect_left(line, (entry.key,))
        del line[index]
        if index:  # it may be next all the same, where the first one takes nothing for a share yet
            self._next.forget(self._accounts.of(project))
        if not line:
            del user.lines[entry.shape]
        self._count(project, entry.shape, -1)
        self._rank_line(self._accounts.of(project), user, entry.shape)

    def _count(self, project: ProjectId, shape: Shape, step: int) -> None:
        need = shape.lane, shape.need, shape.wants
        if shape not in self.shapes:
            self.alike.setdefault(need, {})[shape] = None
        if step > 0:
            self._next.note_cost(shape.cost)
        path = list(self._accounts.of(project).path)
        for account in path if self._accounts.qos[shape.qos].must_be_in_quota else ():
            account.waiting_in_quota += step
        for waiting in (self.shapes, *(account.waiting for account in path)):
            number = waiting.get(shape, 0) + step
            if number:
                waiting[shape] = number
            else:
                del waiting[shape]
        if shape not in self.shapes:
            del self.alike[need][shape]
            if not self.alike[need]:
                del self.alike[need]

    def due_ms(self, project: ProjectId, name: UserName, apart_ms: int, aside: int = 0) -> int:
        """When a request of now is due: the later the more its user used before, but not much later.

        So who used less comes first, and nobody is passed for ever. Whatever of the user waits or runs puts it back by
        `apart_ms`: many requests are no way to the front, nor if so many wait `aside` of the line.
        """
        age_ms, user = self._accounts.now_ms - (self._accounts.began_ms or 0), self._accounts.user_of(project, name)
        used_ms = user.history.at(age_ms) // GPU_MILLI
        number = sum(map(len, user.lines.values())) + aside + user.used // GPU_MILLI
        return self._accounts.now_ms + min(_LATEST_MS, used_ms // _USE_A_DELAY) + number * apart_ms

    def _rank_user(self, project: ProjectId, name: UserName, qos: str = "") -> None:
        """Put a user's lines in order again; those in other projects as well where a QoS limits the user in all."""
        is_everywhere = qos in self._accounts.qos and self._accounts.qos[qos].running_per_user is not None
        for at in self._accounts.projects_of[name] if is_everywhere else (project,):
            account = self._accounts.by_id[at]
            user = account.users[name]
            for shape in list(user.lines):
                self._rank_line(account, user, shape)

    def _rank_line(self, account: Account, user: User, shape: Shape) -> None:
        """Put the first of a user's line where it belongs among those of the other users."""
        line = user.lines.get(shape)
        rank = self.rank_in_line(account, user, line[0][1]) if line else None
        before = user.ranks.get(shape)
        if rank == before:
            return
        self._next.forget(account)
        heads = account.heads.setdefault(shape, [])
        self.heads.setdefault(shape, set()).add(account.project.id)
        first = heads[0] if heads else None
        if before is not None:
            del heads[bisect_left(heads, (before, user.name))]
            del user.ranks[shape]
        if rank is not None:
            insort(heads, (rank, user.name))
            user.ranks[shape] = rank
        if not heads or heads[0] is not first:
            if first is not None:
                del account.firsts[bisect_left(account.firsts, first)]
            if heads:
                insort(account.firsts, (*heads[0], shape))
        if not heads:
            del account.heads[shape]
            self.heads[shape].discard(account.project.id)
            if not self.heads[shape]:
                del self.heads[shape]

    def boost(self, project: ProjectId, name: UserName, *, is_boosted: bool) -> None:
        """Let a user's requests stand before those of the project's other users; or no longer."""
        self._accounts.user_of(project, name).is_boosted = is_boosted
        self._rank_user(project, name)

    def change_limit(self, project: ProjectId, name: UserName) -> None:
        """Put a user's requests in order again, who may have more or less at once than before."""
        self._accounts.user_of(project, name)
        self._rank_user(project, name)
        self._accounts.of(project).note_change()

    def rank_in_line(self, account: Account, user: User, entry: QueueEntry) -> Rank | None:
        """Where a user's request stands among those of the project's users; None where the user may have no more."""
        shape, key = entry.shape, entry.key
        limit = self._accounts.allowances.user_limit_milli(account.project, user.name)
        if limit is not None and shape.cost and user.used + shape.cost > limit:
            return None
        at_once, runs = self._accounts.qos[shape.qos].running_per_user, self._accounts.runs.get((user.name, shape.qos))
        if at_once is not None and runs is not None and runs.used >= at_once:
            return None
        return (key.turn, not user.is_boosted, *key[1:4], user.used, *key[4:])

    def next(self, closed: Closed) -> tuple[Account, QueueEntry] | None:
        """Whoever is next and is not closed; None where nobody may have more."""
        return None if closed.has_all(self.shapes) else self._next.find(closed)
