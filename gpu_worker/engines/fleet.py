"""How many agents there should be: who waits, what starts, what is idle and a time in; start, drain, stop out."""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

import msgspec

from bulletin.units import MINUTE_MS
from bulletin.wire.messages.engine_broker import NodeLoad, RoomNeeded
from gpu_worker.engine_settings import ScalingSettings
from gpu_worker.engines.agent_jobs import JobState, JobStatus

#: After a start that came to nothing the next one waits for so long: at first, and at last.
_FIRST_BACK_OFF_MS, _LONGEST_BACK_OFF_MS = 5_000, 300_000
#: An agent that the broker knows no more is given up after so long: one that was started again hears it before.
_LOST_MS = 30_000
#: A job that waits is not taken back before: who asks and withdraws all the time has one, and not one each time.
_LEAST_ASKED_MS = 30_000
#: What was not heard is said again after so long.
_AGAIN_MS = 10_000
_MISSING = JobState(JobStatus.UNKNOWN)
_NOT_COME = "did not come to the pool's broker in time"


class Stage(Enum):
    """How far an agent is."""

    STARTING = "starting"
    THERE = "there"
    LEAVING = "leaving"  #: it is given nothing more, and is ended when it has nothing any more


class FleetAgent(msgspec.Struct):
    """An agent that the engine has started."""

    node: str
    job: str
    started_ms: int
    stage: Stage = Stage.STARTING
    running_since_ms: int | None = None  #: when its job was first seen to run
    #: Since when the broker does not know it, though it did, or an earlier engine says so.
    missing_since_ms: int | None = None
    idle_since_ms: int | None = None  #: since when it has no cell
    stopped_ms: int | None = None  #: when its end was asked for last


class StartAgents(msgspec.Struct, frozen=True):
    """Start so many agents."""

    count: int


class DrainNode(msgspec.Struct, frozen=True):
    """Let the broker give the node nothing more: it is to end."""

    node: str


class StopAgent(msgspec.Struct, frozen=True):
    """End the agent: it has nothing any more, or never came. Said again until its job is over."""

    node: str


class ForgetNode(msgspec.Struct, frozen=True):
    """The agent is gone for certain: take its registration back. Who had a cell there is told why."""

    node: str
    why: str  #: a clause; empty where nobody knows


Action = StartAgents | DrainNode | StopAgent | ForgetNode


