"""The scheduler: `step(event, now_ms)` takes in one fact and says what to do; `deadline()` says when to look again."""

from bulletin.ids import CellId, LeaseId, ProjectId, RequestId, UserName
from gpu_worker.scheduler import departures
from gpu_worker.scheduler.accounts.new_budgets import count_running
from gpu_worker.scheduler.actions import Action, EndLease, Reason, Refuse, Replaced, UnknownQoS, Why
from gpu_worker.scheduler.admission.awaiting import await_nodes, pop_awaited
from gpu_worker.scheduler.admission.cell_rules import longest_walltime_ms, walltime_of
from gpu_worker.scheduler.admission.late_limits import leave_to_late
from gpu_worker.scheduler.admission.moved_requests import move_request
from gpu_worker.scheduler.admission.outdated_sessions import evict_outdated
from gpu_worker.scheduler.admission.own_places import settle
from gpu_worker.scheduler.admission.refusals import hopeless, outdated, refusal
from gpu_worker.scheduler.admission.rejoin import rejoin
from gpu_worker.scheduler.admission.reserved_places import place_anew, placed
from gpu_worker.scheduler.deferral import A_LOOK_FOR, LATEST_MS, MANY, can_wait, goal_after, has_prospects
from gpu_worker.scheduler.events import (
    AgentJoined,
    AgentLost,
    AllowanceChanged,
    CellEnded,
    CellStarted,
    Event,
    LeaseEnded,
    NodeDrained,
    NodesAwaited,
    OwnNodesAwaited,
    PauseDeclined,
    RequestMoved,
    RequestSubmitted,
    RequestWithdrawn,
    SettingsChanged,
    Tick,
    UseRecalled,
    UseRefunded,
)
from gpu_worker.scheduler.interventions import drain_due, end_boosts, intervene, note_drains
from gpu_worker.scheduler.leases.leases import Request
from gpu_worker.scheduler.leases.life import Phase, RequestStatus
from gpu_worker.scheduler.leases.reclaimed_ages import Age
from gpu_worker.scheduler.leases.shapes import DUE_TO_MS, QueueEntry, QueueKey
from gpu_worker.scheduler.pass_goals import Goal
from gpu_worker.scheduler.policy.projects import SchedulerSettings
from gpu_worker.scheduler.queue.patience import next_late
from gpu_worker.scheduler.scheduling_pass import SchedulingPass, grant
from gpu_worker.scheduler.state import State
from gpu_worker.scheduler.wakeups import share_interval_ms

#: Facts after which nobody is refused for what is over in the same moment: they withdraw, or were granted it again.
_SPARES_WHO_WAITS = (RequestWithdrawn, AllowanceChanged)


