"""Which leases in use are in quota and which are borrowed, as it changes while others start and end.

A guarantee covers leases in the order in which they started, those that fit. The innermost project comes first; what
it does not cover, the one that it is in may, with what it guarantees beyond what it covers inside already. What no
guarantee covers is borrowed. So who stays within a guarantee is in quota whatever others do, and no project has more
in quota than it is guaranteed itself or by what it is in.
"""

from bisect import bisect_left, insort

import msgspec

from bulletin.ids import LeaseId, ProjectId
from gpu_worker.scheduler.account import Account
from gpu_worker.scheduler.accounts import Accounts
from gpu_worker.scheduler.leases import USING, Lease
from gpu_worker.scheduler.reclaim import is_covered
from gpu_worker.scheduler.state import State

#: When it started, a number above those of all that started before, its name, and thousandths of a GPU.
Use = tuple[int, int, LeaseId, int]


class _Ground(msgspec.Struct):
    """One project: its own leases in use, and those of it and of all inside it that no guarantee up to here covers."""

    own: list[Use] = []
    rest: list[Use] = []
    covered: int = 0  #: thousandths of a GPU, here and inside


class Coverage:
    """Follows a scheduler's state step by step, and looks only at projects that a change is in."""

    def __init__(self) -> None:
        self._accounts: Accounts | None = None
        self._turns = 0  #: how often class hours had begun or ended
        self._grounds: dict[ProjectId, _Ground] = {}
        self._uses: dict[LeaseId, tuple[ProjectId, Use]] = {}
        self._borrowed: dict[ProjectId, dict[LeaseId, None]] = {}  #: by the topmost project
        self._seq = 0

    def is_in_quota(self, state: State, lease: Lease) -> bool:
        """Whether a lease is covered; of one that is not in use, whether it would be if a cell began now."""
        if lease.id in self._uses:
            top = _top(state.accounts.of(lease.project))
            return lease.id not in self._borrowed.get(top.project.id, ())
        return self.would_cover(state, lease.project, lease.cost)

    @staticmethod
    def would_cover(state: State, project: ProjectId, cost: int) -> bool:
        """Whether so much more, in thousandths of a GPU, would be in quota."""
        return not cost or is_covered(state.accounts.of(project), cost)

    def follow(self, state: State) -> dict[LeaseId, bool]:
        """Take in what the last step changed: leases in use that are in quota from now on (True), or borrowed.

        Must be called after every step. A lease that came into use is there only if it is borrowed.
        """
        before: dict[LeaseId, None] = {}
        changed: dict[ProjectId, None] = {}
        if state.accounts is not self._accounts:  # other settings, so perhaps other trees
            self._accounts, self._grounds = state.accounts, {}
            for borrowed in self._borrowed.values():
                before |= borrowed
            self._borrowed = {}
            for project, use in self._uses.values():
                insort(self._ground(project).own, use)
                changed[project] = None
        elif state.accounts.turns != self._turns:
            changed = dict.fromkeys(self._grounds)
        self._turns = state.accounts.turns
        for name in state.touched:
            self._place(name, state.leases.get(name), changed)
        after: dict[LeaseId, None] = {}
        for top in self._cover([state.accounts.of(project) for project in changed]):
            before |= self._borrowed.get(top.project.id, {})
            borrowed = dict.fromkeys(use[2] for use in self._ground(top.project.id).rest)
            self._borrowed[top.project.id] = borrowed
            after |= borrowed
        turned = {name: True for name in before if name not in after and name in self._uses}
        return turned | {name: False for name in after if name not in before}

    def _ground(self, project: ProjectId) -> _Ground:
        if project not in self._grounds:
            self._grounds[project] = _Ground([], [])
        return self._grounds[project]

    def _place(self, name: LeaseId, lease: Lease | None, changed: dict[ProjectId, None]) -> None:
        """Note that a lease is in use, or is not. What costs nothing is in nobody's way."""
        is_used = lease is not None and lease.phase in USING and lease.cost > 0
        known = self._uses.get(name)
        if known is not None:
            project, use = known
            if lease is not None and is_used and (project, use[3]) == (lease.project, lease.cost):
                return
            own = self._ground(project).own
            del own[bisect_left(own, use)]
            del self._uses[name]
            changed[project] = None
        if lease is not None and is_used:
            self._seq += 1
            use = (lease.since_ms, self._seq, name, lease.cost)
            self._uses[name] = lease.project, use
            insort(self._ground(lease.project).own, use)
            changed[lease.project] = None

    def _cover(self, accounts: list[Account]) -> list[Account]:
        """Cover anew in these projects, then in those that they are in. The topmost ones."""
        by_depth: dict[int, dict[ProjectId, Account]] = {}
        for account in accounts:
            path = list(account.path)
            for depth, at in enumerate(reversed(path)):
                by_depth.setdefault(depth, {})[at.project.id] = at
        for depth in sorted(by_depth, reverse=True):
            for account in by_depth[depth].values():
                self._cover_one(account)
        return list(by_depth.get(0, {}).values())

    def _cover_one(self, account: Account) -> None:
        ground = self._ground(account.project.id)
        inside = [self._grounds[child] for child in account.children if child in self._grounds]
        wanted = ground.own
        if inside:
            wanted = sorted([*ground.own, *(use for one in inside for use in one.rest)])
        ground.covered = sum(one.covered for one in inside)
        ground.rest = []
        for number, use in enumerate(wanted):
            if ground.covered >= account.guaranteed:
                ground.rest += wanted[number:]
                break
            if ground.covered + use[3] <= account.guaranteed:
                ground.covered += use[3]
            else:
                ground.rest.append(use)


def _top(account: Account) -> Account:
    return account if account.parent is None else _top(account.parent)
