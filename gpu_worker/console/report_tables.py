"""Rows of reports as tables: who waits, what runs, what projects use, what nodes hold, and cells that ended."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bulletin.kept_time import is_kept
from bulletin.units import HOUR_MS, show_duration, show_size
from bulletin.wait_words import wait_columns
from bulletin.wire import console
from gpu_worker.console.layout import ReportTable
from gpu_worker.console.moments import show_moment

#: Stands where nothing can be said.
NONE = "-"
#: Of an id: as much of it as is still one's own.
_SHORT = 10
_MILLI = 1_000
_STATES = {
    "granted": "starting",
    "busy": "running",
    "reclaiming": "giving back",
    "hot": "kept hot",
    "leaving": "leaving",
}


def waiting_table(rows: Sequence[console.WaitingRow], slot_word: str) -> ReportTable:
    """Show requests in order, each with its reason below."""
    head = ("#", "id", "who", "project", "QoS", "asks for", "waited", "usually", "at most", "pays")
    table = [
        (
            str(row.position),
            short_id(row.lease),
            row.user,
            row.project or NONE,
            row.qos,
            show_count(row.gpus, slot_word),
            show_duration(row.waited_ms),
            *wait_columns(row.usual_ms, row.wait_ms),
            show_payer(row.in_quota) if row.lease else NONE,
        )
        for row in rows
    ]
    return ReportTable(head, table, [row.reason for row in rows])


def running_table(rows: Sequence[console.RunningRow]) -> ReportTable:
    """Show leases: whose they are, where, for how long, and what they are doing."""
    head = ("id", "who", "project", "QoS", "node", "slots", "for", "pays", "state")
    table = [
        (
            short_id(row.lease),
            row.user,
            row.project or NONE,
            row.qos,
            row.node,
            ", ".join(row.slots),
            show_duration(row.for_ms),
            show_payer(row.in_quota),
            ("kept" if is_kept(row.cell) and row.state == "busy" else _STATES[row.state])
            + (", exclusive" if row.is_exclusive else ""),
        )
        for row in rows
    ]
    return ReportTable(head, table)


def project_units(slot_word: str) -> str:
    """Say in which units `project_table` counts."""
    return f"{slot_word}s; budget and credits in {slot_word}-hours"


def project_table(rows: Sequence[console.ProjectRow], *, is_tree: bool) -> ReportTable:
    """Show projects; in a tree, each a little further in than what it is in."""
    head = ("project", "used", "held", "guaranteed", "limit", "budget left", "credits", "waiting", "")
    depths: dict[str, int] = {}
    table = []
    for row in rows:
        depth = depths[row.parent] + 1 if is_tree and row.parent in depths else 0
        depths[row.project] = depth
        table.append(
            (
                "  " * depth + row.project,
                show_amount(row.used_milli),
                show_amount(row.held_milli),
                show_amount(row.guaranteed_milli),
                show_amount(row.limit_milli) if row.limit_milli is not None else "none",
                _budget(row),
                _credits(row),
                str(row.waiting),
                _more(row),
            )
        )
    return ReportTable(head, table)


def _budget(row: console.ProjectRow) -> str:
    if row.budget_ms is None or row.budget_left_ms is None:
        return "none"
    if row.budget_ms < HOUR_MS:
        return f"{show_duration(row.budget_left_ms)} of {show_duration(row.budget_ms)} a {row.period}"
    return f"{row.budget_left_ms / HOUR_MS:.1f} of {row.budget_ms / HOUR_MS:.1f} a {row.period}"


def _credits(row: console.ProjectRow) -> str:
    hours = round(row.credits_ms / HOUR_MS, 1)
    return f"{hours:+.1f}" if hours else "0"


def _more(row: console.ProjectRow) -> str:
    """Say what stands behind a project: its rule, guarantees, node pools, class hours, from when it borrows again."""
    promised = row.promised_milli
    why = "scaled down: all guarantees are more than there is"
    scaled = "" if promised is None else f"guaranteed {show_amount(promised)}, {why}"
    pools = [
        f"{one.name}: {show_amount(one.used_milli)} of {show_amount(one.guaranteed_milli)} guaranteed there"
        for one in row.node_pools
    ]
    borrows = f"behind others for {show_duration(row.borrows_in_ms)}" if row.borrows_in_ms else ""
    rule = f"by the rule {row.rule!r}" if row.rule else ""
    return "; ".join(part for part in (rule, scaled, *pools, row.class_hours, borrows) if part)


def node_table(rows: Sequence[console.NodeRow], slot_word: str) -> ReportTable:
    """Show nodes with the slots that a request could have, and why it cannot."""
    head = ("node", f"{slot_word}s", "free", "running", "hot", "leaving", "")
    table = [
        (
            row.node,
            *(str(number) for number in (row.capacity, row.free, row.busy, row.hot, row.leaving)),
            _about_node(row),
        )
        for row in rows
    ]
    return ReportTable(head, table)


def _about_node(row: console.NodeRow) -> str:
    """Say why a node's free slots are not for the request, or not for long."""
    why = f": {row.why_drained}" if row.why_drained else ""
    if row.is_drained:
        return f"is being drained{why}"
    if not row.is_large_enough:
        return "is too small"
    return "" if row.drains_in_ms is None else f"is drained from {show_moment(row.drains_in_ms)}{why}"


def cell_table(rows: Sequence[console.EndedRow]) -> ReportTable:
    """Show cells that ended, and what they cost."""
    head = ("cell", "run", "ended (UTC)", "outcome", "ran", "held", "in quota", "borrowed", "refunded", "peak memory")
    table = [
        (
            short_id(row.cell) + (f" and {row.runs - 1} more" if row.runs > 1 else ""),
            str(row.attempt),
            f"{datetime.fromtimestamp(row.ended_at_ms / 1000, UTC):%d %b %H:%M:%S}",
            row.outcome + (", exclusive" if row.is_exclusive else ""),
            *(
                show_duration(time_ms)
                for time_ms in (row.ran_ms, row.held_ms, row.in_quota_ms, row.borrowed_ms, row.refunded_ms)
            ),
            show_size(row.peak_memory_bytes) if row.peak_memory_bytes is not None else NONE,
        )
        for row in rows
    ]
    return ReportTable(head, table)


def short_id(name: str) -> str:
    """Cut an id to as much of it as people need."""
    return name[:_SHORT] or NONE


def show_payer(in_quota: bool | None) -> str:  # noqa: FBT001  # it is what is shown
    """Say whether a guarantee pays; None is not known."""
    if in_quota is None:
        return NONE
    return "in quota" if in_quota else "borrows"


def show_count(number: int, word: str) -> str:
    """Write a number of slots with their word."""
    return f"{number} {word}{'' if number == 1 else 's'}" if number else "no GPU"


def show_amount(milli: int) -> str:
    """Write thousandths of a slot as slots, without zeros at the end."""
    return f"{milli / _MILLI:.3f}".rstrip("0").rstrip(".")
