"""The agent's process: it offers the node's slots to the broker, obeys it, and lets kernels in by ticket."""

import asyncio
import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

import structlog
import zmq
import zmq.asyncio
from msgspec import structs

from bulletin import __version__
from bulletin.boot_id import read_boot_id
from bulletin.codes import LeaseEnd
from bulletin.errors import BulletinError
from bulletin.ids import AgentId
from bulletin.wire import keys, messages as wire
from gpu_worker.agent import host
from gpu_worker.agent.broker_link import BrokerLink
from gpu_worker.agent.clock import now_ms
from gpu_worker.agent.departure import Departed, Departure
from gpu_worker.agent.executor_launcher import ExecutorLauncher
from gpu_worker.agent.executor_process import kill_marked
from gpu_worker.agent.folder_scratch import FolderScratch
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.kernel_server import KernelServer
from gpu_worker.agent.lease_commands import LeaseCommands
from gpu_worker.agent.lease_limits import LimitWatch, NodeLimits
from gpu_worker.agent.membership import Membership
from gpu_worker.agent.node_protections import NodeProtections
from gpu_worker.agent.own_address import OwnAddress
from gpu_worker.agent.ring_server import RingServer
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.agent.slot_meter import SlotMeter
from gpu_worker.agent.slurm_job_end import follow_job_end
from gpu_worker.agent.zygote_start import OwnZygotes, ZygoteStarter
from gpu_worker.config import PoolSettings, account_name
from gpu_worker.faults import Faults

_PING_S = 1.0
#: For so long an agent that ends removes what its sessions have left.
_TIDY_S = 5.0
#: So long a session whose executor is up may be without a first cell: its kernel sends that at once, or is not there.
_UNUSED_MS = 20_000
#: So much of the node's memory is for sessions.
_SHARED_PART = 0.95


def make_agent_id(settings: PoolSettings) -> AgentId:
    """Make the id of the agent of this host: the same in each of its lives, and another for another pool."""
    folder_hash = hashlib.sha256(str(settings.folder).encode()).hexdigest()[:8]
    return AgentId(f"{socket.gethostname()}-{folder_hash}")


def make_process_mark(settings: PoolSettings) -> AgentId:
    """Make the name by which an agent knows its own processes and folders on this host, in each of its lives.

    The pool's folder itself counts, beside its path: hosts of the same name, as containers may be that see each
    other's processes, have pools of theirs at the same path.
    """
    try:
        facts = settings.folder.stat()
    except FileNotFoundError:  # it does not start without: see read_membership
        return make_agent_id(settings)
    folder_hash = hashlib.sha256(f"{facts.st_dev}:{facts.st_ino}".encode()).hexdigest()[:8]
    return AgentId(f"{make_agent_id(settings)}-{folder_hash}")


