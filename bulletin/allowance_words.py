"""What is asked for beyond the rules, and until when, in the words that are used wherever people read of it. Pure."""

from datetime import UTC, datetime
from typing import Protocol

from bulletin.units import HOUR_MS, show_duration
from bulletin.wait_words import count


class Amounts(Protocol):
    """What is asked for; of a budget, whose it is."""

    @property
    def walltime_ms(self) -> int | None:
        """Return the length of a cell."""

    @property
    def gpus(self) -> int | None:
        """Return how many in a cell, and at once."""

    @property
    def is_exclusive(self) -> bool:
        """Tell whether they are a node for oneself."""

    @property
    def budget_ms(self) -> int | None:
        """Return what is asked for beyond a budget, GPUs times milliseconds."""

    @property
    def budget_of(self) -> str:
        """Return whose budget that is."""


def describe_amounts(asked: Amounts, slot_word: str) -> str:
    """Say what is asked for: "cells of up to 4 h and 2 GPUs as a node for oneself"."""
    if asked.budget_ms is not None:
        return f"{asked.budget_ms / HOUR_MS:.4g} more {slot_word}-hours of the budget of project {asked.budget_of!r}"
    walltime_ms, gpus = asked.walltime_ms, asked.gpus
    parts = [f"cells of up to {show_duration(walltime_ms)}"] if walltime_ms is not None else []
    alone = " as a node for oneself" if asked.is_exclusive else ""
    parts += [f"{count(gpus, slot_word)}{alone}"] if gpus is not None else []
    return " and ".join(parts)


def describe_asked(asked: Amounts, project: str, slot_word: str) -> str:
    """Say the same with the project in which it is asked for: "cells of up to 4 h in project 'maths'"."""
    amounts = describe_amounts(asked, slot_word)
    return amounts if asked.budget_of == project else f"{amounts} in project {project!r}"


def describe_moment(at_ms: int) -> str:
    """Say a time of day with its day and zone, of this machine's clock: the reader's may be another."""
    moment = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
    return f"{moment:%a} {moment.day} {moment:%b %H:%M %Z}"
