"""Agent and zygote: executors to fork, and what became of them."""

import msgspec

from bulletin.ids import LeaseId
from bulletin.wire.messages.every_link import Message


class Fork(Message, frozen=True, kw_only=True, tag="fork"):
    """Fork an executor. Its pipe, its ring in and its ring out come as descriptors beside this message."""

    lease: LeaseId
    #: Set over the zygote's own environment before anything else runs.
    environ: dict[str, str]
    #: Who to become, where the zygote may: user, group, further groups.
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    folder: str | None = None


class Forked(Message, frozen=True, kw_only=True, tag="forked"):
    """The executor's process id; it leads a process group (and a session) of its own."""

    lease: LeaseId
    pid: int


class ForkFailed(Message, frozen=True, kw_only=True, tag="fork-failed"):
    """The system gave the zygote no process for this executor, and why."""

    lease: LeaseId
    problem: str


class Exited(Message, frozen=True, kw_only=True, tag="exited"):
    """An executor is gone; `status` is as os.waitstatus_to_exitcode gives it (negative: that signal)."""

    pid: int
    status: int


class Warm(Message, frozen=True, kw_only=True, tag="warm"):
    """The zygote has imported what it could and waits. What it could not, and why."""

    imported: tuple[str, ...]
    failed: dict[str, str] = msgspec.field(default_factory=dict)


ToZygote = Fork
FromZygote = Warm | Forked | ForkFailed | Exited
