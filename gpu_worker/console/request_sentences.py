"""What people ask for beyond the rules, in words and as CSV."""

import csv
import io
from datetime import UTC, datetime

from bulletin.allowance_words import describe_amounts
from bulletin.units import show_duration
from bulletin.wire.messages.allowance_requests import AllowanceReport, AllowanceRow
from gpu_worker.console.layout import Blocks, line
from gpu_worker.csv_fields import defuse

#: The columns of `--csv`.
_COLUMNS = (
    "id", "asked_at", "user", "project", "walltime_ms", "gpus", "for_ms", "why", "state", "by", "sentence", "until",
    "exclusive", "budget_ms", "budget_of",
)  # fmt: skip


def as_csv(report: AllowanceReport) -> str:
    """Write the rows as CSV; times of day in UTC. What would be a formula in a spreadsheet is text."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for row in report.rows:
        cells = (
            row.id, _utc(row.asked_at_ms), row.user, row.project, row.walltime_ms, row.gpus, row.for_ms, row.why,
            row.state, row.by, row.sentence, _utc(row.until_at_ms), "yes" if row.is_exclusive else "",
            row.budget_ms, row.budget_of,
        )  # fmt: skip
        writer.writerow(["" if cell is None else defuse(str(cell)) for cell in cells])
    return text.getvalue()


def show_requests(report: AllowanceReport) -> Blocks:
    """Say what was asked for: who, what, why, and what became of it."""
    if not report.rows:
        return [line("Nobody asks for anything.")]
    blocks: Blocks = []
    for row in report.rows:
        blocks.append(line(f"{row.id}  {row.user} in project {row.project}: {show_wanted(row, report.slot_word)}"))
        blocks.append(line(f"    why: {row.why}"))
        blocks.append(line(f"    {_standing(row, report.slot_word)}"))
    return blocks


def show_wanted(row: AllowanceRow, slot_word: str) -> str:
    """Say what is asked for, and for how long: "cells of up to 4 h, for 24 h"."""
    amounts = describe_amounts(row, slot_word)
    return f"{amounts}, for {show_duration(row.for_ms)}"


def _standing(row: AllowanceRow, slot_word: str) -> str:
    said = f": {row.sentence}" if row.sentence else ""
    by = f" by {row.by}" if row.by else " by the project's rules"
    match row.state:
        case "open":
            uses = f"uses {row.used_milli / 1000:g} {slot_word}s now" if row.used_milli else "uses nothing now"
            takes = " (which takes an admin)" if row.needs_admin else ""
            decide = f"; bulletin request grant {row.id}{takes}, or decline" if row.may_decide else ""
            return f"open: {uses}{decide}"
        case "granted":
            return f"granted{by}, for another {show_duration(row.left_ms or 0)}{said}"
        case "over" if row.until_at_ms is None:
            return f"over: {row.by} ended it{said}"
        case "over":
            return f"over: it was granted{by}{said}"
        case state:
            return f"{state}{by}{said}"


def _utc(at_ms: int | None) -> str:
    return "" if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
