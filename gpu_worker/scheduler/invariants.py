"""Every promise and every index of the state, computed afresh. For tests and for a broker in doubt: it is slow."""

from collections import Counter

from bulletin.errors import InvariantBroken
from gpu_worker.scheduler.life import Phase, Standing
from gpu_worker.scheduler.state import LANES, State, lane_of


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
            _same(f"leaving, {where}", counts.leaving, by_phase[Phase.EVICTING] + by_phase[Phase.ENDING])
            hot = sorted((lease for lease in leases if lease.phase is Phase.HOT), key=lambda lease: lease.used)
            _same(f"hot leases, {where}", list(counts.hot_leases), [lease.id for lease in hot])
            if counts.free + counts.leaving:
                roomy.add(node.agent)
            if counts.hot:
                warm.add(node.agent)
        _same(f"nodes with room, {lane}", set(state.roomy[lane]), roomy)
        _same(f"nodes with hot leases, {lane}", set(state.warm[lane]), warm)
        largest = max((node.lanes[lane].capacity for node in state.nodes.values()), default=0)
        if state.largest[lane] < largest:
            raise InvariantBroken(f"the largest node, {lane}, was forgotten")


def _check_requests(state: State) -> None:
    pending = list(state.pending.values())
    for lane in LANES:
        lines: dict[int, list[tuple[tuple[int, int], str]]] = {}
        for request in sorted(pending, key=lambda request: request.key):
            if request.lane == lane and request.standing is Standing.QUEUED:
                lines.setdefault(request.need, []).append((request.key, request.id))
        _same(f"line, {lane}", state.lines[lane], lines)
    for request in pending:
        _same(f"lane of {request.id}", request.lane, state.lane_for(request.gpus))
        is_held = request.session in state.leases_of
        _same(f"standing of {request.id}", request.standing, Standing.HELD if is_held else Standing.QUEUED)
        if request.walltime_ms > state.qos[request.qos].walltime_ms:
            raise InvariantBroken(f"{request.id} may run longer than its QoS gives")
    _same("requests of sessions", state.asking, {request.session: request.id for request in pending})
    _same("one request a session", len(state.asking), len(pending))
    held = {request.session: request.id for request in pending if request.standing is Standing.HELD}
    _same("held requests", state.held, held)
    _same("queued by user", state.queued, dict(Counter((request.user, request.qos) for request in pending)))


def _check_leases(state: State) -> None:
    leases = list(state.leases.values())
    of: dict[str, set[str]] = {}
    for lease in leases:
        of.setdefault(lease.session, set()).add(lease.id)
        if lease.phase is not Phase.ENDING:
            _same(f"a cell in {lease.id}", lease.cell is not None, lease.phase is Phase.BUSY)
    _same("leases of sessions", {session: set(ids) for session, ids in state.leases_of.items()}, of)
    for session, ids in of.items():
        alive = [lease for lease in ids if state.leases[lease].phase is not Phase.ENDING]  # type: ignore[index]
        if len(alive) > 1:
            raise InvariantBroken(f"session {session} has leases {alive}")
    granted = {
        lease.request: lease.id for lease in leases if lease.phase is Phase.GRANTED and lease.request is not None
    }
    _same("granted, not started", state.granted, granted)
    waiting = {lease.id for lease in leases if lease.phase in (Phase.GRANTED, Phase.EVICTING, Phase.ENDING)}
    _same("alarms", set(state.alarms), waiting)
