"""Reports in words: one line that says it, then what there is to know, in tables."""

from datetime import UTC, datetime

from bulletin.kept_time import is_kept
from bulletin.pool_words import (
    describe_absence,
    describe_drained,
    describe_node,
    describe_state,
    warn_of_accounts,
    warn_of_missing,
)
from bulletin.units import HOUR_MS, show_duration, show_size
from bulletin.wait_words import describe_rest
from bulletin.wire import console, messages as wire
from bulletin.wire.messages.allowance_requests import AllowanceReport
from bulletin.wire.messages.announcements import Announcement, AnnouncementReport
from gpu_worker.console.layout import Blocks, line, name_value_lines, paragraph
from gpu_worker.console.moments import show_moment
from gpu_worker.console.quota_sentences import show_quota_answer
from gpu_worker.console.report_tables import (
    cell_table,
    node_table,
    project_table,
    project_units,
    running_table,
    short_id,
    show_amount,
    show_count,
    show_payer,
    waiting_table,
)
from gpu_worker.console.request_sentences import show_requests


def show(report: console.Report | wire.Picture) -> Blocks:
    """Put what a broker answers into words."""
    match report:
        case wire.Picture():
            return _picture(report)
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
            return [line(_cancelled(report))]
        case console.Drained():
            return _drained(report)
        case console.ChangedByHand():
            return [line(_changed(report))]
        case console.BoostReport():
            return _boosts(report)
        case AnnouncementReport(announcement=found):
            return [line(_announced(found))]
        case console.MetricsReport():
            return [line(row) for row in report.text.splitlines()]
        case AllowanceReport():
            return show_requests(report)
        case _:
            return show_quota_answer(report)


def _picture(picture: wire.Picture) -> Blocks:
    """Say what is going on in the pool: slots, the queue, the latest cells."""
    of_pool = [slot for slot in picture.slots if not slot.owner]
    free = sum(slot.state == "free" for slot in of_pool)
    lines = [f"{len(of_pool)} {picture.slot_word}s, {free} free; up {show_duration(picture.uptime_ms)}"]
    lines += filter(None, (picture.announcement, picture.ledger_problem))
    lines += warn_of_accounts(picture.shared_accounts)
    lines += warn_of_missing(picture.missing_protections, for_admins=True)
    for slot in picture.slots:
        memory = f", {show_size(slot.memory_bytes)}" if slot.memory_bytes else ""
        user = f" ({slot.user})" if slot.user else ""
        state = describe_state(slot.state, slot.drains_in_ms, slot.why_drained)
        lines.append(f"  {describe_node(slot.node, slot.owner)}  {slot.slot}  {slot.name}{memory}: {state}{user}")
    lines += [f"  {describe_absence(one.node, one.absent_ms, one.problem)}" for one in picture.absent_nodes]
    lines.append(f"{len(picture.waiting)} waiting")
    lines += [
        f"  {one.position}. {one.user} ({one.qos}, {one.gpus}): {f'{one.reason}; ' if one.reason else ''}"
        f"has waited {show_duration(one.waited_ms)}"
        f"{describe_rest(one.usual_ms, one.wait_ms)}"
        for one in picture.waiting
    ]
    lines.append("latest cells")
    lines += [
        f"  {cell.cell[:8]}  {cell.user}  {cell.project}  {cell.qos}  {cell.outcome}  "
        f"ran {show_duration(cell.ran_ms)}, "
        f"{cell.slot_ms / 1000:.1f} {picture.slot_word}-seconds"
        for cell in picture.recent
    ]
    counted = [f"{name} {count}" for name, count in picture.counters.items() if count]
    if counted:
        lines.append("turned away: " + ", ".join(counted))
    return [line(one) for one in lines]


def _queue(report: console.QueueReport) -> Blocks:
    """Say who waits, in order, with the reason below; then who holds slots."""
    states = [row.state for row in report.running]
    hot = states.count("hot")
    runs = len(states) - hot - states.count("leaving")
    blocks: Blocks = [line(f"{report.waiting_count} waiting, {runs} running" + (f", {hot} kept hot" if hot else ""))]
    if report.waiting:
        blocks += [line(""), line("waiting"), waiting_table(report.waiting, report.slot_word)]
        left = report.waiting_count - len(report.waiting)
        if left:
            blocks.append(line(f"  and {left} more"))
    if report.running:
        blocks += [line(""), line("running"), running_table(report.running)]
    return blocks


def _all_projects(report: console.ProjectReport) -> Blocks:
    """Say what is used, then the tree of projects."""
    tops = [row for row in report.projects if row.parent is None]
    used_milli = sum(row.used_milli for row in tops)
    word = report.slot_word if used_milli == 1000 else f"{report.slot_word}s"
    number = len(report.projects)
    projects = f"{number} project{'' if number == 1 else 's'}"
    blocks: Blocks = [
        line(f"{projects}, {show_amount(used_milli)} {word} used, {sum(row.waiting for row in tops)} waiting")
    ]
    if report.projects:
        blocks += [line(""), line(project_units(report.slot_word)), project_table(report.projects, is_tree=True)]
    return blocks


def _payers(projects: tuple[console.ProjectRow, ...], word: str) -> Blocks:
    return [
        line(""),
        line(f"what pays for it, from the inside out, in {project_units(word)}"),
        project_table(projects, is_tree=False),
    ]


