"""Random histories by seed keep every promise: a share of those that `make.py soak` plays."""

import hashlib
import os
import subprocess
import sys

import msgspec
import pytest

from gpu_worker.scheduler.machine import Scheduler
from tests.scheduler.promises.driver import Driver
from tests.scheduler.promises.history import ByHand, PlansDrain
from tests.scheduler.promises.judge import Judge
from tests.scheduler.promises.play import play
from tests.scheduler.promises.random_histories import ALONE, BY_HAND, DRAINS, KEPT, MIXED, random_history
from tests.scheduler.promises.shrink import shrink

#: Histories that still break a promise, by seed, each with its number: what is open. The list only gets shorter.
OPEN: dict[int, int] = {}
#: Histories that broke one in a long run and do no more, where no scenario says it in fewer words.
MENDED = (
    220208, 220760, 221453, 221589, 821054, 822227, 822714, 823134, 823210, 901205, 901826, 902166, 902181, 911034,
    9316168,
)  # fmt: skip
#: In how many parts they are played, and how many histories a part has: a fifteenth of a second each.
_PARTS, _SIZE = 12, 25


@pytest.mark.parametrize("part", range(_PARTS))
def test_random_histories_keep_every_promise(part: int) -> None:
    for seed in sorted(set(range(part * _SIZE, (part + 1) * _SIZE)) - set(OPEN)):
        judge, _ = play(random_history(seed))
        assert not judge.violations, f"python -m tests.scheduler.promises.soak --show {seed}\n{judge.violations[0]}"


@pytest.mark.parametrize("seed", MENDED)
def test_histories_that_were_found_to_break_one_keep_all(seed: int) -> None:
    judge, _ = play(random_history(seed))
    assert not judge.violations, judge.violations[0]


@pytest.mark.parametrize("part", range(2))
def test_they_do_where_a_busy_broker_decides_upon_several_facts_at_once(part: int) -> None:
    for seed in range(part * _SIZE, (part + 1) * _SIZE):
        history = random_history(seed)
        busy = msgspec.structs.replace(history.delays, noted_only_percent=40)
        judge, _ = play(msgspec.structs.replace(history, delays=busy))
        assert not judge.violations, f"seed {seed}: {judge.violations[0]}"


@pytest.mark.parametrize("part", range(2))
def test_they_do_where_every_line_is_taken_for_a_long_one(part: int) -> None:
    for seed in range(part * _SIZE, (part + 1) * _SIZE):
        history = random_history(seed)
        judge = Judge(history, most=1)
        driver = Driver(history, judge)
        driver.scheduler = Scheduler(history.settings, many=0)
        driver.play()
        assert not judge.violations, f"seed {seed}: {judge.violations[0]}"


@pytest.mark.parametrize("seed", OPEN)
def test_what_is_open_is_open_still(seed: int) -> None:
    judge, _ = play(random_history(seed))
    assert judge.violations, f"seed {seed} keeps its promises now: take it off the list"


@pytest.mark.parametrize(
    "first", [begin + part * _SIZE for begin in (BY_HAND, DRAINS, MIXED, KEPT, ALONE) for part in range(2)]
)
def test_what_people_change_keep_and_are_granted_breaks_no_promise_nor_do_nodes_of_several_types_or_had_alone(
    first: int,
) -> None:
    for seed in sorted(set(range(first, first + _SIZE)) - set(OPEN)):
        history = random_history(seed)
        judge, _ = play(history)
        if judge.violations:  # what breaks without them, too, is open for others
            others = tuple(at for at in history.happenings if not isinstance(at.what, ByHand | PlansDrain))
            without, _ = play(msgspec.structs.replace(history, happenings=others))
            assert without.violations, f"python -m tests.scheduler.promises.soak --show {seed}\n{judge.violations[0]}"


def test_a_history_is_the_same_each_time_and_played_the_same() -> None:
    assert random_history(7) == random_history(7)
    first, second = (play(random_history(7), keeps_log=True)[0].log for _ in range(2))
    assert first == second
    assert len(first) > 20


def test_a_history_that_keeps_its_promises_is_not_made_smaller() -> None:
    history = random_history(0)
    assert shrink(history) == (history, None)


def test_a_history_is_decided_the_same_whatever_the_order_of_sets() -> None:
    """A share is taken on one of several nodes: which one has nothing to do with the hashes of their names."""
    words = "from tests.scheduler.promises import test_random_histories as it; print(it.digest(3472))"
    found = {
        subprocess.run(
            [sys.executable, "-c", words], env=os.environ | {"PYTHONHASHSEED": number}, check=True, capture_output=True
        ).stdout
        for number in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop()) > 40


def digest(seed: int) -> str:
    """Compute what stands for all decisions of a random history."""
    judge, _ = play(random_history(seed), keeps_log=True)
    return hashlib.sha256(repr(judge.log).encode()).hexdigest()
