"""Why a request waits, and for how long at most: from the same questions that decide."""

import shlex
from collections.abc import Mapping
from contextlib import closing
from itertools import islice

import msgspec

from bulletin.ids import RequestId
from bulletin.units import HOUR_MS, MINUTE_MS, show_duration
from gpu_worker.scheduler.accounts.account import Account
from gpu_worker.scheduler.accounts.branches import Branch, is_covered, lacks_of_quota, parting
from gpu_worker.scheduler.accounts.kept_limits import kept_by_hand
from gpu_worker.scheduler.actions import name_pools, show_price
from gpu_worker.scheduler.estimate_cache import Start
from gpu_worker.scheduler.estimates.room_words import name_slots, say_room
from gpu_worker.scheduler.estimates.start_estimator import StartEstimator
from gpu_worker.scheduler.estimates.window_words import show_end, show_turn
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.life import RequestStatus
from gpu_worker.scheduler.leases.resources import Lane
from gpu_worker.scheduler.placement.order import decisions
from gpu_worker.scheduler.placement.queue_walk import QueueWalk
from gpu_worker.scheduler.policy.class_hours import next_beginning
from gpu_worker.scheduler.policy.credits import STEP, Trader
from gpu_worker.scheduler.policy.projects import GPU_MILLI, show_gpu_time, show_gpus, slot_word
from gpu_worker.scheduler.state import State

#: So many events are foreseen for an estimate.
_MOST_STEPS = 1_000
#: So many places in line are told one by one.
_MOST_PLACES = 200
#: Who may borrow is told of class hours that begin within a day; who may not, of all.
_SOON_MS = 24 * HOUR_MS


class WaitExplanation(msgspec.Struct, frozen=True):
    """What a person who waits is told: the place in line, why it waits, and for how long at most."""

    position: int  #: 1 is next; behind the first 200, the same for all
    reason: str  #: words without a full stop, to stand after a colon
    wait_ms: int | None  #: the longest wait if every cell uses its whole walltime; None where nobody can say
    in_quota: bool  #: whether its project, or one that it is in, is guaranteed what it needs
    is_room_made: bool = False  #: nobody's cell is in its way any more: what stands there leaves
    is_on_hold: bool = False  #: a person wants it not to start yet
    waits_for_room: bool = False  #: nothing keeps it from running but that no node has room for it


def waiting(
    state: State, request_id: RequestId, now_ms: int, starts: Mapping[RequestId, Start] | None = None
) -> WaitExplanation | None:
    """Why the request waits; None if it does not: it is granted, refused, withdrawn or was never submitted.

    `starts` is what a `StartEstimator` has found; without it one is made here, which takes its time in a large pool.
    """
    request = state.pending.get(request_id)
    if request is None:
        return None
    places = standings(state, request.lane)
    ahead = places.get(request_id, len(places))
    if request.lane == "own":  # on nodes of other users nobody is in its way
        before = (state.pending[name] for name, place in places.items() if place < ahead)
        ahead = sum(one.user == request.user for one in before)
    in_quota = not request.entry.shape.cost or state.is_covered(request)
    start_ms, turn_ms = (_starts(state, now_ms) if starts is None else starts).get(request_id, (None, None))
    if state.slot_catalog.is_yet_to_come(request.entry.shape):  # the replay knows nothing of what comes back
        start_ms = turn_ms = None
    wait_ms = None if start_ms is None else max(0, start_ms - now_ms)
    reason, waits_for_room = _reason(state, request, ahead, turn_ms, now_ms)
    is_on_hold = request.hold is not None
    is_room_made = request.standing is RequestStatus.HELD or _is_room_being_made(state, request)
    is_room_made = is_room_made and not is_on_hold
    return WaitExplanation(
        ahead + 1,
        reason,
        wait_ms,
        in_quota=in_quota,
        is_room_made=is_room_made,
        is_on_hold=is_on_hold,
        waits_for_room=waits_for_room,
    )


def standings(state: State, lane: Lane) -> dict[RequestId, int]:
    """How many stand before each request of a lane; none of those that a limit keeps from running now."""
    if lane not in state.estimate_cache.standings:
        with closing(iter(QueueWalk(state, lane, is_forecast=True))) as line:
            state.estimate_cache.standings[lane] = {
                request.id: place for place, request in enumerate(islice(line, _MOST_PLACES))
            }
    return state.estimate_cache.standings[lane]


