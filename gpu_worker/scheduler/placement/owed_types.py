"""What a node owes those who ask for one of its types of GPUs: whoever takes any leaves it to them where others do.

Who takes any type is next, and has what is free. But where another GPU leaves for it anyway, one that is free of the
type is for whoever a guarantee covers, and who can use no other.
"""

from bulletin.ids import ProjectId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import is_covered
from gpu_worker.scheduler.leases.leases import Lease, Request
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.placement.room import Claims
from gpu_worker.scheduler.placement.seats import lack_slots, supplies
from gpu_worker.scheduler.state import State


def owed_types(state: State, request: Request, node: Node, claims: Claims) -> list[Shape]:
    """List covered requests in line that can use only some of the slots that this one can, where there are enough.

    That is: what is free there, and leaves, is enough for them, for it, and for those ahead.
    """
    shape = request.entry.shape
    if node.kind.is_one_type(shape.lane, shape.wants.kind):
        return []
    found: list[Shape] = []
    _, supply = supplies(state, node)
    beside = [*claims.get(node.agent, ()), shape]
    for one, its in _asked(state, request, node):
        if its is not None:
            beside += [one] if its.agent == node.agent else []
        elif not lack_slots(node, [*beside, *found, one], supply):
            found.append(one)
    return found


def given_back_for(state: State, project: ProjectId) -> list[Lease]:
    """List the cells that are given back for requests of a project."""
    moving = map(state.leases.__getitem__, state.alarms)
    return [one for one in moving if one.phase is Phase.RECLAIMING and one.reclaimed_for == project]


def _asked(state: State, request: Request, node: Node) -> list[tuple[Shape, Lease | None]]:
    """List what those in line ask for whom a guarantee covers beside the request, and who may start.

    With what is given back for their project, wherever that is, if it serves them: they have that in time.
    """
    shape, accounts, queue = request.entry.shape, state.accounts, state.queue
    serving = set(node.serving(shape.lane, shape.wants.kind))
    narrower = {
        one
        for one in queue.shapes
        if one.lane == shape.lane
        and set(node.serving(one.lane, one.wants.kind)) < serving
        and node.holds(one)
        and one.cost
    }
    if not narrower:
        return []
    owner = request.project, request.user, request.qos, shape.cost
    accounts.use(*owner, +1, is_awaited=True)
    found: list[tuple[Shape, Lease | None]] = []
    given_back: dict[ProjectId, list[Lease]] = {}
    projects = {project for one in narrower for project in queue.heads.get(one, ())}
    firsts = [(first, project) for project in projects for first in accounts.of(project).firsts if first[2] in narrower]
    for (_, name, one), project in sorted(firsts):
        account = accounts.of(project)
        if accounts.is_allowed(account, account.users[name].lines[one][0][1]):
            going = given_back.setdefault(project, given_back_for(state, project))
            for _ in range(_covered(state, account, one, node)):
                its = next((lease for lease in going if _serves(state, lease, one)), None)
                found.append((one, its))
                if its is not None:
                    going.remove(its)
    accounts.use(*owner, -1, is_awaited=True)
    return found


def _serves(state: State, lease: Lease, shape: Shape) -> bool:
    """Whether a lease has slots enough that serve such a request."""
    serving = state.nodes[lease.agent].serving(shape.lane, shape.wants.kind)
    return sum(slot in serving for slot in lease.slots) >= shape.need


def _covered(state: State, account: Account, shape: Shape, node: Node) -> int:
    """Count the requests of this shape in a project's line that a guarantee covers, as far as a node has slots."""
    number = sum(len(account.users[name].lines[shape]) for _, name in account.heads[shape])
    most = min(number, len(node.serving(shape.lane, shape.wants.kind)) // shape.need)
    cost = state.accounts.quota_cost(account, shape)
    found = next((count for count in range(most, 0, -1) if is_covered(account, count * cost)), 0)
    return found or (1 if state.pools.cover(account, shape) else 0)
