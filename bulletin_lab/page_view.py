"""What a page in JupyterLab shows of the user's cells: in the words that are used wherever people read of a pool. Pure.

The page puts these sentences where they belong, and counts nothing itself.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from bulletin.codes import CellOutcome
from bulletin.ids import SHORT, CellId, LeaseId
from bulletin.kept_time import is_kept
from bulletin.kernel_names import Kind, parse_kernel_name
from bulletin.pool_words import describe_outcome, describe_project, state_words
from bulletin.units import HOUR_MS, show_duration, show_size
from bulletin.wait_words import count, describe_place, ordinal
from bulletin.wire.messages import CellNote
from bulletin.wire.messages.own_cells import OwnDecision, OwnEnded, OwnProject, OwnReport, OwnRunning, OwnWaiting
from bulletin_lab.pool_link import OwnCells

#: More of the first line of a cell is not shown.
_LINE_LIMIT = 60
#: How a cell ends that is nothing to look into.
_WELL = (CellOutcome.RETURNED, CellOutcome.INTERRUPTED, CellOutcome.KEPT)
_PERIODS = {"day": "today", "week": "this week", "month": "this month"}


class WaitingCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell in line."""

    lease: LeaseId
    #: Jupyter's id of the kernel of its notebook; empty where that is not known.
    kernel: str
    kind: Kind
    title: str
    sentence: str
    #: For the status bar: "2nd in line".
    brief: str
    waited_ms: int


class RunningCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that has its slots, or a session that is kept ready for the next one."""

    lease: LeaseId
    kernel: str
    kind: Kind
    title: str
    sentence: str
    #: Where a cell runs and for how long at most: a sentence for a notice, which is read later.
    place: str
    #: Whether a cell runs there or is about to; else there is nothing to cancel.
    is_cell: bool
    #: What brings a cell of the background into another notebook, once its own is gone.
    command: str = ""


class DetachedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that a node still has, and whose notebook is gone."""

    title: str
    sentence: str
    #: What brings it into a notebook, to be typed there.
    command: str