def _reason(state: State, request: Request, ahead: int, turn_ms: int | None, now_ms: int) -> tuple[str, bool]:
    """Say why it waits, and whether that is for room alone: another node would help."""
    if request.standing is RequestStatus.HELD:
        return "the process of this notebook's last cell is still ending", False
    if request.hold is not None:
        return request.hold.reason, False
    limit = _limit(state, request, turn_ms)
    if limit is not None:
        return limit, False
    room, about_nodes = say_room(state, request, now_ms)
    if room.is_there and ahead < state.settings.look_ahead and _is_room_being_made(state, request):
        word = name_slots(request.entry.shape)
        if request.need == 1:
            return f"a {word.removesuffix('s')} is being freed for you", False
        return f"{request.need} {word} are being freed for you", False
    before = f"{ahead} request{' is' if ahead == 1 else 's are'} before yours" if ahead else ""
    whose = (_quota(state, request), _reserved(state, request), _back_off(state, request), _credits(state, request))
    parts = [part for part in (*whose, *about_nodes, before) if part]
    soon = _hours(state, request, _SOON_MS) or _ends(state, turn_ms)
    if soon and parts:
        parts[0] = f"until then {parts[0]}"
    return _joined(soon, *parts) or "it is being looked at", True


def _hours(state: State, request: Request, within_ms: int | None = None) -> str:
    """Find when its project, one that it is in, or its user would be guaranteed what it needs; none if one is."""
    accounts, cost = state.accounts, request.entry.shape.cost
    account = accounts.of(request.project)
    timed = [*accounts.reserved_for(request.home, request.user), *(at for at in account.path if at.project.windows)]
    if not cost or not timed or is_covered(account, cost, request.entry):
        return ""
    for at in timed:
        never_now = within_ms is None and at.guaranteed < cost  # what uses more than that now is over by then
        uses = 0 if never_now else at.used
        enough = [one for one in at.project.windows if uses + cost <= one.guaranteed_milli]
        found = next_beginning(enough, accounts.now_ms)
        if found is not None and (within_ms is None or found[0] - accounts.now_ms < within_ms):
            when = show_turn(*found, accounts.now_ms)
            return f"{found[1].show_edge(at.project.id, is_end=False)} {when}"
    return ""


def _ends(state: State, turn_ms: int | None) -> str:
    """Find the class hours, or the reservation, that end when the request will have its turn, those of most."""
    if turn_ms is None:
        return ""
    ended = [
        (-one.guaranteed_milli, number, account.project.id, one)
        for number, account in enumerate(state.accounts.timed)
        for one in account.project.windows
        if one.is_on(turn_ms - 1) and not one.is_on(turn_ms)
    ]
    if not ended:
        return ""
    *_, project, hours = min(ended, key=lambda one: one[:2])
    return f"{hours.show_edge(project, is_end=True)} {show_turn(turn_ms, hours, state.accounts.now_ms)}"


def _reserved(state: State, request: Request) -> str:
    """Name the reservation of others that takes most of what there is now; none where its own guarantee covers it."""
    accounts, now_ms = state.accounts, state.accounts.now_ms
    account = accounts.of(request.project)
    if is_covered(account, request.entry.shape.cost, request.entry):
        return ""
    others = [at for at in accounts.timed if at not in account.path and (at.used or at.waiting)]
    on = [one for at in others for one in at.project.reservations if one.is_on(now_ms)]
    if not on:
        return ""
    most = max(on, key=lambda one: one.guaranteed_milli)
    gpus = show_gpus(most.guaranteed_milli, on_cpu=state.slot_catalog.is_on_cpu(request.lane))
    verb = "is" if most.guaranteed_milli == GPU_MILLI else "are"
    return f"{gpus} {verb} reserved for {most.name!r} until {show_end(most, most.end_ms, now_ms)}"


