"""A program of this host that runs for as long as a block does."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping

#: So long one that is killed may take to be gone.
_END_S = 1.0


@contextlib.asynccontextmanager
async def running_program(
    *command: str,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program, as a session of its own; kill what still runs of it when the block ends.

    Raises OSError when it cannot be started. Who leaves does not wait for one that the system does not let go.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=stdout, stderr=stderr, env=env, start_new_session=True
        )
    )
    try:
        # asyncio that is cancelled here kills the program alone, and waits for ever where what that has started holds
        # a pipe (https://github.com/python/cpython/issues/119710, and not mended in Python 3.11).
        program = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _kill(await starting)
        raise
    try:
        yield program
    finally:
        await _kill(program)


async def _kill(program: asyncio.subprocess.Process) -> None:
    if program.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await program.wait()
