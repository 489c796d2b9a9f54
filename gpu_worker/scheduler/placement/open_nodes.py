"""On which nodes a request may start at all: some node pools are closed to those who are not guaranteed them.

A cell that is never taken back starts only where all that is guaranteed of the pool can still be given to its owners.
Who borrows leaves free there what a lending limit keeps of that. And a place that the owner of a node pool asks for now
is not given to anybody else who would have to give it back: what is free there, or being freed, would go from one to
the other. So whoever is owed GPUs at home finds them there, also where two owners ask for anything at the same time.
"""

from collections.abc import Mapping

from bulletin.ids import AgentId, ProjectId
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import Branch, all_inside, lacks_of_quota
from gpu_worker.scheduler.accounts.lending import keeps_of_pool, kept_from
from gpu_worker.scheduler.accounts.quota_places import Once
from gpu_worker.scheduler.leases.leases import USING, Lease, Request
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State


def open_nodes(state: State, request: Request) -> frozenset[AgentId] | None:
    """Select the nodes where a request may start; None where those are all."""
    closed, shape = closed_pools(state, request), request.entry.shape
    if state.pools and shape.cost and not _is_in_quota(state, request, ""):
        closed.append("")
    home = _only_at_home(state, request)
    if home:
        closed += [name for name in ("", *state.pools.serving(shape)) if name not in home]
    if not closed:
        return None
    return frozenset(agent for agent in state.nodes if state.pools.of(agent, shape) not in closed)


def _only_at_home(state: State, request: Request) -> tuple[str, ...]:
    """List the pools that are its project's home where lenders keep from it what is elsewhere; none where it may go."""
    accounts, shape = state.accounts, request.entry.shape
    if not accounts.has_lenders or not state.pools or not shape.cost:
        return ()
    account = accounts.of(request.project)
    home = state.pools.covering(account, shape)
    return home if home and kept_from(accounts, account, shape.cost) else ()


def closed_pools(state: State, request: Request) -> list[str]:
    """List the node pools in which a request could run and may not start now."""
    return [name for name in state.pools.serving(request.entry.shape) if _is_closed(state, request, name)]


def _is_closed(state: State, request: Request, pool: str) -> bool:
    """Whether a node pool in which such a request could run is closed to it."""
    shape, account = request.entry.shape, state.accounts.of(request.project)
    accounts, cost = state.pools.by_name[pool].accounts, shape.cost
    mine = accounts.of(request.project)
    if not _is_in_quota(state, request, pool):
        return True
    own_cost = accounts.quota_cost(mine, shape)
    if Branch(mine, is_members=bool(mine.children)).will_cover(own_cost):
        return False
    if state.qos[request.qos].preemption is Preemption.NEVER and _owners_would_lack(state, pool, request.project, cost):
        return True
    if accounts.has_lenders and keeps_of_pool(accounts, mine, account, cost):
        return True
    return _is_asked_for(state, pool, next((at for at in mine.path if at.will_cover(own_cost)), None), cost)


def _is_in_quota(state: State, request: Request, pool: str) -> bool:
    """Whether a request may start in a node pool, or in none, as far as its class must be in quota."""
    qos, shape = state.qos[request.qos], request.entry.shape
    if not qos.must_be_in_quota:
        return True
    account = state.accounts.of(request.project)
    below = account.used_below(state.qos, qos.priority, may_borrow=True)
    lacks = lacks_of_quota(account, shape.cost, below=below)
    places = state.pools.quota_places(state.accounts, account, shape, is_in_whole=lacks <= 0)
    if not places:  # it starts nowhere before cells have made way for it
        is_in_whole = lacks <= account.leaves_to(state.qos, qos.priority)
        places = state.pools.quota_places(state.accounts, account, shape, is_in_whole=is_in_whole, once=Once.GONE)
    if not places:  # nor before others go: then it is within the whole
        places = state.pools.quota_places(state.accounts, account, shape, is_in_whole=True, once=Once.SHARED)
    return pool in places


def _owners_would_lack(state: State, pool: str, project: ProjectId, cost: int) -> bool:
    """Whether less would be left of a node pool than is guaranteed there, beside what is never taken back with this."""
    accounts = state.pools.by_name[pool].accounts
    held = {one.project.id: _nonpreemptible(state, one) for one in accounts.by_id.values()}
    for agent in state.pools.by_name[pool].slots:
        for lease in map(state.leases.__getitem__, state.nodes[agent].leases):
            if lease.pool == pool and lease.phase is Phase.HOT and _is_nonpreemptible(state, lease.qos):
                held[lease.project] = held.get(lease.project, 0) + lease.cost
    before = sum(_need(one, held) for one in accounts.top.values())
    held[project] = held.get(project, 0) + cost
    after = sum(_need(one, held) for one in accounts.top.values())
    return after > max(before, accounts.capacity)


