"""How a zygote is started: by the agent itself, or by the process that is root for it."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from typing import Protocol

from bulletin.errors import MalformedMessage
from bulletin.ids import AgentId
from bulletin.wire import frames, messages as wire, pipe
from gpu_worker.agent import environment_owners
from gpu_worker.agent.executor_process import MARK
from gpu_worker.config import PoolSettings
from gpu_worker.executor.job_signals import IN_JOB
from gpu_worker.harmless_environment import select_harmless

#: The environment of cells that name none: the pool's own interpreter, unless the admin says otherwise.
DEFAULT_ENVIRONMENT = "default"
#: Nothing of these reaches a process that runs users' cells.
_SECRETS = ("JUPYTERHUB_", "JPY_", "BULLETIN_", "CONFIGPROXY_")


class ZygoteStarter(Protocol):
    """Starts zygotes."""

    async def start(self, environment: str, control: int, *, is_to_preload: bool) -> "subprocess.Popen[bytes] | None":
        """Start the zygote of an environment, which talks over this descriptor.

        Returns the process where it is a child of this one. Raises OSError or LookupError if there is none.
        """
        ...


class OwnZygotes:
    """Starts zygotes as children of this process, as whom it is itself."""

    def __init__(self, settings: PoolSettings, agent: AgentId, guard: str = "", *, has_strangers: bool) -> None:
        """Take what the admin has set, the agent's id, and what zygotes are to check, if they are (`write_guard`).

        Users who are strangers to each other see of this process's environment what is known to be harmless.
        """
        self._settings, self._agent, self._guard, self._has_strangers = settings, agent, guard, has_strangers

    async def start(self, environment: str, control: int, *, is_to_preload: bool) -> "subprocess.Popen[bytes]":
        """Check the environment, then start its zygote."""
        await asyncio.to_thread(self.check, environment)
        return self.spawn(environment, control, is_to_preload=is_to_preload)

    def check(self, environment: str) -> None:
        """Raise PermissionError where others can change what a zygote imports that is root, to become its users."""
        python = find_python(self._settings, environment)
        if self._settings.isolation == "unix-user":
            problem = environment_owners.find_problem(python, os.environ.get("PYTHONPATH", ""))
            if problem:
                raise PermissionError(problem)

    def spawn(self, environment: str, control: int, *, is_to_preload: bool) -> "subprocess.Popen[bytes]":
        """Start a zygote. It ends with the thread that does this, which is to be one that stays."""
        own = select_harmless(os.environ) if self._has_strangers else os.environ
        environ = {name: value for name, value in own.items() if not name.startswith(_SECRETS)}
        # Forks keep the environment that their ancestor was started with: the mark stands there too.
        environ |= {
            MARK: f"{self._agent}/zygote",
            "BULLETIN_PRELOAD": ",".join(self._settings.preload if is_to_preload else ()),
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        }
        if "SLURMD_NODENAME" in os.environ:
            environ[IN_JOB] = "yes"
        environ.pop("CUDA_VISIBLE_DEVICES", None)
        options = self._settings.interpreter_options
        return subprocess.Popen(
            [
                find_python(self._settings, environment),
                *options,
                "-m",
                "gpu_worker.executor",
                str(control),
                *filter(None, [self._guard]),
            ],
            env=environ,
            cwd="/" if self._settings.isolation == "unix-user" else None,
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


class RootLink:
    """Asks the process that is root for this agent to start zygotes."""

    def __init__(self, descriptor: int) -> None:
        """Take the descriptor of the pipe to it."""
        os.set_inheritable(descriptor, False)
        self._socket = socket.socket(fileno=descriptor)
        self._unpacker: frames.Unpacker[wire.FromRoot] = frames.Unpacker(wire.FromRoot)
        self._asking = threading.Lock()

    async def start(self, environment: str, control: int, *, is_to_preload: bool) -> None:
        """Have one started. Raises PermissionError, with the answer, or ConnectionError."""
        await asyncio.to_thread(self._ask, environment, control, is_to_preload=is_to_preload)

    def _ask(self, environment: str, control: int, *, is_to_preload: bool) -> None:
        request = wire.StartZygote(environment=environment, is_to_preload=is_to_preload)
        try:
            with self._asking:
                socket.send_fds(self._socket, [b"Z"], [control])
                pipe.send(self._socket, frames.pack(request))
                answer, _ = self._unpacker.unpack(pipe.receive(self._socket))
        except (EOFError, MalformedMessage) as error:
            raise ConnectionError("the part of the agent that is root has ended") from error
        if isinstance(answer, wire.ZygoteRefused):
            raise PermissionError(answer.problem)


def find_python(settings: PoolSettings, environment: str) -> str:
    """Find the interpreter of an environment. Raises LookupError, with a sentence, if there is no such one."""
    pool_python = sys.executable if environment == DEFAULT_ENVIRONMENT else ""
    python = settings.environments.get(environment, pool_python)
    if not python:
        known = ", ".join(dict.fromkeys([DEFAULT_ENVIRONMENT, *settings.environments]))
        raise LookupError(f"there is no environment {environment!r} here; --environment takes one of: {known}")
    return python
