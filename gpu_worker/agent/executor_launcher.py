"""How executors are started: one zygote for each environment, and forks of it as the session's Unix user."""

import asyncio
import signal
from functools import partial

import structlog

from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.agent.end_reasons import ZYGOTE_GONE
from gpu_worker.agent.executor_process import MARK, ExecutorProcess
from gpu_worker.agent.folder_scratch import FolderScratch
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.lease_limits import NodeLimits
from gpu_worker.agent.node_protections import NodeProtections
from gpu_worker.agent.session import Session
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.agent.zygote_process import ZygoteProcess
from gpu_worker.agent.zygote_start import DEFAULT_ENVIRONMENT, RootLink, ZygoteStarter, find_python
from gpu_worker.config import PoolSettings
from gpu_worker.executor.unix_users import UnixUser, find_unix_user
from gpu_worker.faults import Faults

#: How a slot counts where executors want more CPUs than there are; 100 is the kernel's own default.
_CPU_WEIGHT = 100


class ExecutorLauncher:
    """Forks executors for sessions, and tells sessions when theirs are gone."""

    def __init__(
        self,
        agent: AgentId,
        node: str,
        settings: PoolSettings,
        inventory: Inventory,
        sessions: SessionRegistry,
        limits: NodeLimits,
        protections: NodeProtections,
        starter: ZygoteStarter,
        faults: Faults,
    ) -> None:
        """Take what sessions may use, what the node has to keep them to it, and apart, and who starts zygotes."""
        self._limits, self._protections, self._faults = limits, protections, faults
        self._starter = starter
        self._agent, self._node, self._settings = agent, node, settings
        self._inventory, self._sessions = inventory, sessions
        self._scratch = FolderScratch(agent, settings)
        self._log = structlog.get_logger("agent")
        self._zygotes: dict[str, ZygoteProcess] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the default environment's zygote; it, and those of other environments, run as tasks of this group."""
        self._tasks = tasks
        self._ensure_zygote(DEFAULT_ENVIRONMENT)

    async def fork(self, session: Session) -> None:
        """Ask for the session's executor.

        Raises OSError if no zygote can fork it, LookupError if the node has no such environment or user.
        """
        prepare = session.prepare
        zygote = self._ensure_zygote(prepare.environment or DEFAULT_ENVIRONMENT)
        # A directory of users may be slow to answer, and others' cells go on meanwhile.
        user = await asyncio.to_thread(self._find_user, prepare.user)
        environ = {
            **user.environ,
            **self._settings.environment,
            MARK: f"{self._agent}/{prepare.lease}",
            "CUDA_VISIBLE_DEVICES": self._inventory.visible(prepare.slots),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        executor = session.executor
        limits = self._limits.of_lease(prepare)
        cgroups = self._protections.cgroups
        if cgroups is not None:
            executor.cgroup = cgroups.create(prepare.lease)
            weight = _CPU_WEIGHT * len(prepare.slots)
            executor.is_frozen_when_hot = self._protections.freezes_hot
            executor.cgroup.limit(memory_bytes=limits.memory_bytes, processes=limits.processes, weight=weight)
        with executor.child_socket as child_socket, executor.folder.child_socket as folder_socket:
            request = wire.Fork(
                lease=prepare.lease,
                environ=environ,
                uid=user.uid,
                gid=user.gid,
                groups=user.groups,
                folder=user.folder,
                scratch=str(self._scratch.place(prepare.lease)),
                namespaces=self._namespaces(prepare),
                processes=limits.processes,
                # A user may have a session on each slot.
                user_processes=limits.processes * len(self._inventory.offers),
            )
            links = [child_socket.fileno(), *executor.rings, folder_socket.fileno()]
            await zygote.fork(request, [*links, *executor.unsent.descriptors])
        executor.unsent.close_unread()

    def _namespaces(self, prepare: wire.Prepare) -> wire.Namespaces | None:
        if not self._protections.has_namespaces:
            return None
        devices = (*self._inventory.device_nodes(prepare.slots), *self._settings.devices)
        return wire.Namespaces(
            # Who shares a Unix user shares its files, wherever they are; notebooks and cells may do so by /tmp.
            has_own_tmp=self._settings.isolation == "unix-user",
            devices=devices,
            scratch_bytes=self._limits.scratch_bytes(prepare),
            has_user_namespaces=self._settings.user_namespaces,
        )

    def _ensure_zygote(self, environment: str) -> ZygoteProcess:
        zygote = self._zygotes.get(environment)
        if zygote is None:
            find_python(self._settings, environment)
            zygote = self._zygotes[environment] = ZygoteProcess(
                environment, self._starter, partial(self._hear, environment), partial(self._lose_executors, environment)
            )
            assert self._tasks is not None
            self._tasks.create_task(zygote.run())
        return zygote

    def _find_user(self, name: str) -> UnixUser:
        """Find whom the executor of a hub's user is to run as. Raises LookupError, with a sentence."""
        if self._settings.isolation != "unix-user":
            return UnixUser()
        return find_unix_user(name, self._node, min_uid=self._settings.min_uid, unix_groups=self._settings.unix_groups)

    def _hear(self, environment: str, message: wire.FromZygote) -> None:
        match message:
            case wire.Warm():
                self._log.info("zygote warm", imported=message.imported, failed=message.failed)
            case wire.Forked():
                # Who is not root may not signal the processes of others, whose parent may.
                zygote = self._zygotes[environment]
                send = zygote.send_signal if isinstance(self._starter, RootLink) else None
                process = ExecutorProcess(message.pid, message.init, send)
                session = self._sessions.running.get(message.lease)
                if session is not None:
                    session.executor.process = process
                    assert self._tasks is not None
                    self._tasks.create_task(self._join_cgroup(session))
                if session is None or session.shutdown.reason is not None:  # it was given up meanwhile
                    process.kill_group()
            case wire.ForkFailed():
                session = self._sessions.running.get(message.lease)
                if session is not None and not session.executor.problem.done():
                    session.executor.problem.set_result(message.problem)
            case wire.Exited():
                for session in self._sessions.running.values():
                    process_of_it = session.executor.process
                    if process_of_it is not None and process_of_it.pid == message.pid:
                        session.shutdown.record_exit(message.status)

    async def _join_cgroup(self, session: Session) -> None:
        with self._faults.contain(session.fail, **session.about):
            await session.executor.join_cgroup()

    def _lose_executors(self, environment: str) -> None:
        """End the sessions of an environment whose zygote is gone.

        Its executors are gone with it, and nobody will tell their status: each counts as killed by SIGKILL.
        """
        for session in self._sessions.running.values():
            is_its = (session.prepare.environment or DEFAULT_ENVIRONMENT) == environment
            if is_its and session.executor.process is not None and not session.executor.gone.is_set():
                session.shutdown.blame(ZYGOTE_GONE)
                session.executor.kill()
                session.shutdown.record_exit(-signal.SIGKILL)