def _limit(state: State, request: Request, turn_ms: int | None) -> str | None:
    """Find the limit that keeps it from running while others of its project or user run."""
    cost, accounts = request.entry.shape.cost, state.accounts
    on_cpu = state.slot_catalog.is_on_cpu(request.lane)
    account = accounts.of(request.project)
    user = accounts.user_of(request.project, request.user)
    own = accounts.allowances.user_limit_milli(account.project, request.user)
    if own is not None and user.used + cost > own:
        return f"you use {_of(user.used, own, on_cpu=on_cpu)} that one user of project {account.project.id!r} may use"
    for at in account.path:
        if at.limit is not None and at.used + cost > at.limit:
            uses = f"project {at.project.id!r} uses {_of(at.used, at.limit, on_cpu=on_cpu)} that it may use"
            return uses if at.project.can_borrow else _joined(uses, _hours(state, request))
        spent = _budget(state, request, at)
        if spent is not None:
            return spent
    qos = state.qos[request.qos]
    runs = accounts.runs.get((request.user, request.qos))
    if qos.running_per_user is not None and runs is not None and runs.used >= qos.running_per_user:
        cells = "a cell of yours runs" if runs.used == 1 else f"{runs.used} cells of yours run"
        return f"{cells} in QoS {qos.name!r}, which is all that it allows"
    kept = accounts.kept_by_lenders(account, request.entry.shape)
    if kept:
        is_one = kept == GPU_MILLI
        amount = f"{show_gpus(kept, on_cpu=on_cpu)} {'is' if is_one else 'are'}"
        return _joined(f"{amount} kept for projects that lend no more", _ends(state, turn_ms))
    for_late = _kept_for_late(state, request)
    if for_late is not None:
        return for_late
    if qos.must_be_in_quota and not accounts.is_allowed(account, request.entry):
        never, later = f"QoS {qos.name!r} never borrows", _hours(state, request)
        lack = _lack_beside_homes(state, account, cost) or _lack_of_guarantee(account, cost, on_cpu=on_cpu)
        return f"{never}, and {later or lack}"
    return None


def _kept_for_late(state: State, request: Request) -> str | None:
    """Say that a limit would let it through, but is kept for one before it; None where that makes no difference."""
    account, cost, priority = (
        state.accounts.of(request.project),
        request.entry.shape.cost,
        state.qos[request.qos].priority,
    )
    if not cost:
        return None
    gives_way = account.used_below(state.qos, priority) + account.given_up_beside(state.qos, priority)
    for at, kept in zip(account.path, state.accounts.kept_in_limits(account, request.entry), strict=True):
        if at.limit is None or not kept or at.used - gives_way + cost + kept <= at.limit:
            continue
        on_cpu = state.slot_catalog.is_on_cpu(request.lane)
        rest = show_gpus(min(kept, at.limit - at.used), on_cpu=on_cpu)
        uses = f"project {at.project.id!r} uses {_of(at.used, at.limit, on_cpu=on_cpu)} that it may use"
        is_by_hand = at is account and kept_by_hand(state.accounts, at, request.entry) == kept
        late = "somebody who has waited so long that nobody passes them"
        whom = "a request that was put first in the project" if is_by_hand else late
        return f"{uses}, and keeps {rest} of the rest for {whom}"
    return None


def _lack_beside_homes(state: State, account: Account, cost: int) -> str:
    """Say that the guarantee has room for it, but not where it could start; empty where that is not so."""
    homes = state.pools.homes_of(account.payer)
    if not homes or lacks_of_quota(account, cost, below=0) > 0:
        return ""
    return f"what project {account.payer.project.id!r} is guaranteed beside {name_pools(homes)} is in use"


def _lack_of_guarantee(account: Account, cost: int, *, on_cpu: bool | None) -> str:
    """Say why a project's guarantee is not enough for a request of a class that never borrows."""
    payer = account.payer
    if payer.guaranteed < cost <= payer.promised:
        there = show_gpus(payer.guaranteed, on_cpu=on_cpu)
        promised = show_gpus(payer.promised, on_cpu=on_cpu)
        verb = "is" if payer.guaranteed == GPU_MILLI else "are"
        whose = f"of {promised} of project {payer.project.id!r}"
        return f"more is guaranteed than there is now: {whose} there {verb} {there}"
    return f"the guarantee of project {account.project.id!r} is in use"


def _budget(state: State, request: Request, at: Account) -> str | None:
    """Say what is missing in a project's budget for all of the cell's walltime; None where nothing is."""
    shape, now_ms = request.entry.shape, state.accounts.now_ms
    spendable = at.spendable(now_ms, without_hot=True)
    if not shape.cost or spendable is None or spendable >= shape.charged * request.walltime_ms:
        return None
    budget = at.budget
    assert budget is not None, "what may be spent of it is known"
    whole = show_gpu_time(budget.gpu_ms, on_cpu=state.slot_catalog.is_on_cpu(request.lane))
    others = any(one.budget is not None for one in state.accounts.of(request.project).path if one is not at)
    named = f" --budget-of {shlex.quote(at.project.id)}" if others else ""  # another may leave less
    begins = (
        f"the next one begins in {show_duration(at.period_ends_ms - now_ms)}, and `%gpu request --budget HOURS{named}` "
        "asks for more of this one"
    )
    if not at.left(now_ms):
        return f"project {at.project.id!r} has used the {whole} of this {budget.period}; {begins}"
    left_ms = max(0, spendable) // shape.charged
    if left_ms < MINUTE_MS:
        whose = f"the {whole} of this {budget.period} in project {at.project.id!r}"
        return f"beside what runs less than a minute is left of {whose}; {begins}"
    left, asks = show_duration(left_ms), show_duration(request.walltime_ms)
    dearest = state.slot_catalog.dearest(shape)
    price = show_price(shape.charged, shape.cost, dearest) if dearest else ""
    verb = "are" if whole.endswith("s") else "is"
    return (
        f"the {whole} of this {budget.period} in project {at.project.id!r} {verb} enough for {left} of such a cell"
        f"{price} beside what runs, and yours may take {asks}: ask for less with --time; {begins}"
    )


