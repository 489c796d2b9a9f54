"""`bulletin hold`, `release`, `top` and `requeue`: what a person changes about one request or cell."""

from traitlets import Unicode

from bulletin.errors import BadConfig
from bulletin.wire import console, messages as wire
from gpu_worker.console.query_commands import QueryCommand, checked


class HandCommand(QueryCommand):
    """A command that changes one request or cell, and says why: `COMMAND ID --why=TEXT`."""

    why = Unicode("", help="Why, in a few words: whoever waits reads it, and the ledger keeps it.").tag(config=True)
    aliases = {**QueryCommand.aliases, "why": "HandCommand.why"}  # noqa: RUF012  traitlets reads it
    words = 1

    @property
    def reason(self) -> str:
        """Return what `--why` says. Raises BadConfig if that is too long."""
        if len(self.why) > wire.TEXT_LIMIT:
            raise BadConfig(f"--why has {len(self.why)} letters, and may have {wire.TEXT_LIMIT}.")
        return self.why


class HoldCommand(HandCommand):
    """`bulletin hold`: a request does not start."""

    name = "bulletin-hold"
    description = (
        "Have a waiting request not start before it is released: hold ID --why=TEXT. Others pass it, and it takes "
        "nothing from them. Its owner and admins may; what an admin holds only an admin releases."
    )
    usage = "hold ID [--why=TEXT] [--json]"

    def question(self, name: str = "") -> console.Hold:
        """Have it held."""
        return console.Hold(id=checked(name), why=self.reason)


class ReleaseCommand(HandCommand):
    """`bulletin release`: a request that was held waits as others do."""

    name = "bulletin-release"
    description = "Let a request that is held wait as others do: release ID. It has waited since it came."
    usage = "release ID [--why=TEXT] [--json]"

    def question(self, name: str = "") -> console.Release:
        """Have it released."""
        return console.Release(id=checked(name), why=self.reason)


class TopCommand(HandCommand):
    """`bulletin top`: a request is the first of its project."""

    name = "bulletin-top"
    description = (
        "Let a waiting request be the first of its project: top ID. Other projects stand where they stood. For admins."
    )
    usage = "top ID [--why=TEXT] [--json]"

    def question(self, name: str = "") -> console.PutFirst:
        """Have it put first."""
        return console.PutFirst(id=checked(name), why=self.reason)


class RequeueCommand(HandCommand):
    """`bulletin requeue`: a running cell leaves its place, and runs again."""

    name = "bulletin-requeue"
    description = (
        "Have a running cell leave its place within its grace, and run again from its beginning: requeue ID. "
        "Its project is charged nothing for the run that was lost. For admins."
    )
    usage = "requeue ID [--why=TEXT] [--json]"

    def question(self, name: str = "") -> console.Requeue:
        """Have it run again."""
        return console.Requeue(id=checked(name), why=self.reason)
