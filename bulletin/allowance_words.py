"""What is asked for beyond the rules, and until when, in the words that are used wherever people read of it. Pure."""

from datetime import UTC, datetime

from bulletin.units import show_duration
from bulletin.wait_words import count


def describe_amounts(walltime_ms: int | None, gpus: int | None, slot_word: str, *, is_exclusive: bool) -> str:
    """Say what is asked for: "cells of up to 4 h and 2 GPUs as a node for oneself"."""
    parts = [f"cells of up to {show_duration(walltime_ms)}"] if walltime_ms is not None else []
    alone = " as a node for oneself" if is_exclusive else ""
    parts += [f"{count(gpus, slot_word)}{alone}"] if gpus is not None else []
    return " and ".join(parts)


def describe_moment(at_ms: int) -> str:
    """Say a time of day with its day and zone, of this machine's clock: the reader's may be another."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
    return f"{moment:%a} {moment.day} {moment:%b %H:%M %Z}"
