"""How executors are started: one zygote for each environment, and forks of it as the session's Unix user."""

import asyncio
import os
import pwd
import signal
import sys
from functools import partial
from pathlib import Path

import structlog

from bulletin.ids import AgentId
from bulletin.wire import messages as wire
from gpu_worker.agent.executor_process import MARK, ExecutorProcess
from gpu_worker.agent.inventory import Inventory
from gpu_worker.agent.session import Session
from gpu_worker.agent.session_registry import SessionRegistry
from gpu_worker.agent.zygote_process import UnixUser, ZygoteProcess
from gpu_worker.config import PoolSettings

#: The environment of cells that name none: the pool's own interpreter, unless the admin says otherwise.
_DEFAULT_ENVIRONMENT = "default"


class ExecutorLauncher:
    """Forks executors for sessions, and tells sessions when theirs are gone."""

    def __init__(
        self, agent: AgentId, node: str, settings: PoolSettings, inventory: Inventory, sessions: SessionRegistry
    ) -> None:
        self._agent, self._node, self._settings = agent, node, settings
        self._inventory, self._sessions = inventory, sessions
        self._log = structlog.get_logger("agent")
        self._zygotes: dict[str, ZygoteProcess] = {}
        self._tasks: asyncio.TaskGroup | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start the default environment's zygote; it, and those of other environments, run as tasks of this group."""
        self._tasks = tasks
        self._ensure_zygote(_DEFAULT_ENVIRONMENT)

    async def fork(self, session: Session) -> None:
        """Ask for the session's executor.

        Raises OSError if no zygote can fork it, LookupError if the node has no such environment or user.
        """
        prepare = session.prepare
        zygote = self._ensure_zygote(prepare.environment or _DEFAULT_ENVIRONMENT)
        user, own = self._unix_user(prepare)
        environ = {
            **own,
            **self._settings.environment,
            MARK: f"{self._agent}/{prepare.lease}",
            "CUDA_VISIBLE_DEVICES": self._inventory.visible(prepare.slots),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        }
        executor = session.executor
        with executor.child_socket as child_socket:
            await zygote.fork(prepare.lease, environ, user, [child_socket.fileno(), *executor.rings])

    def _ensure_zygote(self, environment: str) -> ZygoteProcess:
        zygote = self._zygotes.get(environment)
        if zygote is None:
            python = self._settings.environments.get(
                environment, sys.executable if environment == _DEFAULT_ENVIRONMENT else ""
            )
            if not python:
                known = ", ".join([_DEFAULT_ENVIRONMENT, *self._settings.environments])
                raise LookupError(f"there is no environment {environment!r} here; --environment takes one of: {known}")
            zygote = self._zygotes[environment] = ZygoteProcess(
                python, self._agent, self._settings.preload, self._hear, partial(self._lose_executors, environment)
            )
            assert self._tasks is not None
            self._tasks.create_task(zygote.run())
        return zygote

    def _unix_user(self, prepare: wire.Prepare) -> tuple[UnixUser, dict[str, str]]:
        """Find whom the executor is to run as, and the variables that are that user's own.

        Raises LookupError, with a sentence, where the node has no such user, or one of the system's.
        """
        if self._settings.isolation != "unix-user":
            return UnixUser(), {}
        try:
            entry = pwd.getpwnam(prepare.user)
        except KeyError:
            raise LookupError(f"there is no Unix user {prepare.user!r} on the node {self._node}") from None
        is_shut = Path(entry.pw_shell).name in ("nologin", "false")
        if entry.pw_uid == 0 or entry.pw_uid < self._settings.min_uid or is_shut:
            raise LookupError(
                f"{prepare.user!r} is an account of the system on the node {self._node}, and cells never run as one"
            )
        groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
        own = {
            "HOME": entry.pw_dir,
            "USER": entry.pw_name,
            "LOGNAME": entry.pw_name,
            "SHELL": entry.pw_shell or "/bin/sh",
        }
        return UnixUser(uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, folder=entry.pw_dir), own

    def _hear(self, message: wire.FromZygote) -> None:
        match message:
            case wire.Warm():
                self._log.info("zygote warm", imported=message.imported, failed=message.failed)
            case wire.Forked():
                process = ExecutorProcess(message.pid)
                session = self._sessions.running.get(message.lease)
                if session is not None:
                    session.executor.process = process
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

    def _lose_executors(self, environment: str) -> None:
        """End the sessions of an environment whose zygote is gone.

        Its executors are gone with it, and nobody will tell their status: each counts as killed by SIGKILL.
        """
        for session in self._sessions.running.values():
            is_its = (session.prepare.environment or _DEFAULT_ENVIRONMENT) == environment
            if is_its and session.executor.process is not None and not session.executor.gone.is_set():
                session.executor.kill()
                session.shutdown.record_exit(-signal.SIGKILL)
