"""Who is next: requests in line, by project, user and shape. From the top of the tree down, one of each is chosen."""

from bisect import bisect_left, insort
from typing import Literal

from bulletin.ids import ProjectId, UserName
from gpu_worker.scheduler.accounts.account import Account, Rank, User
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import Branch, has_room, is_covered
from gpu_worker.scheduler.accounts.node_pools import NodePools
from gpu_worker.scheduler.leases.resources import LANES, Lane, Wants
from gpu_worker.scheduler.leases.shapes import QueueEntry, Shape
from gpu_worker.scheduler.policy.credits import Trader
from gpu_worker.scheduler.policy.projects import GPU_MILLI
from gpu_worker.scheduler.queue.closed import Closed, NextInTree, RankedNext

#: A GPU-hour used, decayed, puts a user's requests back by a minute, and all use by no more than ten.
_USE_A_DELAY, _LATEST_MS = 60, 600_000
_FOREVER_MS = 1 << 62


class RequestQueue:
    """The requests in line, in the tree of a pool's accounts. What these use changes who is next."""

    def __init__(self, accounts: Accounts, pools: NodePools) -> None:
        self._accounts, self._pools = accounts, pools
        self.shapes: dict[Shape, int] = {}  #: requests in line, of all projects
        self.alike: dict[tuple[Lane, int, Wants], dict[Shape, None]] = {}  #: those by what they need of a node
        self._takers: dict[ProjectId, tuple[int, bool]] = {}  #: whether anybody may leave for its users, and as of when
        self._known: dict[Lane, dict[ProjectId, RankedNext]] = {lane: {} for lane in LANES}
        self._closed: Closed | None = None  #: of the walk that asked last

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
        lends: bool = True,
    ) -> None:
        """Count so much more, or less, as in use, as accounts do; whoever uses more is later."""
        self._accounts.use(project, name, qos, cost, sign, charged=charged, is_awaited=is_awaited, lends=lends)
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
        del line[bisect_left(line, (entry.key,))]
        if not line:
            del user.lines[entry.shape]
        self._count(project, entry.shape, -1)
        self._rank_line(self._accounts.of(project), user, entry.shape)

    def _count(self, project: ProjectId, shape: Shape, step: int) -> None:
        need = shape.lane, shape.need, shape.wants
        if shape not in self.shapes:
            self.alike.setdefault(need, {})[shape] = None
        for waiting in (self.shapes, *(account.waiting for account in self._accounts.of(project).path)):
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
        self._forget(account)
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

    def boost(self, project: ProjectId, name: UserName, *, is_boosted: bool) -> None:
        """Let a user's requests stand before those of the project's other users; or no longer."""
        self._accounts.user_of(project, name).is_boosted = is_boosted
        self._rank_user(project, name)

    def rank_in_line(self, account: Account, user: User, entry: QueueEntry) -> Rank | None:
        """Where a user's request stands among those of the project's users; None where the user may have no more."""
        shape, limit, key = entry.shape, account.project.user_limit_milli, entry.key
        if limit is not None and shape.cost and user.used + shape.cost > limit:
            return None
        at_once, runs = self._accounts.qos[shape.qos].running_per_user, self._accounts.runs.get((user.name, shape.qos))
        if at_once is not None and runs is not None and runs.used >= at_once:
            return None
        return (key.turn, not user.is_boosted, *key[1:4], user.used, *key[4:])

    def next(self, closed: Closed) -> tuple[Account, QueueEntry] | None:
        """Whoever is next and is not closed; None where nobody may have more."""
        if closed.has_all(self.shapes):
            return None
        self._closed = closed
        best: RankedNext | None = None
        for account in self._accounts.top.values():
            if closed.has_all(account.waiting):
                continue
            known = self._next_in(account, self._accounts.changes + account.changes, closed)
            if known.found is not None and (best is None or known.rank < best.rank):
                best = known
        return (
            None if best is None or best.found is None else (self._accounts.by_id[best.found.project], best.found.entry)
        )

    def _forget(self, account: Account) -> None:
        """Look anew for who is next in a project, and in those that it is in."""
        caches = [*self._known.values(), *([] if self._closed is None else [self._closed.known])]
        self._takers.pop(account.project.id, None)
        for at in account.path:
            for cache in caches:
                cache.pop(at.project.id, None)

    def _look_up(self, account: Account, changes: int, closed: Closed) -> RankedNext | None:
        """Return what was found before, where that holds: closing more changes nothing unless it closes this."""
        known = self._known[closed.lane].get(account.project.id)
        if known is not None and self._holds(known, account, changes, closed):
            return known
        known = closed.known.get(account.project.id) if closed.is_narrowed else None
        return known if known is not None and self._holds(known, account, changes, closed) else None

    def _holds(self, known: RankedNext, account: Account, changes: int, closed: Closed) -> bool:
        if known.changes != changes or known.last_ms < self._accounts.now_ms:
            return False
        found = known.found
        if found is not None and closed.is_narrowed:
            shape = found.entry.shape
            if closed.has(found.project, shape) or (closed.is_hopeless(shape) and not found.is_covered_above):
                return False
        return known.standing is None or account.trader.standing_at(self._accounts.now_ms) == known.standing

    def _next_in(self, account: Account, changes: int, closed: Closed) -> RankedNext:
        """Find the next in a project and inside it, with its rank among those beside the project."""
        known = self._look_up(account, changes, closed)
        if known is not None:
            return known
        now_ms, last_ms = self._accounts.now_ms, _FOREVER_MS
        if any(at.project.budget is not None for at in account.path):
            last_ms = now_ms  # what is left of it depends on the time
        best: RankedNext | None = None
        found = self._next_user(account, closed)
        if found is not None and account.children:
            best = self._ranked(Branch(account, is_members=True), found, changes, last_ms)
            last_ms = self._last_ms(best, account.members, last_ms)
        for child in account.children.values():
            if closed.has_all(child.waiting):
                continue
            one = self._next_in(child, changes, closed)
            last_ms = self._last_ms(one, child.trader, last_ms)
            if one.found is not None and (best is None or one.rank < best.rank):
                best = one
        if best is not None:
            found = best.found
        known = (
            RankedNext(None, (), None, changes, last_ms)
            if found is None
            else self._ranked(Branch(account), found, changes, last_ms)
        )
        (closed.known if closed.is_narrowed else self._known[closed.lane])[account.project.id] = known
        return known

    def _last_ms(self, known: RankedNext, trader: Trader, last_ms: int) -> int:
        """Until when both what was found and its rank hold, whatever credits do; at most `last_ms`."""
        step_ms = None if known.standing is None else trader.next_step_ms(self._accounts.now_ms)
        return min(last_ms, known.last_ms, _FOREVER_MS if step_ms is None else step_ms - 1)

    def _next_user(self, account: Account, closed: Closed) -> NextInTree | None:
        """Find the next among a project's own users: one that a guarantee covers before all others."""
        if closed.are_hopeless(account.heads) and not self._takes(account, closed):
            return None
        refused: set[tuple[str, int, int, int]] = set()  # shapes are many more than what this depends on
        uncovered: set[tuple[int, tuple[str, ...]]] = set()  #: costs, and node pools in which they would be
        first: QueueEntry | None = None
        for _, name, shape in account.firsts:
            cost = self._accounts.quota_cost(account, shape)
            key = cost, self._pools.serving(shape)
            if closed.has(account.project.id, shape) or (first is not None and key in uncovered):
                continue
            is_hopeless = closed.is_hopeless(shape)
            entry = account.users[name].lines[shape][0][1]
            if is_hopeless and key in uncovered and not self._may_have_room(account, entry, closed):
                continue
            asks = shape.qos, shape.cost, shape.charged, entry.key.walltime_ms
            if asks in refused and entry.key.is_early:
                continue
            if not self._accounts.is_allowed(account, entry):
                refused.add(asks)
            elif is_covered(account, cost) or self._pools.cover(account, shape):
                if is_hopeless and not self._may_have_room(account, entry, closed, is_covered=True):
                    continue
                users = Branch(account, is_members=True)
                is_own = users.will_cover(cost) or self._pools.cover_branch(users, shape)
                return NextInTree(account.project.id, entry, is_own, is_covered_above=True)
            else:
                uncovered.add(key)
                if is_hopeless and not self._may_have_room(account, entry, closed):
                    continue
                first = first or entry
                if not account.children and not self._has_room(account):
                    break
        return None if first is None else NextInTree(account.project.id, first, is_covered=False)

    def _has_room(self, account: Account) -> bool:
        return has_room(account) or self._pools.have_room(account)

    def _takes(self, account: Account, closed: Closed) -> bool:
        """Whether anybody may have to leave for some request of a project's users."""
        if closed.prospects is None or closed.prospects.are_for_shares:
            return True
        changes = self._accounts.changes + account.top.changes
        known = self._takers.get(account.project.id)
        if known is None or known[0] != changes:
            asked = {(shape.qos, shape.cost) for shape in account.heads}
            takes = bool(account.children) or self._has_room(account) or account.project.user_limit_milli is not None
            takes = takes or any(self._accounts.qos[qos].running_per_user is not None for qos, _ in asked)
            takes = takes or any(
                account.used_below(self._accounts.qos, self._accounts.qos[qos].priority) for qos, _ in asked
            )
            takes = takes or any(self._may_be_full(account, qos, cost) for qos, cost in asked)
            known = self._takers[account.project.id] = changes, takes
        return known[1]

    def _may_have_room(self, account: Account, entry: QueueEntry, closed: Closed, *, is_covered: bool = False) -> bool:
        """Whether running cells, or what is hot where a limit is full, may have to leave for a request."""
        shape = entry.shape
        if not shape.cost:
            return False
        if closed.prospects is None or closed.prospects.has(account, entry, is_covered=is_covered):
            return True
        if self._may_be_full(account, shape.qos, shape.cost):
            return True
        return any(
            limit is not None and holder.held + amount > limit
            for holder, amount, limit in self._accounts.holders(account.project.id, entry.user, shape.qos, shape.cost)
        )

    def _may_be_full(self, account: Account, qos: str, cost: int) -> bool:
        """Whether a project's limit, budget or guarantee may have too little left for a request, with what is hot."""
        return self._accounts.qos[qos].must_be_in_quota or any(
            at.project.budget is not None or (at.limit is not None and at.held + cost > at.limit) for at in account.path
        )

    def _ranked(self, branch: Branch, found: NextInTree, changes: int, last_ms: int) -> RankedNext:
        """Rank a request among those of the projects beside its own, or of the users of the project that they are in.

        Who is covered, here or inside, comes first, and then who is further up; then who is late; then the class of
        service. Then among borrowers: by priority, by credits for the weight, and by how much of the surplus the
        project would have for its weight; among those that are covered: by how much of the guarantee is used. Then by
        past use, then the shortest and the earliest. Who had to give back what it borrowed stands behind other
        borrowers for a while.
        """
        account, entry, key = branch.account, found.entry, found.entry.key
        cost, now_ms = entry.shape.cost, self._accounts.now_ms
        is_late = not key.is_early
        if is_late and not branch.is_members:
            from_ms = account.late_grant_ms + self._accounts.qos[entry.shape.qos].patience_ms
            is_late = now_ms >= from_ms
            last_ms = last_ms if is_late else min(last_ms, from_ms - 1)
        late = (0, key.since_ms) if is_late else (1, 0)
        history = account.history.amount
        if branch.is_members:
            history -= sum(child.history.amount for child in account.children.values())
        rest = (history // branch.weight, *key[4:])
        if found.is_covered or branch.will_cover(cost) or self._pools.cover_branch(branch, entry.shape):
            guaranteed = max(1, branch.guaranteed)
            parts = branch.used * 1_000_000 // guaranteed, (branch.used + cost) * 1_000_000 // guaranteed
            is_at_home = self._pools.cover_branch(branch, entry.shape)  # nobody else can give it what it is owed
            since_ms = min(0, key.since_ms)  # for whom room is made has it: who came later has others leave
            rank = (-1 if is_at_home else 0, *late, since_ms, key.priority, 0, *parts, *rest)
            return RankedNext(found._replace(is_covered=True), rank, None, changes, last_ms)
        borrows = 1 if found.is_covered_above else 2
        surplus = (branch.used + cost - max(0, branch.guaranteed)) * 1000 // branch.weight
        backs_off = not branch.is_members and now_ms < account.back_off_until_ms
        if backs_off:
            last_ms = min(last_ms, account.back_off_until_ms - 1)
        standing = branch.trader.standing_at(now_ms)
        rank = (borrows, *late, backs_off, key.priority, -branch.priority, -standing, surplus, *rest)
        return RankedNext(found, rank, standing, changes, last_ms)
