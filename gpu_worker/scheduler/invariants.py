"""Every promise and every index of the state, computed afresh. For tests and for a broker in doubt: it is slow."""

from collections import Counter

from bulletin.errors import InvariantBroken
from gpu_worker.scheduler.accounts.account import Account, UsageTotals
from gpu_worker.scheduler.admission.cell_rules import is_next_forbidden, most_walltime_ms
from gpu_worker.scheduler.leases.leases import IDLE, LEAVING, USING, Lease
from gpu_worker.scheduler.leases.life import Phase, RequestStatus
from gpu_worker.scheduler.leases.resources import LANES, Lane, Wants, lane_of
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.nodes.capacity import available
from gpu_worker.scheduler.nodes.own_nodes import shape_of
from gpu_worker.scheduler.placement.feasible import has_soon, may_hold
from gpu_worker.scheduler.placement.seats import supplies
from gpu_worker.scheduler.policy.credits import Market, Trader
from gpu_worker.scheduler.policy.projects import guarantees, in_force, most_in_force
from gpu_worker.scheduler.queue.closed import Closed
from gpu_worker.scheduler.state import State


def check(state: State) -> None:
    """Compare what is kept with what follows from the tables.

    Raises
    ------
    InvariantBroken
        With the first thing that does not hold.
    """
    _check_tenants(state)
    _check_counts(state)
    _check_requests(state)
    _check_leases(state)
    _check_accounts(state)
    _check_pools(state)
    _check_next(state)


def _same(what: str, kept: object, afresh: object) -> None:
    if kept != afresh:
        raise InvariantBroken(f"{what}: kept {kept!r}, but it should be {afresh!r}")


def _check_tenants(state: State) -> None:
    for node in state.nodes.values():
        tenants: dict[str, str | None] = dict.fromkeys(node.slots)
        for lease in state.leases.values():
            if lease.agent != node.agent:
                continue
            for slot in lease.slots:
                _same(f"tenant of {slot} before {lease.id}", tenants[slot], None)
                _same(f"lane of {lease.id}", lease.lane, lane_of(node.slots[slot]))
                tenants[slot] = lease.id
        _same(f"tenants of {node.agent}", node.tenants, tenants)
        leases = {lease.id for lease in state.leases.values() if lease.agent == node.agent}
        _same(f"leases of {node.agent}", set(node.leases), leases)
        here = [state.leases[lease] for lease in leases]
        _same(f"free CPUs of {node.agent}", node.free_cpus, node.cpus - sum(one.cpus for one in here))
        _same(f"used of {node.agent}", node.used, sum(one.cost for one in here if one.phase in USING))
        free = node.memory_bytes - sum(one.memory_bytes for one in here)
        _same(f"free memory of {node.agent}", node.free_memory_bytes, free)
        if node.soon is not None:
            kept, node.soon = node.soon, None
            for lane, kind in kept[2]:
                has_soon(state, node, Shape(lane, 1, 0, "", 0, Wants(kind)))
            _same(f"soon free on {node.agent}", kept, node.soon or (*kept[:2], {}))
        if node.supplies is not None:
            known, node.supplies = node.supplies, None
            _same(f"free and leaving on {node.agent}", known, supplies(state, node))
    drained = {node.agent for node in state.nodes.values() if node.is_drained}
    _same("drained nodes", drained, set(state.drained) & set(state.nodes))
    planned = {node.agent for node in state.nodes.values() if node.whole_kind is not None}
    _same("nodes to be drained", planned, set(state.planned_drains.at_ms) & set(state.nodes))
    _same("drained and to be drained", set(state.drained) & set(state.planned_drains.at_ms), set())
    _same("agents of leases", {lease.agent for lease in state.leases.values()} - set(state.nodes), set())


