"""An agent joins, or joins again: what was believed of it is forgotten, and what it reports is believed."""

from bulletin.ids import ProjectId, SlotId
from gpu_worker.scheduler import departures
from gpu_worker.scheduler.actions import Action, EndLease, Why
from gpu_worker.scheduler.events import AgentJoined, ReportedLease
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import Lane, SlotKind, lane_of
from gpu_worker.scheduler.nodes.node import Node
from gpu_worker.scheduler.state import State


def rejoin(state: State, event: AgentJoined, now_ms: int) -> list[Action]:
    """Forget what was believed of the agent, and believe its report. Said twice, it changes nothing."""
    actions: list[Action] = []
    known = state.nodes.get(event.agent)
    seq = known.seq if known is not None else state.next_seq()
    alarms = dict(state.alarms)
    before = {lease.id: (lease, lease.phase) for lease in _believed(state, event)}
    reported = {held.lease for held in event.held}
    for lease, _ in before.values():
        if lease.id not in reported:
            departures.remember_shares(state, lease)
        state.end(lease)
        if lease.id not in reported:
            actions.append(EndLease(lease.id, Why.NOT_HELD))
    if known is not None:
        state.part(event.agent)
    what = event.slots, seq, event.cpus, event.memory_bytes, event.owner
    state.join(state.slot_catalog.make_node(event.agent, event.node, *what))
    used = {lease.id: lease.used for lease, _ in before.values() if lease.used}
    newest = state.next_seq()  # those that were not known come last, in the order of the report
    for held in sorted({held.lease: held for held in event.held}.values(), key=lambda h: used.get(h.lease, newest)):
        actions += _relearn(state, now_ms, event, held, before.get(held.lease), alarms.get(held.lease))
    return actions


def _believed(state: State, event: AgentJoined) -> list[Lease]:
    """Find the leases that the report is about: those of the agent, and any that it took over under a new name."""
    known = state.nodes.get(event.agent)
    own = list(known.leases) if known is not None else []
    ids = dict.fromkeys(own + [held.lease for held in event.held])
    return [state.leases[lease] for lease in ids if lease in state.leases]


def _relearn(
    state: State,
    now_ms: int,
    event: AgentJoined,
    held: ReportedLease,
    before: tuple[Lease, Phase] | None,
    alarm_ms: int | None,
) -> list[Action]:
    node = state.nodes[event.agent]
    # What the node does not offer now, or gives to two, is a broken report: the first one has it.
    slots = [slot for slot in dict.fromkeys(held.slots) if node.tenants.get(slot, held.lease) is None]
    lane: Lane = lane_of(node.slots[slots[0]]) if slots else "cpu"
    slots = [slot for slot in slots if lane_of(node.slots[slot]) == lane]
    was, was_phase = before if before is not None else (None, None)
    phase = Phase.HOT if held.cell is None else Phase.BUSY
    if was_phase is Phase.GRANTED and phase is Phase.HOT:
        phase = Phase.GRANTED
    if was_phase is Phase.ENDING or _has_gone_on(state, now_ms, held, was):
        phase = Phase.ENDING
    cost = state.slot_catalog.cost_on(node, lane, tuple(slots))
    lease = Lease(
        id=held.lease,
        request=was.request if was is not None else None,
        session=held.session,
        user=held.user,
        project=_place(state, now_ms, held, was),
        home=held.project,
        qos=held.qos,
        agent=event.agent,
        slots=tuple(slots),
        lane=lane,
        walltime_ms=held.walltime_ms,
        phase=phase,
        since_ms=now_ms - held.running_ms if held.cell is not None else now_ms,
        cost=cost,
        charged=_agreed(state, node, held, tuple(slots), was) if cost else 0,
        cpus=held.cpus,
        memory_bytes=held.memory_bytes,
        kind=was.kind if was is not None else SlotKind(),
        cell=held.cell,
        age=was.age if was is not None else None,
        took=was.took if was is not None else frozenset(),
        more_ms=held.more_ms if held.cell is not None and phase is Phase.BUSY else 0,
        used=was.used if was is not None and was.used else state.next_seq(),
        is_exclusive=held.is_exclusive or (was is not None and was.is_exclusive),
        is_kept=held.is_kept,
        kept_since_ms=_kept_since_ms(now_ms, held, was) if held.is_kept and phase is not Phase.GRANTED else None,
    )
    if phase is Phase.ENDING:
        state.add(lease, now_ms + state.settings.ask_again_ms)
        return [EndLease(lease.id, Why.SUPERSEDED)]
    state.add(lease, alarm_ms if phase is Phase.GRANTED else None)
    return []


def _has_gone_on(state: State, now_ms: int, held: ReportedLease, was: Lease | None) -> bool:
    """Whether the session has another lease, or asked for one since its cell began: it was told that this one is over.

    A kernel runs one cell at a time. It would wait for a cell that nobody hears, for as long as that may run.
    """
    if any(state.leases[other].phase is not Phase.ENDING for other in state.leases_of.get(held.session, ())):
        return True
    if was is not None or held.cell is None or held.session not in state.asking:
        return False
    return state.pending[state.asking[held.session]].since_ms > now_ms - held.running_ms


def _goes_on(held: ReportedLease, was: Lease) -> bool:
    """Whether what runs is what ran: the same cell, or another in a place that is kept."""
    return was.cell == held.cell or (held.is_kept and was.is_kept)


def _kept_since_ms(now_ms: int, held: ReportedLease, was: Lease | None) -> int:
    held_since_ms = now_ms - held.held_ms
    if was is None or was.kept_since_ms is None:
        return held_since_ms
    return max(was.kept_since_ms, held_since_ms)  # it began no earlier than it was held, however far the clock jumped


def _agreed(state: State, node: Node, held: ReportedLease, slots: tuple[SlotId, ...], was: Lease | None) -> int:
    """Find what the lease is charged: what was agreed, where that is known, else by the prices in force."""
    if was is not None and was.slots == slots and _goes_on(held, was):
        return was.charged
    if held.cell is not None and held.charged is not None:
        return held.charged
    return state.slot_catalog.charge_on(node, slots)


def _place(state: State, now_ms: int, held: ReportedLease, was: Lease | None) -> ProjectId:
    """Find where the lease counts: a cell that runs where it did, or where it would have begun."""
    accounts = state.accounts
    if held.cell is None:
        return accounts.place_of(held.project, held.user)
    if was is not None and was.home == held.project and _goes_on(held, was):
        return accounts.place_of(held.project, held.user, was.project)
    ran_ms = held.held_ms if held.is_kept else held.running_ms
    return accounts.place_of(held.project, held.user, began_ms=now_ms - ran_ms)