def _nonpreemptible(state: State, account: Account) -> int:
    """Sum up what a project's users use in classes that are never taken back."""
    return sum(used for qos, used in account.by_qos.items() if _is_nonpreemptible(state, qos))


def _is_nonpreemptible(state: State, qos: str) -> bool:
    return qos not in state.qos or state.qos[qos].preemption is Preemption.NEVER


def _need(account: Account, held: Mapping[ProjectId, int]) -> int:
    """Compute what a project must be able to have: its guarantee, or what is never taken back and guaranteed inside."""
    inside = sum(_need(child, held) for child in account.children.values())
    return max(account.guaranteed, held.get(account.project.id, 0) + inside)


def _is_asked_for(state: State, pool: str, within: Account | None, cost: int) -> bool:
    """Whether so much more of a node pool would be missing to those who ask for it by a nearer guarantee.

    That is one of a project inside the one whose guarantee of the pool covers the cost; of any project for None.
    """
    accounts = state.pools.by_name[pool].accounts
    owners = list((accounts.top if within is None else within.children).values())
    asked = [(owner, shapes) for owner in owners if (shapes := _asked(state, pool, owner))]
    if not asked:
        return False
    rooms = _rooms(state, pool, within)
    total, used = (accounts.capacity, accounts.in_use) if within is None else (within.guaranteed, within.used)
    left = total - used + _going(state, pool, within)
    wanted = 0
    for owner, shapes in asked:
        could = (one.cost for one in shapes if one.cost <= left and _could_have(state, one, rooms))
        wanted += min(sum(could), owner.guaranteed - owner.used + owner.replaced)
    return left - cost < wanted > 0


def _rooms(state: State, pool: str, within: Account | None) -> dict[AgentId, int]:
    """Compute how much of a node pool each node has that is free, hot, on its way out or may be taken back."""
    rooms: dict[AgentId, int] = {}
    for agent, slots in state.pools.by_name[pool].slots.items():
        leases = map(state.leases.__getitem__, state.nodes[agent].leases)
        used = (
            one.cost for one in leases if one.pool == pool and one.phase in USING and not _may_go(state, one, within)
        )
        rooms[agent] = sum(slot.milli for slot in slots) - sum(used)
    return rooms


def _could_have(state: State, shape: Shape, rooms: Mapping[AgentId, int]) -> bool:
    """Whether such a request could be had on some node, and be over before that is to be drained."""
    return any(shape.cost <= room and state.nodes[agent].holds(shape) for agent, room in rooms.items())


def _asked(state: State, pool: str, owner: Account) -> list[Shape]:
    """List the requests that may start, and that a project or one inside it is guaranteed of a node pool."""
    if owner.guaranteed <= owner.used - owner.replaced:
        return []
    found: list[Shape] = []
    there = state.pools.by_name[pool]
    for account in all_inside(state.accounts.of(owner.project.id)):
        for _, name, shape in account.firsts:
            if not there.serves(shape):
                continue
            entry = account.users[name].lines[shape][0][1]
            cost = shape.cost + state.pools.kept_from(pool, account, entry)
            if not _covers_up_to(owner, there.accounts.of(account.project.id), cost):
                continue
            if state.accounts.is_allowed(account, entry):
                found += [shape] * sum(len(account.users[one].lines[shape]) for _, one in account.heads[shape])
    return found


def _covers_up_to(last: Account, account: Account, cost: int) -> bool:
    """Whether a project, or one that it is in up to the last one, is guaranteed so much more."""
    for at in account.path:
        if at.will_cover(cost):
            return True
        if at is last:
            break
    return False


def _going(state: State, pool: str, within: Account | None) -> int:
    """Sum up what of a node pool is on its way out, or may be taken back, in a project or in all."""
    nodes = (state.nodes[agent] for agent in state.pools.by_name[pool].slots)
    leases = (state.leases[name] for node in nodes for name in node.leases)
    return sum(lease.cost for lease in leases if lease.pool == pool and _may_go(state, lease, within))


def _may_go(state: State, lease: Lease, within: Account | None) -> bool:
    """Whether a cell is on its way out, or borrowed and of a class that is taken back."""
    if lease.phase not in USING:
        return False
    account = state.accounts.of(lease.project)
    path = list(account.path)
    if within is not None and all(at.project.id != within.project.id for at in path):
        return False
    if lease.phase is Phase.RECLAIMING:
        return True
    if _is_nonpreemptible(state, lease.qos):
        return False
    if within is None:
        return not state.coverage.is_in_quota(state.accounts, lease)
    side = next((at for at in path if at.parent is not None and at.parent.project.id == within.project.id), account)
    coverage = state.coverage.in_pool(lease.pool)
    return coverage.is_borrowed(side, lease.id, by_users=side.project.id == within.project.id)
