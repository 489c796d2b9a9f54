"""What the broker answers about the quota file and changes of it, in words for a terminal."""

from datetime import UTC, datetime

from rich.text import Text

from bulletin.units import show_duration
from bulletin.wire.messages.quota_edits import (
    PreviewRow,
    QuotaAnswer,
    QuotaErrors,
    QuotaFileReport,
    QuotaLog,
    QuotaPreview,
    QuotasChangedMeanwhile,
    QuotasEdited,
)
from gpu_worker.console.layout import Blocks, ReportTable, line, paragraph


def show_quota_answer(answer: QuotaAnswer) -> Blocks:
    """Put it into words."""
    match answer:
        case QuotaFileReport():
            return _file(answer)
        case QuotasEdited():
            return _edited(answer)
        case QuotaErrors():
            return [line("Nothing was changed."), *(paragraph(_error(one.path, one.sentence)) for one in answer.errors)]
        case QuotasChangedMeanwhile():
            return _changed_meanwhile(answer)
        case QuotaLog():
            return _log(answer)
        case QuotaPreview():
            return _preview(answer)


def _file(answer: QuotaFileReport) -> Blocks:
    blocks: Blocks = [line(f"{answer.file}, version {answer.version}")]
    blocks += [paragraph(f"It has errors, and is not in force: {one}") for one in answer.errors]
    blocks += [paragraph(answer.obstacle)] if answer.obstacle else []
    return [*blocks, line(""), *(Text(row) for row in answer.text.splitlines())]


def _edited(answer: QuotasEdited) -> Blocks:
    if answer.version == answer.before:
        return [line("It is so already: nothing was changed.")]
    said = [line(f"In force. The quota file is now version {answer.version}, and was {answer.before}.")]
    blocks: Blocks = [*said, *(line(f"  {one}") for one in answer.changes or ("only comments and layout changed",))]
    blocks += [paragraph(f"Note: {one}") for one in answer.warnings]
    return [*blocks, line("Undo: bulletin quota undo")]


def _error(path: tuple[str, ...], sentence: str) -> str:
    return sentence if not path or path[-1] in sentence else f"{'.'.join(path)}: {sentence}"


def _changed_meanwhile(answer: QuotasChangedMeanwhile) -> Blocks:
    said = f"Nothing was changed: {answer.by} has changed the quota file since. It is version {answer.version} now."
    return [paragraph(said), *(line(f"  {one}") for one in answer.changes)]


def _log(answer: QuotaLog) -> Blocks:
    if not answer.versions:
        return [line("No version of the quota file is kept yet.")]
    rows, notes = [], []
    for one in answer.versions:
        at = datetime.fromtimestamp(one.at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
        rows.append((one.version, at, one.by, "in force" if one.is_in_force else "", one.why))
        notes.append("; ".join(one.changes))
    return [ReportTable(("version", "when (UTC)", "who", "", "why"), rows, notes)]


def _preview(answer: QuotaPreview) -> Blocks:
    if answer.state == "working":
        return [line("It is still being worked out. Ask again.")]
    blocks: Blocks = [line(f"  {one}") for one in answer.changes or ("nothing that counts would change",)]
    blocks += [paragraph(f"Note: {one}") for one in answer.warnings]
    said = [one for one in (answer.sentence, answer.by_project) if one]
    blocks += [line(""), *map(paragraph, said)] if said else []
    if not answer.rows:
        return blocks
    head = ("project", "cells", "waited now", "waited then", "at once now", "at once then")
    return [*blocks, line(""), ReportTable(head, [_row(one) for one in answer.rows])]


def _row(row: PreviewRow) -> tuple[str, ...]:
    waited = show_duration(row.waited_now_ms), show_duration(row.waited_then_ms)
    return (row.project, str(row.cells), *waited, f"{row.at_once_now:.0%}", f"{row.at_once_then:.0%}")
