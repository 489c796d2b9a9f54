"""Plays a history: agents, kernels, a timer and a clock around the scheduler, and the referee who hears all of it."""

import heapq
from collections.abc import Callable

from bulletin.ids import AgentId, CellId, LeaseId, RequestId, SessionId
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.allowances import Allowance
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.actors import Agent, HeldLease, Kernel
from tests.scheduler.promises.hand_changes import changed_by_hand
from tests.scheduler.promises.judge import Judge


class Driver:
    """One play of one history. Times inside are of the history; the scheduler hears those of its clock."""

    def __init__(self, history: hi.History, judge: Judge) -> None:
        self.history, self.judge = history, judge
        self.scheduler = Scheduler(history.settings)
        self.now_ms = 0
        self.ahead_ms = history.begin_ms  #: of the clock
        self.agents: dict[AgentId, Agent] = {}
        self.kernels: dict[SessionId, Kernel] = {}
        self.steps = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._tick_at: int | None = None
        self._last_ms = -1

    def play(self) -> None:
        """Play all of it."""
        for at in self.history.happenings:
            self.later(at.ms, lambda what=at.what: self._happen(what))  # type: ignore[misc]
        while self._heap and self._heap[0][0] <= self.history.until_ms and not self.judge.is_done:
            self.now_ms, _, do = heapq.heappop(self._heap)
            do()
        if not self.judge.is_done:
            self.now_ms = self.history.until_ms
            self.tell(ev.Tick())

    def later(self, at_ms: int, do: Callable[[], None]) -> None:
        """Have something done at a time of the history."""
        self._number += 1
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), self._number, do))

    def draw(self, most: int, *names: object) -> int:
        """Draw a number from 0 to `most`, the same for the same names."""
        return self.history.draw(most, *names)

    # The scheduler

    def tell(self, event: ev.Event) -> None:
        """Tell the scheduler of a fact, the referee of both sides, and the others of what was decided."""
        if self.judge.is_done:
            return
        self.steps += 1
        self._last_ms = self.now_ms
        clock_ms = self.now_ms + self.ahead_ms
        is_later = self.draw(99, "noted", self.steps) < self.history.delays.noted_only_percent
        decides = isinstance(event, ev.Tick) or not is_later
        actions = self.scheduler.step(event, clock_ms, decides=decides)
        self.judge.see(event, actions, clock_ms, self.scheduler)
        for action in actions:
            self._perform(action)
        self._set_timer()

    def _set_timer(self) -> None:
        due = self.scheduler.deadline()
        self.judge.due_ms = due
        if due is None:
            return
        at_ms = due - self.ahead_ms + self.draw(self.history.delays.tick_ms, "tick", due)
        if self._tick_at is None or at_ms < self._tick_at or self._tick_at <= self.now_ms:
            self._tick_at = at_ms
            self.later(at_ms, lambda: self._ring(at_ms))

    def _ring(self, at_ms: int) -> None:
        if self._tick_at == at_ms:
            self._tick_at = None
            self.tell(ev.Tick())

    def _perform(self, action: act.Action) -> None:
        match action:
            case act.Grant():
                self._take_grant(action)
            case act.Refuse():
                kernel = self.kernels.get(_session_of(action.request))
                if kernel is not None and kernel.request is not None and kernel.request.request == action.request:
                    kernel.request = None
                    self._next_cell(kernel)
            case act.Evict() | act.Reclaim() | act.Pause() | act.EndLease():
                self._ask_agent(action)

    # Agents

    def _take_grant(self, grant: act.Grant) -> None:
        kernel = self.kernels[grant.session]
        agent = self.agents[grant.agent]
        if grant.lease in agent.held or kernel.request is None or kernel.request.request != grant.request:
            return
        kernel.request, kernel.lease = None, (grant.agent, grant.lease)
        agent.held[grant.lease] = held = HeldLease(grant, kernel.opened, self.now_ms)
        if self.draw(99, "stalled", grant.lease) >= self.history.delays.stalled_percent:
            delay = self.draw(self.history.delays.start_ms, "start", grant.lease)
            self.later(self.now_ms + delay, lambda: self._begin(kernel, held))

    def _begin(self, kernel: Kernel, held: HeldLease) -> None:
        agent = self.agents[held.grant.agent]
        is_busy = held.cell is not None and not held.is_idle
        if kernel.lease != (held.grant.agent, held.grant.lease) or held.is_leaving or is_busy:
            return
        if agent.held.get(held.grant.lease) is not held:
            return
        plan = kernel.opened.cells[kernel.index]
        before, held.is_idle = held.cell, False
        held.cell = cell = CellId(f"{kernel.opened.session}/{kernel.index}/{kernel.tries}")
        held.began_ms, held.has_begun = self.now_ms, True
        held.more_ms = held.more_ms if held.opened.keep_ms else 0
        self.later(self._end_ms(held, plan), lambda: self._end_in_time(kernel, held, cell, plan))
        self._say(agent, ev.CellStarted(held.grant.lease, cell))
        if before is not None:
            self._say(agent, ev.CellEnded(held.grant.lease, before))

    @staticmethod
    def _end_ms(held: HeldLease, plan: hi.CellPlan) -> int:
        longest_ms = held.over_ms - held.began_ms if held.opened.keep_ms else held.grant.walltime_ms + held.more_ms
        return held.began_ms + min(plan.run_ms, max(1, longest_ms))

    def _end_in_time(self, kernel: Kernel, held: HeldLease, cell: CellId, plan: hi.CellPlan) -> None:
        end_ms = self._end_ms(held, plan)
        if held.cell == cell and self.now_ms < end_ms:  # it was given more time meanwhile
            self.later(end_ms, lambda: self._end_in_time(kernel, held, cell, plan))
        else:
            self._end(kernel, held, cell)

    def _end(self, kernel: Kernel, held: HeldLease, cell: CellId) -> None:
        agent = self.agents[held.grant.agent]
        if held.cell != cell or agent.held.get(held.grant.lease) is not held:
            return
        held.cell = None
        is_over = held.opened.keep_ms > 0 and self.now_ms >= held.over_ms
        if held.opened.keep_ms and not is_over and not held.is_leaving:
            self._keep(held, cell)
        self._say(agent, ev.CellEnded(held.grant.lease, cell))
        if kernel.lease == (held.grant.agent, held.grant.lease):
            self._next_cell(kernel)
        if held.is_leaving or is_over:
            self._leave(held, "ended")

    def _keep(self, held: HeldLease, before: CellId) -> None:
        """Keep a place until the next cell, or until it is given up: to the pool that time is a cell, too."""
        held.cell, held.is_idle, held.began_ms = CellId(f"{before}/kept"), True, self.now_ms
        kept, most_ms = held.cell, self.now_ms + held.opened.keep_ms

        def give_up() -> None:
            until_ms = min(held.over_ms, most_ms)
            if held.cell != kept or held.is_leaving:
                return
            if self.now_ms < until_ms:  # it was given more time meanwhile
                self.later(until_ms, give_up)
            else:
                self._leave(held, "kept")

        self.later(min(held.over_ms, most_ms), give_up)
        self._say(self.agents[held.grant.agent], ev.CellStarted(held.grant.lease, kept))

    def _say(self, agent: Agent, event: ev.Event) -> None:
        if agent.is_heard:
            self.tell(event)

    def _ask_agent(self, action: act.Evict | act.Reclaim | act.Pause | act.EndLease) -> None:
        if isinstance(action, act.EndLease):
            self._lose(action)
        found = [
            (agent, held) for agent in self.agents.values() for name, held in agent.held.items() if name == action.lease
        ]
        if not found:  # whoever does not know it says so
            name = self.judge.agent_of(action.lease)
            known = self.agents.get(name) if name else None
            if known is not None and known.is_heard:
                self.later(self.now_ms + 1, lambda: self._say(known, ev.LeaseEnded(action.lease)))
            return
        agent, held = found[0]
        if not agent.is_heard:
            return
        match action:
            case act.Evict():
                if held.cell is not None:
                    running = self.now_ms - held.began_ms
                    event = ev.CellStarted(action.lease, held.cell, running)
                    self.later(self.now_ms + 1, lambda: self._say(agent, event) if held.cell == event.cell else None)
                elif not held.is_leaving:
                    self._leave(held, "evicted")
            case act.Reclaim() if not held.is_leaving:
                self._reclaim(agent, held, action.grace_ms)
            case act.Pause() if not held.is_leaving:
                if self.draw(99, "pause lost", action.lease) >= self.history.delays.lost_percent:
                    self.later(self.now_ms + 1, lambda: self._say(agent, ev.PauseDeclined(action.lease)))
            case act.EndLease() if not held.is_leaving or (held.cell is not None and not held.is_idle):  # no grace
                held.cell = None
                self._leave(held, "ended")
            case _:
                pass

    def _reclaim(self, agent: Agent, held: HeldLease, grace_ms: int) -> None:
        held.is_leaving = True
        if held.cell is None or held.is_idle:
            self._leave(held, "reclaimed")
            return
        if self.draw(99, "early", held.grant.lease) < self.history.delays.early_percent:
            grace_ms = self.draw(grace_ms, "grace", held.grant.lease)
        cell = held.cell

        def kill() -> None:
            if held.cell == cell:
                held.cell = None
                self._leave(held, "reclaimed")

        self.later(self.now_ms + grace_ms, kill)

    def _leave(self, held: HeldLease, how: str) -> None:
        """Free the slots after a while. The answer may be lost; who is asked again says so then."""
        held.is_leaving = True
        agent = self.agents[held.grant.agent]
        lease = held.grant.lease

        def free() -> None:
            if agent.held.get(lease) is not held:
                return
            del agent.held[lease]
            if held.is_idle and held.cell is not None:  # its process is gone: that time is over
                self._say(agent, ev.CellEnded(lease, held.cell))
            if self.draw(99, "lost", lease) >= self.history.delays.lost_percent:
                self._say(agent, ev.LeaseEnded(lease))
            kernel = self.kernels[held.opened.session]
            if kernel.lease == (held.grant.agent, lease):
                kernel.lease = None
                if (how == "reclaimed" and not held.is_idle) or (how == "evicted" and not held.has_begun):
                    self._ask_after(kernel, "again")

        self.later(self.now_ms + self.draw(self.history.delays.evict_ms, how, lease), free)

    def _lose(self, action: act.EndLease) -> None:
        """Tell a kernel that its lease is over: it asks again for the cell that was lost."""
        for kernel in self.kernels.values():
            if kernel.lease is not None and kernel.lease[1] == action.lease:
                agent = self.agents[kernel.lease[0]]
                held = agent.held.get(action.lease)
                kernel.lease = None
                if held is None or (held.cell is not None and not held.is_idle) or not held.has_begun:
                    self._ask_after(kernel, "lost")

    # Kernels

    def _ask_after(self, kernel: Kernel, why: str) -> None:
        kernel.tries += 1
        tries = kernel.tries
        delay = self.draw(self.history.delays.ask_again_ms, why, kernel.opened.session, tries)

        def ask() -> None:
            if kernel.tries == tries and kernel.request is None and not kernel.is_done:
                self._want(kernel)

        self.later(self.now_ms + delay, ask)

    def _next_cell(self, kernel: Kernel) -> None:
        kernel.index += 1
        kernel.tries = 0
        index = kernel.index
        if index >= len(kernel.opened.cells):
            kernel.is_done = True
            if kernel.opened.closes_ms is not None:
                self.later(self.now_ms + kernel.opened.closes_ms, lambda: self._close(kernel))
            return
        at_ms = self.now_ms + kernel.opened.cells[index].think_ms
        self.later(at_ms, lambda: self._want(kernel) if kernel.index == index and kernel.tries == 0 else None)

    def _close(self, kernel: Kernel) -> None:
        if kernel.lease is not None:
            agent = self.agents[kernel.lease[0]]
            held = agent.held.get(kernel.lease[1])
            if held is not None and (held.cell is None or held.is_idle) and not held.is_leaving:
                self._leave(held, "closed")

    def _want(self, kernel: Kernel) -> None:
        """Run the present cell: on the session's GPU if it is still hot, else ask for one."""
        if kernel.is_done or kernel.request is not None:
            return
        if kernel.lease is not None:
            agent = self.agents[kernel.lease[0]]
            held = agent.held.get(kernel.lease[1])
            if held is not None and not held.is_leaving:
                self._begin(kernel, held)
                return
            kernel.lease = None
        at = kernel.opened
        name = f"{at.session}/{kernel.index}/{kernel.tries}"
        kernel.request = request = ev.RequestSubmitted(
            RequestId(f"{name}/r"), LeaseId(f"{name}/l"), at.session, at.user, at.project, at.qos, at.gpus,
            at.walltime_ms, at.gpu_type, at.gpu_memory_bytes, at.cpus, at.memory_bytes, at.keep_ms > 0, at.is_exclusive,
        )  # fmt: skip
        if at.patience_ms is not None:
            self.later(self.now_ms + at.patience_ms, lambda: self._give_up(kernel, request))
        self.tell(request)

    def _give_up(self, kernel: Kernel, request: ev.RequestSubmitted | None) -> None:
        if request is not None and kernel.request is request:
            kernel.request = None
            self.tell(ev.RequestWithdrawn(request.request))
            self._next_cell(kernel)

    # What happens

    def _happen(self, what: hi.Happening) -> None:
        match what:
            case hi.Opens():
                kernel = self.kernels[what.session] = Kernel(what)
                self.later(self.now_ms + what.cells[0].think_ms, lambda: self._want(kernel))
            case hi.Joins():
                self.agents[what.agent] = Agent(what)
                has = what.slots, (), what.cpus, what.memory_bytes
                self.tell(ev.AgentJoined(what.agent, what.agent, *has, owner=what.owner))
            case hi.GoesSilent():
                agent = self.agents.get(what.agent)
                if agent is not None and agent.is_heard:
                    agent.is_heard = False
                    self.tell(ev.AgentLost(what.agent))
            case hi.Returns():
                self._return(what.agent)
            case hi.Drains():
                self.tell(ev.NodeDrained(what.agent, what.is_drained))
            case hi.Changes():
                self.tell(ev.SettingsChanged(what.settings))
            case hi.ClockJumps():
                self.ahead_ms += what.by_ms
                self.judge.is_told_of_jump = True
                self.tell(ev.Tick())
            case hi.AsksAgain():
                known = self.kernels.get(what.session)
                if known is not None and known.request is not None:
                    self.tell(known.request)
            case hi.GivesUp():
                known = self.kernels.get(what.session)
                if known is not None:
                    self._give_up(known, known.request)
            case hi.PlansDrain():
                self.tell(ev.DrainPlanned(what.agent, self.now_ms + self.ahead_ms + what.in_ms))
            case hi.Allows():
                until_ms = self.now_ms + self.ahead_ms + what.for_ms
                terms = Allowance(until_ms, what.walltime_ms, what.gpus, is_exclusive=what.is_exclusive)
                self.tell(ev.AllowanceChanged(what.name, what.project, what.user, terms))
            case hi.ByHand():
                self._change_by_hand(what)
            case hi.TicksEarly():
                self.judge.is_told_early = self.now_ms > self._last_ms
                self.tell(ev.Tick())

    def _change_by_hand(self, what: hi.ByHand) -> None:
        kernel = self.kernels.get(what.session)
        if kernel is None:
            return
        held = None if kernel.lease is None else self.agents[kernel.lease[0]].held.get(kernel.lease[1])
        event = changed_by_hand(what, kernel, held, self.now_ms, self.now_ms + self.ahead_ms)
        if event is not None:
            self.tell(event)
        if isinstance(event, ev.CellExtended) and held is not None:
            known = self.scheduler.state.leases.get(event.lease)
            held.more_ms = held.more_ms if known is None else known.more_ms

    def _return(self, name: AgentId) -> None:
        agent = self.agents.get(name)
        if agent is None:
            return
        agent.is_heard = True
        held = tuple(
            ev.ReportedLease(
                lease, at.opened.session, at.opened.user, at.opened.project, at.opened.qos, at.grant.slots, at.cell,
                at.grant.walltime_ms, self.now_ms - at.began_ms if at.cell else 0, self.now_ms - at.granted_ms,
                at.opened.cpus, at.opened.memory_bytes, more_ms=at.more_ms if at.cell else 0,
                is_kept=at.opened.keep_ms > 0, is_exclusive=at.opened.is_exclusive,
            )
            for lease, at in agent.held.items()
        )  # fmt: skip
        joined = agent.joined
        self.tell(ev.AgentJoined(name, name, joined.slots, held, joined.cpus, joined.memory_bytes))


def _session_of(request: RequestId) -> SessionId:
    return SessionId(request.split("/")[0])
