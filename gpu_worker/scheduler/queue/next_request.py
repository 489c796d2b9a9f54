"""Who is next of the requests in line: from the top of the tree down, the best of each project is compared."""

import itertools
from collections.abc import Iterable, Iterator

import msgspec

from bulletin.ids import ProjectId
from gpu_worker.scheduler.accounts.account import Account, Rank
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.branches import Branch, has_room, is_covered
from gpu_worker.scheduler.accounts.headroom import HeadroomAbove
from gpu_worker.scheduler.accounts.node_pools import NodePools
from gpu_worker.scheduler.accounts.parts import Parts
from gpu_worker.scheduler.leases.resources import LANES, Lane
from gpu_worker.scheduler.leases.shapes import QueueEntry
from gpu_worker.scheduler.policy.credits import Trader
from gpu_worker.scheduler.queue.basis import Bases, Basis
from gpu_worker.scheduler.queue.closed import Closed, NextInTree, RankedNext
from gpu_worker.scheduler.queue.takers import Prospects, TakerBook

_FOREVER_MS = 1 << 62


class NextRequest:
    """Finds who is next, and remembers what it found in each project until that changes."""

    def __init__(self, accounts: Accounts, pools: NodePools) -> None:
        self._accounts, self._pools = accounts, pools
        self._bases = Bases(accounts, pools)
        self._takers = TakerBook(accounts, pools, self._bases)
        self._known: dict[Lane, dict[ProjectId, RankedNext]] = {lane: {} for lane in LANES}
        self._closed_cache: Closed | None = None  #: of the walk that asked last

    def note_cost(self, cost: int) -> None:
        """Tell apart what is left for requests of this cost from what is left for larger ones."""
        self._bases.note_cost(cost)

    def find(self, closed: Closed) -> tuple[Account, QueueEntry] | None:
        """Whoever is next and is not closed; None where nobody may have more."""
        self._closed_cache = closed
        best: RankedNext | None = None
        for account in self._accounts.top.values():
            if closed.has_all(account.waiting):
                continue
            known = self._next_in(account, (), closed)
            if known.found is not None and (best is None or known.rank < best.rank):
                best = known
        return (
            None if best is None or best.found is None else (self._accounts.by_id[best.found.project], best.found.entry)
        )

    def forget(self, account: Account) -> None:
        """Look anew for who is next in a project, and in those that it is in."""
        caches = [*self._known.values(), *([] if self._closed_cache is None else [self._closed_cache.known])]
        self._takers.forget(account)
        for at in account.path:
            for cache in caches:
                cache.pop(at.project.id, None)

    def _look_up(self, account: Account, basis: Basis, closed: Closed) -> RankedNext | None:
        """Return what was found before, where that holds: closing more changes nothing unless it closes this."""
        known = None if closed.are_for_shares else self._known[closed.lane].get(account.project.id)
        if known is not None and self._holds(known, account, basis, closed):
            return known
        known = closed.known.get(account.project.id) if closed.is_narrowed else None
        return known if known is not None and self._holds(known, account, basis, closed) else None

    def _holds(self, known: RankedNext, account: Account, basis: Basis, closed: Closed) -> bool:
        if known.basis != basis or known.last_ms < self._accounts.now_ms:
            return False
        found = known.found
        if found is not None and closed.is_narrowed and known.closings != closed.closings:
            shape = found.entry.shape
            if closed.has(found.project, shape):
                return False
            if not self._may_be_next(found, account, basis, closed):
                return False
        return known.standing is None or account.trader.standing_at(self._accounts.now_ms) == known.standing

    def _may_be_next(self, found: NextInTree, at: Account, basis: Basis, closed: Closed) -> bool:
        """Whether a request that was found where room may be free is looked at although none may be by now.

        That is where somebody may have to leave for it. Of those that are not covered, the users of one project alone
        are asked: among several projects another one may come first then.
        """
        shape = found.entry.shape
        account = self._accounts.by_id[found.project]
        if not found.is_covered_above:
            return not closed.is_hopeless_where_borrowed(shape) or (
                at is account
                and self._takers.may_take(account, basis, closed.prospects)
                and self._may_have_room(account, found.entry, closed)
            )
        if closed.has_room_left or not closed.is_hopeless_where_covered(shape):
            return True
        return self._may_have_room(account, found.entry, closed, is_covered=True)

    def _next_in(self, account: Account, above: HeadroomAbove, closed: Closed) -> RankedNext:
        """Find the next in a project and inside it, with its rank among those beside the project."""
        basis = self._bases.of(account, above)
        if closed.are_all_hopeless and not self._takers.may_take_inside(account, basis, above, closed.prospects):
            return RankedNext(None, (), None, basis, _FOREVER_MS, skips_hopeless=True)
        known = self._look_up(account, basis, closed)
        if known is not None:
            return known
        last_ms, is_kept = _FOREVER_MS, not closed.is_narrowed  # else it is of this walk, which has one time
        if is_kept and any(at.project.budget is not None for at in account.path):
            last_ms = self._accounts.now_ms  # what is left of it depends on the time
        best: RankedNext | None = None
        found, skips = self._next_user(account, basis, closed)
        if found is not None and account.children:
            best = self._ranked(Branch(account, is_members=True), found, basis, last_ms)
            last_ms = self._last_ms(best, account.members, last_ms) if is_kept else last_ms
        inside = self._bases.above_inside(account, above) if account.children else ()
        for child in account.children.values():
            if closed.has_all(child.waiting):
                continue
            one = self._next_in(child, inside, closed)
            last_ms = self._last_ms(one, child.trader, last_ms) if is_kept else last_ms
            skips = skips or one.skips_hopeless
            if one.found is not None and (best is None or one.rank < best.rank):
                best = one
        if best is not None:
            found = best.found
        as_of = (False, -1) if is_kept else (skips, closed.closings)  #: the last fields of what is found
        known = (
            RankedNext(None, (), None, basis, last_ms, *as_of)
            if found is None
            else self._ranked(Branch(account), found, basis, last_ms, as_of)
        )
        (self._known[closed.lane] if is_kept else closed.known)[account.project.id] = known
        return known

    def _last_ms(self, known: RankedNext, trader: Trader, last_ms: int) -> int:
        """Until when both what was found and its rank hold, whatever credits do; at most `last_ms`."""
        step_ms = None if known.standing is None else trader.next_step_ms(self._accounts.now_ms)
        return min(last_ms, known.last_ms, _FOREVER_MS if step_ms is None else step_ms - 1)

    def _next_user(self, account: Account, basis: Basis, closed: Closed) -> tuple[NextInTree | None, bool]:
        """Find the next among a project's own users: one that a guarantee covers before all others.

        And say whether anybody was skipped who would not be if none were hopeless.
        """
        if not account.firsts:
            return None, False
        skips = False
        may_take: bool | None = None  #: whether somebody may have to leave for anybody here, once that was asked
        refused: set[tuple[str, int, int, int, bool]] = set()  # shapes are many more than what this depends on
        uncovered: set[tuple[int, tuple[str, ...]]] = set()  #: costs, and node pools in which they would be
        first: QueueEntry | None = None
        firsts: Iterable[QueueEntry] = (
            account.users[name].lines[shape][0][1] for name, shape in closed.select(account)
        )
        if closed.prospects is not None and closed.are_for_shares:
            firsts = self._with_sharers(account, firsts, closed.prospects)
        for entry in firsts:
            shape = entry.shape
            is_hopeless = closed.is_hopeless(shape)
            if is_hopeless and may_take is None:
                may_take = self._takers.may_take(account, basis, closed.prospects)
            if is_hopeless and not may_take:
                skips = True
                continue
            cost = self._accounts.quota_cost(account, shape)
            key = cost, self._pools.serving(shape)
            if first is not None and key in uncovered:
                continue
            if is_hopeless and key in uncovered and not self._may_have_room(account, entry, closed):
                skips = True
                continue
            sharers = self._sharers(closed.prospects, entry)
            asks = shape.qos, shape.cost, shape.charged, entry.key.walltime_ms, sharers is not None
            part = 0 if sharers is None else sharers.part(account, entry)
            if asks in refused and entry.key.is_early and not part:
                continue
            if not self._is_allowed(account, entry, part, sharers):
                refused.add(asks)
            elif is_covered(account, cost, entry) or self._pools.cover(account, shape, entry):
                is_hopeless = closed.is_hopeless_where_covered(shape)
                if is_hopeless and not self._may_have_room(account, entry, closed, is_covered=True):
                    skips = True
                    continue
                users = Branch(account, is_members=True)
                is_own = users.will_cover(cost, entry) or self._pools.cover_branch(users, entry)
                return NextInTree(account.project.id, entry, is_own, is_covered_above=True), skips
            else:
                uncovered.add(key)
                is_hopeless = closed.is_hopeless_where_borrowed(shape)
                if is_hopeless and not self._may_have_room(account, entry, closed):
                    skips = True
                    continue
                first = first or entry
                if not account.children and not account.waiting_in_quota and not self._has_room(account):
                    break
        return None if first is None else NextInTree(account.project.id, first, is_covered=False), skips

    @staticmethod
    def _sharers(prospects: Prospects | None, entry: QueueEntry) -> Prospects | None:
        """Say who knows of what a request may take for a share in this step; None where it may take nothing so."""
        if prospects is None or not prospects.are_for_shares or not prospects.has_waited(entry):
            return None
        return prospects

    def _is_allowed(self, account: Account, entry: QueueEntry, part: int, sharers: Prospects | None) -> bool:
        """Whether it may run once room is made for it; projects beside its own are looked at last, which takes time."""
        if self._accounts.is_allowed(account, entry, Parts(part)):
            return True
        beside = {} if sharers is None else sharers.parts_beside(account, entry)
        return bool(beside) and self._accounts.is_allowed(account, entry, Parts(part, beside))

    @staticmethod
    def _with_sharers(account: Account, firsts: Iterable[QueueEntry], prospects: Prospects) -> Iterator[QueueEntry]:
        """List firsts of a project; where one has not waited for a share, the first alike that has, too.

        That may be another one of the same user: what is taken back stands where it stood, and has not waited since.
        """
        for entry in firsts:
            yield entry
            if not prospects.has_waited(entry):
                lines = (account.users[name].lines[entry.shape] for _, name in account.heads[entry.shape])
                others = (other for line in lines for _, other in line if prospects.has_waited(other))
                yield from itertools.islice(others, 1)

    def _has_room(self, account: Account) -> bool:
        return has_room(account) or self._pools.have_room(account)

    def _may_have_room(self, account: Account, entry: QueueEntry, closed: Closed, *, is_covered: bool = False) -> bool:
        """Whether running cells, or what is hot where a limit is full, may have to leave for a request."""
        if not entry.shape.cost:
            return False
        if closed.prospects is None or self._accounts.qos[entry.shape.qos].running_per_user is not None:
            return self._find_room(account, entry, closed.prospects, is_covered=is_covered)
        basis = self._accounts.changes, account.top.changes, closed.prospects.are_for_borrowers
        known = closed.room_cache.get((entry.id, is_covered))
        if known is None or known[0] != basis:
            found = self._find_room(account, entry, closed.prospects, is_covered=is_covered)
            known = closed.room_cache[entry.id, is_covered] = basis, found
        return known[1]

    def _find_room(self, account: Account, entry: QueueEntry, prospects: Prospects | None, *, is_covered: bool) -> bool:
        shape = entry.shape
        if prospects is None or prospects.has(account, entry, is_covered=is_covered):
            return True
        if self._may_be_full(account, shape.qos, shape.cost):
            return True
        return any(
            limit is not None and holder.held + amount > limit
            for holder, amount, limit in self._accounts.holders(account.project.id, entry.user, shape.qos, shape.cost)
        )

    def _may_be_full(self, account: Account, qos: str, cost: int) -> bool:
        """Whether a project's limit, budget or guarantee may have too little left for a request, with what is hot."""
        return self._accounts.qos[qos].must_be_in_quota or self._takers.may_be_full(account, cost)

    def _ranked(
        self, branch: Branch, found: NextInTree, basis: Basis, last_ms: int, as_of: tuple[bool, int] = (False, -1)
    ) -> RankedNext:
        """Rank a request among those of the projects beside its own, or of the users of the project that they are in.

        Who is covered, here or inside, comes first, and then who is further up; then who is late; then who is owed, and
        does not only displace cells of their own project; then for whom cells were taken back; then the class of
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
        since_ms = min(0, key.since_ms)  # for whom room is made has it: who came later has others leave
        is_covered_here = found.is_covered_above and branch.will_cover(cost, entry)
        if found.is_covered or is_covered_here or self._pools.cover_branch(branch, entry):
            guaranteed = max(1, branch.guaranteed)
            parts = branch.used * 1_000_000 // guaranteed, (branch.used + cost) * 1_000_000 // guaranteed
            is_at_home = self._pools.cover_branch(branch, entry)  # nobody else can give it what it is owed
            rank: Rank = (-1 if is_at_home else 0, *late, self._displaces(found), since_ms, key.priority, *parts, *rest)
            found = found if found.is_covered else msgspec.structs.replace(found, is_covered=True)
            return RankedNext(found, rank, None, basis, last_ms, *as_of)
        borrows = 1 if found.is_covered_above else 2
        surplus = (branch.used + cost - max(0, branch.guaranteed)) * 1000 // branch.weight
        backs_off = not branch.is_members and now_ms < account.back_off_until_ms
        if backs_off:
            last_ms = min(last_ms, account.back_off_until_ms - 1)
        standing = branch.trader.standing_at(now_ms)
        rank = (borrows, *late, since_ms, backs_off, key.priority, -branch.priority, -standing, surplus, *rest)
        return RankedNext(found, rank, standing, basis, last_ms, *as_of)

    def _displaces(self, found: NextInTree) -> bool:
        """Whether a request of a class that never borrows is covered only since cells of its project borrow then."""
        account, shape = self._accounts.by_id[found.project], found.entry.shape
        if self._accounts.quota_cost(account, shape) == shape.cost or is_covered(account, shape.cost, found.entry):
            return False
        return not self._pools.cover(account, shape, found.entry)