class Scheduler:
    """Sessions stay hot until somebody else waits for their slots.

    The same events at the same times give the same actions. Late, repeated and unknown news is normal and never an
    error. The caller performs the actions in their order, and sends a `Tick` at `deadline()`.
    """

    def __init__(self, settings: SchedulerSettings | None = None, *, many: int = MANY) -> None:
        """Begin without nodes. Where `many` requests or more were looked at, what can wait a little does.

        So it does where `A_LOOK_FOR` times as many wait.
        """
        self._many = many
        self.settings = settings or SchedulerSettings()
        self.state = State(self.settings)
        self._now_ms = 0
        self._turns = 0  #: how often guarantees had changed before this step
        self._decide_by_ms: int | None = None  #: something was only noted, which is to be decided upon by then
        self._goals: list[Goal] = []  #: what of that is to be decided at once
        self._looked_at: set[RequestId] = set()  #: when it was decided upon last
        self._due_cache: tuple[int | None] | None = None  #: when time alone may change something

    def step(self, event: Event, now_ms: int, *, decides: bool = True) -> list[Action]:
        """Note one fact, and say what to do. `now_ms` counts from 1970, UTC, by a clock that does not run backwards.

        Without `decides` who starts, and who makes room for whom, is decided in a later step, which is due at once:
        deciding once for many facts costs no more than for one. So it is, within half a second, after facts that can
        wait (`deferral`).
        """
        due_ms, told_ms = self.deadline(), self.state.wakeups.next_ms
        self._now_ms = self.state.accounts.now_ms = max(self._now_ms, now_ms)
        is_overdue = self._decide_by_ms is not None and self._decide_by_ms <= self._now_ms
        is_due = is_overdue or (due_ms is not None and due_ms <= self._now_ms)
        is_long = not is_overdue and self._is_long()
        waits = (is_long or not is_due) and can_wait(self.state, event, self._looked_at, is_long=is_long)
        goal = goal_after(self.state, event, self._many) if is_long else None
        if self.state.accounts.began_ms is None:
            self.state.accounts.began_ms = self._now_ms
        self.state.begin_step(self._now_ms)
        end_boosts(self.state)
        drain_due(self.state)
        is_first = isinstance(event, _SPARES_WHO_WAITS)
        actions = self._note(event) if is_first else []
        actions += self._turn_hours() + self._end_allowances()
        actions += [] if is_first else self._note(event)
        actions += self._end_awaiting()
        actions += departures.overdue(self.state)
        turns = self.state.accounts.turns
        actions += evict_outdated(self.state, self.state.touched)
        actions += departures.unwanted(self.state, is_turned=turns != self._turns)
        if turns != self._turns:
            self._turns, waits, goal = turns, False, None
        actions += [self._refuse(request, reason) for request, reason in settle(self.state)]
        actions += self._promote()
        waits = waits and self._can_wait(event, actions, is_long=is_long)
        self._goals += [] if waits or goal is None else [goal]
        is_complete = not waits and goal is None
        if decides and is_complete:
            actions += self._decide_all()
        elif decides and self._goals:
            actions += self._decide_goals()
        elif is_due or not waits or not isinstance(event, Tick):
            self._note_undecided(self._now_ms + (0 if is_complete else LATEST_MS))
        if told_ms is not None and not (decides and is_complete):
            self.state.wakeups.note(told_ms)
        actions += departures.too_much(self.state, self.state.touched)
        self.state.follow_coverage()
        note_drains(self.state)
        every_ms = share_interval_ms(self.settings.share_every_ms, len(self.state.pending))
        self.state.wakeups.end(self._now_ms, every_ms)
        if is_due or not waits or actions:
            self._due_cache = None
        return actions

    def deadline(self) -> int | None:
        """When the next Tick is due, in the time of `step`; None is never. A tick early, late or twice is harmless."""
        if self._due_cache is None:
            self._due_cache = (self._next_change_ms(),)
        times = (*self._due_cache, self.state.wakeups.next_ms, self.state.patience.next_ms)
        due = [at_ms for at_ms in times if at_ms is not None and at_ms > self._now_ms]
        if self._goals:
            due.append(self._now_ms + 1)
        if self._decide_by_ms is not None:
            due.append(max(self._decide_by_ms, self._now_ms + 1))
        return min(due, default=None)

    def _next_change_ms(self) -> int | None:
        """When time alone changes something next."""
        state = self.state
        changes = [*state.accounts.next_changes_ms(), state.boosts.next_ms, state.planned_drains.next_ms]
        changes += [state.accounts.turns_ms, state.accounts.allowances.next_ms, *state.alarms.values()]
        changes += [state.slot_catalog.awaited.until_ms, state.own_nodes.next_ms]
        return min((at_ms for at_ms in changes if at_ms is not None and at_ms > self._now_ms), default=None)

    def _can_wait(self, event: Event, actions: list[Action], *, is_long: bool) -> bool:
        """Whether a fact that was noted, with these actions, changes nothing that is to be decided upon at once."""
        if actions and not is_long:
            return isinstance(event, RequestSubmitted) and all(
                isinstance(one, Refuse) and one.request == event.request for one in actions
            )
        if not isinstance(event, RequestSubmitted) or event.request not in self.state.pending:
            return True
        return not has_prospects(self.state, self.state.pending[event.request])

    def _decide_all(self) -> list[Action]:
        """Decide for all in line; in a long one what follows from that is decided in the next step, which is due."""
        self._decide_by_ms, self._goals = None, []
        run = SchedulingPass(self.state, self._looked_at, self._now_ms)
        while not run.complete():
            if self._is_long():
                self._note_undecided(self._now_ms)
                break
        return run.actions

    def _decide_goals(self) -> list[Action]:
        """Decide what cannot wait, and the rest soon."""
        goals, self._goals = self._goals, []
        run = SchedulingPass(self.state, self._looked_at, self._now_ms)
        run.until(goals)
        self._note_undecided(self._now_ms + LATEST_MS)
        return run.actions

    def _is_long(self) -> bool:
        """Whether it takes long to decide for all in line: because of those who were looked at, or of all who wait."""
        return len(self._looked_at) >= self._many or len(self.state.pending) >= self._many * A_LOOK_FOR

    def _note_undecided(self, by_ms: int) -> None:
        self._decide_by_ms = by_ms if self._decide_by_ms is None else min(by_ms, self._decide_by_ms)

    # What happened

    def _turn_hours(self) -> list[Action]:
        """Class hours and reservations begin and end; what waited for some that never come again is refused."""
        state = self.state
        if state.accounts.turns_ms is None or self._now_ms < state.accounts.turns_ms:
            return []
        state.accounts.turn()
        place_anew(state)
        return self._refuse_hopeless()

    def _end_allowances(self) -> list[Action]:
        """Refuse what waits and could run by an allowance alone that is over. What runs goes on."""
        return [
            action
            for owner in self.state.accounts.allowances.pop_over(self._now_ms)
            for action in self._change_limits(*owner)
        ]

    def _change_limits(self, project: ProjectId, user: UserName) -> list[Action]:
        """Take in that a user may have other than before, and refuse what waits of theirs and can never run now."""
        state = self.state
        for place in (project, *(at.project.id for at in state.accounts.reserved_for(project, user))):
            state.queue.change_limit(place, user)
        for lease in state.leases.values():
            if (lease.home, lease.user) == (project, user):
                state.touched[lease.id] = None  # one that is hot may be too much now
        is_other = state.accounts.of(project).grant_budget(state.accounts.allowances.budget_ms(project))
        mine = [one for one in state.pending.values() if is_other or (one.home, one.user) == (project, user)]
        reasons = [(request, outdated(state, request)) for request in mine]
        return [self._refuse(request, reason) for request, reason in reasons if reason is not None]

    def _note(self, event: Event) -> list[Action]:
        match event:
            case AllowanceChanged():
                owner = event.project, event.user
                self.state.accounts.allowances.set(*owner, event.name, event.allowance, self._now_ms)
                return self._change_limits(*owner)
            case AgentJoined():
                return self._join(event)
            case AgentLost():
                if event.agent not in self.state.nodes:
                    return []
                for name in self.state.nodes[event.agent].leases:
                    departures.remember_shares(self.state, self.state.leases[name])
                return [EndLease(lease.id, Why.NODE_LOST) for lease in self.state.part(event.agent)]
            case NodesAwaited() | OwnNodesAwaited():
                await_nodes(self.state, event)
            case NodeDrained():
                self.state.drain(event.agent, is_drained=event.is_drained)
            case RequestSubmitted():
                return self._submit(placed(self.state, event), event.project)
            case RequestWithdrawn():
                return self._withdraw(event)
            case RequestMoved():
                move_request(self.state, event)
            case CellStarted():
                self._cell_started(event)
            case CellEnded():
                return self._cell_ended(event.lease, event.cell)
            case LeaseEnded():
                if event.lease in self.state.leases:
                    self.state.end(self.state.leases[event.lease])
            case PauseDeclined():
                return departures.decline_pause(self.state, event.lease)
            case SettingsChanged():
                return self._change_settings(event.settings)
            case UseRecalled():
                for use in event.uses:
                    self.state.accounts.remember(use.project, use.user, use.amount)
                for project, amount in event.spent.items():
                    self.state.accounts.of(project).spend(amount, self._now_ms)
                for past in event.credits:
                    self.state.accounts.recall_credits(past.project, past.credits, own_users=past.own_users)
            case UseRefunded():
                for use in event.uses:
                    self.state.accounts.forget(use.project, use.user, use.amount)
                for project, amount in event.spent.items():
                    self.state.accounts.of(project).spend(-amount, self._now_ms)
            case Tick():
                pass
            case _:
                return intervene(self.state, event)
        return []

    def _submit(self, event: RequestSubmitted, home: ProjectId) -> list[Action]:
        state = self.state
        if event.request in state.pending:
            return []
        for lease in [state.leases[lease] for lease in state.leases_of.get(event.session, ())]:
            if lease.request == event.request:  # said twice: it was granted, and perhaps the grant was lost on its way
                return [grant(event.request, lease)] if lease.phase is Phase.GRANTED else []
        reason = refusal(state, event)
        if reason is not None:
            return [Refuse(event.request, reason)]
        earlier = state.pending.get(state.asking.get(event.session, RequestId("")))
        actions: list[Action] = [] if earlier is None else [self._refuse(earlier, Replaced(event.request))]
        qos = state.qos[event.qos]
        walltime_ms = walltime_of(state.accounts, event)
        shape = state.slot_catalog.shape_asked(event, qos, walltime_ms)
        wanted = departures.as_asked_again(event.user, home, shape.qos, shape.need, shape.wants)
        age = state.reclaimed_ages.take(event.session, wanted, self._now_ms)
        if age is None:
            aside = sum(1 for one in state.on_hold if state.pending[one].is_of(event.project, event.user))
            due_ms = state.queue.due_ms(event.project, event.user, self.settings.apart_ms, aside)
            shared = state.reclaimed_ages.take_shares(event.session, wanted, self._now_ms)
            age = Age(due_ms // DUE_TO_MS, state.next_seq(), shared)
        key = QueueKey(0, True, 0, -qos.priority, age.due, walltime_ms, age.seq)
        request = Request(
            id=event.request,
            lease=event.lease,
            session=event.session,
            user=event.user,
            project=event.project,
            home=home,
            qos=event.qos,
            gpus=event.gpus,
            gpu_type=event.gpu_type,
            walltime_ms=walltime_ms,
            is_walltime_asked=event.walltime_ms is not None,
            lane=shape.lane,
            entry=QueueEntry(event.request, event.user, key, shape),
            since_ms=self._now_ms,
            shared=age.shared,
            is_kept=event.is_kept,
        )
        state.submit(request)
        return actions

    def _change_settings(self, settings: SchedulerSettings) -> list[Action]:
        """Take new settings in, and refuse what waits and can never run with them."""
        state, actions = self.state, list[Action]()
        known = {qos.name: qos for qos in settings.qos}
        for request in list(state.pending.values()):
            if request.qos not in known:
                actions.append(self._refuse(request, UnknownQoS(request.qos, tuple(known))))
        self.settings, before = settings, state.accounts
        state.change_settings(settings)
        count_running(before, state.accounts, state.leases.values())
        for request in list(state.pending.values()):
            if not request.is_walltime_asked:
                request.walltime_ms = longest_walltime_ms(state.accounts, request.project, known[request.qos])
            state.reshape(request)
            reason = outdated(state, request)
            if reason is not None:
                actions.append(self._refuse(request, reason))
        return actions

    def _refuse(self, request: Request, reason: Reason) -> Refuse:
        self.state.drop(request, RequestStatus.REFUSED)
        is_gone = request.lane == "own" and not self.state.own_nodes.of(request.user)
        return Refuse(request.id, reason, had_own_node=is_gone)

    def _withdraw(self, event: RequestWithdrawn) -> list[Action]:
        state = self.state
        if event.request in state.pending:
            state.drop(state.pending[event.request], RequestStatus.WITHDRAWN)
        elif event.request in state.granted:  # they crossed; nobody will start a cell there
            return [departures.evict(state, state.leases[state.granted[event.request]])]
        return []

    def _cell_started(self, event: CellStarted) -> None:
        lease = self.state.leases.get(event.lease)
        if lease is None or lease.phase in {Phase.ENDING, Phase.RECLAIMING} or lease.cell == event.cell:
            return
        began_ms = max(lease.since_ms, self._now_ms - event.running_ms)
        if lease.phase is Phase.BUSY and not lease.is_kept:  # the end of the cell before it was lost
            self.state.move(lease, Phase.HOT, self._now_ms)
            lease.age = None
        if lease.is_kept and lease.kept_since_ms is None:
            lease.kept_since_ms = began_ms
        if lease.age is None:  # a hot session's own
            lease.age = Age(self._now_ms // DUE_TO_MS, self.state.next_seq())
        self.state.move(lease, Phase.BUSY, began_ms, event.cell)

    def _cell_ended(self, lease_id: LeaseId, cell: CellId) -> list[Action]:
        lease = self.state.leases.get(lease_id)
        if lease is None:
            return []
        if lease.phase is Phase.GRANTED:  # the start of the cell was lost
            self.state.move(lease, Phase.BUSY, self._now_ms, cell)
        if lease.cell == cell:
            lease.age = None
            self.state.reclaimed_ages.drop(lease.session)
        if lease.phase is Phase.BUSY and lease.cell == cell:
            self.state.move(lease, Phase.HOT, self._now_ms)
        elif lease.phase is Phase.RECLAIMING and lease.cell == cell:  # it was done in time
            evict = departures.evict(self.state, lease)
            return [evict] if lease.is_pausing else []  # only who was asked to give back frees the slots by itself
        return []

    def _join(self, event: AgentJoined) -> list[Action]:
        """Believe an agent's report; where it shows something new, refuse what waits and could run nowhere."""
        known = self.state.slot_catalog.offer_count
        actions = rejoin(self.state, event, self._now_ms)
        is_new = self.state.slot_catalog.offer_count > known
        return actions + (self._refuse_hopeless() if is_new else [])  # submitted while no node was known

    def _end_awaiting(self) -> list[Action]:
        """Refuse what could run nowhere, once all nodes are back that were awaited, or are awaited no longer."""
        return self._refuse_hopeless() if pop_awaited(self.state, self._now_ms) else []

    def _refuse_hopeless(self) -> list[Action]:
        return [self._refuse(request, reason) for request, reason in hopeless(self.state)]

    # What follows from the facts

    def _promote(self) -> list[Action]:
        """Let those stand first who have waited for their patience."""
        state, owners = self.state, list(self.state.patience.pop_due(self._now_ms))
        for owner in owners:
            while (found := next_late(state.accounts, state.pending, owner)) and found[0] <= self._now_ms:
                state.promote(state.pending[found[1].id])  # of those for the own node, all
            state.patience.watch(state.accounts, state.pending, owner)
        return leave_to_late(state, [project for project, _ in owners if project in state.accounts.by_id])
