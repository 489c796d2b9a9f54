"""Promise 3: what of a guarantee is kept for who waits for cells that go, in a class that never borrows."""

from gpu_worker.scheduler.policy.projects import Preemption, QoS
from tests.scheduler.promises.books import Waiting
from tests.scheduler.promises.tree import Side
from tests.scheduler.promises.view import View


def is_quota_kept(view: View, request: Waiting) -> bool:
    """Whether a request would use what another one of such a class is about to have, and keep it from beginning."""
    qos = view.tree.qos.get(request.event.qos)
    is_room_made = any(lease.is_reclaimed or lease.is_asked for lease in view.books.leases.values())
    if qos is None or qos.must_be_in_quota or not is_room_made:
        return False
    mine, covers = view.tree.chain(request.event.project), view.covered(request)
    for other in view.books.waiting.values():
        its = view.tree.qos.get(other.event.qos)
        if its is None or not its.must_be_in_quota:
            continue
        if other.event.project == request.event.project and (_borrows_beside(qos, its) or qos.priority > its.priority):
            continue
        if view.what_holds(other, surely=True, soon=True) is not None:
            continue
        shared = [side for side in view.tree.chain(other.event.project) if side in mine and view.guaranteed.get(side)]
        if covers is not None and covers not in shared:
            continue
        both = view.books.most_cost(other.event) + view.books.most_cost(request.event)
        if any(_stays(view, other, side) + both > view.guaranteed[side] for side in shared):
            return True
    return False


def _stays(view: View, other: Waiting, side: Side) -> int:
    """Count what stays in the way of such a request: not what goes, nor lower classes of its project that borrow."""
    its, stays = view.tree.qos[other.event.qos], 0
    for lease in view.books.leases.values():
        qos = view.tree.qos.get(lease.qos)
        borrows = qos is not None and lease.project == other.event.project and _borrows_beside(qos, its)
        if lease.is_using and not lease.is_reclaimed and not borrows and side in view.tree.chain(lease.project):
            stays += lease.cost
    return stays


def _borrows_beside(qos: QoS, its: QoS) -> bool:
    """Whether cells of a class of service borrow from when one of the other class begins in their project."""
    return qos.priority < its.priority and not qos.must_be_in_quota and qos.preemption is not Preemption.NEVER
