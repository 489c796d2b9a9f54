"""Pools to which anything may happen, as state machines for hypothesis; the referee looks on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import msgspec
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, UserName
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Pause, Reclaim, Refuse, Why
from gpu_worker.scheduler.journal import Told
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.credits import Credits
from tests.scheduler import saved
from tests.scheduler.bench import MINUTE, SETTINGS, Bench
from tests.scheduler.history_pools import (
    CPU_NODES,
    HOSTS,
    MIXED,
    NODES,
    PAYING,
    PROJECTS,
    WANTS,
    WITH_CLASS_HOURS,
    WITH_RESERVATIONS,
)


class Pool(RuleBasedStateMachine):
    """Kernels and agents that keep to the protocol; what is on its way may be late, lost with its link, or doubled."""

    nodes = NODES
    hosts: ClassVar[dict[str, tuple[int, int]]] = {}  # CPUs, and memory
    wants = WANTS[:1]
    settings = SETTINGS

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(self.settings)
        self.told: list[Told] = []
        self.tenants: dict[str, dict[LeaseId, ev.ReportedLease]] = {
            agent: {} for agent in self.nodes
        }  # what agents hold
        self.up: set[str] = set()
        self.asked: dict[LeaseId, None] = {}  # evictions on their way
        self.dying: dict[LeaseId, None] = {}  # ends on their way
        self.pausing: dict[LeaseId, None] = {}  # pauses on their way
        self.waiting: dict[str, ev.RequestSubmitted] = {}
        self.answered: list[ev.RequestSubmitted] = []  # granted, and the kernel may not know
        self.grants: dict[str, LeaseId] = {}
        self.number = 0

    def say(self, event: ev.Event) -> None:
        self.told.append(Told(self.bench.now_ms, event))
        with self.kept_if_it_fails():
            actions = self.bench.say(event)
        self.perform(actions)

    @contextmanager
    def kept_if_it_fails(self) -> Iterator[None]:
        """What failed is in a file, to be judged again. The last one written is the smallest."""
        try:
            yield
        except Exception as error:
            path = saved.write(saved.FAILED / f"{type(self).__name__}.jsonl", self.settings, self.told)
            error.add_note(f"The history is kept in {path}; in {saved.KEPT.name}/ it will be judged in every test run.")
            raise

    def perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Grant():
                    event = self.waiting.pop(action.request, None)
                    if event is not None:
                        self.answered = [event]
                        self.grants[action.request] = action.lease
                        self.tenants[action.agent][action.lease] = ev.ReportedLease(
                            action.lease, action.session, event.user, event.project, event.qos, action.slots, None,
                            action.walltime_ms, 0, cpus=event.cpus, memory_bytes=event.memory_bytes,
                        )  # fmt: skip
                case Refuse():
                    self.waiting.pop(action.request, None)
                case Evict():
                    self.asked[action.lease] = None
                case Pause():
                    self.pausing[action.lease] = None
                case Reclaim():
                    self.dying[action.lease] = None
                case EndLease() if action.why is not Why.NODE_LOST:
                    self.dying[action.lease] = None

    def held(self, lease: LeaseId) -> tuple[str, ev.ReportedLease] | None:
        return next(((agent, leases[lease]) for agent, leases in self.tenants.items() if lease in leases), None)

    def pick(self, data: st.DataObject, busy: bool) -> tuple[str, ev.ReportedLease] | None:
        """A lease of a connected agent."""
        found = [
            (a, h) for a in self.nodes if a in self.up for h in self.tenants[a].values() if (h.cell is not None) == busy
        ]
        return data.draw(st.sampled_from(found)) if found else None

    # Nodes

    @initialize(number=st.integers(0, 4))
    def some_agents_are_there_from_the_start(self, number: int) -> None:
        for agent in list(self.nodes)[:number]:
            self.an_agent_joins(agent, keeps=True, passed_ms=0)

    @rule(agent=st.sampled_from(sorted(NODES)), keeps=st.booleans(), passed_ms=st.integers(0, 40 * MINUTE))
    def an_agent_joins(self, agent: str, keeps: bool, passed_ms: int) -> None:
        if agent not in self.nodes:
            return
        if not keeps:
            self.tenants[agent] = {}
        self.up.add(agent)
        told = tuple(
            msgspec.structs.replace(h, running_ms=passed_ms if h.cell else 0) for h in self.tenants[agent].values()
        )
        self.say(ev.AgentJoined(AgentId(agent), agent, self.nodes[agent], told, *self.hosts.get(agent, (0, 0))))

    @rule(agent=st.sampled_from(sorted(NODES)), dies=st.booleans())
    def an_agent_is_lost(self, agent: str, dies: bool) -> None:
        if agent in self.nodes:
            self.up.discard(agent)
            if dies:
                self.tenants[agent] = {}
            self.say(ev.AgentLost(AgentId(agent)))

    @rule(agent=st.sampled_from(sorted(NODES)), is_drained=st.booleans())
    def a_node_is_drained(self, agent: str, is_drained: bool) -> None:
        if agent in self.nodes:
            self.say(ev.NodeDrained(AgentId(agent), is_drained))

    @rule(agent=st.sampled_from(sorted(NODES)), minutes=st.sampled_from((-1, 0, 1, 2, 20, 32, 60, 24 * 60)))
    def a_drain_is_planned(self, agent: str, minutes: int) -> None:
        if agent in self.nodes:
            self.say(ev.DrainPlanned(AgentId(agent), self.bench.now_ms + minutes * MINUTE))

    # Kernels

    @rule(
        session=st.integers(0, 5),
        gpus=st.sampled_from((1, 1, 1, 2, 4, 5, 0)),
        qos=st.sampled_from(("interactive", "interactive", "batch", "reserved", "nonsense")),
        project=st.sampled_from(PAYING),
        walltime_ms=st.sampled_from((None, MINUTE, 30 * MINUTE, 40 * MINUTE)),
        small=st.booleans(),
        wants=st.integers(0, len(WANTS) - 1),
    )
    def a_kernel_asks(
        self, session: int, gpus: int, qos: str, project: str, walltime_ms: int | None, small: bool, wants: int = 0
    ) -> None:
        self.number += 1
        event = ev.RequestSubmitted(
            f"r{self.number}", f"l{self.number}", f"s{session}", f"u{session % 4}", project, qos, 1 if small else gpus,
            walltime_ms, *self.wants[wants % len(self.wants)],
        )  # fmt: skip
        self.waiting[event.request] = event
        self.say(event)

    @rule(data=st.data())
    def a_kernel_says_it_twice(self, data: st.DataObject) -> None:
        self.number += 1
        said = [*self.waiting.values(), *self.answered]
        if said:
            self.say(msgspec.structs.replace(data.draw(st.sampled_from(said)), lease=LeaseId(f"l{self.number}")))

    @rule(data=st.data())
    def a_kernel_withdraws(self, data: st.DataObject) -> None:
        known = [*self.waiting, *self.grants]
        if known:
            request = data.draw(st.sampled_from(known))
            self.waiting.pop(request, None)
            self.say(ev.RequestWithdrawn(request))

    @rule(data=st.data())
    def a_kernel_goes_on_by_another_session(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from([*self.waiting, *self.grants, "nothing"]))
        self.number += 1
        moved = ev.RequestMoved(RequestId(request), RequestId(f"r{self.number}"), SessionId(f"n{self.number}"))
        if request in self.waiting:
            asked = self.waiting.pop(request)
            self.waiting[moved.to] = msgspec.structs.replace(asked, request=moved.to, session=moved.session)
        self.say(moved)

    # Cells

    @rule(data=st.data())
    def a_cell_starts(self, data: st.DataObject) -> None:
        found = self.pick(data, busy=False)
        if found:
            agent, lease = found
            self.number += 1
            cell = CellId(f"c{self.number}")
            self.tenants[agent][lease.lease] = msgspec.structs.replace(lease, cell=cell)
            self.answered = []
            self.say(ev.CellStarted(lease.lease, cell))

    @rule(data=st.data())
    def a_cell_ends(self, data: st.DataObject) -> None:
        found = self.pick(data, busy=True)
        if found:
            agent, lease = found
            assert lease.cell is not None
            self.tenants[agent][lease.lease] = msgspec.structs.replace(lease, cell=None)
            self.say(ev.CellEnded(lease.lease, lease.cell))

    @rule(data=st.data(), twice=st.booleans())
    def a_session_is_released_or_dies(self, data: st.DataObject, twice: bool) -> None:
        found = self.pick(data, busy=data.draw(st.booleans()))
        if found:
            agent, lease = found
            del self.tenants[agent][lease.lease]
            for _ in range(1 + twice):
                self.say(ev.LeaseEnded(lease.lease))

    @precondition(lambda self: self.asked or self.dying)
    @rule(data=st.data())
    def an_agent_obeys(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from([*self.asked, *self.dying]))
        must = lease in self.dying
        self.asked.pop(lease, None)
        self.dying.pop(lease, None)
        found = self.held(lease)
        if found is None:
            self.say(ev.LeaseEnded(lease))
        elif found[0] in self.up and (must or found[1].cell is None):
            del self.tenants[found[0]][lease]
            self.say(ev.LeaseEnded(lease))

    @precondition(lambda self: self.pausing)
    @rule(data=st.data(), can=st.booleans(), twice=st.booleans())
    def an_agent_is_asked_to_pause(self, data: st.DataObject, can: bool, twice: bool) -> None:
        lease = data.draw(st.sampled_from([*self.pausing]))
        if can:
            self.dying[lease] = None
        else:
            self.say(ev.PauseDeclined(lease))
        if can or not twice:
            self.pausing.pop(lease, None)

    # Admins

    @rule(data=st.data(), is_held=st.booleans(), is_by_admin=st.booleans())
    def a_request_is_held_or_released(self, data: st.DataObject, is_held: bool, is_by_admin: bool) -> None:
        request = RequestId(data.draw(st.sampled_from([*self.waiting, *self.grants, "nothing"])))
        self.say(ev.RequestHeld(request, "an exam", is_by_admin) if is_held else ev.RequestReleased(request))

    @rule(data=st.data())
    def a_request_is_put_first(self, data: st.DataObject) -> None:
        self.say(ev.RequestPutFirst(RequestId(data.draw(st.sampled_from([*self.waiting, *self.grants, "nothing"])))))

    @rule(data=st.data())
    def a_cell_is_to_run_again(self, data: st.DataObject) -> None:
        found = self.pick(data, busy=data.draw(st.booleans()))
        self.say(ev.CellRequeued(found[1].lease if found else LeaseId("nobody")))

    @rule(data=st.data(), ms=st.sampled_from((0, 1, MINUTE, 60 * MINUTE, 1 << 50)), is_other=st.booleans())
    def a_cell_is_given_more_time(self, data: st.DataObject, ms: int, is_other: bool) -> None:
        found = self.pick(data, busy=data.draw(st.booleans()))
        lease, cell = (found[1].lease, found[1].cell) if found else (LeaseId("nobody"), None)
        self.say(ev.CellExtended(lease, CellId("another") if is_other or cell is None else cell, ms))

    @rule(user=st.integers(0, 4), project=st.sampled_from(PAYING), minutes=st.sampled_from((-1, 0, 1, 20, 24 * 60)))
    def a_user_is_boosted(self, user: int, project: str, minutes: int) -> None:
        until_ms = self.bench.now_ms + minutes * MINUTE
        self.say(ev.UserBoosted(ProjectId(project), UserName(f"u{user}"), until_ms))

    @rule(
        user=st.integers(0, 4),
        project=st.sampled_from(PAYING),
        number=st.integers(0, 1),
        walltime_ms=st.sampled_from((0, 10 * MINUTE, 90 * MINUTE, 200 * MINUTE)),
        gpus=st.integers(0, 3),
        minutes=st.sampled_from((-1, 0, 1, 20, 24 * 60)),
    )
    def a_user_is_allowed_more(
        self, user: int, project: str, number: int, walltime_ms: int, gpus: int, minutes: int
    ) -> None:
        allowance = Allowance(self.bench.now_ms + minutes * MINUTE, walltime_ms, gpus)
        name = f"{project}/{user}/{number}"
        self.say(ev.AllowanceChanged(name, ProjectId(project), UserName(f"u{user}"), allowance))

    @rule(
        gone=st.sets(st.sampled_from([project.id for project in PROJECTS if project.parent is None])),
        guaranteed=st.sampled_from((0, 1000, 1500, 4000)),
        weight=st.integers(1, 3),
        walltime_ms=st.sampled_from((30 * MINUTE, 35 * MINUTE)),
        has_batch=st.booleans(),
    )
    def an_admin_changes_quotas(
        self, gone: set[ProjectId], guaranteed: int, weight: int, walltime_ms: int, has_batch: bool
    ) -> None:
        if not self.settings.projects:
            return
        inside = {one.id for one in self.settings.projects if one.parent in gone}
        projects = tuple(
            msgspec.structs.replace(one, guaranteed_milli=guaranteed, weight=weight) if one.id == "lab" else one
            for one in self.settings.projects
            if not gone & {one.id, one.parent} and one.parent not in inside
        )
        qos = tuple(
            msgspec.structs.replace(one, walltime_ms=walltime_ms) if one.name == "interactive" else one
            for one in SETTINGS.qos
            if has_batch or one.name != "batch"
        )
        self.say(ev.SettingsChanged(msgspec.structs.replace(self.settings, projects=projects, qos=qos)))

    @rule(user=st.integers(0, 3), project=st.sampled_from(PAYING), minutes=st.integers(0, 90))
    def something_used_comes_to_light(self, user: int, project: str, minutes: int) -> None:
        uses = (ev.PastUse(ProjectId(project), UserName(f"u{user}"), 1000 * minutes * MINUTE),)
        earned = ev.PastCredits(ProjectId(project), Credits(earned=minutes * MINUTE * user), own_users=user == 3)
        self.say(ev.UseRecalled(uses, {ProjectId(project): 500 * minutes * MINUTE}, (earned,)))

    @rule(user=st.integers(0, 3), project=st.sampled_from(PAYING), minutes=st.integers(0, 90))
    def something_used_is_refunded(self, user: int, project: str, minutes: int) -> None:
        uses = (ev.PastUse(ProjectId(project), UserName(f"u{user}"), 1000 * minutes * MINUTE),)
        self.say(ev.UseRefunded(uses, {ProjectId(project): 700 * minutes * MINUTE}))

    # Time, and noise

    @rule(ms=st.sampled_from((0, 1, 5_000, 10_000, MINUTE, 20 * MINUTE, 24 * 60 * MINUTE)))
    def time_passes(self, ms: int) -> None:
        self.bench.now_ms += ms
        self.say(ev.Tick())

    @rule()
    def the_deadline_comes(self) -> None:
        due_ms = self.bench.scheduler.deadline()
        if due_ms is not None:
            assert due_ms > self.bench.now_ms, "a deadline that has passed was not dealt with"
            self.bench.now_ms = due_ms
            self.say(ev.Tick())

    @rule(kind=st.sampled_from((ev.CellStarted, ev.CellEnded)))
    def news_of_nothing(self, kind: type) -> None:
        self.say(kind(LeaseId("nobody"), CellId("none")))
        self.say(ev.LeaseEnded(LeaseId("nobody")))
        self.say(ev.RequestWithdrawn("nothing"))

    def teardown(self) -> None:
        """The world calms down: everything that waits and fits is served, and the replay is exact."""
        self.finish()
        with self.kept_if_it_fails():
            self.bench.replay()

    def finish(self) -> None:
        for agent, offered in self.nodes.items():
            self.say(ev.NodeDrained(AgentId(agent), is_drained=False))
            if agent not in self.up:
                self.up.add(agent)
                self.tenants[agent] = {}
                self.say(ev.AgentJoined(AgentId(agent), agent, offered, (), *self.hosts.get(agent, (0, 0))))
        for request in list(self.waiting):
            self.say(ev.RequestReleased(RequestId(request)))
        for _ in range(200):
            if not self.waiting:
                break
            for agent in self.nodes:
                for lease in list(self.tenants[agent].values()):
                    if lease.cell is not None:
                        self.tenants[agent][lease.lease] = msgspec.structs.replace(lease, cell=None)
                        self.say(ev.CellEnded(lease.lease, lease.cell))
            while self.pausing:
                self.say(ev.PauseDeclined(self.pausing.popitem()[0]))
            while self.asked or self.dying:
                lease_id = next(iter([*self.asked, *self.dying]))
                self.asked.pop(lease_id, None)
                self.dying.pop(lease_id, None)
                found = self.held(lease_id)
                if found is not None:
                    del self.tenants[found[0]][lease_id]
                self.say(ev.LeaseEnded(lease_id))
            self.bench.now_ms = max(self.bench.now_ms, self.bench.scheduler.deadline() or 0)
            self.say(ev.Tick())
        with self.kept_if_it_fails():
            starved = [request for request in self.waiting if not self._is_shrunk_away(request)]
            assert not starved, f"starved: {starved}"

    def _is_shrunk_away(self, name: str) -> bool:
        """Whether it never borrows, and asks for more than its guarantee has shrunk to."""
        state = self.bench.scheduler.state
        request = state.pending[RequestId(name)]
        payer = state.accounts.of(request.project).payer
        return state.qos[request.qos].must_be_in_quota and payer.guaranteed < min(
            payer.promised, request.entry.shape.cost
        )


class ManyProjects(Pool):
    """The same with guarantees, limits, borrowing and a tree."""

    settings = msgspec.structs.replace(SETTINGS, projects=PROJECTS)


class Timetable(ManyProjects):
    """The same with class hours."""

    settings = msgspec.structs.replace(SETTINGS, projects=WITH_CLASS_HOURS)


class Booked(ManyProjects):
    """The same with reservations."""

    settings = msgspec.structs.replace(SETTINGS, projects=WITH_RESERVATIONS)


class MixedPool(ManyProjects):
    """The same with nodes that differ, and cells that ask for some of it."""

    nodes = MIXED
    hosts = HOSTS
    wants = WANTS


class CpuPool(ManyProjects):
    """The same without a GPU: CPU slots stand in, and are called so."""

    nodes = CPU_NODES


QUICK = settings(
    max_examples=60, stateful_step_count=50, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
