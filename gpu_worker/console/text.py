"""Reports in words: one line that says it, then aligned tables. At most 120 columns where names are of usual length."""

import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from bulletin.units import show_duration, show_size
from bulletin.wire import console

WIDTH = 120
_SHORT = 10  # of an id: as much of it as is still one's own
_NONE = "-"  # where nothing can be said
_HOUR_MS = 3_600_000
_MILLI = 1_000
_STATES = {
    "granted": "starting",
    "busy": "running",
    "reclaiming": "giving back",
    "hot": "kept hot",
    "leaving": "leaving",
}


def show(report: console.Report) -> list[str]:
    """The lines of a report."""
    match report:
        case console.QueueReport():
            return _queue(report)
        case console.ProjectReport():
            return _all_projects(report)
        case console.AboutWaiting():
            return _about_waiting(report)
        case console.AboutRunning():
            return _about_running(report)
        case console.AboutEnded():
            return _about_ended(report)
        case console.Cancelled():
            return [_cancelled(report)]
        case console.Drained():
            return _drained(report)


def _queue(report: console.QueueReport) -> list[str]:
    """Who waits, in order, with the reason below; then who holds slots."""
    states = [row.state for row in report.running]
    hot = states.count("hot")
    runs = len(states) - hot - states.count("leaving")
    lines = [f"{report.waiting_count} waiting, {runs} running" + (f", {hot} kept hot" if hot else "")]
    if report.waiting:
        lines += ["", "waiting"]
        rows = [_waiting(row, report.slot_word) for row in report.waiting]
        table = _table(("#", "id", "who", "project", "QoS", "asks for", "waited", "at most", "pays"), rows)
        lines.append(table[0])
        for line, row in zip(table[1:], report.waiting, strict=True):
            lines += [line, *_wrapped(row.reason, "       ")]
        left = report.waiting_count - len(report.waiting)
        lines += [f"  and {left} more"] if left else []
    if report.running:
        lines += ["", "running", *_running(report.running)]
    return lines


def _waiting(row: console.WaitingRow, word: str) -> tuple[str, ...]:
    return (
        str(row.position),
        _id(row.lease),
        row.user,
        row.project or _NONE,
        row.qos,
        _count(row.gpus, word),
        show_duration(row.waited_ms),
        show_duration(row.wait_ms) if row.wait_ms is not None else "not known",
        _pays(row.in_quota) if row.lease else _NONE,
    )


def _running(rows: Sequence[console.RunningRow]) -> list[str]:
    head = ("id", "who", "project", "QoS", "node", "slots", "for", "pays", "state")
    return _table(
        head,
        [
            (
                _id(row.lease),
                row.user,
                row.project or _NONE,
                row.qos,
                row.node,
                ", ".join(row.slots),
                show_duration(row.for_ms),
                _pays(row.in_quota),
                _STATES[row.state],
            )
            for row in rows
        ],
    )


def _all_projects(report: console.ProjectReport) -> list[str]:
    """The tree, each project a little further in than what it is in."""
    waiting = sum(row.waiting for row in report.projects if row.parent is None)
    used = sum(row.used_milli for row in report.projects if row.parent is None)
    number = len(report.projects)
    word = report.slot_word if used == _MILLI else f"{report.slot_word}s"
    first = f"{number} project{'' if number == 1 else 's'}, {_amount(used)} {word} used, {waiting} waiting"
    return [first, *(["", *_projects(report.projects, report.slot_word)] if report.projects else [])]


def _projects(rows: Sequence[console.ProjectRow], word: str, *, is_tree: bool = True) -> list[str]:
    head = ("project", "used", "held", "guaranteed", "limit", "budget left", "credits", "waiting", "")
    depths: dict[str, int] = {}
    table = []
    for row in rows:
        depth = depths[row.project] = depths[row.parent] + 1 if is_tree and row.parent in depths else 0
        table.append(
            (
                "  " * depth + row.project,
                _amount(row.used_milli),
                _amount(row.held_milli),
                _amount(row.guaranteed_milli),
                _amount(row.limit_milli) if row.limit_milli is not None else "none",
                _budget(row),
                _credits(row),
                str(row.waiting),
                _more(row),
            )
        )
    return [f"{word}s; budget and credits in {word}-hours", *_table(head, table)]


