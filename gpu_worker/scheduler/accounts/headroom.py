"""What a project leaves to those inside it, as far as they can tell: while that is the same, they are next as before.

Whether a request is covered, or allowed, depends on all that its project is in. That changes with each cell that
anybody there starts, and mostly makes no difference: there is enough left for any request, or nothing.
"""

from typing import NamedTuple

from bulletin.ids import RequestId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.kept_limits import AllLimits, first_late
from gpu_worker.scheduler.accounts.late_lines import FirstByHand, HeldInside


class Headroom(NamedTuple):
    """What is left in one project, in thousandths of a GPU."""

    covered: int  #: of its guarantee, once others have the places of cells that are going, with what is kept of it
    has_guarantee_left: bool
    allowed: int | None  #: of its limit, for what is used; None is no limit
    held: int | None  #: the same, for what is held
    late: tuple[RequestId, int] | None  #: for whom its limit keeps how much
    late_until: tuple[RequestId, int] | None  #: and what is over by when is not in the way of that
    held_inside: HeldInside | None  #: and for whom from when one inside lets them through
    first_by_hand: FirstByHand | None  #: and for whom from its own users
    late_covered: tuple[RequestId, int] | None  #: the same of its guarantee
    changes: int  #: of what has a budget, of which anything may matter


#: Of all that a project is in, from the outside in.
HeadroomAbove = tuple[Headroom, ...]


def headroom(accounts: AllLimits, account: Account, most: int) -> Headroom:
    """Say what is left in a project for those inside it, for requests that cost at most so much."""
    limit = account.limit
    late = None if limit is None else first_late(accounts, account)
    return Headroom(
        covered=min(2 * most, max(0, account.guaranteed - account.used + account.replaced)),
        has_guarantee_left=account.used - account.replaced < account.guaranteed,
        allowed=None if limit is None else min(2 * most, limit - account.used),  # besides what is kept for the late one
        held=None if limit is None else min(most, limit - account.held),
        late=None if late is None else (late, account.late[late]),
        late_until=account.late_until,
        held_inside=account.held_inside,
        first_by_hand=account.first_by_hand,
        late_covered=account.late_within(account.guaranteed),
        changes=0 if account.project.budget is None else account.changes,
    )
