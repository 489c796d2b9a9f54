"""Who is next: requests in line, by project, user and shape. From the top of the tree down, one of each is chosen."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from operator import itemgetter
from typing import Literal

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.account import Account, Rank, User
from gpu_worker.scheduler.accounts import Accounts, Promises
from gpu_worker.scheduler.projects import GPU_MILLI, Project, QoS
from gpu_worker.scheduler.shapes import QueueEntry, Shape

#: A GPU-hour used, decayed, puts a user's requests back by a minute, and all use by no more than ten.
_USE_A_DELAY, _LATEST_MS = 60, 600_000
#: Whoever is due for so long, in tens of seconds, stands behind nobody for their credits: four hours.
_PATIENCE = 1440
#: Of a borrower's rank, how far it goes with its credits, which come last there.
_CREDITS = 4


class Lines(Accounts):
    """The accounts of a pool, each with its requests in line. What is used changes who is next."""

    def __init__(
        self,
        projects: Iterable[Project],
        qos: Iterable[QoS],
        now_ms: int = 0,
        promises: dict[tuple[int, int], Promises] | None = None,
    ) -> None:
        super().__init__(projects, qos, now_ms, promises)
        self.shapes: dict[Shape, int] = {}  #: requests in line, of all projects

    def use(self, project: ProjectId, name: UserName, qos: str, cost: int, sign: Literal[1, -1]) -> None:
        """So much more, or less, is in use; whoever uses more is later."""
        super().use(project, name, qos, cost, sign)
        self._rank_user(project, name, qos)

    def enter(self, project: ProjectId, entry: QueueEntry) -> None:
        """Put a request in line."""
        user = self.user_of(project, entry.user)
        insort(user.lines.setdefault(entry.shape, []), (entry.key, entry))
        self._count(project, entry.shape, +1)
        self._rank_line(self.of(project), user, entry.shape)

    def leave(self, project: ProjectId, entry: QueueEntry) -> None:
        """Take a request out of its line."""
        user = self.user_of(project, entry.user)
        line = user.lines[entry.shape]
        del line[bisect_left(line, (entry.key,))]
        if not line:
            del user.lines[entry.shape]
        self._count(project, entry.shape, -1)
        self._rank_line(self.of(project), user, entry.shape)

    def _count(self, project: ProjectId, shape: Shape, step: int) -> None:
        for waiting in (self.shapes, *(account.waiting for account in self.of(project).path)):
            number = waiting.get(shape, 0) + step
            if number:
                waiting[shape] = number
            else:
                del waiting[shape]

    def due_ms(self, project: ProjectId, name: UserName, apart_ms: int) -> int:
        """When a request of now is due: the later the more its user used before, but not much later.

        So who used less comes first, and nobody is passed for ever. Whatever of the user waits or runs puts it back by
        `apart_ms`: many requests are no way to the front.
        """
        age_ms, user = self.now_ms - (self.began_ms or 0), self.user_of(project, name)
        used_ms = user.history.at(age_ms) // GPU_MILLI
        number = sum(map(len, user.lines.values())) + user.used // GPU_MILLI
        return self.now_ms + min(_LATEST_MS, used_ms // _USE_A_DELAY) + number * apart_ms

    def _rank_user(self, project: ProjectId, name: UserName, qos: str = "") -> None:
        """Put a user's lines in order again; those in other projects as well where a QoS limits the user in all."""
        is_everywhere = qos in self.qos and self.qos[qos].running_per_user is not None
        for at in self.projects_of[name] if is_everywhere else (project,):
            account = self.by_id[at]
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
        heads = account.heads.setdefault(shape, [])
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

    def rank_in_line(self, account: Account, user: User, entry: QueueEntry) -> Rank | None:
        """Where a user's request stands among those of the project's users; None where the user may have no more."""
        shape, limit = entry.shape, account.project.user_limit_milli
        if limit is not None and user.used + shape.cost > limit:
            return None
        at_once, runs = self.qos[shape.qos].running_per_user, self.runs.get((user.name, shape.qos))
        if at_once is not None and runs is not None and runs.used >= at_once:
            return None
        return (entry.key[0], user.used, *entry.key[1:])

    def next(self, closed: set[Shape]) -> tuple[Account, QueueEntry] | None:
        """Whoever is next with a shape that is not closed; None where nobody may have more."""
        if closed.issuperset(self.shapes):
            return None
        return self._next_among(self.top.values(), None, closed)

    def _next_in(self, account: Account, closed: set[Shape]) -> tuple[Account, QueueEntry] | None:
        own = self._next_user(account, closed)
        if not account.children:
            return own
        return self._next_among(account.children.values(), own, closed)

    def _next_among(
        self, accounts: Iterable[Account], own: tuple[Account, QueueEntry] | None, closed: set[Shape]
    ) -> tuple[Account, QueueEntry] | None:
        """Find the next among siblings, and among the users of the project that they are in."""
        ranked = [] if own is None else [(rank_of_members(*own, self.now_ms), own)]
        for account in accounts:
            if closed.issuperset(account.waiting):
                continue
            found = self._next_in(account, closed)
            if found is not None:
                ranked.append((rank_among(account, found[1], self.now_ms), found))
        if not ranked:
            return None
        best, first = min(ranked, key=itemgetter(0))
        if best[0]:  # all borrow: who is late has the most credits of those who are alike before credits count
            late = self.now_ms // 10_000 - _PATIENCE
            *before, most = best[:_CREDITS]
            for rank, found in ranked:
                if found[1].key[1] <= late and rank[: _CREDITS - 1] == tuple(before):
                    best, first = min((best, first), ((*before, most, *rank[_CREDITS:]), found), key=itemgetter(0))
        return first

    def _next_user(self, account: Account, closed: set[Shape]) -> tuple[Account, QueueEntry] | None:
        refused: tuple[tuple[str, int], ...] = ()  # shapes are many more than what this depends on
        for _, name, shape in account.firsts:
            if shape in closed:
                continue
            asks = shape.qos, shape.cost
            if asks not in refused:
                if self.is_allowed(account, shape):
                    return account, account.users[name].lines[shape][0][1]
                refused = (*refused, asks)
        return None


