"""Agent and zygote: executors to fork, and what became of them."""

import msgspec

from bulletin.ids import LeaseId
from bulletin.wire.messages.every_link import Message


class Namespaces(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an executor is to see in namespaces of its own: its processes, its shared memory, its devices."""

    #: /tmp and /var/tmp are its own, too.
    has_own_tmp: bool = True
    #: Device nodes beside those that every process needs.
    devices: tuple[str, ...] = ()
    #: What may be in each of its own folders for temporary files, and in /dev/shm; 0 is half the memory of the host.
    scratch_bytes: int = 0
    #: It may make user namespaces, in which it is root and beyond the limits of here.
    has_user_namespaces: bool = False


class Fork(Message, frozen=True, kw_only=True, tag="fork"):
    """Fork an executor. Its pipe, its rings in and out, and its pipe for folders come as descriptors beside this."""

    lease: LeaseId
    #: Set over the zygote's own environment before anything else runs.
    environ: dict[str, str]
    #: Who to become, where the zygote may: user, group, further groups.
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] = ()
    folder: str | None = None
    #: Where files of the notebook's folder may be, if the node does not share that: a folder that is made then.
    scratch: str = ""
    #: None where it shares those of its zygote.
    namespaces: Namespaces | None = None
    #: How many processes and threads it may have, and all of its user together; 0 is no limit.
    processes: int = 0
    user_processes: int = 0


class SignalGroup(Message, frozen=True, kw_only=True, tag="signal-group"):
    """Send a signal to the process group of an executor: an agent that is not root may not."""

    pid: int
    number: int


class Forked(Message, frozen=True, kw_only=True, tag="forked"):
    """The executor's process id; it leads a process group (and a session) of its own."""

    lease: LeaseId
    pid: int
    #: The first process of its pid namespace, where it has one of its own.
    init: int | None = None


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


ToZygote = Fork | SignalGroup
FromZygote = Warm | Forked | ForkFailed | Exited