def _more(row: console.ProjectRow) -> str:
    borrows = f"borrows again in {show_duration(row.borrows_in_ms)}" if row.borrows_in_ms else ""
    return "; ".join(part for part in (row.class_hours, borrows) if part)


def _budget(row: console.ProjectRow) -> str:
    if row.budget_ms is None or row.budget_left_ms is None:
        return "none"
    return f"{row.budget_left_ms / _HOUR_MS:.1f} of {row.budget_ms / _HOUR_MS:.1f} a {row.period}"


def _credits(row: console.ProjectRow) -> str:
    hours = round(row.credits_ms / _HOUR_MS, 1)
    return f"{hours:+.1f}" if hours else "0"


def _about_waiting(answer: console.AboutWaiting) -> list[str]:
    row, word = answer.request, answer.slot_word
    most = f", {show_duration(row.wait_ms)} more at most" if row.wait_ms is not None else ""
    pays = "in quota" if row.in_quota else "borrows: its guarantee does not cover it now"
    facts = [
        ("id", row.lease),
        ("place", f"{row.position} in line, for {show_duration(row.waited_ms)}{most}"),
        ("asks for", f"{_count(row.gpus, word)} for {show_duration(row.walltime_ms)}, QoS {row.qos}"),
        ("pays", f"project {row.project}, {pays}"),
    ]
    nodes = [
        (
            node.node,
            *(str(number) for number in (node.capacity, node.free, node.busy, node.hot, node.leaving)),
            "is being drained" if node.is_drained else "" if node.is_large_enough else "is too small",
        )
        for node in answer.nodes
    ]
    lines = [*_wrapped(f"{_id(row.lease)} of {row.user} waits: {row.reason}.", ""), "", *_facts(facts, row.label)]
    lines += ["", "what pays for it, from the inside out, in " + _projects_of(answer.projects, word)[0]]
    lines += _projects_of(answer.projects, word)[1:]
    head = ("node", f"{word}s", "free", "running", "hot", "leaving", "")
    return [*lines, "", "nodes", *(_table(head, nodes) if nodes else ["  none is connected that has any"])]


def _projects_of(rows: Sequence[console.ProjectRow], word: str) -> list[str]:
    return _projects(rows, word, is_tree=False)


def _about_running(answer: console.AboutRunning) -> list[str]:
    row, word = answer.lease, answer.slot_word
    place = f"on {row.node} ({', '.join(row.slots)})"
    since = show_duration(row.for_ms)
    first = {
        "granted": f"was granted {since} ago {place}, and its cell has not begun",
        "busy": f"runs a cell {place} for {since}, of {show_duration(row.walltime_ms)} at most",
        "reclaiming": f"runs a cell {place} for {since}, and gives its place back to whom it is guaranteed",
        "hot": f"is kept hot {place} for {since}: no cell runs, and it goes when somebody needs the place",
        "leaving": f"leaves its place {place} since {since}",
    }[row.state]
    facts = [("id", row.lease), *([("cell", row.cell)] if row.cell else []), ("QoS", row.qos)]
    facts.append(("pays", f"project {row.project}" + (f", {_pays(row.in_quota)}" if row.in_quota is not None else "")))
    table = _projects_of(answer.projects, word)
    lines = [*_wrapped(f"{_id(row.lease)} of {row.user} {first}.", ""), "", *_facts(facts)]
    lines += ["", f"what pays for it, from the inside out, in {table[0]}", *table[1:]]
    return lines + (["", "cells before", *_cells(answer.cells)] if answer.cells else [])


