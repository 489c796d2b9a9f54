"""The part of an agent that stays root: it starts the agent as a system user, and zygotes when that agent asks.

It reads one kind of message, from its own child, and nothing from the network. All that is root beside it are zygotes,
which check by themselves whom they fork as. It ends with its agent, and zygotes end with both.
"""

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

import structlog

from bulletin.errors import BadConfig, MalformedMessage
from bulletin.ids import AgentId
from bulletin.wire import passed_descriptors, pipe
from bulletin.wire.frames import Unpacker, pack
from bulletin.wire.messages import StartZygote, ToRoot, ZygoteRefused, ZygoteStarted
from gpu_worker.agent import environment_owners
from gpu_worker.agent.cgroups import find_base, is_delegated
from gpu_worker.agent.node_protections import find_namespace_problem
from gpu_worker.agent.zygote_start import OwnZygotes
from gpu_worker.config import PoolSettings
from gpu_worker.executor.fork_guard import write_guard
from gpu_worker.executor.unix_users import find_unix_user

#: The option by which the agent's own process learns that this one is there, and the descriptor of their pipe.
OPTION = "--Command.root_helper"
_DIVIDED = ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control")


class RootHelper:
    """Runs an agent as `Pool.agent_user`."""

    def __init__(self, settings: PoolSettings, agent: AgentId, arguments: Sequence[str]) -> None:
        """Take the agent's id, and the words that `bulletin agent` was given.

        Raises
        ------
        BadConfig
            If there is no such user, or the node has not what this takes.
        """
        self._settings, self._arguments = settings, arguments
        guard = write_guard(settings.min_uid, settings.unix_groups, has_user_namespaces=settings.user_namespaces)
        self._starter = OwnZygotes(settings, agent, guard, has_strangers=True)
        self._zygotes: dict[str, subprocess.Popen[bytes]] = {}
        self._log = structlog.get_logger("agent").bind(part="root")
        if settings.isolation != "unix-user":
            raise BadConfig("Pool.agent_user is set, which is for Pool.isolation 'unix-user'. Take one of them out.")
        try:
            self._user = pwd.getpwnam(settings.agent_user)
        except KeyError:
            raise BadConfig(
                f"Pool.agent_user is {settings.agent_user!r}, and there is no such Unix user here. "
                f"Make it: useradd --system {settings.agent_user}"
            ) from None
        self._require_apart()
        environment_owners.require_roots()
        if problem := find_namespace_problem():
            raise BadConfig(f"Pool.agent_user needs namespaces, which this node cannot make ({problem}).")

    def _require_apart(self) -> None:
        """Raise BadConfig if somebody's cells could run as the agent's user, who could then take it over."""
        settings = self._settings
        with contextlib.suppress(LookupError):
            find_unix_user(settings.agent_user, "", min_uid=settings.min_uid, unix_groups=settings.unix_groups)
            raise BadConfig(
                f"Pool.agent_user is {settings.agent_user!r}, and cells may run as that user. Take an account of the "
                "system, as `useradd --system --shell /usr/sbin/nologin` makes one."
            )
        if self._user.pw_uid == 0:
            raise BadConfig("Pool.agent_user is root. Name another user, or leave it empty.")

    def run(self) -> int:
        """Serve the agent until it ends; its exit status."""
        self._give_cgroups()
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, *self._settings.interpreter_options, "-m", "gpu_worker.cli", "agent"]
            agent = subprocess.Popen(
                [*command, *self._arguments, f"{OPTION}={theirs.fileno()}"],
                pass_fds=[theirs.fileno()],
                user=self._user.pw_uid,
                group=self._user.pw_gid,
                extra_groups=os.getgrouplist(self._user.pw_name, self._user.pw_gid),
            )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: agent.send_signal(received))
        with ours, contextlib.suppress(EOFError, OSError):
            while True:
                self._serve_one(ours)
        return agent.wait()

    def _give_cgroups(self) -> None:
        """Let the agent divide the unit's cgroup, as systemd does for one with `User=`."""
        with contextlib.suppress(LookupError, OSError):  # then it has none, and says so
            base = find_base()
            if not is_delegated(base):
                return  # others are in it
            for path in (base, *(base / name for name in _DIVIDED)):
                if path.exists():
                    os.chown(path, self._user.pw_uid, self._user.pw_gid)

    def _serve_one(self, agent: socket.socket) -> None:
        """Answer the agent's next message. Raises EOFError or OSError when it is gone."""
        mark, descriptors = passed_descriptors.receive(agent, 1, 1)
        if not mark:
            raise EOFError
        try:
            wanted, _ = Unpacker[StartZygote](ToRoot).unpack(pipe.receive(agent))
            if len(descriptors) != 1:
                raise MalformedMessage(f"{len(descriptors)} descriptors beside a zygote to start, 1 expected")
            self._start(wanted, descriptors[0])
        except (LookupError, OSError, MalformedMessage) as error:
            self._log.warning("a zygote was not started", problem=str(error))
            answer: ZygoteStarted | ZygoteRefused = ZygoteRefused(problem=str(error))
        else:
            answer = ZygoteStarted()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        pipe.send(agent, pack(answer))

    def _start(self, wanted: StartZygote, control: int) -> None:
        """Start the zygote of an environment, in the place of the last one. Raises LookupError or OSError."""
        earlier = self._zygotes.pop(wanted.environment, None)
        if earlier is not None:
            earlier.kill()
            earlier.wait()
        self._starter.check(wanted.environment)
        zygote = self._starter.spawn(wanted.environment, control, is_to_preload=wanted.is_to_preload)
        self._zygotes[wanted.environment] = zygote
