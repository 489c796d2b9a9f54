"""Where executors have the files of notebooks whose folder the node does not share: a folder each, with an end.

It is made by its user, when it is needed. Where executors have a folder for temporary files of their own, that is where
it is, and it ends with that; else the agent removes it.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path

from bulletin.ids import AgentId, LeaseId

_PREFIX = "bulletin-files-"


def place(agent: AgentId, lease: LeaseId) -> Path:
    """Return the folder of a lease."""
    return Path(tempfile.gettempdir()) / f"{_prefix(agent)}{_hash(lease)}"


def remove(agent: AgentId, lease: LeaseId) -> None:
    """Remove what is left of the folder of a lease: its executor is gone."""
    shutil.rmtree(place(agent, lease), ignore_errors=True)


def remove_all(agent: AgentId) -> None:
    """Remove what an earlier life of an agent has left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix(agent)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(agent: AgentId) -> str:
    return f"{_PREFIX}{_hash(agent)[:8]}-"


def _hash(text: str) -> str:
    """Return a name that is as short as it is safe, whatever the text."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
