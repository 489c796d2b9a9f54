"""Who must leave: sessions that nobody may keep, cells that are reclaimed, what was granted and not used."""

from collections.abc import Iterable

import msgspec

from bulletin.ids import LeaseId, ProjectId, UserName
from gpu_worker.scheduler.accounts.held_amounts import holds_too_much
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Pause, Reclaim, Right, Why
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.reclaimed_ages import Wanted
from gpu_worker.scheduler.leases.resources import Wants
from gpu_worker.scheduler.policy.projects import Preemption
from gpu_worker.scheduler.state import State


def evict(state: State, lease: Lease) -> Evict:
    """Have a lease leave unless a cell runs, or ask again."""
    now_ms = state.accounts.now_ms
    alarm_ms = now_ms + state.settings.ask_again_ms
    if lease.phase is Phase.EVICTING:
        state.set_alarm(lease, alarm_ms)
    else:
        state.move(lease, Phase.EVICTING, now_ms, alarm_ms=alarm_ms)
    return Evict(lease.id)


def reclaim(state: State, lease: Lease) -> Reclaim | Pause:
    """Ask for a running cell's slots, or ask again. Who had to give back what it borrowed stands behind for a while.

    A project loses nothing to its own users, nor to projects inside it: it stands where it stood for them.
    """
    now_ms, settings = state.accounts.now_ms, state.settings
    grace_ms = state.grace_ms(lease)
    alarm_ms = now_ms + grace_ms + settings.ask_again_ms
    if lease.phase is Phase.RECLAIMING:
        lease.is_pausing = False
        state.set_alarm(lease, now_ms + settings.ask_again_ms)  # its grace is over
        return Reclaim(lease.id, 0, lease.reclaimed_by)
    state.move(lease, Phase.RECLAIMING, lease.since_ms, lease.cell, alarm_ms)
    wanted = as_asked_again(lease.user, lease.home, lease.qos, len(lease.slots), _wants(lease))
    age = lease.age
    if age is not None and lease.reclaimed_by is Right.SHARE:
        age = msgspec.structs.replace(age, shared=age.shared + 1)
    state.reclaimed_ages.keep(lease.session, wanted, age, now_ms)
    if lease.reclaimed_by in (Right.GUARANTEE, Right.SHARE) and not _is_lost_inside(state, lease):
        first_ms, longest_ms = settings.back_off_ms, settings.longest_back_off_ms
        state.accounts.of(lease.project).back_off(now_ms, grace_ms, first_ms, longest_ms)
    lease.is_pausing = state.qos[lease.qos].preemption is Preemption.PAUSE
    return Pause(lease.id, grace_ms) if lease.is_pausing else Reclaim(lease.id, grace_ms, lease.reclaimed_by)


def remember_shares(state: State, lease: Lease) -> None:
    """Note how often a cell has gone for shares that is lost, or does not begin: it is asked for again."""
    if lease.phase in (Phase.GRANTED, Phase.BUSY) and lease.age is not None and lease.age.shared:
        wanted = as_asked_again(lease.user, lease.home, lease.qos, len(lease.slots), _wants(lease))
        state.reclaimed_ages.keep_shares(lease.session, wanted, lease.age.shared, state.accounts.now_ms)


def _wants(lease: Lease) -> Wants:
    return Wants(lease.kind, lease.cpus, lease.memory_bytes, lease.is_exclusive)


def _is_lost_inside(state: State, lease: Lease) -> bool:
    """Whether a cell goes for somebody of its own project, or of one inside it."""
    to = lease.reclaimed_for
    return to is not None and any(at.project.id == lease.project for at in state.accounts.of(to).path)


def decline_pause(state: State, lease_id: LeaseId) -> list[Action]:
    """Note that the cell cannot be paused: it has its grace from now on, and is run again."""
    lease = state.leases.get(lease_id)
    if lease is None or lease.phase is not Phase.RECLAIMING or not lease.is_pausing:
        return []
    grace_ms, lease.is_pausing = state.grace_ms(lease), False
    state.set_alarm(lease, state.accounts.now_ms + grace_ms + state.settings.ask_again_ms)
    return [Reclaim(lease.id, grace_ms, lease.reclaimed_by)]


