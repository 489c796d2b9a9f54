"""What an answer about a project depends on: while that is the same, so is the answer."""

from bulletin.ids import ProjectId, RequestId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.accounts.headroom import Headroom, HeadroomAbove, headroom
from gpu_worker.scheduler.accounts.kept_limits import first_late
from gpu_worker.scheduler.accounts.node_pools import NodePools

#: How all was when something was found of the requests in a project: how often something changed that matters to all;
#: how often in it, and in what is inside it; what all leave that it is in, or how often anything changed in those; and
#: for whom its limit is kept, which may depend on the time, on nodes, and on what that one's user has elsewhere.
Basis = tuple[int, int, HeadroomAbove | int, RequestId | None]


class Bases:
    """On what answers about the projects of a tree are based now."""

    def __init__(self, accounts: Accounts, pools: NodePools) -> None:
        self._accounts, self._pools = accounts, pools
        self._headroom_cache: dict[ProjectId, tuple[tuple[int, int, int, RequestId | None], Headroom]] = {}
        self._most = 0  #: what any request that was ever in line cost, in thousandths of a GPU

    def note_cost(self, cost: int) -> None:
        """Note what a request costs that is in line from now on."""
        self._most = max(self._most, cost)

    def of(self, account: Account, above: HeadroomAbove) -> Basis:
        """Describe how all is now for a project, of which those that it is in leave so much.

        For classes that never borrow, and in node pools, anything may matter that changes there.
        """
        is_exact = bool(self._pools) or account.waiting_in_quota > 0
        return (
            self._accounts.changes,
            account.changes,
            account.top.changes if is_exact else above,
            self._late(account),
        )

    def above_inside(self, account: Account, above: HeadroomAbove) -> HeadroomAbove:
        """Describe what those leave that the projects inside this one are in."""
        as_of = self._accounts.changes, account.changes, self._most, self._late(account)
        known = self._headroom_cache.get(account.project.id)
        if known is None or known[0] != as_of:
            known = self._headroom_cache[account.project.id] = as_of, headroom(self._accounts, account, self._most)
        return (*above, known[1])

    def _late(self, account: Account) -> RequestId | None:
        return None if account.limit is None else first_late(self._accounts, account)
