"""How agents are started somewhere and ended again: what each engine that scales does in its own way."""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Protocol

import msgspec

from bulletin.errors import NotDone


class CannotStartAgent(NotDone):
    """An agent could not be started: a sentence says why, in the words of who would not."""


class AgentTicket(msgspec.Struct, frozen=True):
    """What an agent is started with. Neither file may be read by others; both are there until it has ended."""

    node: str
    #: That makes its folder one of the pool's nodes (`bulletin node`).
    node_file: Path
    #: Its settings, as a configuration file.
    config_file: Path


class JobStatus(Enum):
    """How far the job of an agent is, as far as its engine knows."""

    WAITING = "waiting"  #: it has no host yet
    RUNNING = "running"
    OVER = "over"  #: nothing of it runs any more
    UNKNOWN = "unknown"  #: nobody can say: the broker's word counts


class JobState(msgspec.Struct, frozen=True):
    """What became of a job, and what people are told of it."""

    status: JobStatus
    #: Why it waits, or why it is over: a clause without a full stop, to stand after others.
    words: str = ""
    #: When its host is taken from it, in milliseconds since 1970; None is never, or nobody knows.
    ends_at_ms: int | None = None
    #: It is never.
    has_no_end: bool = False
    #: It waits for somebody to let it go on, and not for a host: its time to come is not given back for that.
    is_held: bool = False
    #: It waits, but nothing comes of it: another one may be started.
    has_failed: bool = False


class AgentJobs(Protocol):
    """Starts agents, ends them, and looks what became of them."""

    async def start(self, ticket: AgentTicket) -> str:
        """Start an agent; return by what else than its node it is found again. Raises CannotStartAgent."""
        ...

    async def stop(self, jobs: Mapping[str, str]) -> None:
        """End these agents, by their nodes, of which some may have ended already; failures are logged."""
        ...

    async def look(self, jobs: Mapping[str, str]) -> Mapping[str, JobState]:
        """Look what became of these agents, by their nodes. One that is left out is UNKNOWN."""
        ...
