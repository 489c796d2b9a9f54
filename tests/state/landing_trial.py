"""One notebook whose cell is answered: all that can be seen of it, before and after, and whether that is right."""

import contextlib
import gc
import os
import signal
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from bulletin import state
from bulletin.errors import CannotReturn

from .census import Census, Form, difference
from .landing_faults import Fault, Steps
from .notebook import Executor, Notebook, run_cell

#: What `apply` says it could not set, with the values in place.
UNSETTLED = frozenset(
    {"random", "numpy.random", "torch.random", "os.getcwd()", "os.environ", "the settings of libraries"}
    | {"the source of a cell", "a module of the notebook"}
)


@dataclass(frozen=True)
class Scenario:
    """A notebook, and a cell that changes it. `hidden` are names of values that a census cannot describe."""

    setup: str
    cell: str
    hidden: tuple[str, ...] = ()
    #: An expression: what is to be known of the hidden ones, as plain data and as objects.
    probe: str = "((), ())"
    needs: str = "sys"


@dataclass(frozen=True)
class Seen:
    """All that anybody can see of a notebook."""

    form: Form
    world: dict[str, Any]
    data: object
    objects: list[int]


class Trial:
    """One notebook with its scenario."""

    def __init__(self, scenario: Scenario, executor: Executor) -> None:
        self.scenario = scenario
        self.book = Notebook(executor)
        self._census = Census()
        self._kept: list[object] = []
        sys.modules["__main__"] = self.book.module
        self.book.local("import random\nrandom.seed(1)")
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(1)
        self.book.local(scenario.setup)
        self.before = self.see()

    def see(self) -> Seen:
        spoken = self.book.ns
        data, objects = eval(self.scenario.probe, spoken)
        self._kept += objects
        world = {
            "names": [name for name in spoken if name != "__warningregistry__"],
            "environ": dict(os.environ),
            "folder": os.getcwd(),  # noqa: PTH109
            "collector": gc.isenabled(),
            "filters": list(warnings.filters),
            "gradients": "torch" in sys.modules and sys.modules["torch"].is_grad_enabled(),
            "handler": signal.getsignal(signal.SIGINT),
        }
        shown = {name: value for name, value in spoken.items() if name not in self.scenario.hidden}
        marks = [part if type(part) is int else id(part) for part in objects]
        return Seen(self._census.take(shown, {}), world, data, marks)

    def send(self) -> None:
        """The cell runs, and its answer is here."""
        book = self.book
        book.captured = state.capture(book.ns, state.needs(self.scenario.cell, book.ns), table=book.table)
        book.answer = book.executor.ask(self.scenario.cell, book.captured.parts)
        assert "failed" not in book.answer, book.answer["failed"]

    def land(self, steps: Steps) -> state.Applied | BaseException:
        assert self.book.captured is not None
        with steps:
            try:
                return state.apply(self.book.answer["parts"], self.book.ns, sent=self.book.captured)
            except (CannotReturn, KeyboardInterrupt, Fault) as problem:
                return problem


def pick(one: Any, other: Any) -> object:
    """The first part that the other does not have there."""
    if not isinstance(one, list | tuple) or type(one) is not type(other) or len(one) != len(other):
        return one
    place = next(place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
    return place, pick(one[place], other[place])


def apart(one: Seen, other: Seen, *, is_same_notebook: bool, is_settled: bool = True) -> str | None:
    """How the two can be told apart."""
    parted = difference(one.form, other.form)
    if parted is not None and (is_settled or parted.kind != "random numbers"):
        return str(parted)
    if not is_settled:
        return None
    if one.data != other.data:
        return f"data: expected {pick(one.data, other.data)}, found {pick(other.data, one.data)}"
    if is_same_notebook and one.objects != other.objects:
        places = [
            place for place, pair in enumerate(zip(one.objects, other.objects, strict=True)) if pair[0] != pair[1]
        ]
        return f"other objects in {places} of what the probe gives"
    for name, value in one.world.items():
        if name == "filters" and not is_same_notebook:
            continue  # libraries add some where they are first imported, which may have been before this test
        is_names = name == "names" and not is_same_notebook
        found = other.world[name]
        if (sorted(value) != sorted(found)) if is_names else (value != found):
            return f"{name}: expected {value}, found {found}"
    return None


def plain_run(scenario: Scenario, executor: Executor) -> tuple[Seen, Seen]:
    """How the notebook is before and after the cell where the cell runs in the notebook itself."""
    trial = Trial(scenario, executor)
    with contextlib.suppress(Exception):  # a cell may raise
        run_cell(scenario.cell, trial.book.ns, "<cell>")
    return trial.before, trial.see()


def judge(trial: Trial, after: Seen, outcome: state.Applied | BaseException) -> tuple[bool, str | None]:
    """Whether the values have landed, and what is wrong if neither all of them have nor none."""
    table, now = trial.book.table, trial.see()
    as_before = apart(trial.before, now, is_same_notebook=True)
    is_failure = isinstance(outcome, CannotReturn | Fault)
    if isinstance(outcome, BaseException) and (table.objects or table.units or table.version):
        return False, f"the table still has {len(table.objects)} objects"
    if is_failure or as_before is None:
        return False, as_before if is_failure else "nothing has landed" if isinstance(outcome, state.Applied) else None
    is_settled = not isinstance(outcome, state.Applied) or UNSETTLED.isdisjoint(gone.name for gone in outcome.stayed)
    as_after = apart(after, now, is_same_notebook=False, is_settled=is_settled)
    if as_after is not None and not isinstance(outcome, state.Applied):
        as_after = f"it is neither as before ({as_before}) nor as after ({as_after})"
    return True, as_after or still_works(trial, now)


def still_works(trial: Trial, now: Seen) -> str | None:
    """Send everything once more, and change nothing."""
    trial.book.gpu("globals() and None")
    return apart(now, trial.see(), is_same_notebook=True)
