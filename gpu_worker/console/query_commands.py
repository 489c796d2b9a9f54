"""`bulletin status`, `queue`, `explain`, `cancel` and `drain`: one question each, in words or as JSON."""

import sys
from abc import ABCMeta, abstractmethod
from pathlib import Path

import msgspec
from traitlets import Bool, MetaHasTraits, Unicode

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId, UserName
from bulletin.units import DAY_MS
from bulletin.wire import console, messages as wire
from gpu_worker.config import Pool
from gpu_worker.console import client
from gpu_worker.console.base_command import Command, end_quietly_on_broken_pipe
from gpu_worker.console.moments import ms_from_now


class _AbstractCommandMeta(MetaHasTraits, ABCMeta):
    """The metaclass of a command with settings that is none by itself."""


class QueryCommand(Command, metaclass=_AbstractCommandMeta):
    """A command that asks the broker of a pool, and prints the answer."""

    as_json = Bool(False, help="Write JSON, exact, in milliseconds and thousandths of a GPU.").tag(config=True)
    aliases = {"folder": "Pool.folder", "config": "Command.config_file"}
    flags = {"json": ({"QueryCommand": {"as_json": True}}, "Write JSON.")}
    usage = ""
    #: How many words must stand behind the command's name.
    words = 0
    #: How many at least, where some may be left out.
    least_words: int | None = None

    def start(self) -> None:
        """Ask and print."""
        least = self.words if self.least_words is None else self.least_words
        if not least <= len(self.extra_args) <= self.words:
            self.refuse()
            return
        pool = Pool(parent=self)
        folder = Path(pool.folder).expanduser().absolute()
        self._connection = client.find_pool(folder, is_named="folder" in self.config.Pool)
        answer = self.ask(self.question(*self.extra_args))
        self.status = self.status_of(answer)
        with end_quietly_on_broken_pipe():
            text = self.render(answer)
            if text is not None:
                sys.stdout.write(text)
            elif self.as_json:
                sys.stdout.write(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n")
            else:
                from gpu_worker.console import (  # they load rich, which JSON and quota files do not need
                    layout,
                    report_sentences,
                )

                layout.write(report_sentences.show(answer), sys.stdout)
            sys.stdout.flush()

    def ask(self, question: console.FromConsole | wire.Look) -> console.Report | wire.Picture:
        """Ask once. Raises NotDone, with the broker's own sentence."""
        return client.ask(self._connection, question)

    @abstractmethod
    def question(self, name: str = "") -> console.FromConsole | wire.Look:
        """Make the message that asks, given the word behind the command's name."""

    def status_of(self, _: console.Report | wire.Picture) -> int:
        """Return the exit status that the answer comes to."""
        return 0

    def render(self, _: console.Report | wire.Picture) -> str | None:
        """Return the answer in a form of the command's own; None is in words, or as JSON."""
        return None

    def refuse(self) -> None:
        """Say how the command is written, and set exit status 2."""
        sys.stderr.write(f"usage: bulletin {self.usage}\n")
        self.status = 2


class StatusCommand(QueryCommand):
    """`bulletin status`: slots, the queue and the latest cells."""

    name = "bulletin-status"
    description = (
        "Show the slots, the queue and the latest cells of the pool in a folder. Exit status 3: a node that should be "
        "there is not; 1: the broker does not answer."
    )
    usage = "status [--json]"

    def status_of(self, answer: console.Report | wire.Picture) -> int:
        """Return 3 where a node is lost, or registered and not there."""
        return 3 if isinstance(answer, wire.Picture) and answer.absent_nodes else 0

    def question(self, _: str = "") -> wire.Look:
        """Ask for the picture."""
        return wire.Look()


class QueueCommand(QueryCommand):
    """`bulletin queue`: who waits, and who runs."""

    name = "bulletin-queue"
    description = "Show who waits, in order, and why; and who runs where. Only admins see other people's names."
    usage = "queue [--user=NAME] [--project=NAME] [--json]"
    user = Unicode("", help="Only of this user.").tag(config=True)
    project = Unicode("", help="Only of this project and what is in it.").tag(config=True)
    aliases = {**QueryCommand.aliases, "user": "QueueCommand.user", "project": "QueueCommand.project"}

    def question(self, _: str = "") -> console.AskQueue:
        """Ask for the queue."""
        return console.AskQueue(
            user=UserName(self.user) if self.user else None,
            project=ProjectId(self.project) if self.project else None,
        )


class ExplainCommand(QueryCommand):
    """`bulletin explain`: all about one request, lease or cell."""

    name = "bulletin-explain"
    description = (
        "Say all that is known of a request, a lease or a cell: explain ID. Why it waits, where it runs, how it ended. "
        "The beginning of an id is enough."
    )
    usage = "explain ID [--json]"
    words = 1

    def question(self, name: str = "") -> console.AskAbout:
        """Ask about it."""
        return console.AskAbout(id=checked(name))


class CancelCommand(QueryCommand):
    """`bulletin cancel`: stop one request or cell."""

    name = "bulletin-cancel"
    description = (
        "Withdraw a waiting request, or interrupt its cell as the stop button does: cancel ID. "
        "Said again, its process is ended. Its owner and admins may."
    )
    usage = "cancel ID [--json]"
    words = 1

    def question(self, name: str = "") -> console.Cancel:
        """Have it cancelled."""
        return console.Cancel(id=checked(name))


class DrainCommand(QueryCommand):
    """`bulletin drain`: empty a node, or give it cells again."""

    name = "bulletin-drain"
    description = (
        "Give a node nothing more, so that it can be taken down: drain NODE. Running cells end first, idle sessions "
        "leave at once. It holds until `drain NODE --undo`. With --at=2026-12-01T08:00, or --at=+2h, it is drained "
        "then, and is given until then only cells that are over by then, by their walltime. For admins."
    )
    usage = "drain NODE [--at=TIME] [--why=TEXT] [--undo] [--json]"
    at = Unicode("", help="When: 2026-12-01T08:00 by this computer's clock, or +2h. Empty: now.").tag(config=True)
    why = Unicode("", help="Why, in a few words: all users read it, and the ledger keeps it.").tag(config=True)
    aliases = {**QueryCommand.aliases, "at": "DrainCommand.at", "why": "DrainCommand.why"}
    words = 1
    undo = Bool(False, help="Give the node cells again.").tag(config=True)
    flags = {**QueryCommand.flags, "undo": ({"DrainCommand": {"undo": True}}, "Give the node cells again.")}

    def question(self, name: str = "") -> console.Drain:
        """Have it drained."""
        if len(self.why) > wire.TEXT_LIMIT:
            raise BadConfig(f"--why has {len(self.why)} letters, and may have {wire.TEXT_LIMIT}.")
        if self.undo and self.at:
            raise BadConfig("Write --at=TIME, or --undo, and not both.")
        in_ms = min(ms_from_now(self.at, "--at"), 366 * DAY_MS) if self.at else None
        return console.Drain(node=checked(name), is_undone=self.undo, in_ms=in_ms, why=self.why)


class MetricsCommand(QueryCommand):
    """`bulletin metrics`: what is counted, for Prometheus."""

    name = "bulletin-metrics"
    description = (
        "Write what is counted of the pool as Prometheus reads it: the queue, waits, leases, GPU time, bytes and "
        "failures, by project and class of service. For a pool whose hub's page Prometheus does not reach. For admins."
    )
    usage = "metrics [--json]"

    def question(self, _: str = "") -> console.AskMetrics:
        """Ask for it."""
        return console.AskMetrics()


def checked(name: str) -> str:
    """Return a word that may go into a message. Raises BadConfig."""
    if not 0 < len(name) <= wire.TEXT_LIMIT:
        raise BadConfig(f"{name[:20]!r} is no id and no name: those have 1 to {wire.TEXT_LIMIT} letters.")
    return name
