"""Agent and the process that is root for it: zygotes to start. Both are the same program on the same host."""

from bulletin.wire.messages.every_link import Message, Name


class StartZygote(Message, frozen=True, kw_only=True, tag="start-zygote"):
    """Start the zygote of an environment. Its end of the pipe comes as a descriptor beside this message."""

    #: By its id: which program that is, the admin has set.
    environment: Name
    #: Whether it is to import libraries ahead.
    is_to_preload: bool = True


class ZygoteStarted(Message, frozen=True, tag="zygote-started"):
    """The zygote runs, at the other end of the pipe that was sent."""


class ZygoteRefused(Message, frozen=True, tag="zygote-refused"):
    """There is no such zygote, and why."""

    problem: str


FromRoot = ZygoteStarted | ZygoteRefused
ToRoot = StartZygote
