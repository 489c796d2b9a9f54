"""The other end of a link said something that it should not have said."""

from bulletin.codes import RefusalCode

from .base_error import BulletinError


class MalformedMessage(BulletinError):
    """Frames that are not a message of this link: wrong count, size, version or content."""

    code = "malformed-message"

    def __init__(self, problem: str, protocol: int | None = None) -> None:
        """Take the protocol that the other end speaks, where it is another one."""
        super().__init__(problem, protocol)
        self.problem, self.protocol = problem, protocol

    def __str__(self) -> str:
        return f"malformed message: {self.problem}"


class VersionMismatch(BulletinError):
    """The two sides speak different versions of the protocol."""

    code = RefusalCode.VERSION_MISMATCH

    def __init__(self, theirs: int, ours: int, who: str) -> None:
        super().__init__(theirs, ours, who)
        self.theirs, self.ours, self.who = theirs, ours, who

    def __str__(self) -> str:
        older, newer = (self.who, "this side") if self.theirs < self.ours else ("this side", self.who)
        return (
            f"{self.who} speaks protocol {self.theirs} of Bulletin and this side speaks {self.ours}: "
            f"{older} is older than {newer} and must be upgraded."
        )
