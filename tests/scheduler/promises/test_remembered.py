"""What is remembered changes no decision: histories are decided as well by a scheduler that finds all of it anew."""

import random
from collections.abc import Sequence

import msgspec
import pytest

from bulletin.ids import ProjectId, UserName
from bulletin.units import HOUR_MS, MINUTE_MS
from gpu_worker.scheduler import actions as act, events as ev
from gpu_worker.scheduler.deferral import MANY
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.projects import Budget, Project, SchedulerSettings
from tests.scheduler.promises import history as hi
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.forgetful import Beside
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.random_histories import BY_HAND, DRAINS, random_history

#: How many histories a part has: a tenth of a second each.
_SIZE = 20


class _Looks(Judge):
    """Notes where leases are, and judges nothing: others do that."""

    def see(self, event: ev.Event, actions: Sequence[act.Action], now_ms: int, scheduler: Scheduler) -> None:
        self._agents |= {one.lease: one.agent for one in actions if isinstance(one, act.Grant)}


def play_twice(history: hi.History, *, many: int = MANY) -> None:
    """Play it, with all decided twice.

    Raises
    ------
    DecidesOtherwise
        If something is remembered for longer than it holds.
    """
    driver = Driver(history, _Looks(history))
    driver.scheduler = Beside(history.settings, many=many)
    driver.play()


def nested_history(seed: int) -> hi.History:
    """Make up a history of projects inside others, of which each leaves something to those inside or does not.

    What one project leaves changes who is next in those beside it. No project keeps anything from being lent: where
    one does, all is found anew whenever any cell begins.
    """
    history, draw = random_history(seed), random.Random(seed)
    tree: dict[str, str | None] = {
        "d": None,
        "e": "d",
        "f": None,
        "p0": "e",
        "p1": "e",
        "p2": "d",
        "p3": "f",
        "p4": "f",
    }
    there = sum(len(at.what.slots) for at in history.happenings if isinstance(at.what, hi.Joins))
    most_ms = draw.choice((0, 0, 20, 90)) * MINUTE_MS
    has_budgets = draw.choice((0.0, 0.0, 0.3))
    left: dict[str | None, int] = {None: there * 1000, **dict.fromkeys(tree, 0)}
    projects = []
    for name, outer in tree.items():
        mine = min(left[outer], draw.choice((0, 0, 1000, 1000, 2000, 3000)))
        left[outer] -= mine
        left[name] = mine
        limit = draw.choice((None, 1000, 2000, 3000)) if name in "def" or draw.random() < 0.2 else None
        projects.append(
            Project(
                id=ProjectId(name),
                parent=None if outer is None else ProjectId(outer),
                guaranteed_milli=mine,
                limit_milli=None if limit is None else max(limit, mine),
                budget=Budget(draw.choice((HOUR_MS, 2 * HOUR_MS)), "day") if draw.random() < has_budgets else None,
            )
        )
    patience_ms = draw.choice((None, 1, 5))
    classes = tuple(
        one if patience_ms is None else msgspec.structs.replace(one, patience_ms=patience_ms * MINUTE_MS)
        for one in history.settings.qos
    )
    asked = ("interactive", "interactive", "batch", *(("reserved",) if seed % 2 else ()))
    settings = SchedulerSettings(qos=classes, projects=tuple(projects))
    happenings = []
    for at in history.happenings:
        what = at.what
        if isinstance(what, hi.Changes):
            continue
        if isinstance(what, hi.Opens):
            longest_ms = most_ms or 24 * HOUR_MS
            what = msgspec.structs.replace(
                what,
                project=ProjectId(draw.choice(tuple(tree))),
                user=UserName(f"u{draw.randrange(12)}"),
                qos=draw.choice(asked),
                cells=tuple(msgspec.structs.replace(one, run_ms=min(one.run_ms, longest_ms)) for one in what.cells),
            )
        happenings.append(hi.At(at.ms, what))
    return msgspec.structs.replace(history, settings=settings, happenings=tuple(happenings))


@pytest.mark.parametrize("first", [*range(0, 4 * _SIZE, _SIZE), BY_HAND, DRAINS])
def test_what_is_remembered_changes_no_decision(first: int) -> None:
    for seed in range(first, first + _SIZE):
        play_twice(random_history(seed))


@pytest.mark.parametrize("first", range(0, 5 * _SIZE, _SIZE))
def test_what_is_remembered_of_projects_inside_others_changes_no_decision(first: int) -> None:
    for seed in range(first, first + _SIZE):
        play_twice(nested_history(seed))


@pytest.mark.parametrize("first", range(0, 2 * _SIZE, _SIZE))
def test_what_is_remembered_changes_no_decision_upon_what_has_come_free(first: int) -> None:
    for seed in range(first, first + _SIZE):
        play_twice(random_history(seed), many=0)
        play_twice(nested_history(seed), many=0)