class EndedCell(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt of a cell."""

    lease: LeaseId
    title: str
    #: How it ended, where that is worth a word.
    outcome: str
    is_well: bool
    sentence: str
    ended_at_ms: int


class PageView(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to show. Only where the pool is `there` is more than that."""

    #: There; not answering, as `summary` says; startable by the next cell; or not for this user, or not at all.
    pool: Literal["there", "away", "startable", "none"]
    #: A sentence about the pool, and its beginning for the status bar.
    summary: str = ""
    brief: str = ""
    project: str = ""
    waiting: tuple[WaitingCell, ...] = ()
    #: Of the cells in line, those that are not told one by one.
    more_waiting: int = 0
    running: tuple[RunningCell, ...] = ()
    detached: tuple[DetachedCell, ...] = ()
    ended: tuple[EndedCell, ...] = ()
    #: What an admin tells everybody, with who that is; empty where nobody does.
    announcement: str = ""
    #: What was decided of late of what the user asked for beyond the rules, the latest first.
    decided: tuple[OwnDecision, ...] = ()
    #: Whether something that the user asked for waits for a decision.
    awaits_decision: bool = False
    #: Whether `detached` and `ended` were asked for.
    is_whole: bool = False


def describe(cells: OwnCells) -> PageView:
    """Put what the pool said into the words of the page."""
    report, word = cells.report, cells.report.slot_word
    lines = {note.cell: note for note in cells.notes}
    attended = {one.cell for one in report.running}
    return PageView(
        pool="there",
        summary=_summary(report),
        brief=_free(report),
        project=_project(report.project, word) if report.project is not None else "",
        waiting=tuple(_waiting(one, word) for one in report.waiting),
        more_waiting=report.own_waiting_count - len(report.waiting),
        running=tuple(_running(one, word, lines) for one in report.running),
        detached=tuple(_detached(cells, attended)) if cells.is_whole else (),
        ended=tuple(_ended(one, word) for one in report.ended),
        announcement=report.announcement,
        decided=report.decided,
        awaits_decision=report.awaits_decision,
        is_whole=cells.is_whole,
    )


def _free(report: OwnReport) -> str:
    if not report.total:
        return f"no {report.slot_word}"
    return f"{report.free + report.ready} of {report.total} {report.slot_word}{'s' if report.total > 1 else ''} free"


def _summary(report: OwnReport) -> str:
    """Say in a sentence how many slots are free, and how many people's cells wait; what is kept ready is given away."""
    if not report.total:
        return f"The pool has no {report.slot_word} at this moment."
    own = sum(len(one.slots) for one in report.running if one.state == "hot")
    whose = "your next cell" if own >= report.ready else "somebody's next cell"
    ready = f", {report.ready} of them kept ready for {whose}" if report.ready else ""
    waits = f"{report.waiting_count} waiting" if report.waiting_count else "nobody waits"
    return f"{_free(report)}{ready}; {waits}."


def _project(project: OwnProject, word: str) -> str:
    """Say what the project uses and has left, where it has anything but the line."""
    said = []
    if project.guaranteed_milli or project.limit_milli is not None or project.class_hours:
        said.append(
            describe_project(
                project.project,
                word,
                used_milli=project.used_milli,
                guaranteed_milli=project.guaranteed_milli,
                limit_milli=project.limit_milli,
                class_hours=project.class_hours,
            )
        )
    if project.budget_left_ms is not None and project.period is not None:
        left = max(0, project.budget_left_ms) / HOUR_MS
        said.append(f"{left:.3g} {word}-hours of its budget are left {_PERIODS[project.period]}.")
    return " ".join(said)


def _waiting(one: OwnWaiting, word: str) -> WaitingCell:
    kernel, kind = parse_kernel_name(one.kernel)
    place = describe_place(one.position, count(one.gpus, word), one.usual_ms, one.wait_ms, one.reason)
    return WaitingCell(
        lease=one.lease,
        kernel=kernel,
        kind=kind,
        title=one.label,
        sentence=f"{place} Waited {show_duration(one.waited_ms)}.",
        brief="getting ready" if one.position < 1 else f"{ordinal(one.position)} in line",
        waited_ms=one.waited_ms,
    )


def _running(one: OwnRunning, word: str, lines: dict[CellId, CellNote]) -> RunningCell:
    kernel, kind = parse_kernel_name(one.kernel)
    note = lines.get(one.cell) if one.cell is not None else None
    is_cell = one.state in ("granted", "busy", "reclaiming")
    where = f"{count(len(one.slots), word)} of {one.node}"
    match one.state:
        case "hot":
            said = f"{where} kept ready for the next cell, or given to who needs it."
        case "busy" if is_kept(one.cell):
            at_most = show_duration(one.walltime_ms)
            said = f"{where} kept between cells, and charged as if one ran; at most {at_most} in all."
        case "busy":
            quota = "" if one.in_quota is None else ", in quota" if one.in_quota else ", borrowed"
            at_most = f"; at most {show_duration(one.walltime_ms)}"
            said = f"Running for {show_duration(one.for_ms)} on {where}{quota}{at_most}."
        case "reclaiming":
            said = f"Running on {where}, which is to be given back to its owner."
        case state:
            said = f"{where}: {state_words(state)}."
    return RunningCell(
        lease=one.lease,
        kernel=kernel,
        kind=kind,
        title=(one.label or (_title(note) if note is not None else "")) if is_cell else "",
        sentence=said[:1].upper() + said[1:],
        place=f"On {where}; at most {show_duration(one.walltime_ms)}." if is_cell else "",
        is_cell=is_cell,
        command=_attach(one.cell) if kind == "background" and one.cell is not None and is_cell else "",
    )


def _detached(cells: OwnCells, attended: set[CellId | None]) -> Iterator[DetachedCell]:
    for note in cells.notes:
        if note.is_attended:
            continue
        state = "running" if note.cell in attended else note.state
        began = f"began {show_duration(note.since_ms + cells.notes_age_ms)} ago"
        lost = f"Its process on {note.node} died, and its notebook is gone; it {began}."
        yield DetachedCell(
            title=_title(note),
            sentence=lost if state == "lost" else f"Its notebook is gone: {state} on {note.node}, {began}.",
            command=_attach(note.cell),
        )


def _title(note: CellNote) -> str:
    return note.label or _shorten(note.line)


def _attach(cell: CellId) -> str:
    return f"%gpu attach {cell[:SHORT]}"


def _ended(one: OwnEnded, word: str) -> EndedCell:
    is_kept_place = one.outcome is CellOutcome.KEPT
    facts = [
        f"a place on {one.node}, no cell ran" if is_kept_place else f"ran {show_duration(one.ran_ms)} on {one.node}"
    ]
    if one.peak_memory_bytes is not None:
        facts.append(f"peak {show_size(one.peak_memory_bytes)}")
    if one.mean_utilization is not None:
        facts.append(f"{word} {one.mean_utilization:.0%} busy")
    return EndedCell(
        lease=one.lease,
        title="" if is_kept_place else one.label,  # which says the same as the outcome
        outcome="" if one.outcome is CellOutcome.RETURNED else describe_outcome(one.outcome),
        is_well=one.outcome in _WELL,
        sentence=" · ".join(facts),
        ended_at_ms=one.ended_at_ms,
    )


def _shorten(line: str) -> str:
    return line if len(line) <= _LINE_LIMIT else f"{line[: _LINE_LIMIT - 1]}…"
