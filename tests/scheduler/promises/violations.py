"""What the referee says: which promise was broken, when, and the facts, in words."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gpu_worker.scheduler import actions as act, events as ev
from tests.scheduler.promises.view import View


class Violation(NamedTuple):
    """A promise of the page that was broken."""

    promise: int  #: its number on the page
    at_ms: int  #: since the beginning of the history
    what: str  #: the same words for the same kind of violation
    facts: str

    def __str__(self) -> str:
        return f"promise {self.promise} at {self.at_ms / 1000:.1f} s: {self.what}: {self.facts}"


class Report(Protocol):
    """Where a rule writes what it found."""

    def __call__(self, promise: int, what: str, facts: str) -> None:
        """Write one down."""


class Rule:
    """Judges one or a few promises. What it does not say, it has nothing against."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def restart(self) -> None:
        """Begin the clocks anew: something happened after which the promises about time count from now."""

    def elapse(self, now_ms: int) -> None:
        """Judge the time that has passed, before what happened now is written down."""

    def event(self, event: ev.Event, view: View) -> None:
        """Judge what happened; it is written down."""

    def action(self, action: act.Action, view: View) -> None:
        """Judge a decision before it is written down."""

    def step(self, event: ev.Event, actions: Sequence[act.Action], view: View) -> None:
        """Take in how things stand after a step."""


def seconds(milliseconds: int) -> str:
    """Show a duration in seconds."""
    return f"{milliseconds / 1000:.1f} s"
