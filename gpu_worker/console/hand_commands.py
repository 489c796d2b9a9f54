"""`bulletin hold`, `release`, `top`, `requeue`, `extend` and `boost`: what a person changes by hand."""

from traitlets import Bool, Unicode

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS, parse_duration_ms
from bulletin.wire import console, messages as wire
from gpu_worker.console.moments import ms_from_now
from gpu_worker.console.query_commands import QueryCommand, checked

#: No time that is asked for is longer.
_MOST_MS = 366 * DAY_MS


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
    description = (
        "Let a held request wait as others do: release ID. It has not waited while its user or a lead held it."
    )
    usage = "release ID [--why=TEXT] [--json]"

    def question(self, name: str = "") -> console.Release:
        """Have it released."""
        return console.Release(id=checked(name), why=self.reason)


class TopCommand(HandCommand):
    """`bulletin top`: a request is the first of its project."""

    name = "bulletin-top"
    description = (
        "Let a waiting request be the first of its project: top ID. Other projects stand where they stood. For admins, "
        "and leads in their projects."
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
        "Its project is charged nothing for the run that was lost. For admins, and leads in their projects."
    )
    usage = "requeue ID [--why=TEXT] [--json]"

    def question(self, name: str = "") -> console.Requeue:
        """Have it run again."""
        return console.Requeue(id=checked(name), why=self.reason)


class ExtendCommand(HandCommand):
    """`bulletin extend`: a running cell may take longer."""

    name = "bulletin-extend"
    description = (
        "Give a running cell more time than its walltime: extend ID 30min. Its project's budget must have it; its next "
        "cell has the old walltime. For admins."
    )
    usage = "extend ID TIME [--why=TEXT] [--json]"
    words = 2

    def question(self, name: str = "", time: str = "") -> console.Extend:
        """Have it extended."""
        try:
            more_ms = parse_duration_ms(time)
        except ValueError as error:
            raise BadConfig(str(error)) from None
        if not 0 < more_ms <= _MOST_MS:
            raise BadConfig(f"{time[:40]!r} is no time that a cell may have more: write 1 ms to 366 d.")
        return console.Extend(id=checked(name), more_ms=more_ms, why=self.reason)


class BoostCommand(HandCommand):
    """`bulletin boost`: a user's requests are before those of the project's other users."""

    name = "bulletin-boost"
    description = (
        "Let a user's requests stand before those of the project's other users until a time: "
        "boost USER --project=NAME --until=2026-12-01T08:00 (or --until=+2h); --undo ends it; without a USER, say who "
        "is boosted. Other projects stand where they stood. For admins, and leads in their projects."
    )
    usage = "boost USER --project=NAME --until=TIME [--why=TEXT] [--undo] [--json]\n       bulletin boost [--json]"
    words = 1
    least_words = 0
    project = Unicode("", help="In which project.").tag(config=True)
    until = Unicode("", help="Until when: 2026-12-01T08:00 by this computer's clock, or +2h.").tag(config=True)
    undo = Bool(False, help="End it now.").tag(config=True)
    aliases = {**HandCommand.aliases, "project": "BoostCommand.project", "until": "BoostCommand.until"}  # noqa: RUF012
    flags = {**HandCommand.flags, "undo": ({"BoostCommand": {"undo": True}}, "End it now.")}  # noqa: RUF012

    def question(self, name: str = "") -> console.Boost | console.AskBoosts:
        """Have it done, or ask who is boosted."""
        if not name:
            return console.AskBoosts()
        if not self.project:
            raise BadConfig("Say in which project the user is boosted: --project=NAME.")
        if not self.undo and not self.until:
            raise BadConfig("Say until when: --until=2026-12-01T08:00, or --until=+2h.")
        return console.Boost(
            user=UserName(checked(name)),
            project=ProjectId(checked(self.project)),
            for_ms=None if self.undo else min(ms_from_now(self.until, "--until"), _MOST_MS),
            is_undone=self.undo,
            why=self.reason,
        )