def _check_counts(state: State) -> None:
    for lane in LANES:
        roomy, warm = set(), set()
        for node in state.nodes.values():
            slots = [slot for slot in node.slots.values() if lane_of(slot) == lane]
            leases = [lease for lease in state.leases.values() if lease.agent == node.agent and lease.lane == lane]
            by_phase: Counter[Phase] = Counter()
            for lease in leases:
                by_phase[lease.phase] += len(lease.slots)
            counts, where = node.lanes[lane], f"{lane} of {node.agent}"
            _same(f"capacity, {where}", counts.capacity, len(slots))
            _same(f"free, {where}", counts.free, sum(node.tenants[slot.id] is None for slot in slots))
            _same(f"hot, {where}", counts.hot, by_phase[Phase.HOT])
            _same(f"reclaiming, {where}", counts.reclaiming, by_phase[Phase.RECLAIMING])
            _same(f"leaving, {where}", counts.leaving, sum(by_phase[one] for one in LEAVING))
            hot = sorted((lease for lease in leases if lease.phase is Phase.HOT), key=lambda lease: lease.used)
            _same(f"hot leases, {where}", list(counts.hot_leases), [lease.id for lease in hot])
            ends = [state.end_ms(lease) for lease in leases for _ in lease.slots]
            afresh = sorted(ends + [0] * (len(slots) - len(ends)))
            _same(f"ends, {where}", state.ends_ms(node, lane), afresh)
            if node.is_drained:
                continue
            if counts.free + counts.leaving:
                roomy.add(node.agent)
            if counts.hot:
                warm.add(node.agent)
        _same(f"nodes with room, {lane}", set(state.roomy[lane]), roomy)
        _same(f"nodes with hot leases, {lane}", set(state.warm[lane]), warm)
        for (of, need, wants), kept in state.room_index.known.items() if not state.planned_drains else ():
            shape = Shape(of, need, 0, "", 0, wants)
            room = {node.agent for node in state.nodes.values() if may_hold(state, node, shape)}
            _same(f"nodes with room for {need} of {wants}", set(kept), room)
        largest = max((node.lanes[lane].capacity for node in state.nodes.values()), default=0)
        if lane != "own" and state.slot_catalog.largest[lane] < largest:
            raise InvariantBroken(f"the largest node, {lane}, was forgotten")


def _check_requests(state: State) -> None:
    pending = list(state.pending.values())
    lines: dict[tuple[str, str, Shape], list[str]] = {}
    for request in sorted(pending, key=lambda request: request.entry.key):
        if request.standing is RequestStatus.QUEUED:
            lines.setdefault((request.project, request.user, request.entry.shape), []).append(request.id)
    kept = {
        (account.project.id, user.name, shape): [entry.id for _, entry in line]
        for account in state.accounts.by_id.values()
        for user in account.users.values()
        for shape, line in user.lines.items()
    }
    _same("lines", kept, lines)
    shapes = Counter(request.entry.shape for request in pending if request.standing is RequestStatus.QUEUED)
    _same("shapes", state.queue.shapes, dict(shapes))
    alike: dict[tuple[Lane, int, Wants], set[Shape]] = {}
    for shape in shapes:
        alike.setdefault((shape.lane, shape.need, shape.wants), set()).add(shape)
    _same("shapes by need", {need: set(some) for need, some in state.queue.alike.items()}, alike)
    for request in pending:
        place = state.accounts.place_of(request.home, request.user)
        _same(f"project of {request.id}", request.project, place)
        lane = "own" if request.lane == "own" else state.slot_catalog.lane_for(request.gpus)
        _same(f"lane of {request.id}", request.lane, lane)
        qos = state.qos[request.qos]
        shape = shape_of(request, lane, qos, state.slot_catalog, state.own_nodes)
        _same(f"shape of {request.id}", request.entry.shape, shape)
        standing = RequestStatus.QUEUED if request.hold is None else RequestStatus.ON_HOLD
        standing = RequestStatus.HELD if request.session in state.leases_of else standing
        _same(f"standing of {request.id}", request.standing, standing)
        if request.hold is not None and not request.entry.key.is_early:
            raise InvariantBroken(f"{request.id} is on hold, and is late")
        if request.walltime_ms > most_walltime_ms(state.accounts, request.project, request.user, request.qos):
            raise InvariantBroken(f"{request.id} may run longer than its QoS, or an allowance, gives")
    late = {(at.project.id, name): cost for at in state.accounts.by_id.values() for name, cost in at.late.items()}
    known = {
        (at.project.id, request.id): request.entry.shape.cost
        for request in pending
        if request.is_late_in_pool
        for at in state.accounts.of(request.project).path
    }
    _same("late requests", late, known)
    _same("requests of sessions", state.asking, {request.session: request.id for request in pending})
    _same("one request a session", len(state.asking), len(pending))
    held = {request.session: request.id for request in pending if request.standing is RequestStatus.HELD}
    _same("held requests", state.held, held)
    _same(
        "requests on hold",
        set(state.on_hold),
        {request.id for request in pending if request.standing is RequestStatus.ON_HOLD},
    )
    everybody = [(at.project.id, user) for at in state.accounts.by_id.values() for user in at.users.values()]
    boosted = {(project, user.name) for project, user in everybody if user.is_boosted}
    allowances = state.accounts.allowances
    _same("end of the next allowance", allowances.next_ms, allowances.find_next_ms())
    _same("boosted users", boosted, set(state.boosts.until_ms))
    _same("queued by user", state.queued, dict(Counter((request.user, request.qos) for request in pending)))


