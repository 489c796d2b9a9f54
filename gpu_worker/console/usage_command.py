"""`bulletin usage`: who used how many GPU-hours, from the ledger of a pool, as a table, CSV or JSON."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from traitlets import Bool, CaselessStrEnum, Unicode

from bulletin.errors import BadConfig
from bulletin.ids import ProjectId
from gpu_worker.config import PoolSettings
from gpu_worker.console.base_command import Command, end_quietly_on_broken_pipe

if TYPE_CHECKING:
    from gpu_worker.broker.ledger import Ledger


class UsageCommand(Command):
    """`bulletin usage`: who used how much."""

    name = "bulletin-usage"
    description = "Show who used how many GPU-hours, from the ledger of a pool, whether the pool runs or not."
    by = CaselessStrEnum(
        ["user", "project", "qos", "label"], "user", help="Whose sums: of each user, project, QoS or --label."
    ).tag(config=True)
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
        """Ask the ledger and print, row by row. Raises BadConfig."""
        with end_quietly_on_broken_pipe():
            self._print()
            sys.stdout.flush()

    def _print(self) -> None:
        from gpu_worker.broker import export
        from gpu_worker.broker.ledger import Ledger

        since_ms, until_ms = _day_ms("--since", self.since), _day_ms("--until", self.until)
        if since_ms is not None and until_ms is not None and until_ms <= since_ms:
            raise BadConfig(f"--until={self.until} is not after --since={self.since}: there is no day between them.")
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
                    lines = export.table(sums, self.by, self.period, has_prices=ledger.has_prices())
                    sys.stdout.writelines(line + "\n" for line in lines)
                    return
                rows, fields = export.usage_rows(sums), export.USAGE_FIELDS
            write = export.write_csv if self.form == "csv" else export.write_json
            write(rows, fields, sys.stdout)


def _parents(settings: PoolSettings, ledger: "Ledger") -> dict[ProjectId, ProjectId | None]:
    """Find which project is in which: by the quota file, or without one by what was in force last."""
    from gpu_worker.broker.policy import in_force
    from gpu_worker.broker.seen_groups import SEEN, recalled
    from gpu_worker.quotas import Quotas, read_quotas

    if settings.quota_file is not None:
        quotas, _ = read_quotas(settings.quota_file)
    else:
        quotas = in_force(ledger)[0] or Quotas()
    seen = recalled(ledger.timed_payloads(SEEN), {})
    groups = (*seen.groups, *seen.forgotten)  # what was used long ago was used inside what they were in
    return {project.id: project.parent for project in quotas.settings_for(groups).projects}


def _day_ms(option: str, text: str) -> int | None:
    """Return the beginning of a day, in milliseconds since 1970, UTC; None where no day is given. Raises BadConfig."""
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise BadConfig(f"{option} is {text!r}, which is not a day. Write it as in 2026-09-01.") from None
    return int(day.timestamp()) * 1000