def _about_waiting(answer: console.AboutWaiting) -> Blocks:
    row, word = answer.request, answer.slot_word
    rest = describe_rest(row.usual_ms, row.wait_ms)
    pays = "in quota" if row.in_quota else "borrows: its guarantee does not cover it now"
    known = [
        ("id", row.lease),
        ("place", f"{row.position} in line, for {show_duration(row.waited_ms)}{rest}"),
        ("asks for", f"{show_count(row.gpus, word)} for {show_duration(row.walltime_ms)}, QoS {row.qos}"),
        ("pays", f"project {row.project}, {pays}"),
    ]
    if row.label:
        known.append(("label", row.label))
    return [
        paragraph(f"{short_id(row.lease)} of {row.user} waits: {row.reason}."),
        line(""),
        name_value_lines(known),
        *_payers(answer.projects, word),
        line(""),
        line("nodes"),
        node_table(answer.nodes, word) if answer.nodes else line("  none is connected that has any"),
    ]


def _about_running(answer: console.AboutRunning) -> Blocks:
    row = answer.lease
    slots = f"on {row.node} ({', '.join(row.slots)})"
    since = show_duration(row.for_ms)
    did = "keeps its place between two cells" if is_kept(row.cell) else "runs a cell"
    first = {
        "granted": f"was granted {since} ago {slots}, and its cell has not begun",
        "busy": f"{did} {slots} for {since}, of {show_duration(row.walltime_ms)} at most",
        "reclaiming": f"{did} {slots} for {since}, and gives its place back to whom it is guaranteed",
        "hot": f"is kept hot {slots} for {since}: no cell runs, and it goes when somebody needs the place",
        "leaving": f"leaves its place {slots} since {since}",
    }[row.state]
    known: list[tuple[str, str]] = [("id", row.lease)]
    if row.cell:
        known.append(("cell", row.cell))
    known.append(("QoS", row.qos))
    if row.is_exclusive:
        known.append(("exclusive", f"it has all of {row.node}, and nobody else is there"))
    payer = f", {show_payer(row.in_quota)}" if row.in_quota is not None else ""
    known.append(("pays", f"project {row.project}{payer}"))
    blocks: Blocks = [
        paragraph(f"{short_id(row.lease)} of {row.user} {first}."),
        line(""),
        name_value_lines(known),
        *_payers(answer.projects, answer.slot_word),
    ]
    return [*blocks, line(""), line("cells before"), cell_table(answer.cells)] if answer.cells else blocks


def _about_ended(answer: console.AboutEnded) -> Blocks:
    last = answer.cells[0]
    when = f"{datetime.fromtimestamp(last.ended_at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    first = (
        f"The cell {short_id(last.cell)} of {last.user} is over: {last.outcome} after {show_duration(last.held_ms)} "
        f"on {last.node} ({', '.join(last.slots)}), {when}."
    )
    known = [("cell", last.cell), ("id", last.lease), ("QoS", last.qos), ("pays", f"project {last.project}")]
    if last.charged_ms is not None:
        known.append(("charged", f"{last.charged_ms / HOUR_MS:.2f} {answer.slot_word}-hours, at their price then"))
    if last.runs > 1:
        known.append(("with", f"{last.runs - 1} short cells after it, which are one row with it"))
    if last.label:
        known.append(("label", last.label))
    return [
        paragraph(first),
        line(""),
        name_value_lines(known),
        line(""),
        line("runs, the last one first"),
        cell_table(answer.cells),
    ]


def _cancelled(answer: console.Cancelled) -> str:
    """Say what will happen, and what to do if it does not."""
    which = f"{short_id(answer.lease)} of {answer.user}"
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


def _changed(answer: console.ChangedByHand) -> str:
    """Say what is so now, and how it is undone."""
    which = f"{short_id(answer.lease)} of {answer.user}"
    match answer.what:
        case "held":
            return f"{which} is held: it does not start before bulletin release {short_id(answer.lease)}"
        case "released":
            return f"{which} is released: it has waited since it came, but not while its own user or a lead held it."
        case "put-first":
            return f"{which} is the first of project {answer.project} now; other projects stand where they stood."
        case "requeued":
            time = f"has {show_duration(answer.grace_ms)} to end" if answer.grace_ms else "ends now"
            return f"The cell of {which} {time}; if it has not by then, it runs again from its beginning."
        case "extended":
            whole, left = show_duration(answer.walltime_ms), show_duration(answer.left_ms)
            return f"The cell of {which} may take {whole} in all now, {left} from now on, and its notebook is told."


def _boosts(report: console.BoostReport) -> Blocks:
    """Say who stands before the other users of their project, and for how long."""
    if not report.boosts:
        return [line("Nobody is boosted.")]
    return [
        line(
            f"{row.user} is before other users of project {row.project} for another {show_duration(row.for_ms)}"
            f" (by {row.by}{f': {row.why}' if row.why else ''})"
        )
        for row in report.boosts
    ]


def _announced(found: Announcement | None) -> str:
    """Say what everybody is told, and until when."""
    if found is None:
        return "Nothing is announced."
    when = f"{show_moment(found.left_ms)}, in {show_duration(found.left_ms)}"
    return f"Announced by {found.by} until {when}: {found.sentence}"


def _drained(answer: console.Drained) -> Blocks:
    """Say whether a node is given cells, and what is left of those it had."""
    busy = [row for row in answer.running if row.state in ("granted", "busy", "reclaiming")]
    when = "" if answer.in_ms is None else f"from {show_moment(answer.in_ms)}, in {show_duration(answer.in_ms)}"
    said = describe_drained(
        answer.node, is_drained=answer.is_drained, cells=len(busy), idle=len(answer.running) - len(busy), when=when
    )
    undo = f" Undo: bulletin drain {answer.node} --undo" if answer.is_drained else ""
    blocks: Blocks = [line(said + undo)]
    return [*blocks, line(""), running_table(busy)] if busy and answer.is_drained and not when else blocks
