"""`%gpu request`: asking for more than the rules give. What the line means, and what is said of the answer."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bulletin.allowance_words import describe_asked, describe_moment
from bulletin.errors import BadOption
from bulletin.ids import ProjectId
from bulletin.units import HOUR_MS, parse_duration_ms
from bulletin.wire.messages.allowance_requests import (
    MOST_BUDGET_MS,
    MOST_GPUS,
    WHY_LIMIT,
    AllowanceQuestion,
    AllowanceRow,
    AskAllowances,
    DecideAllowance,
    RequestAllowance,
)

_EXAMPLE = '`%gpu request --time 4h --why "my thesis run"`'
_MOST_MS = 366 * 86_400_000


class AllowanceLine(NamedTuple):
    """What a line asks of the pool, and whether the notebook waits for the decision."""

    question: AllowanceQuestion
    waits: bool = False


def _time(text: str) -> int:
    duration_ms = parse_duration_ms(text)
    if not 0 < duration_ms <= _MOST_MS:
        raise ValueError(f"{text!r} is no time that could be granted.")
    return duration_ms


def _gpus(text: str) -> int:
    if not text.isdecimal() or len(text) > len(str(MOST_GPUS)) or not 0 < int(text) <= MOST_GPUS:
        raise ValueError(f"{text!r} is not a whole number of GPUs, as in '2'.")
    return int(text)


def _budget(text: str) -> int:
    try:
        budget_ms = round(float(text.removesuffix("h").strip()) * HOUR_MS)
    except (ValueError, OverflowError):
        budget_ms = 0
    if not 0 < budget_ms <= MOST_BUDGET_MS:
        raise ValueError(f"{text!r} is no number of GPU-hours, as in '10'.")
    return budget_ms


def _why(text: str) -> str:
    if len(text) > WHY_LIMIT:
        raise ValueError(f"{len(text)} characters are too many; {WHY_LIMIT} fit.")
    return text


_OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--time": ("walltime_ms", _time),
    "--gpus": ("gpus", _gpus),
    "--budget": ("budget_ms", _budget),
    "--budget-of": ("budget_of", lambda text: _why(text)[:256]),
    "--for": ("for_ms", _time),
    "--project": ("project", lambda text: ProjectId(_why(text)[:256])),
    "--why": ("why", _why),
}


def parse_request(line: str) -> AllowanceLine:
    """Read what stands behind `%gpu request`; nothing there asks what was asked for before.

    Raises
    ------
    BadOption
        With what is accepted.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        raise BadOption(f"A quotation mark is not closed. Write {_EXAMPLE}.", "%gpu") from None
    if not words:
        return AllowanceLine(AskAllowances())
    fields: dict[str, Any] = {}
    waits, taken_back = False, ""
    while words:
        name, has_value, value = words.pop(0).partition("=")
        if name == "--wait" and not has_value:
            waits = True
            continue
        if name == "--exclusive" and not has_value:
            fields["is_exclusive"] = True
            continue
        if name not in _OPTIONS and name != "--withdraw":
            known = ", ".join((*_OPTIONS, "--exclusive", "--wait", "--withdraw ID"))
            raise BadOption(f"`%gpu request` has no option {name!r}. It takes {known}, as in {_EXAMPLE}.", "%gpu")
        if not has_value:
            if not words or words[0].startswith("--"):
                raise BadOption(f"The option {name} of `%gpu request` needs a value.", "%gpu")
            value = words.pop(0)
        if name == "--withdraw":
            taken_back = value[:256]
            continue
        field, read = _OPTIONS[name]
        try:
            fields[field] = read(value)
        except ValueError as error:
            raise BadOption(f"The option {name} of `%gpu request`: {error}", "%gpu") from None
    if taken_back:
        if fields or waits:
            raise BadOption("--withdraw ID stands alone.", "%gpu")
        return AllowanceLine(DecideAllowance(id=taken_back, is_granted=False))
    if not fields.keys() & {"walltime_ms", "gpus", "budget_ms"}:
        raise BadOption(f"Say what you need, --time, --gpus or --budget, as in {_EXAMPLE}.", "%gpu")
    if "budget_of" in fields and "budget_ms" not in fields:
        raise BadOption("Say how much of the budget you need, as in `%gpu request --budget 10`.", "%gpu")
    if "is_exclusive" in fields and "gpus" not in fields:
        raise BadOption("Say how many GPUs the node has, as in `%gpu request --exclusive --gpus 4`.", "%gpu")
    if not fields.get("why", "").strip():
        raise BadOption(
            f'Say what you need it for with --why "...": whoever decides reads it, as in {_EXAMPLE}.', "%gpu"
        )
    return AllowanceLine(RequestAllowance(**fields), waits)


def describe_request(row: AllowanceRow, slot_word: str) -> str:
    """Say in a sentence what was asked for, and what became of it."""
    what = describe_asked(row, row.project, slot_word)
    said = f": {row.sentence}" if row.sentence else ""
    match row.state:
        case "open":
            return f"Asked for {what}. {_who_decides(row)} ({row.id})"
        case "granted":
            by = f" by {row.by}" if row.by else ""
            until = describe_moment(row.until_at_ms) if row.until_at_ms is not None else ""
            return (
                f"Granted{by} until {until}: {what}{f' ({row.sentence})' if row.sentence else ''}. Run your cell again."
            )
        case "declined":
            return f"Declined by {row.by}: {what}{said}."
        case "withdrawn":
            return f"Taken back: {what}{said}."
        case "over":
            ended = f", ended by {row.by}{said}" if row.until_at_ms is None else said
            return f"Over: {what}{ended}."


def describe_requests(rows: Sequence[AllowanceRow], slot_word: str) -> list[str]:
    """List what this user asked for, a sentence for each."""
    mine = [row for row in rows if row.is_own]
    if not mine:
        return [f"You have asked for nothing of late. To ask for more than your project's rules give: {_EXAMPLE}."]
    return [describe_request(row, slot_word) for row in mine]


def worth_saying(rows: Sequence[AllowanceRow], slot_word: str) -> list[str]:
    """List what is open or in force of what this user asked for: what `%gpu` says."""
    return [describe_request(row, slot_word) for row in rows if row.is_own and row.state in ("open", "granted")]


def _who_decides(row: AllowanceRow) -> str:
    if row.needs_admin:
        return "It is more than a lead of the project may grant: an admin decides."
    if row.leads:
        names = ", ".join(row.leads[:3])
        return f"{names}, who {'lead' if len(row.leads) > 1 else 'leads'} the project, or an admin decides."
    return "A lead of the project or an admin decides."
