"""The command line: every `bulletin COMMAND`. Those that ask a pool that runs are in `gpu_worker.console`."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog
from traitlets import Bool, CaselessStrEnum, Unicode

from bulletin import __version__
from bulletin.errors import BadConfig, BulletinError
from bulletin.ids import ProjectId
from bulletin.units import show_duration, show_size
from bulletin.wire import keys, messages as wire
from bulletin.wire.console import Report
from gpu_worker.config import Settings
from gpu_worker.console.command import Command, when_stdin_ends
from gpu_worker.console.commands import (
    CancelCommand,
    DrainCommand,
    ExplainCommand,
    Question,
    QueueCommand,
    QuotaCommand,
)
from gpu_worker.engines import BAD_CONFIG, PoolRunner, make_engine
from gpu_worker.simulator.simulate_command import SimulateCommand

if TYPE_CHECKING:
    from gpu_worker.broker.ledger import Ledger


class PoolCommand(Command):
    """A broker and an agent on this host, each started again when it dies."""

    name = "bulletin-pool"
    description = "Run a pool on this host: a broker and an agent, each started again within a second when it dies."

    def start(self) -> None:
        """Run the pool."""
        settings = self.settings()
        arguments = [word for word in self._given if word != "--exit-with-stdin"]

        async def run() -> int:
            pool = PoolRunner(settings, arguments, make_engine(settings, arguments))
            if self.exit_with_stdin:
                when_stdin_ends(asyncio.get_running_loop(), pool.stop)
            return await pool.run()

        settings.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        settings.connection_file.unlink(missing_ok=True)
        self.status = asyncio.run(run())

    def parse_command_line(self, argv: list[str] | None = None) -> None:
        """Keep the words: broker and agent get the same ones."""
        self._given = list(sys.argv[1:] if argv is None else argv)
        super().parse_command_line(argv)


class BrokerCommand(Command):
    """The broker alone."""

    name = "bulletin-broker"
    description = "Run a broker: identity, queue, leases, ledger. Agents of the same folder find it."

    def start(self) -> None:
        """Run the broker."""
        from gpu_worker.broker.app import Broker, open_files
        from gpu_worker.broker.identity import Hub
        from gpu_worker.broker.ledger import Ledger

        settings = self.settings()
        files = open_files(settings)

        async def run() -> int:
            await Broker(settings, Ledger.open(settings.database), files, Hub.from_environ()).run()
            return 0

        self.status = self.serve(run)


class AgentCommand(Command):
    """One node's agent."""

    name = "bulletin-agent"
    description = (
        "Run the agent of this node: it offers the node's GPUs (or CPU slots) to the broker of the same folder."
    )

    def start(self) -> None:
        """Run the agent."""
        from gpu_worker.agent.app import Agent

        settings = self.settings()
        try:
            files = keys.read_private(settings.pool_file, keys.PoolFile)
        except FileNotFoundError:
            raise BadConfig(f"There is no pool in {settings.folder}. Start its broker first: bulletin broker") from None

        async def run() -> int:
            await Agent(settings, files).run()
            return 0

        self.status = self.serve(run)


class StatusCommand(Question):
    """What is going on in the pool."""

    name = "bulletin-status"
    description = "Show the slots, the queue and the latest cells of the pool in a folder."

    usage = "status [--json]"

    def question(self, _: str = "") -> wire.Look:
        """Ask for the picture."""
        return wire.Look()

    def show(self, answer: Report | wire.Picture) -> list[str]:
        """The picture in lines."""
        assert isinstance(answer, wire.Picture)
        return describe(answer)


def describe(picture: wire.Picture) -> list[str]:
    """The picture as lines for a terminal."""
    free = sum(slot.state == "free" for slot in picture.slots)
    lines = [f"{len(picture.slots)} {picture.slot_word}s, {free} free; up {show_duration(picture.uptime_ms)}"]
    for slot in picture.slots:
        memory = f", {show_size(slot.memory_bytes)}" if slot.memory_bytes else ""
        lines.append(
            f"  {slot.node}  {slot.slot}  {slot.name}{memory}: {slot.state}" + (f" ({slot.user})" if slot.user else "")
        )
    lines.append(f"{len(picture.waiting)} waiting")
    lines += [
        f"  {one.position}. {one.user} ({one.qos}, {one.gpus}): {one.reason}; has waited {show_duration(one.waited_ms)}"
        for one in picture.waiting
    ]
    lines.append("latest cells")
    lines += [
        f"  {cell.cell[:8]}  {cell.user}  {cell.project}  {cell.qos}  {cell.outcome}  "
        f"ran {show_duration(cell.ran_ms)}, "
        f"{cell.gpu_ms / 1000:.1f} GPU-seconds"
        for cell in picture.recent
    ]
    if any(picture.counters.values()):
        lines.append(
            "turned away: " + ", ".join(f"{name} {count}" for name, count in picture.counters.items() if count)
        )
    return lines


