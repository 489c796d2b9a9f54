"""A program of this host that runs for as long as a block does."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping

#: So long one that is killed may take to be gone.
_END_S = 1.0
#: From the end of a program to the end of what it printed, which something that it has started may hold open.
_REST_S = 1.0
_LINE_LIMIT_BYTES = 2**16


class _Life(SubprocessStreamProtocol):
    """Ends what a program prints soon after the program itself, whatever of it goes on and holds its pipes open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_LINE_LIMIT_BYTES, loop=loop)
        self._running_loop = loop
        self.has_ended: asyncio.Future[None] = loop.create_future()
        self._pipes: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._pipes = transport
        super().connection_made(transport)

    def process_exited(self) -> None:
        super().process_exited()
        if not self.has_ended.done():
            self.has_ended.set_result(None)
        assert self._pipes is not None
        self._running_loop.call_later(_REST_S, self._pipes.close)


@contextlib.asynccontextmanager
async def running_program(
    *command: str,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Process]:
    """Run a program, as a session of its own; kill what still runs of it when the block ends, and close its pipes.

    What it has printed is whole soon after it has ended, also where something that it has started goes on.
    Raises OSError when it cannot be started. Who leaves does not wait for one that the system does not let go.
    """
    loop = asyncio.get_running_loop()
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            lambda: _Life(loop), *command, stdin=stdin, stdout=stdout, stderr=stderr, env=env, start_new_session=True
        )
    )
    try:
        # asyncio that is cancelled here kills the program alone, and waits for ever where what that has started holds
        # a pipe (https://github.com/python/cpython/issues/119710, and not mended in Python 3.11).
        transport, life = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _kill(*await starting)
        raise
    try:
        yield Process(transport, life, loop)
    finally:
        await _kill(transport, life)


async def _kill(transport: asyncio.SubprocessTransport, life: _Life) -> None:
    try:
        # Its group is there for as long as anything of it is, whether or not the program itself has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(transport.get_pid(), signal.SIGKILL)
        await asyncio.wait([life.has_ended], timeout=_END_S)
    finally:
        with contextlib.suppress(OSError):  # it kills what has not ended yet, too
            transport.close()
