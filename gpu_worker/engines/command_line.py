"""Running another program for a moment: what it said, within a time, with an environment without the pool's secrets."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from gpu_worker.config import serves_hub
from gpu_worker.harmless_environment import select_harmless

_PATIENCE_S = 60.0
#: From the end of a program to the end of what it printed, which something that it has started may hold open.
_REST_S = 1.0
_MOST_SAID = 300
#: So much is kept of what a program prints, the end of it; the rest is read and forgotten. It is squeue's answer, too.
MOST_BYTES = 4_000_000
_HUB = ("JUPYTERHUB_", "JPY_", "CONFIGPROXY_")
#: What commands of a cluster need beside what is harmless.
_CLUSTER = ("SLURM_CONF", "SLURM_CLUSTERS", "MUNGE_SOCKET")


class Said(msgspec.Struct, frozen=True):
    """How a program ended, and what it printed."""

    status: int
    output: str
    errors: str

    @property
    def problem(self) -> str:
        """The last thing that it complained of, in one line."""
        lines = (self.errors.strip() or self.output.strip()).splitlines()
        return lines[-1].strip()[:_MOST_SAID] if lines else f"it ended with status {self.status} and said nothing"


class _Conversation(asyncio.SubprocessProtocol):
    """Reads all that a program prints, and keeps the end of it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.has_ended: asyncio.Future[None] = loop.create_future()
        self.is_read: asyncio.Future[None] = loop.create_future()
        self._kept = {1: bytearray(), 2: bytearray()}
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        kept += data
        if len(kept) > 2 * MOST_BYTES:  # seldom: it moves what it keeps
            del kept[:-MOST_BYTES]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002  asyncio calls it so
        self._open.discard(fd)
        if not self._open and not self.is_read.done():
            self.is_read.set_result(None)

    def process_exited(self) -> None:
        if not self.has_ended.done():
            self.has_ended.set_result(None)

    def text(self, fd: int) -> str:
        """Return the end of what it printed there."""
        return self._kept[fd][-MOST_BYTES:].decode(errors="replace")


def clean_environ() -> dict[str, str]:
    """Make the environment of what starts agents: what is harmless on a hub; its user's own in one's own pool."""
    if not serves_hub(os.environ):
        return {name: value for name, value in os.environ.items() if not name.startswith(_HUB)}
    kept = {name: os.environ[name] for name in _CLUSTER if name in os.environ}
    return {**select_harmless(os.environ), **kept}


async def run(
    words: Sequence[str],
    *,
    script: str | None = None,
    environ: Mapping[str, str] | None = None,
    patience_s: float = _PATIENCE_S,
) -> Said:
    """Run a program to its end, with a script as its standard input. One that cannot be run has the status 127.

    It has ended when its own process has, whatever of it goes on in a session of its own and holds its output open.
    One that has not in time (status 124), or whose caller is cancelled, is killed with its whole process group, where
    this user may.
    """
    loop = asyncio.get_running_loop()
    spawning = asyncio.ensure_future(
        loop.subprocess_exec(
            _Conversation,
            *words,
            stdin=asyncio.subprocess.PIPE if script is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**clean_environ(), **(environ or {})},
            start_new_session=True,
        )
    )
    try:
        transport, conversation = await asyncio.shield(spawning)
    except OSError as error:
        return Said(127, "", f"{words[0]} cannot be run: {error.strerror}")
    except asyncio.CancelledError:  # asyncio would wait for all that holds its output open
        with contextlib.suppress(OSError):
            await _kill(*await spawning)
        raise
    try:
        if script is not None:
            stdin = transport.get_pipe_transport(0)
            assert isinstance(stdin, asyncio.WriteTransport)
            stdin.write(script.encode())
            stdin.close()  # once it is written
        async with asyncio.timeout(patience_s):
            await asyncio.shield(conversation.has_ended)
    except TimeoutError:
        return Said(124, conversation.text(1), f"{words[0]} did not end within {patience_s:.0f} s")
    else:
        await asyncio.wait([conversation.is_read], timeout=_REST_S)
        status = transport.get_returncode()
        assert status is not None
        return Said(status, conversation.text(1), conversation.text(2))
    finally:
        await _kill(transport, conversation)


async def _kill(transport: asyncio.SubprocessTransport, conversation: _Conversation) -> None:
    """Kill a program that runs still, with its process group, and close what it printed to.

    One that runs as another user, by sudo, is not this one's to kill: it goes on, and the log says so.
    """
    try:
        if transport.get_returncode() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(transport.get_pid(), signal.SIGKILL)
            await asyncio.wait([conversation.has_ended], timeout=_REST_S)
    except OSError as error:
        structlog.get_logger("engine").warning(
            "a command that hangs could not be ended: it runs as another user",
            pid=transport.get_pid(),
            problem=str(error),
        )
    finally:
        with contextlib.suppress(OSError):  # it kills what has not ended yet, too
            transport.close()