class UsageCommand(Command):
    """Who used how much."""

    name = "bulletin-usage"
    description = "Show who used how many GPU-hours, from the ledger of a pool, whether the pool runs or not."
    by = CaselessStrEnum(["user", "project", "qos"], "user", help="Whose sums: of each user, project or QoS.").tag(
        config=True
    )
    period = CaselessStrEnum(
        ["day", "week", "month"],
        None,
        allow_none=True,
        help="Sums of each day, week (from Monday) or month, in UTC. Without: of all the time.",
    ).tag(config=True)
    since = Unicode("", help="From the beginning of this day, UTC. Example: 2026-09-01").tag(config=True)
    until = Unicode(
        "", help="Until before the beginning of this day, UTC: 2026-10-01 has all of September. Empty: until now."
    ).tag(config=True)
    form = CaselessStrEnum(["table", "csv", "json"], "table", help="How to write it.").tag(config=True)
    cells = Bool(False, help="One row for each cell that ended, instead of sums; with --csv or --json.").tag(
        config=True
    )
    credits = Bool(
        False,
        help="What projects earned and spent, instead of use; with --csv or --json a row for each entry.",
    ).tag(config=True)
    aliases = {
        **Command.aliases,
        "by": "UsageCommand.by",
        "period": "UsageCommand.period",
        "since": "UsageCommand.since",
        "until": "UsageCommand.until",
    }
    flags = {
        "csv": ({"UsageCommand": {"form": "csv"}}, "Write comma-separated values, exact, in milliseconds."),
        "json": ({"UsageCommand": {"form": "json"}}, "Write JSON, exact, in milliseconds."),
        "cells": ({"UsageCommand": {"cells": True}}, "One row for each cell, instead of sums."),
        "credits": ({"UsageCommand": {"credits": True}}, "What projects earned and spent, instead of use."),
    }

    def start(self) -> None:
        """Ask the ledger and print, row by row."""
        try:
            self._print()
            sys.stdout.flush()
        except BrokenPipeError:  # who reads has seen enough; nor shall the interpreter's own flush complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _print(self) -> None:
        from gpu_worker.broker import export
        from gpu_worker.broker.ledger import Ledger

        since_ms, until_ms = _day_ms("--since", self.since), _day_ms("--until", self.until)
        settings = self.settings()
        if self.cells and self.credits:
            raise BadConfig("--cells and --credits are two questions. Ask one.")
        if self.cells and self.form == "table":
            raise BadConfig("--cells is for other programs. Add --csv or --json.")
        with Ledger.open(settings.database, upgrade=False) as ledger:
            rows: Iterator[dict[str, Any]]
            if self.credits and self.form == "table":
                sys.stdout.writelines(
                    line + "\n" for line in export.credit_table(ledger.past_credits(since_ms, until_ms))
                )
                return
            if self.credits:
                entries = ledger.credits(since_ms=since_ms, until_ms=until_ms)
                rows, fields = export.credit_rows(entries), export.CREDIT_FIELDS
            elif self.cells:
                rows, fields = ledger.each_cell(since_ms, until_ms), export.CELL_FIELDS
            else:
                parents = _parents(settings, ledger) if self.by == "project" else None
                sums = ledger.each_usage(
                    self.by, period=self.period, since_ms=since_ms, until_ms=until_ms, parents=parents
                )
                if self.form == "table":
                    sys.stdout.writelines(line + "\n" for line in export.table(sums, self.by, self.period))
                    return
                rows, fields = export.usage_rows(sums), export.USAGE_FIELDS
            write = export.write_csv if self.form == "csv" else export.write_json
            write(rows, fields, sys.stdout)


def _parents(settings: Settings, ledger: "Ledger") -> dict[ProjectId, ProjectId | None]:
    """Which project is in which: by the quota file, or where none is named by the quotas that were in force last."""
    from gpu_worker.broker.policy import in_force
    from gpu_worker.quotas import Quotas, read_quotas

    if settings.quota_file is not None:
        quotas, _ = read_quotas(settings.quota_file)
    else:
        quotas = in_force(ledger)[0] or Quotas()
    return {project.id: project.parent for project in quotas.projects}


def _day_ms(option: str, text: str) -> int | None:
    """The beginning of a day, in milliseconds since 1970, UTC. None where there is none."""
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise BadConfig(f"{option} is {text!r}, which is not a day. Write it as in 2026-09-01.") from None
    return int(day.timestamp()) * 1000


COMMANDS: dict[str, type[Command | SimulateCommand]] = {
    "pool": PoolCommand,
    "broker": BrokerCommand,
    "agent": AgentCommand,
    "status": StatusCommand,
    "queue": QueueCommand,
    "explain": ExplainCommand,
    "cancel": CancelCommand,
    "drain": DrainCommand,
    "quota": QuotaCommand,
    "usage": UsageCommand,
    "simulate": SimulateCommand,
}


def main(argv: list[str] | None = None) -> None:
    """Run one command; its errors are sentences, and bad configuration is exit status 78."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in COMMANDS:
        known = "\n".join(f"  bulletin {name:8} {command.description}" for name, command in COMMANDS.items())
        wanted = words and words[0] in ("-h", "--help")
        (sys.stdout if wanted else sys.stderr).write(
            f"usage: bulletin COMMAND [options]\n\n{known}\n\nbulletin COMMAND --help-all shows all settings.\n"
        )
        raise SystemExit(0 if wanted else 2)
    if words[0] == "--version":
        sys.stdout.write(__version__ + "\n")
        raise SystemExit(0)
    structlog.configure(
        processors=[
            lambda _logger, _method, entry: {"part": words[0], **entry},
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "part", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # as it is when something is said
    )
    command = COMMANDS[words[0]]()
    try:
        command.initialize(words[1:])
        command.start()
        raise SystemExit(command.status)
    except BadConfig as error:
        sys.stderr.write(f"bulletin {words[0]}: {error}\n")
        raise SystemExit(BAD_CONFIG) from None
    except BulletinError as error:
        sys.stderr.write(f"bulletin {words[0]}: {error}\n")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
