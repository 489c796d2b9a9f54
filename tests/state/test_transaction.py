"""What a cell has changed lands as a whole or not at all, wherever that fails and whenever it is stopped."""

import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bulletin import state
from bulletin.errors import CannotReturn
from bulletin.state.registration_names import told

from .graphs import as_main
from .landing_faults import EVERY, Point, Steps, fail, is_handler, press_stop, some_of
from .landing_scenarios import RELOADED, SCENARIOS
from .landing_trial import Scenario, Seen, Trial, apart, judge, plain_run
from .notebook import Executor


@pytest.mark.parametrize("harm", [fail, press_stop])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_notebook_is_as_before_or_as_after_wherever_the_landing_of_an_answer_fails(
    name: str, harm: Callable[[], None], executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = SCENARIOS[name]
    pytest.importorskip(scenario.needs)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.delenv("TRANSACTION", raising=False)
    with as_main(ModuleType("__main__")):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
        try:
            troubles = check(scenario, harm, executor)
        finally:
            signal.signal(signal.SIGINT, before)
    for made in [made for made in sys.modules if made.startswith(RELOADED)]:
        del sys.modules[made]
    assert not troubles, f"{len(troubles)} times, at first:\n" + "\n".join(troubles[:5])


def check(scenario: Scenario, harm: Callable[[], None], executor: Executor) -> list[str]:
    _, after = plain_run(scenario, executor)
    os.environ.pop("TRANSACTION", None)
    points, final = follow(scenario, after, executor)
    troubles: list[str] = []
    ends: list[bool] = []
    trial: Trial | None = None
    for point in points if harm is fail else some_of(points):
        if harm is fail and point in final:
            continue
        trial = trial or Trial(scenario, executor)
        trial.send()
        steps = Steps(point, harm)
        outcome = trial.land(steps)
        if not steps.has_happened:  # another order of a set, and the line was passed less often
            trial = None
            continue
        is_after, trouble = judge(trial, after, outcome)
        ends.append(is_after)
        if trouble is not None:
            troubles.append(f"{Path(point[0]).name}:{point[1]} passed {point[2]} times: {trouble}")
        if trouble is not None or is_after:
            trial = None
            os.environ.pop("TRANSACTION", None)
    assert any(ends), "it never came to an end"
    assert not all(ends), "nothing was ever undone"
    return troubles


def follow(scenario: Scenario, after: Seen, executor: Executor) -> tuple[list[Point], set[Point]]:
    """The steps at which something is to fail, and those of them that only a signal can stop."""
    trial = Trial(scenario, executor)
    trial.send()
    steps = Steps()
    applied = trial.land(steps)
    assert isinstance(applied, state.Applied), applied
    parted = apart(after, trial.see(), is_same_notebook=False)
    assert parted is None, f"without any fault: {parted}"
    os.environ.pop("TRANSACTION", None)
    last = {point[:2]: point[2] for point in steps.points}
    some = [point for point in steps.points if point[2] in {1, 2, last[point[:2]]} and not is_handler(point)]
    final = {point for point, is_final in zip(steps.points, steps.is_final, strict=True) if is_final}
    return [
        point for place, point in enumerate(some) if place % EVERY == 0 or (point in final and place % 4 == 0)
    ], final


def test_what_both_sides_know_is_forgotten_where_noting_it_fails_and_the_values_stay(executor: Executor) -> None:
    scenario = Scenario("kept = [1]", "kept.append(2)\nfresh = kept")
    with as_main(ModuleType("__main__")):
        _, after = plain_run(scenario, executor)
        trial = Trial(scenario, executor)
        trial.send()
        last = Steps()
        assert isinstance(trial.land(last), state.Applied)
        noting = next(point for point in reversed(last.points) if point[0].endswith("table.py"))
        trial = Trial(scenario, executor)
        trial.send()
        steps = Steps(noting, fail)
        assert isinstance(trial.land(steps), state.Applied)
        assert steps.has_happened
        assert apart(after, trial.see(), is_same_notebook=False) is None
        assert (trial.book.table.version, trial.book.table.objects) == (0, {})
        trial.book.gpu("kept.append(3)")
        assert trial.book["kept"] == [1, 2, 3]
        assert trial.book["fresh"] is trial.book["kept"]


def test_who_cannot_be_told_what_is_left_out_has_the_values_as_they_were(executor: Executor) -> None:
    scenario = Scenario("kept = [1]", "kept.append(2)\nfresh = kept")
    with as_main(ModuleType("__main__")):
        _, after = plain_run(scenario, executor)
        trial = Trial(scenario, executor)
        trial.send()
        last = Steps()
        assert isinstance(trial.land(last), state.Applied)
        start = told.__code__.co_firstlineno
        lines = range(start, start + len(inspect.getsource(told).splitlines()))
        telling = [point for point in last.points if point[0] == told.__code__.co_filename and point[1] in lines]
        assert telling
        for point in telling:
            trial = Trial(scenario, executor)
            trial.send()
            assert judge(trial, after, trial.land(Steps(point, fail))) == (False, None)


REFUSES = """
class Refuses:
    def __getstate__(self):
        return {"n": 1}
    def __setstate__(self, state):
        random.random()
        if where == "notebook" and is_refused:
            raise ValueError("not here")
        self.__dict__.update(state)
import os
where, is_refused = "notebook", True
items, refuses, ring = [1], Refuses(), (1, [2])
refuses.n = 1
"""


def test_a_value_that_refuses_its_state_takes_back_all_others_and_its_random_numbers(executor: Executor) -> None:
    scenario = Scenario(REFUSES, "items.append(refuses); refuses.more = items; refuses = [refuses]; last = refuses")
    with as_main(ModuleType("__main__")):
        trial = Trial(scenario, executor)
        trial.book.local("where = 'executor'")
        trial.book.captured = state.capture(
            trial.book.ns, state.needs(scenario.cell, trial.book.ns), table=trial.book.table
        )
        trial.book.answer = executor.ask(scenario.cell, trial.book.captured.parts)
        trial.book.local("where = 'notebook'")
        outcome = trial.land(Steps())
        assert isinstance(outcome, CannotReturn), outcome
        assert "ValueError: not here" in str(outcome)
        assert apart(trial.before, trial.see(), is_same_notebook=True) is None
        trial.book.local("is_refused = False")
        trial.book.gpu("items.append(3)")
        assert trial.book["items"] == [1, 3]


def test_the_stop_button_is_what_it_was_after_an_answer_has_landed_in_any_thread(executor: Executor) -> None:
    before = signal.getsignal(signal.SIGINT)
    with as_main(ModuleType("__main__")):
        for run in (lambda work: work(), in_a_thread):
            trial = Trial(Scenario("kept = [1]", "kept.append(2)"), executor)
            trial.send()
            run(lambda trial=trial: trial.land(Steps()))
            assert trial.book["kept"] == [1, 2]
            assert signal.getsignal(signal.SIGINT) is before


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
