"""An engine that starts agents when people wait for room, and ends them when nobody does."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Coroutine, Iterator, Mapping

import msgspec
import structlog

from bulletin.errors import BadConfig
from bulletin.wire import keys
from bulletin.wire.messages import NEVER_MS
from bulletin.wire.messages.engine_broker import Demand, EndedNode, EngineNews, NodeTime
from gpu_worker.config import PoolSettings
from gpu_worker.engines.agent_files import AgentFiles
from gpu_worker.engines.agent_jobs import AgentJobs, CannotStartAgent, JobState, JobStatus
from gpu_worker.engines.demand_link import DemandLink
from gpu_worker.engines.fleet import Action, DrainNode, Fleet, ForgetNode, StartAgents, StopAgent
from gpu_worker.reachability import is_unspecified

_STEP_S = 1.0
_LOOK_FOR_BROKER_S = 0.05
#: As much of a sentence as a message takes.
_MOST_WORDS = 250


def now_ms() -> int:
    """Return the time of day in milliseconds since 1970: what is written down is read by a later engine."""
    return time.time_ns() // 1_000_000


class ScaledEngine:
    """Follows what its fleet decides: an `Engine` over any `AgentJobs`."""

    def __init__(
        self, settings: PoolSettings, jobs: AgentJobs, files: AgentFiles, node_slots: int, life_ms: int | None
    ) -> None:
        """Take how many slots a node is expected to have, and for how long cells may run on a new one."""
        self._settings, self._jobs, self._files = settings, jobs, files
        self._fleet = Fleet(settings.engine.scaling, node_slots, life_ms)
        self._states: dict[str, JobState] = {}
        self._next_look_ms = 0
        #: Nodes that are gone, and what their users are told, until the broker has heard it.
        self._ended: dict[str, str] = {}
        self._log = structlog.get_logger("engine")

    async def run(self) -> int:
        """Run agents until cancelled, once the broker can be reached; see `Engine.run`."""
        self._files.prepare()
        pool = await self._wait_for_broker()
        link = DemandLink(pool)
        for agent in self._files.read_agents():
            self._log.info("found an agent of an earlier life", node=agent.node, job=agent.job[:_MOST_WORDS])
            self._fleet.agents[agent.node] = agent
        try:
            while True:
                await self._tell_meanwhile(link, self._look())
                news = self._news
                demand = await link.ask(news)
                found = self._find_other_door(pool)
                if found is not None:
                    link.close()
                    pool, link = found, DemandLink(found)
                if demand is not None:
                    await self._tell_meanwhile(link, self._step(demand, pool, {one.node for one in news.ended}))
                await asyncio.sleep(_STEP_S)
        finally:
            link.close()
            await self._end_all()

    @property
    def _news(self) -> EngineNews:
        return EngineNews(
            words=self._fleet.say(self._states, now_ms())[:_MOST_WORDS],
            leaving=self._fleet.leaving,
            ended=tuple(EndedNode(node=node, sentence=why) for node, why in self._ended.items()),
            times=tuple(self._times()),
        )

    def _times(self) -> Iterator[NodeTime]:
        """List the nodes whose hosts are taken from them: a cluster's admin may have changed the time of a job."""
        leaves_before_ms = now_ms() + self._settings.leaving_takes_ms
        for node in self._fleet.agents:
            state = self._states.get(node, _UNKNOWN)
            if state.has_no_end:
                yield NodeTime(node=node, leaves_in_ms=NEVER_MS)
            elif state.ends_at_ms is not None:
                yield NodeTime(node=node, leaves_in_ms=max(0, state.ends_at_ms - leaves_before_ms))

    async def _tell_meanwhile(self, link: DemandLink, work: Coroutine[None, None, None]) -> None:
        """Do some work, and tell who waits how it stands, once a second: a program of a cluster may hang for long."""
        doing = asyncio.create_task(work)
        try:
            while not (await asyncio.wait([doing], timeout=_STEP_S))[0]:
                # What has ended is told again when it is done.
                demand = await link.ask(msgspec.structs.replace(self._news, ended=()))
                for load in () if demand is None else demand.nodes:
                    self._fleet.note_there(load.node)
        finally:
            doing.cancel()  # where it is done, that changes nothing
            await asyncio.wait([doing])
        doing.result()

    async def _wait_for_broker(self) -> keys.PoolFile:
        """Wait for the broker's addresses, which the broker writes when it has bound for the first time."""
        while True:  # another process writes it
            pool = self._read_pool_file()
            is_bound = pool is not None and pool.agent_address and pool.kernel_address and pool.next is None
            if pool is not None and is_bound and self._settings.public_file.exists():
                return pool
            await asyncio.sleep(_LOOK_FOR_BROKER_S)

    def _find_other_door(self, pool: keys.PoolFile) -> keys.PoolFile | None:
        """Return where the broker is now, if it was started again at another place or with other keys.

        It may answer by its old ones until a time, and who is started then is to have the new ones.
        """
        try:
            found = self._read_pool_file()
        except BadConfig as error:  # that ends no agents: cells run there
            self._log.error("the pool's file cannot be used; the engine goes on as before", problem=str(error))
            return None
        is_bound = found is not None and found.agent_address and found.kernel_address
        return found if is_bound and found is not None and _door_of(found) != _door_of(pool) else None

    def _read_pool_file(self) -> keys.PoolFile | None:
        with contextlib.suppress(FileNotFoundError):
            return keys.read_private(self._settings.pool_file, keys.PoolFile)
        return None

    async def _look(self) -> None:
        """See what became of the jobs, now and then: a cluster's controller is asked by many."""
        if not self._fleet.agents or now_ms() < self._next_look_ms:
            return
        jobs = {agent.node: agent.job for agent in self._fleet.agents.values()}
        self._states |= await self._jobs.look(jobs)
        self._next_look_ms = now_ms() + self._settings.engine.scaling.look_ms

    async def _step(self, demand: Demand, pool: keys.PoolFile, told: set[str]) -> None:
        for node in told:  # the broker has parted with it: nobody comes with its keys any more
            self._ended.pop(node, None)
            self._files.remove(node)
        actions = self._fleet.step(demand.waiting, demand.nodes, self._states, now_ms())
        for action in actions:
            await self._perform(action, pool)
        stopped = [action.node for action in actions if isinstance(action, StopAgent)]
        if stopped:
            agents = self._fleet.agents
            await self._jobs.stop({node: agents[node].job for node in stopped if node in agents})
            self._next_look_ms = 0
        if actions:
            self._keep()

    async def _perform(self, action: Action, pool: keys.PoolFile) -> None:
        match action:
            case StartAgents():
                for _ in range(action.count):
                    if not await self._start(pool):
                        break
            case DrainNode():
                self._log.info("a node is ended: nobody needs it", node=action.node)
            case StopAgent():
                self._log.info("an agent is ended", node=action.node)
            case ForgetNode():
                self._forget(action)

    async def _start(self, pool: keys.PoolFile) -> bool:
        """Start an agent, and have it written down before; whether that came to something."""
        node = f"{self._settings.engine.name}-{secrets.token_hex(3)}"
        ticket = self._files.add(node, pool, now_ms())
        self._fleet.add(node, "", now_ms())
        self._keep()
        try:
            self._fleet.agents[node].job = await self._jobs.start(ticket)
        except CannotStartAgent as error:
            self._log.error("an agent could not be started", node=node, problem=str(error))
            del self._fleet.agents[node]
            self._fleet.note_failure(str(error), now_ms())
            self._files.remove(node)
            return False
        self._log.info("an agent is started", node=node, job=self._fleet.agents[node].job[:_MOST_WORDS])
        self._next_look_ms = 0
        return True

    def _forget(self, action: ForgetNode) -> None:
        state = self._states.pop(action.node, None)
        self._log.info("an agent has ended", node=action.node, why=action.why)
        why = f": {action.why}" if action.why else ""
        self._ended[action.node] = f"The node that ran your cell is gone{why}"[:_MOST_WORDS] + "."
        if state is not None and not self._fleet.problem:
            self._files.remove_log(action.node)

    def _keep(self) -> None:
        self._files.keep_agents(tuple(self._fleet.agents.values()))

    async def _end_all(self) -> None:
        """End all agents: the pool ends, or this task was cancelled."""
        jobs: Mapping[str, str] = {agent.node: agent.job for agent in self._fleet.agents.values()}
        states = self._states
        await self._jobs.stop(
            {node: job for node, job in jobs.items() if states.get(node, _UNKNOWN).status is not JobStatus.OVER}
        )
        for node in (*jobs, *self._ended):
            self._files.remove(node)
        self._files.keep_agents(())


_UNKNOWN = JobState(JobStatus.UNKNOWN)


def count_gpus(gres: str) -> int:
    """Count the GPUs that `sbatch --gres` asks for: "gpu:2", "gpu:a100:2", "gpu"; 0 where it asks for none."""
    total = 0
    for part in gres.replace("gres/", "").split(","):
        words = part.split("(")[0].split(":")
        if words[0] == "gpu":
            total += int(words[-1]) if words[-1].isdecimal() else 1
    return total


def _door_of(pool: keys.PoolFile) -> tuple[str, keys.Keys]:
    return pool.kernel_address, pool.keys


def require_reachable_broker(settings: PoolSettings) -> None:
    """Check that agents on other hosts could reach the broker. Raises BadConfig where nobody said by which address."""
    if not settings.host or is_unspecified(settings.host):
        raise BadConfig(
            f"Pool.engine is {settings.engine.name!r}, whose agents run on other hosts: say by which address of this "
            "one they, and notebooks, reach the pool. Pool.host, or --host=ADDRESS"
        )
