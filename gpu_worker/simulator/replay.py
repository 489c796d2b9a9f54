"""A journal played again: what the scheduler was told, through the same scheduler, and what it decided."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import assert_never

import msgspec

from bulletin.errors import BadConfig, IllegalMove, InvariantBroken
from bulletin.ids import LeaseId, RequestId
from bulletin.units import show_duration
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Pause, Reclaim, Refuse
from gpu_worker.scheduler.events import RequestSubmitted
from gpu_worker.scheduler.invariants import check
from gpu_worker.scheduler.journal import AnswersDigest, Digest, LifeBegan, Line, Told
from gpu_worker.scheduler.machine import Scheduler

#: Waits that are shown, by name: the percent of all that none of them exceeds.
_PERCENTILES = (("median", 50), ("99%", 99), ("longest", 100))


class ReplayedDecision(msgspec.Struct, frozen=True):
    """One action of the scheduler, in words for a person."""

    at_ms: int
    what: str
    text: str


class ReplayTotals(msgspec.Struct):
    """What a journal comes to. Filled while `decisions` is walked through."""

    lives: int = 0
    steps: int = 0
    skipped: int = 0  #: lines before the first beginning, of which nothing can be made
    decided: Counter[str] = msgspec.field(default_factory=Counter)
    refusals: Counter[str] = msgspec.field(default_factory=Counter)  #: by the kind of their reason
    waits_ms: list[int] = msgspec.field(default_factory=list)  #: from a request to its grant
    still_waiting: int = 0
    digests: int = 0  #: that were as recorded


def replay_decisions(
    lines: Iterable[tuple[int, Line]], totals: ReplayTotals, *, is_checked: bool
) -> Iterator[ReplayedDecision]:
    """Play a journal again; yield each action of the scheduler in order.

    Parameters
    ----------
    lines
        Of `journal.decode`.
    totals
        Is filled on the way.
    is_checked
        Whether the promises and indexes of the scheduler are computed afresh after each event. Slow.

    Raises
    ------
    BadConfig
        If the journal has no beginning.
    InvariantBroken
        With the line at which a promise does not hold, or a recorded digest is another one.
    """
    scheduler: Scheduler | None = None
    digest, asked = Digest(), dict[RequestId, int]()
    number = 0
    for number, line in lines:
        match line:
            case LifeBegan():
                totals.lives += 1
                totals.still_waiting += len(scheduler.state.pending) if scheduler is not None else 0
                scheduler, digest, asked = Scheduler(line.settings), Digest(), {}
            case _ if scheduler is None:
                totals.skipped += 1
            case Told():
                totals.steps += 1
                if isinstance(line.event, RequestSubmitted):
                    asked.setdefault(line.event.request, line.at_ms)
                actions = _step(scheduler, line, number, is_checked=is_checked)
                digest.add(actions)
                yield from _decided(scheduler, actions, line.at_ms, asked, totals)
            case AnswersDigest():
                if line.digest != str(digest):
                    raise InvariantBroken(
                        f"line {number}: the scheduler does not decide as it did when this was written"
                    )
                totals.digests += 1
            case _:
                assert_never(line)
    if scheduler is None:
        raise BadConfig(
            f"The journal has no beginning in its {number} lines: the settings that the broker writes when it starts. "
            "Give the file that was written before it."
        )
    totals.still_waiting += len(scheduler.state.pending)


def _step(scheduler: Scheduler, line: Told, number: int, *, is_checked: bool) -> Sequence[Action]:
    try:
        actions = scheduler.step(line.event, line.at_ms, decides=line.decides)
        if is_checked:
            check(scheduler.state)
    except (InvariantBroken, IllegalMove, AssertionError) as error:
        raise InvariantBroken(f"line {number}: {error or type(error).__name__}") from error
    return actions


def _decided(
    scheduler: Scheduler, actions: Sequence[Action], at_ms: int, asked: dict[RequestId, int], totals: ReplayTotals
) -> Iterator[ReplayedDecision]:
    """Put the actions of one step into words, and count them in `totals`."""
    for action in actions:
        match action:
            case Grant():
                what, text = "grant", f"{action.lease} to {_whose(scheduler, action.lease)}"
                text += f": {', '.join(action.slots)} of {action.agent}"
                if action.request in asked:
                    totals.waits_ms.append(at_ms - asked.pop(action.request))
                    text += f", after {show_duration(totals.waits_ms[-1])}"
                else:
                    what = "grant, said again"
            case Refuse():
                what, text = "refusal", f"{action.request}: {action.reason}"
                totals.refusals[type(action.reason).__name__] += 1
                asked.pop(action.request, None)
            case Evict():
                what, text = "eviction", f"{action.lease} of {_whose(scheduler, action.lease)}"
            case Reclaim() | Pause():
                what = "reclaim" if isinstance(action, Reclaim) else "pause"
                text = f"{action.lease} of {_whose(scheduler, action.lease)}, within {show_duration(action.grace_ms)}"
            case EndLease():
                what, text = "end", f"{action.lease}: {action.why.value}"
            case _:
                assert_never(action)
        totals.decided[what] += 1
        yield ReplayedDecision(at_ms, what, text)


def _whose(scheduler: Scheduler, lease_id: LeaseId) -> str:
    lease = scheduler.state.leases.get(lease_id)  # it may have gone in the same step
    return f"{lease.user} in {lease.project}" if lease is not None else "somebody who has left"


def show_decision(decision: ReplayedDecision) -> str:
    """Return the line of one decision: when, what, whom."""
    at = datetime.fromtimestamp(decision.at_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    return f"{at.removesuffix('+00:00')}  {decision.what.ljust(8)}  {decision.text}"


def summary(totals: ReplayTotals, *, is_checked: bool) -> list[str]:
    """Return what a replay came to, as lines."""
    lines = [f"{totals.steps} events, {totals.lives} {'life' if totals.lives == 1 else 'lives'} of the scheduler"]
    if totals.skipped:
        lines.append(f"{totals.skipped} lines before the first beginning were left out")
    lines += [f"{what.ljust(20)} {number}" for what, number in sorted(totals.decided.items())]
    lines += [f"  {reason.ljust(18)} {number}" for reason, number in sorted(totals.refusals.items())]
    waits = sorted(totals.waits_ms)
    if waits:
        at = {name: show_duration(waits[min(len(waits) - 1, len(waits) * part // 100)]) for name, part in _PERCENTILES}
        lines.append(f"{'wait'.ljust(20)} " + ", ".join(f"{name} {wait}" for name, wait in at.items()))
    lines.append(f"{'still waiting'.ljust(20)} {totals.still_waiting}")
    if totals.digests:
        lines.append("all was decided as it was when this was written")
    if is_checked:
        lines.append("every promise and every index held after each event")
    return lines
