"""Times that people write at a command line: "2026-12-01T08:00" by this computer's clock, or "+2h" from now."""

from datetime import UTC, datetime, timedelta

from bulletin.errors import BadConfig
from bulletin.units import parse_duration_ms

_EXAMPLE = "Write a time of this computer's clock, as 2026-12-01T08:00, or how long from now, as +2h."


def ms_from_now(text: str, option: str) -> int:
    """Return how long from now a time is, in milliseconds. Raises BadConfig, naming the option, for another text."""
    now = datetime.now().astimezone()
    try:
        if text.startswith("+"):
            ms = parse_duration_ms(text[1:])
        else:
            ms = round((datetime.fromisoformat(text).astimezone() - now).total_seconds() * 1000)
    except (ValueError, OverflowError):
        raise BadConfig(f"{option}={text[:40]} is not understood. {_EXAMPLE}") from None
    if ms <= 0:
        raise BadConfig(f"{option}={text[:40]} has passed. {_EXAMPLE}")
    return ms


def show_moment(in_ms: int) -> str:
    """Write when that is by this computer's clock, and which that is: "Tue 1 Dec 08:00 CET"."""
    moment = (datetime.now(UTC) + timedelta(milliseconds=in_ms)).astimezone()
    return f"{moment:%a} {moment.day} {moment:%b %H:%M %Z}"