class Agent:
    """One node's agent. `run()` serves until cancelled."""

    def __init__(
        self,
        settings: PoolSettings,
        membership: Membership,
        protections: NodeProtections,
        starter: ZygoteStarter | None = None,
        job: str = "",
    ) -> None:
        """Take who starts zygotes, where that is not the agent itself; and the job of Slurm that ends with its host."""
        self.settings, self._protections, self._membership = settings, protections, membership
        self._job = job
        #: By which its processes are known on this host, whatever the pool calls the node.
        self._mark = make_process_mark(settings)
        self.node = membership.node or socket.gethostname()
        self.id = AgentId(membership.node) if membership.node else make_agent_id(settings)
        self.log = structlog.get_logger("agent")
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        self.inventory = Inventory(settings.slots, use_gpus=settings.use_gpus, visible=visible)
        self._meter = SlotMeter(self.inventory)
        self._cpus, self._memory_bytes = host.cpus(), host.memory_bytes()
        self.sessions = SessionRegistry()
        self._faults = Faults("agent")
        self._context = zmq.asyncio.Context()
        self._broker = BrokerLink(self._context, settings, membership, self._introduce)
        self._departure = Departure(settings, self.sessions, self._broker, self._faults)
        self._kernels = KernelServer(self._context, settings, self.sessions, self._faults)
        self._own_address = OwnAddress(settings, membership, self._kernels, self._broker)
        limits = self._find_limits(serves_hub=membership.serves_hub)
        has_strangers = membership.serves_hub or settings.isolation == "unix-user"
        self._scratch = FolderScratch(self._mark, settings)
        self._launcher = ExecutorLauncher(
            self._mark,
            self.node,
            settings,
            self.inventory,
            self.sessions,
            limits,
            protections,
            starter or OwnZygotes(settings, self._mark, has_strangers=has_strangers),
            self._faults,
        )
        self._limit_watch = LimitWatch(
            limits,
            self.sessions,
            self._faults,
            scratch=protections.scratch,
            kernel_limits_memory=protections.kernel_limits_memory,
        )
        self._commands = LeaseCommands(
            self.id,
            self.node,
            settings,
            self.inventory,
            self.sessions,
            self._broker,
            self._kernels.send,
            self._launcher.fork,
            self._departure,
            self._faults,
            self._scratch,
        )
        #: Cells of strangers run as one Unix user.
        self._is_shared = settings.isolation != "unix-user" and membership.serves_hub
        self._address = wire.AgentAddress(address="", public_key="")
        self._process = keys.make_id()

    async def run(self) -> None:
        """Serve until cancelled, or until it has left the pool."""
        self._faults.watch(asyncio.get_running_loop())
        left_behind = kill_marked(self._mark)
        if left_behind:
            self.log.warning("processes of an earlier life were ended", count=left_behind)
        if self._is_shared:
            self.log.warning("all cells run as one Unix user", user=account_name(), setting="Pool.isolation")
        failure: BaseException | None = None
        try:
            await self._serve()
        except* Departed:
            self.log.info("left the pool")
        except* BulletinError as failed:
            # It is a sentence for who started this: not in a group of errors, and without where in the code.
            failure = failed.exceptions[0]
            while isinstance(failure, BaseExceptionGroup):
                failure = failure.exceptions[0]
        finally:
            with contextlib.suppress(TimeoutError):  # what is left then, the next life of this agent removes
                async with asyncio.timeout(_TIDY_S):
                    await self._scratch.remove_all(self._scratch.find_left())
        if failure is not None:
            raise failure from None

    def leave(self) -> None:
        """Begin to leave the pool: cells have their grace, and `run` then comes to its end."""
        self._departure.begin()

    async def _serve(self) -> None:
        reached_at = await self._own_address.open()
        ring_server = RingServer(self.settings.folder, self.sessions.find_rings, self._faults)
        left = self._scratch.find_left()
        self._address = wire.AgentAddress(
            address=reached_at,
            public_key=self._kernels.public_key,
            door=str(ring_server.path),
            boot=read_boot_id(),
            door_uid=os.geteuid(),
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                self._launcher.start(tasks)
                self._commands.start(tasks)
                tasks.create_task(self._kernels.run())
                tasks.create_task(self._follow_own_address())
                tasks.create_task(self._broker.run(self._commands.obey))
                tasks.create_task(ring_server.run())
                tasks.create_task(self._limit_watch.run())
                tasks.create_task(self._meter.run())
                tasks.create_task(self._departure.run())
                if self._job:
                    tasks.create_task(follow_job_end(self._job, self._departure, self._faults))
                tasks.create_task(self._tick())
                tasks.create_task(self._tidy(left))
        finally:
            for session in self.sessions.running.values():
                session.executor.kill()
            if self._protections.cgroups is not None:
                self._protections.cgroups.close()
            ring_server.close()
            self._kernels.close()
            self._broker.close()
            self._context.destroy(linger=200)

    async def _follow_own_address(self) -> None:
        """Tell the broker, and so the notebooks, where this agent is reached now, whenever that has changed."""
        while True:
            told = await self._own_address.wait_for_other()
            self._address = structs.replace(self._address, address=told)
            await self._broker.introduce_anew()

    def _find_limits(self, *, serves_hub: bool) -> NodeLimits:
        """Share the memory of the node out to its slots, but for what the system and the pool need."""
        share_bytes = round(_SHARED_PART * self._memory_bytes / max(1, len(self.inventory.offers)))
        per_slot_bytes = self.settings.memory_per_slot_bytes
        if per_slot_bytes is None:  # of a pool of one's own all is one's own
            per_slot_bytes = share_bytes if serves_hub else 0
        return NodeLimits(
            memory_per_slot_bytes=per_slot_bytes, processes=self.settings.processes, share_bytes=share_bytes
        )

    def _introduce(self, secret: str) -> wire.Register:
        return wire.Register(
            protocol=wire.PROTOCOL,
            version=__version__,
            secret=secret,
            agent=self.id,
            node=self.node,
            address=self._address,
            slots=self.inventory.offers,
            held=tuple(session.held_lease() for session in self.sessions.running.values()),
            process=self._process,
            cpus=self._cpus,
            memory_bytes=self._memory_bytes,
            shared_account="" if self.settings.isolation == "unix-user" else account_name(),
            missing_protections=tuple(self._protections.missing),
            leaves_in_ms=self._departure.leaves_in_ms,
            follows_host_end=True,
            clock_ms=now_ms(),
        )

    async def _tidy(self, left: Iterable[Path]) -> None:
        """Remove files of notebooks that an earlier life of this agent has left."""
        with self._faults.contain(lambda: None, during="removing folders of an earlier life"):
            await self._scratch.remove_all(left)

    async def _tick(self) -> None:
        """Do once a second what is due because time has passed."""
        while True:
            malformed = self._broker.malformed + self._kernels.malformed
            counters = {
                "malformed": malformed,
                "failed handshakes": self._kernels.failed_handshakes,
                "ended strangers": self._kernels.ended_strangers,
                "faults": self._faults.count,
                "too fast": self._kernels.dropped,
            }
            ping = wire.Ping(
                counters=counters,
                clock_ms=now_ms(),
                day_ms=time.time_ns() // 1_000_000,
                slots=self._meter.uses,
                leaves_in_ms=self._departure.moved_to_ms,
            )
            await self._broker.send(ping)
            for session in list(self.sessions.running.values()):
                with self._faults.contain(session.fail, **session.about):
                    if now_ms() - session.kernel.heard_ms > self.settings.keep_ms:
                        session.shutdown.begin(LeaseEnd.KERNEL_GONE)
                    elif (
                        session.ready_ms
                        and session.cells.is_unused
                        and not session.prepare.keep_at_once
                        and now_ms() - session.ready_ms > _UNUSED_MS
                    ):
                        session.shutdown.begin(LeaseEnd.EVICTED)
                    await session.check_time()
            self._kernels.tidy()
            with self._faults.contain(lambda: None, during="tidying up after sessions"):
                self.sessions.forget_finished(self.settings.keep_results_ms)
                if self._protections.cgroups is not None:
                    self._protections.cgroups.remove_ended(self.sessions.running)
            await asyncio.sleep(_PING_S)