class Fleet:
    """The agents of one engine. Whoever starts one adds it; what is forgotten is gone."""

    def __init__(self, settings: ScalingSettings, node_slots: int, life_ms: int | None) -> None:
        """Take how many slots a node is expected to have, and for how long cells may run on a new one (None: ever)."""
        self._settings, self._node_slots, self._life_ms = settings, node_slots, life_ms
        self.agents: dict[str, FleetAgent] = {}
        self._failures = 0
        self._next_start_ms = 0
        #: Why the last start came to nothing, until one does not.
        self.problem = ""

    def add(self, node: str, job: str, now_ms: int) -> None:
        """Take in an agent that has been started."""
        self.agents[node] = FleetAgent(node, job, now_ms)

    def note_failure(self, problem: str, now_ms: int) -> None:
        """Take note that a start came to nothing: the next one waits, longer each time."""
        self.problem = problem
        delay_ms = min(_FIRST_BACK_OFF_MS * 2**self._failures, _LONGEST_BACK_OFF_MS)
        self._failures = min(self._failures + 1, 16)
        self._next_start_ms = now_ms + delay_ms

    def note_there(self, node: str) -> None:
        """Take note that an agent has come, as far as that is news; it may have gone again by the next step."""
        agent = self.agents.get(node)
        if agent is not None and agent.stage is Stage.STARTING:
            agent.stage = Stage.THERE
            self._failures, self._next_start_ms, self.problem = 0, 0, ""

    @property
    def leaving(self) -> tuple[str, ...]:
        """The nodes that are to be given nothing more."""
        return tuple(agent.node for agent in self.agents.values() if agent.stage is Stage.LEAVING)

    def step(
        self,
        waiting: Sequence[RoomNeeded],
        nodes: Collection[NodeLoad],
        jobs: Mapping[str, JobState],
        now_ms: int,
    ) -> list[Action]:
        """Take in what the broker and the jobs say; return what to do. Each is to be done before the next step."""
        loads = {load.node: load for load in nodes}
        forgotten: list[Action] = []
        for agent in list(self.agents.values()):
            self._note_missing(agent, is_there=agent.node in loads, now_ms=now_ms)
            state = jobs.get(agent.node, _MISSING)
            if state.status is JobStatus.OVER or self._is_gone(agent, loads, state, now_ms):
                forgotten.append(self._forget(agent, state, now_ms))
            else:
                self._follow(agent, loads.get(agent.node), state, now_ms)
        needed = self._needed(waiting, loads)
        there = self._at(Stage.THERE)
        free = sum(loads[one.node].slots - loads[one.node].used for one in there if one.node in loads)
        spare = max(0, self._settings.spare_slots - (0 if needed else free))
        wanted = max(needed + -(-spare // self._node_slots), self._settings.min_nodes - len(there))
        is_patient = bool(there) and all(need.waited_ms < self._settings.patience_ms for need in waiting)
        return [
            *forgotten,
            *self._grow(wanted - needed if is_patient else wanted, now_ms),
            *self._end_started(wanted, jobs, now_ms),
            *self._end_left(loads, now_ms),
            *self._drain_idle(needed, loads, now_ms),
        ]

    # --- what became of each

    def _is_gone(self, agent: FleetAgent, loads: Mapping[str, NodeLoad], state: JobState, now_ms: int) -> bool:
        """Tell whether an agent is to be given up of whose job nobody can say anything."""
        if state.status is not JobStatus.UNKNOWN or agent.node in loads:
            return False
        return agent.stopped_ms is not None or self._is_lost(agent, now_ms)

    @staticmethod
    def _note_missing(agent: FleetAgent, *, is_there: bool, now_ms: int) -> None:
        if is_there or agent.stage is Stage.STARTING:  # who starts has its time to come
            agent.missing_since_ms = None
        elif agent.missing_since_ms is None:
            agent.missing_since_ms = now_ms

    @staticmethod
    def _is_lost(agent: FleetAgent, now_ms: int) -> bool:
        """Tell whether the broker has answered for so long without the agent that it will not come back."""
        return agent.missing_since_ms is not None and now_ms - agent.missing_since_ms > _LOST_MS

    def _forget(self, agent: FleetAgent, state: JobState, now_ms: int) -> ForgetNode:
        del self.agents[agent.node]
        if agent.stage is Stage.STARTING and agent.stopped_ms is None:
            why = f": {state.words}" if state.words else ""
            self.note_failure(f"{agent.node} ended before it was there{why}", now_ms)
        return ForgetNode(agent.node, state.words)

    def _follow(self, agent: FleetAgent, load: NodeLoad | None, state: JobState, now_ms: int) -> None:
        if state.status is JobStatus.WAITING:
            if not state.is_held:  # Slurm was silent for a moment, or has put it back in its queue
                agent.running_since_ms = None
        elif agent.running_since_ms is None:
            agent.running_since_ms = now_ms
        if load is None:
            return
        self._node_slots = max(load.slots, 1)
        self.note_there(agent.node)
        if load.is_drained:
            agent.stage = Stage.LEAVING  # by whomever, and for whatever: it takes nothing any more
        if load.used:
            agent.idle_since_ms = None
        elif agent.idle_since_ms is None:
            agent.idle_since_ms = now_ms

    # --- more

    def _needed(self, waiting: Sequence[RoomNeeded], loads: Mapping[str, NodeLoad]) -> int:
        """Count the nodes that who waits would fill; who is not helped by one is left out."""
        room: list[int] = []
        for need in waiting:
            if not self._is_helped(need, loads.values()):
                continue
            place = next((index for index, free in enumerate(room) if free >= need.slots), None)
            if place is None:
                room.append(self._node_slots)
                place = len(room) - 1
            room[place] -= need.slots
        return len(room)

    def _is_helped(self, need: RoomNeeded, loads: Collection[NodeLoad]) -> bool:
        """Tell whether a new node would serve a request: none does that has what others have who do not serve it."""
        if not _is_of_size(need, self._node_slots) or (self._life_ms is not None and need.walltime_ms > self._life_ms):
            return False
        return not any(
            load.slots - load.used - load.hot >= need.slots
            and _is_of_size(need, load.slots)
            and not load.is_drained
            and (load.leaves_in_ms is None or load.leaves_in_ms > need.walltime_ms)
            for load in loads
        )

    def _grow(self, wanted: int, now_ms: int) -> list[Action]:
        starting = [one for one in self._at(Stage.STARTING) if one.stopped_ms is None]
        count = min(wanted - len(starting), self._settings.max_nodes - len(self.agents))
        return [StartAgents(count)] if count > 0 and now_ms >= self._next_start_ms else []

    # --- fewer

    def _end_left(self, loads: Mapping[str, NodeLoad], now_ms: int) -> list[Action]:
        """End the agents that leave and have nothing any more, and those whose jobs go on without them."""
        actions: list[Action] = []
        for agent in [*self._at(Stage.LEAVING), *self._at(Stage.THERE)]:
            load = loads.get(agent.node)
            is_empty = load is not None and not load.used + load.hot
            if (agent.stage is Stage.LEAVING and is_empty) or self._is_lost(agent, now_ms):
                actions += self._stop(agent, now_ms)
        return actions

    def _end_started(self, wanted: int, jobs: Mapping[str, JobState], now_ms: int) -> list[Action]:
        """End what did not come in time, and take back jobs without a host that nobody waits for any more."""
        actions: list[Action] = []
        starting = self._at(Stage.STARTING)
        for agent in starting:
            since_ms, state = agent.running_since_ms, jobs.get(agent.node, _MISSING)
            if agent.stopped_ms is not None:
                actions += self._stop(agent, now_ms)
            elif state.has_failed:
                self.note_failure(f"{agent.node} will not come: {state.words}", now_ms)
                actions += self._stop(agent, now_ms)
            elif since_ms is not None and now_ms - since_ms > self._settings.start_limit_ms:
                self.note_failure(f"{agent.node} {_NOT_COME}", now_ms)
                actions += self._stop(agent, now_ms)
        coming = [one for one in starting if one.stopped_ms is None]
        waiting = [one for one in coming if jobs.get(one.node, _MISSING).status is JobStatus.WAITING]
        for agent in waiting[::-1][: max(0, len(coming) - wanted)]:
            if now_ms - agent.started_ms >= _LEAST_ASKED_MS:
                actions += self._stop(agent, now_ms)
        return actions

    def _drain_idle(self, needed: int, loads: Mapping[str, NodeLoad], now_ms: int) -> list[Action]:
        """Drain what has had no cell for the idle time, the longest idle first, as far as enough is left."""
        there = [one for one in self._at(Stage.THERE) if one.node in loads]
        free = sum(loads[one.node].slots - loads[one.node].used for one in there)
        left, actions = len(there), list[Action]()
        for agent in sorted(there, key=lambda one: one.idle_since_ms or 0):
            load, since_ms = loads[agent.node], agent.idle_since_ms
            if needed or since_ms is None or now_ms - since_ms < self._settings.idle_ms:
                continue
            if left <= self._settings.min_nodes or free - load.slots < self._settings.spare_slots:
                continue
            agent.stage = Stage.LEAVING
            left, free = left - 1, free - load.slots
            actions.append(DrainNode(agent.node))
        return actions

    def _stop(self, agent: FleetAgent, now_ms: int) -> list[Action]:
        if agent.stopped_ms is not None and now_ms - agent.stopped_ms < _AGAIN_MS:
            return []
        agent.stopped_ms = now_ms
        return [StopAgent(agent.node)]

    def _at(self, stage: Stage) -> list[FleetAgent]:
        return [agent for agent in self.agents.values() if agent.stage is stage]

    def say(self, jobs: Mapping[str, JobState], now_ms: int) -> str:
        """Say what is known of nodes that are to come, for who waits for one; empty where none is to."""
        starting = [one for one in self._at(Stage.STARTING) if one.stopped_ms is None]
        coming = [jobs.get(one.node, _MISSING) for one in starting]
        waiting = [state.words for state in coming if state.status is JobStatus.WAITING and state.words]
        if coming and len(waiting) < len(coming):
            minutes = (now_ms - min(one.started_ms for one in starting)) // MINUTE_MS
            return f"a node is starting, for {minutes} min by now" if minutes > 0 else "a node is starting"
        if waiting:
            return waiting[0]
        if self.problem:
            return f"no node could be started: {self.problem}"
        if len(self.agents) >= self._settings.max_nodes:
            return f"the pool has all {self._settings.max_nodes} nodes that it may have"
        return ""


def _is_of_size(need: RoomNeeded, slots: int) -> bool:
    """Tell whether a request could run on a node with so many slots: one that would have it alone takes all of them."""
    return need.slots == slots if need.is_exclusive else need.slots <= slots
