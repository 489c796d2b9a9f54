"""Rows of the ledger for people and as CSV or JSON, written as they come and never all in memory."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from bulletin.units import HOUR_MS
from gpu_worker.broker.records import CreditRecord
from gpu_worker.broker.tables import cells, credit_entries
from gpu_worker.broker.usage import Usage
from gpu_worker.csv_fields import defuse
from gpu_worker.scheduler.events import PastCredits

_SLOTS = {"gpu": "GPU", "cpu": "CPU slot"}
#: The columns of an export of cells, in their order.
CELL_FIELDS = tuple(column.name for column in cells.columns if column is not cells.c.marks)
#: The columns of an export of what projects earned and spent.
CREDIT_FIELDS = tuple(column.name for column in credit_entries.columns)
#: The columns of an export of usage: the last two are the first and the last moment of its stretch, for spreadsheets.
USAGE_FIELDS = (*Usage.__struct_fields__, "slot_ms", "gpu_ms", "from_utc", "until_utc")


def usage_rows(rows: Iterable[Usage]) -> Iterator[dict[str, Any]]:
    """Usage as rows of `USAGE_FIELDS`."""
    for row in rows:
        yield {
            **msgspec.structs.asdict(row),
            "slot_ms": row.slot_ms,
            "gpu_ms": row.gpu_ms,
            "from_utc": _time_of_day(row.from_ms),
            "until_utc": _time_of_day(row.until_ms),
        }


def credit_rows(entries: Iterable[CreditRecord]) -> Iterator[dict[str, Any]]:
    """Earnings and spendings as rows of `CREDIT_FIELDS`."""
    return (msgspec.structs.asdict(one) for one in entries)


def write_csv(rows: Iterable[Mapping[str, Any]], fields: Sequence[str], to: TextIO) -> None:
    """Write a head and one line for each row (RFC 4180). None becomes an empty field; numbers stay as they are.

    A text that a spreadsheet would run as a formula gets an apostrophe before it, which spreadsheets take as "text".
    """
    writer = csv.writer(to)
    writer.writerow(fields)
    for row in rows:
        writer.writerow([_field(row[name]) for name in fields])


def write_json(rows: Iterable[Mapping[str, Any]], fields: Sequence[str], to: TextIO) -> None:
    """Write one list of objects, an object a line."""
    before = "[\n"
    for row in rows:
        to.write(before + json.dumps({name: _plain(name, row[name]) for name in fields}))
        before = ",\n"
    to.write("[]\n" if before == "[\n" else "\n]\n")


def table(rows: Iterable[Usage], by: str, period: str | None, *, has_prices: bool = False) -> Iterator[str]:
    """Usage as lines for a terminal, in hours; time that was refunded is in the two before it.

    What was charged has a column where GPUs have prices.
    """
    sums = ("in quota", "borrowed", "refunded", "hot", *(["charged"] if has_prices else []))  # in hours
    first = f"{period:10}  " if period else ""
    yield f"{first}{by:24}  {'of':8}  {'cells':>8}" + "".join(f"  {name + ', h':>11}" for name in sums)
    for row in rows:
        day = f"{datetime.fromtimestamp(row.from_ms / 1000, UTC):%Y-%m-%d}  " if period else ""
        times = [row.in_quota_ms, row.borrowed_ms, row.refunded_ms, row.hot_ms]
        times += [row.charged_ms] if has_prices else []
        hours = "".join(f"  {time_ms / HOUR_MS:>11.2f}" for time_ms in times)
        yield f"{day}{_printable(row.of):24}  {_SLOTS[row.kind]:8}  {row.cells:>8}{hours}"


def credit_table(rows: Iterable[PastCredits]) -> Iterator[str]:
    """Show what projects earned and spent as lines for a terminal, in hours.

    The balance is not just their difference: what went above the most, or as far below none, is not in it.
    """
    yield f"{'project':40}" + "".join(f"  {name + ', h':>13}" for name in ("earned", "spent", "not counted", "balance"))
    for row in rows:
        name = _printable(row.project) + (" (own users)" if row.own_users else "")
        of = row.credits
        sums = (of.earned, of.spent, of.forgotten + of.forgiven, of.balance)
        yield f"{name:40}" + "".join(f"  {sum_ms / HOUR_MS:>13.2f}" for sum_ms in sums)


def _time_of_day(unix_ms: int) -> str:
    """Write a moment as each spreadsheet reads it: with a zone behind it, it would stay text in some."""
    return f"{datetime.fromtimestamp(unix_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _printable(text: str) -> str:
    """Replace each character that is not printable by U+FFFD: a name must not move the cursor of a terminal."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _field(value: object) -> object:
    if isinstance(value, str):
        return defuse(value)
    return "" if value is None else value


def _plain(name: str, value: object) -> object:
    return json.loads(value) if name == "slots" and isinstance(value, str) else value