def _about_ended(answer: console.AboutEnded) -> list[str]:
    last = answer.cells[0]
    when = f"{datetime.fromtimestamp(last.ended_at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    first = (
        f"The cell {_id(last.cell)} of {last.user} is over: {last.outcome} after {show_duration(last.held_ms)} "
        f"on {last.node} ({', '.join(last.slots)}), {when}."
    )
    facts = [("cell", last.cell), ("id", last.lease), ("QoS", last.qos), ("pays", f"project {last.project}")]
    lines = [*_wrapped(first, ""), "", *_facts(facts, last.label), ""]
    return [*lines, "runs, the last one first", *_cells(answer.cells)]


def _cells(rows: Sequence[console.EndedRow]) -> list[str]:
    head = ("cell", "run", "ended (UTC)", "outcome", "ran", "held", "in quota", "borrowed", "refunded", "peak memory")
    return _table(
        head,
        [
            (
                _id(row.cell),
                str(row.attempt),
                f"{datetime.fromtimestamp(row.ended_at_ms / 1000, UTC):%d %b %H:%M:%S}",
                row.outcome,
                *(
                    show_duration(time_ms)
                    for time_ms in (row.ran_ms, row.held_ms, row.in_quota_ms, row.borrowed_ms, row.refunded_ms)
                ),
                show_size(row.peak_memory_bytes) if row.peak_memory_bytes is not None else _NONE,
            )
            for row in rows
        ],
    )


def _cancelled(answer: console.Cancelled) -> str:
    """What will happen, and what to do if it does not."""
    which = f"{_id(answer.lease)} of {answer.user}"
    match answer.what:
        case "withdrawn":
            return f"{which} is withdrawn, and its notebook is told."
        case "interrupted":
            return (
                f"The cell of {which} is interrupted, and its notebook is told. "
                "Should it go on, the same command again ends its process."
            )
        case "ended":
            return f"The process of {which} is ended, and its notebook is told."


def _drained(answer: console.Drained) -> list[str]:
    """Whether it is given cells, and what is left of those it had."""
    node = answer.node
    if not answer.is_drained:
        return [f"{node} is given cells again."]
    busy = [row for row in answer.running if row.state in ("granted", "busy", "reclaiming")]
    going = len(answer.running) - len(busy)
    cells = f"{len(busy)} cell{'' if len(busy) == 1 else 's'} still run{'s' if len(busy) == 1 else ''} there"
    idle = f"{going} idle session{' leaves' if going == 1 else 's leave'}" if going else ""
    what = ", and ".join(part for part in (cells if busy else "", idle) if part) or "nothing runs there"
    lines = [f"{node} is given nothing more; {what}. Undo: bulletin drain {node} --undo"]
    return lines + (["", *_running(busy)] if busy else [])


# --- small words


def _id(name: str) -> str:
    """As much of an id as people need."""
    return name[:_SHORT] or _NONE


def _pays(in_quota: bool | None) -> str:  # noqa: FBT001  it is what is shown
    return _NONE if in_quota is None else "in quota" if in_quota else "borrows"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}" if number else "no GPU"


def _amount(milli: int) -> str:
    return f"{milli / _MILLI:.3f}".rstrip("0").rstrip(".")


def _facts(facts: Iterable[tuple[str, str]], label: str = "") -> list[str]:
    rows = [*facts, *([("label", label)] if label else [])]
    width = max(len(name) for name, _ in rows)
    return [f"  {name.ljust(width)}  {_printable(value)}" for name, value in rows]


def _wrapped(text: str, indent: str) -> list[str]:
    wide = textwrap.wrap(_printable(text), WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [line.rstrip() for line in wide]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A head and rows, each column as wide as its widest."""
    cells = [[_printable(text) for text in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def _printable(text: str) -> str:
    """A name that cannot move the cursor of who reads it."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