def _check_leases(state: State) -> None:
    leases = list(state.leases.values())
    of: dict[str, set[str]] = {}
    for lease in leases:
        of.setdefault(lease.session, set()).add(lease.id)
        if lease.phase is not Phase.ENDING:
            if lease.more_ms:
                _same(f"a cell with more time in {lease.id}", lease.phase in {Phase.BUSY, Phase.RECLAIMING}, True)
            _same(f"a cell in {lease.id}", lease.cell is not None, lease.phase in {Phase.BUSY, Phase.RECLAIMING})
        if lease.phase is Phase.HOT:
            _same(f"hot beyond the rules: {lease.id}", is_next_forbidden(state.accounts, lease), False)
    _same("leases of sessions", {session: set(ids) for session, ids in state.leases_of.items()}, of)
    for session, ids in of.items():
        alive = [lease for lease in ids if state.leases[lease].phase is not Phase.ENDING]  # type: ignore[index]
        if len(alive) > 1:
            raise InvariantBroken(f"session {session} has leases {alive}")
    granted = {
        lease.request: lease.id for lease in leases if lease.phase is Phase.GRANTED and lease.request is not None
    }
    _same("granted, not started", state.granted, granted)
    waiting = {lease.id for lease in leases if lease.phase in LEAVING | {Phase.GRANTED}}
    _same("alarms", set(state.alarms), waiting)


def _check_pools(state: State) -> None:
    for name, accounts in state.pools.together():
        leases = [lease for lease in state.leases.values() if lease.phase in USING and lease.pool == name]
        for account in accounts.by_id.values():
            inside = [one for one in leases if account in accounts.of(one.project).path]
            _same(f"used by {account.project.id} in {name}", account.used, sum(one.cost for one in inside))
            names = {one.project.id for one in accounts.by_id.values() if account in one.path}
            going = [one for one in inside if one.phase is Phase.RECLAIMING and one.reclaimed_for in names]
            _same(f"replaced in {account.project.id} in {name}", account.replaced, sum(one.cost for one in going))
        slots = [
            slot
            for node in state.nodes.values()
            for slot in node.slots.values()
            if not node.is_drained and state.pools.find(node.name, [slot]) == name
        ]
        _same(f"capacity of {name}", accounts.capacity, sum(slot.milli for slot in slots))
    for lease in state.leases.values():
        node = state.nodes[lease.agent]
        pool = state.pools.find(node.name, map(node.slots.__getitem__, lease.slots))
        _same(f"node pool of {lease.id}", lease.pool, pool)


def _check_accounts(state: State) -> None:
    leases = list(state.leases.values())
    for lease in leases:
        node = state.nodes[lease.agent]
        _same(f"cost of {lease.id}", lease.cost, state.slot_catalog.cost_on(node, lease.lane, lease.slots))
        _same(f"project of {lease.id}", lease.project, state.accounts.place_lease(lease))
        if lease.phase in IDLE:
            _same(f"price of {lease.id}", lease.charged, state.slot_catalog.charge_on(node, lease.slots))
    paying, now_ms = [account.project for account in state.accounts.by_id.values()], state.accounts.now_ms
    now, lost = in_force(now_ms), state.accounts.lost
    promised = guarantees(paying, lambda project: max(0, now(project) - lost.get(project.id, 0)))
    most = guarantees(paying, most_in_force(now_ms))
    for account in state.accounts.by_id.values():
        name = account.project.id
        _same(f"promised to {name}", account.promised, promised[name])
        total, capacity = (
            sum(promised[one] for one in state.accounts.top),
            available(state.nodes.values(), state.slot_catalog),
        )
        kept = promised[name] * capacity // total if 0 < capacity < total else promised[name]
        _same(f"guaranteed to {name}", account.guaranteed, kept)
        _same(f"most guaranteed to {name}", account.most, most[name])
        inside = {one.project.id for one in state.accounts.by_id.values() if account in one.path}
        _check_holder(state, f"project {name}", account, [one for one in leases if one.project in inside])
        used = [one for one in leases if one.project in inside and one.phase in USING]
        going = [one for one in used if one.phase is Phase.RECLAIMING and one.reclaimed_for in inside]
        _same(f"replaced in {name}", account.replaced, sum(one.cost for one in going))
        own = [one for one in going if one.project == one.reclaimed_for == name]
        _same(f"replaced by users of {name}", account.replaced_by_users, sum(one.cost for one in own))
        _same(f"awaited in {name}", account.awaited, 0)
        _same(f"charged to {name}", account.charged, sum(one.charged for one in used))
        if account.project.budget is not None:
            _same(f"granted to {name}", account.granted_ms, state.accounts.allowances.budget_ms(account.project.id))
            budget = {one.id: one.charged for one in leases if one.project in inside and one.phase is not Phase.ENDING}
            _same(f"to be charged to {name}", {key: one.charged for key, one in account.commitments.items()}, budget)
        shapes = Counter(
            request.entry.shape
            for request in state.pending.values()
            if request.project in inside and request.standing is RequestStatus.QUEUED
        )
        _same(f"requests in {name}", account.waiting, dict(shapes))
        firm = sum(number for shape, number in shapes.items() if state.qos[shape.qos].must_be_in_quota)
        _same(f"requests in {name} that never borrow", account.waiting_in_quota, firm)
        for user in account.users.values():
            own = [one for one in leases if one.project == name and one.user == user.name]
            _check_holder(state, f"user {user.name} in {name}", user, own)
        _check_heads(state, account)
        if account.children:
            _check_market(
                name, account.members.market, [account.members, *(one.trader for one in account.children.values())]
            )
            rest = account.guaranteed - sum(child.guaranteed for child in account.children.values())
            use = sum(one.cost for one in leases if one.project == name and one.phase in USING)
            _same(f"surplus of the users of {name}", account.members.surplus, use - rest)
        limit = account.project.lending_limit_milli
        keeps = 0 if limit is None else max(0, account.guaranteed - account.used - limit)
        _same(f"kept inside {name}", account.kept_inside, sum(child.kept for child in account.children.values()))
        _same(f"kept by {name}", account.kept, max(keeps, account.kept_inside))
        kept_now = (account.kept_now, account.kept_now_inside)
        _same(f"kept by {name} now", kept_now, (account.kept, account.kept_inside))
        _same(f"surplus of {name}", account.trader.surplus, account.used - account.guaranteed)
    _check_market("the pool", state.accounts.market, [one.trader for one in state.accounts.top.values()])
    _same("kept by all", state.accounts.kept_inside, sum(one.kept for one in state.accounts.top.values()))
    _same("in use", state.accounts.in_use, sum(one.used for one in state.accounts.top.values()))
    total = sum(account.guaranteed for account in state.accounts.top.values())
    _same(
        "what nobody is guaranteed",
        state.accounts.market.unpromised,
        max(0, available(state.nodes.values(), state.slot_catalog) - total),
    )
    for (user_name, qos), holder in state.accounts.runs.items():
        own = [one for one in leases if one.user == user_name and one.qos == qos]
        _check_holder(state, f"{qos} of {user_name}", holder, own, is_counted=True)


