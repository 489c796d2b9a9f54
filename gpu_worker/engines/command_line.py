"""Running another program for a moment: what it said, within a time, with an environment without the pool's secrets."""

import asyncio
import os
from collections.abc import Mapping, Sequence

import msgspec

from gpu_worker.config import serves_hub
from gpu_worker.harmless_environment import select_harmless

_PATIENCE_S = 60.0
_MOST_SAID = 300
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
        lines = (self.errors or self.output).strip().splitlines()
        return lines[-1].strip()[:_MOST_SAID] if lines else f"it ended with status {self.status} and said nothing"


def clean_environ() -> dict[str, str]:
    """Make the environment of what starts agents: what is harmless on a hub; its user's own in one's own pool."""
    if not serves_hub(os.environ):
        return {name: value for name, value in os.environ.items() if not name.startswith(_HUB)}
    kept = {name: os.environ[name] for name in _CLUSTER if name in os.environ}
    return {**select_harmless(os.environ), **kept}


async def run(words: Sequence[str], *, script: str | None = None, environ: Mapping[str, str] | None = None) -> Said:
    """Run a program to its end, with a script as its standard input. One that cannot be run has the status 127."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE if script is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**clean_environ(), **(environ or {})},
            start_new_session=True,
        )
    except OSError as error:
        return Said(127, "", f"{words[0]} cannot be run: {error.strerror}")
    try:
        async with asyncio.timeout(_PATIENCE_S):
            output, errors = await process.communicate(None if script is None else script.encode())
    except TimeoutError:
        return Said(124, "", f"{words[0]} did not end within {_PATIENCE_S:.0f} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Said(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))