def _back_off(state: State, request: Request) -> str:
    """Say that its project stands behind other borrowers, where that is so."""
    account, now_ms = state.accounts.of(request.project), state.accounts.now_ms
    if now_ms >= account.back_off_until_ms or state.is_covered(request):
        return ""
    wait = show_duration(account.back_off_until_ms - now_ms)
    return f"project {account.project.id!r} had to give back what it borrowed, and stands behind others for {wait}"


def _quota(state: State, request: Request) -> str:
    """How the project stands, where it is guaranteed something, and for whom that is kept."""
    account, cost = state.accounts.of(request.project), request.entry.shape.cost
    kept = max(account.kept_of_guarantee(request.entry, by_users=one) for one in (False, bool(account.children)))
    if not account.guaranteed or account.covers(cost + kept):
        return ""
    on_cpu = state.slot_catalog.is_on_cpu(request.lane)
    amount = _of(account.used, account.promised, on_cpu=on_cpu, word="guaranteed ")
    if account.guaranteed < account.promised:
        amount += f", of which the pool can keep {show_gpus(account.guaranteed, on_cpu=on_cpu)} for now"
    uses = f"project {account.project.id!r} uses {amount}"
    if not account.covers(cost):
        return uses
    return f"{uses}, and keeps what is left for a cell of it that asks for {show_gpus(kept, on_cpu=on_cpu)}"


def _credits(state: State, request: Request) -> str:
    """Say that whoever is next comes first by credits, where both borrow and are alike in all that counts more."""
    accounts = state.accounts
    first = next((state.pending[one] for one in standings(state, request.lane)), request)
    mine, others = parting(accounts.of(request.project), accounts.of(first.project))
    if not mine or not others:
        return ""
    trader, priority = _trader(state, mine[0])
    other, its_priority = _trader(state, others[0])
    is_borrowed = trader.surplus + request.entry.shape.cost > 0 and other.surplus + first.entry.shape.cost > 0
    is_alike = (request.entry.key[1:4], priority) == (first.entry.key[1:4], its_priority)
    if not is_borrowed or not is_alike or trader.standing >= other.standing:
        return ""
    hours = f"{trader.balance // (STEP // 10) / 100:.1f}".removesuffix(".0")
    word = f"{slot_word(on_cpu=request.lane == 'cpu')}-hour{'' if hours in ('1', '-1') else 's'}"
    return f"project {mine[0].account.project.id!r} has {hours} {word} of credits, and who has more comes first"


def _trader(state: State, branch: Branch) -> tuple[Trader, int]:
    """Who trades on that side, with the priority of the project."""
    if branch.is_members:
        return branch.account.members.at(state.accounts.now_ms), 0
    return branch.account.trader.at(state.accounts.now_ms), branch.account.project.priority


def _of(used: int, total: int, *, on_cpu: bool | None, word: str = "") -> str:
    amount, name = show_gpus(total, on_cpu=on_cpu).split(" ", 1)
    return f"{used / GPU_MILLI:g} of {amount} {word}{name}"


def _is_room_being_made(state: State, request: Request) -> bool:
    lane = request.lane
    if lane not in state.estimate_cache.expecting:
        with closing(decisions(state, lane)) as decided:
            state.estimate_cache.expecting[lane] = frozenset(one.id for one, found in decided if found is not None)
    return request.id in state.estimate_cache.expecting[lane]


def _starts(state: State, now_ms: int) -> Mapping[RequestId, Start]:
    if state.estimate_cache.starts is None:
        estimator = StartEstimator(state, now_ms)
        estimator.run(_MOST_STEPS)
        state.estimate_cache.starts = estimator.starts
    return state.estimate_cache.starts


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