def _check_market(name: str, market: Market, traders: list[Trader]) -> None:
    _same(f"idle in {name}", market.idle, sum(max(0, -one.surplus) for one in traders))
    _same(f"borrowed in {name}", market.borrowed, sum(max(0, one.surplus) for one in traders))


def _check_holder(
    state: State, what: str, holder: UsageTotals, leases: list[Lease], *, is_counted: bool = False
) -> None:
    amounts = {one.id: 1 if is_counted else one.cost for one in leases}
    _same(f"used by {what}", holder.used, sum(amounts[one.id] for one in leases if one.phase in USING))
    _same(f"held by {what}", holder.held, sum(amounts.values()))
    _same(f"going, of {what}", holder.going, sum(amounts[one.id] for one in leases if one.phase is Phase.RECLAIMING))
    in_quota = {one.name for one in state.qos.values() if one.must_be_in_quota}
    committed = sum(amounts[one.id] for one in leases if one.phase is Phase.HOT and one.qos in in_quota)
    _same(f"committed by {what}", holder.committed, committed)
    _same(f"leaving, of {what}", holder.leaving, sum(amounts[one.id] for one in leases if one.phase in LEAVING))
    hot = sorted((one for one in leases if one.phase is Phase.HOT), key=lambda lease: lease.used)
    _same(f"hot, of {what}", list(holder.hot.items()), [(one.id, amounts[one.id]) for one in hot])


def _check_heads(state: State, account: Account) -> None:
    heads: dict[Shape, list[tuple[tuple[int, ...], str]]] = {}
    for user in account.users.values():
        for shape, line in user.lines.items():
            rank = state.queue.rank_in_line(account, user, line[0][1])
            if rank is not None:
                heads.setdefault(shape, []).append((rank, user.name))
    _same(
        f"heads of {account.project.id}",
        {shape: list(line) for shape, line in account.heads.items()},
        {shape: sorted(line) for shape, line in heads.items()},
    )
    firsts = sorted((*min(line), shape) for shape, line in heads.items())
    _same(f"first heads of {account.project.id}", account.firsts, firsts)


def _check_next(state: State) -> None:
    """Whoever is next is found again where nothing is known from before."""
    queue, accounts = state.queue, state.accounts.by_id
    heads = {shape: {name for name, one in accounts.items() if shape in one.heads} for shape in queue.shapes}
    _same("projects by what heads ask for", queue.heads, {shape: names for shape, names in heads.items() if names})
    for lane in LANES:
        kept = queue.next(Closed(lane, queue.shapes))
        state.accounts.changes += 1
        afresh = queue.next(Closed(lane, queue.shapes))
        _same(f"next of {lane}", kept and kept[1].id, afresh and afresh[1].id)