def rank_among(account: Account, entry: QueueEntry, now_ms: int) -> Rank:
    """Where a request stands among those of the projects beside this one: in quota first.

    Then by priority, then by credits for its weight, then by how much of its guarantee or, by weight, of the surplus a
    project would have, then by what it used in the past, then the shortest and the earliest.
    """
    project, cost = account.project, entry.shape.cost
    used, past = account.used + cost, account.history.amount // project.weight
    rest = (past, *entry.key[1:])
    if account.covers(cost):
        return (0, entry.key[0], 0, 0, used * 1_000_000 // max(1, account.guaranteed), *rest)
    standing, surplus = account.trader.standing_at(now_ms), (used - account.guaranteed) * 1000 // project.weight
    return (1, entry.key[0], -project.priority, -standing, surplus, *rest)


def rank_of_members(account: Account, entry: QueueEntry, now_ms: int) -> Rank:
    """Rank the users of a project that has others inside: they share what those leave of its guarantee."""
    inside = account.children.values()
    used = account.used - sum(child.used for child in inside) + entry.shape.cost
    guaranteed = account.guaranteed - sum(child.guaranteed for child in inside)
    past = account.history.amount - sum(child.history.amount for child in inside)
    rest = (past, *entry.key[1:])
    if used <= guaranteed:
        return (0, entry.key[0], 0, 0, used * 1_000_000 // max(1, guaranteed), *rest)
    standing = account.members.standing_at(now_ms)
    return (1, entry.key[0], 0, -standing, (used - max(0, guaranteed)) * 1000, *rest)