def overdue(state: State) -> list[Action]:
    """Take back what was granted and not used; ask again where no answer came."""
    actions: list[Action] = []
    now_ms = state.accounts.now_ms
    for lease_id in [lease for lease, alarm_ms in state.alarms.items() if alarm_ms <= now_ms]:
        lease = state.leases[lease_id]
        if lease.phase is Phase.ENDING:
            state.set_alarm(lease, now_ms + state.settings.ask_again_ms)
            actions.append(EndLease(lease_id, Why.SUPERSEDED))
        elif lease.phase is Phase.RECLAIMING:
            actions.append(reclaim(state, lease))
        else:
            remember_shares(state, lease)
            actions.append(evict(state, lease))
    return actions


def unwanted(state: State, *, is_turned: bool) -> list[Action]:
    """Evict what nobody may keep, one kind after the other: each looks at what those before it have left.

    `is_turned`: guarantees may be others than in the step before.
    """
    actions: list[Action] = []
    for leases in (_own_leases, _over_budget, _from_drained, _too_long_for_drains):
        actions += [evict(state, lease) for lease in leases(state)]
    return actions + too_much(state, state.leases if is_turned else state.touched)


def too_much(state: State, touched: Iterable[LeaseId]) -> list[Action]:
    """Evict what is hot and more than may be held, or kept of a guarantee, since these leases have changed."""
    leases = [state.leases[name] for name in touched if name in state.leases]
    names = dict.fromkeys(lease.id for lease in leases)
    for top in dict.fromkeys(state.accounts.of(lease.project).top.project.id for lease in leases):
        account = state.accounts.of(top)  # whoever uses more of a guarantee leaves less for who keeps some of it
        names |= dict.fromkeys(account.hot if account.committed else ())
    hot = hot_among(state, names)  # what left before one counts no more
    return [evict(state, lease) for lease in hot if holds_too_much(state.accounts, lease)]


def hot_among(state: State, names: Iterable[LeaseId]) -> list[Lease]:
    """List those of these leases that are hot, least recently used first."""
    known = [state.leases[name] for name in names if name in state.leases]
    return sorted((lease for lease in known if lease.phase is Phase.HOT), key=lambda lease: lease.used)


def _own_leases(state: State) -> list[Lease]:
    """List leases of sessions that ask for another: they lost the link to their agent, and use them no longer."""
    own = [state.leases[lease] for session in state.held for lease in state.leases_of[session]]
    return [lease for lease in own if lease.phase in (Phase.GRANTED, Phase.HOT)]


def _over_budget(state: State) -> list[Lease]:
    """List what is hot where the budget does not reach for the cells that it could begin."""
    accounts = state.accounts
    hot = dict.fromkeys(lease for one in accounts.budgeted for lease in one.over_budget(accounts.now_ms))
    return [state.leases[lease] for lease in hot]


def _from_drained(state: State) -> list[Lease]:
    """List what is hot on nodes that are drained."""
    nodes = [state.nodes[agent] for agent in state.drained if agent in state.nodes]
    return [state.leases[name] for node in nodes for counts in node.lanes.values() for name in counts.hot_leases]


def _too_long_for_drains(state: State) -> list[Lease]:
    """List what is hot on nodes that are to be drained, and could begin a cell that runs into that; note the others."""
    found: list[Lease] = []
    for node, at_ms in state.planned_drains.nodes:
        for lease in [state.leases[name] for counts in node.lanes.values() for name in counts.hot_leases]:
            last_ms = at_ms - lease.walltime_ms
            if last_ms < state.accounts.now_ms:
                found.append(lease)
            else:
                state.wakeups.note(last_ms + 1)
    return found


def as_asked_again(user: UserName, project: ProjectId, qos: str, need: int, wants: Wants) -> Wanted:
    """Make what a cell's next request is known by: slices may stand in for GPUs now, and not later."""
    kind = msgspec.structs.replace(wants.kind, is_slice=False)
    return Wanted(user, project, qos, need, msgspec.structs.replace(wants, kind=kind))
