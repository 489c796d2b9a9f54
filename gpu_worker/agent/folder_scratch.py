"""Where executors have the files of notebooks whose folder the node does not share: a folder each, with an end.

It is made by its user, when it is needed. Where executors have a folder for temporary files of their own, that is where
it is, and it ends with that; else the agent removes it. What is in it is its tenant's doing: it may take hours to
remove, or be deeper than Python's own rmtree goes. So a program does that, which nobody waits for.
"""

import hashlib
import os
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import Iterable
from pathlib import Path

from bulletin.ids import AgentId, LeaseId
from gpu_worker.config import PoolSettings
from gpu_worker.executor.namespaces import TEMPORARY
from gpu_worker.running_program import running_program


class FolderScratch:
    """The folders of an agent's leases."""

    def __init__(self, agent: AgentId, settings: PoolSettings) -> None:
        """Choose where they are: where cells have their temporary files, if the agent can remove them there."""
        may_remove = os.geteuid() == 0 or settings.isolation != "unix-user"
        chosen = settings.environment.get("TMPDIR", "") if may_remove else ""
        base = Path(chosen or tempfile.gettempdir())
        if settings.isolation == "unix-user":  # executors have none of what is in the agent's /tmp
            base = next((Path(one) for one in TEMPORARY if Path(one) in base.parents), base)
        self._base = base
        self._prefix = f"bulletin-files-{_hash(agent)[:8]}-"

    def place(self, lease: LeaseId) -> Path:
        """Return the folder of a lease."""
        return self._base / f"{self._prefix}{_hash(lease)}"

    async def remove(self, lease: LeaseId) -> None:
        """Remove what is left of the folder of a lease: its executor is gone."""
        await self.remove_all([self.place(lease)])

    def find_left(self) -> list[Path]:
        """Find folders that are there; before the first lease, those that an earlier life of the agent has left."""
        return list(self._base.glob(f"{self._prefix}*"))

    async def remove_all(self, folders: Iterable[Path]) -> None:
        """Remove these folders, one after the other."""
        for folder in folders:
            if folder.is_symlink() or folder.exists():
                async with running_program("rm", "-rf", "--", str(folder), stderr=DEVNULL) as program:
                    await program.wait()


def _hash(text: str) -> str:
    """Return a name that is as short as it is safe, whatever the text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
