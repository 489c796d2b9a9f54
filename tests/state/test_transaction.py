"""What a cell has changed lands as a whole or not at all, wherever that fails and whenever it is stopped."""

import ast
import contextlib
import functools
import gc
import linecache
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn, Self

import pytest

import bulletin
from bulletin import state
from bulletin.errors import CannotReturn

from .census import Census, Form, difference
from .graphs import as_main
from .notebook import Executor, Notebook, run_cell

HOMES = tuple(str(Path(bulletin.__file__).with_name(name)) for name in ("state", "cpython"))
#: These copy bytes, unbind names, and call what comes after that: only a signal can come in between.
NO_RETURN = frozenset(
    {
        "ExchangeReader.write_memory",
        "LoadTransaction.finish",
        "ExchangeReader.delete",
        "apply",
        "_land",
        "_settle",
        "InterruptGuard.__enter__",
        "InterruptGuard.__exit__",
    }
    | {"InterruptGuard.hold", "InterruptGuard.release", "undisturbed", "silence"}
)
#: Of the steps that are the first, the second or the last to pass a line, each so many-th is tried; with 1, all are.
EVERY = int(os.environ.get("BULLETIN_FAULTS", "150"))

#: What `apply` says it could not set, with the values in place; and what a value's own code may fail in unnoticed.
UNSETTLED = frozenset(
    {"random", "numpy.random", "torch.random", "os.getcwd()", "os.environ", "the settings of libraries"}
    | {"the source of a cell", "a module of the notebook"}
)
MAY_FAIL = frozenset({"_made_alike"})

#: How the modules begin that a scenario makes.
RELOADED = "transaction_reloaded_"

#: A line of a file, and how often it has been passed.
Point = tuple[str, int, int]


class Fault(MemoryError):
    """What goes wrong, and is no fault of the value that is being loaded."""


def fail() -> NoReturn:
    raise Fault("planted")


def press_stop() -> None:
    signal.raise_signal(signal.SIGINT)


class Steps:
    """Follows the lines of `bulletin.state` and `bulletin.cpython` while they run, and does harm at one of them."""

    def __init__(self, at: Point | None = None, harm: Callable[[], None] | None = None) -> None:
        self._at, self._harm = at, harm
        self._passed: dict[tuple[str, int], int] = {}
        self.points: list[Point] = []
        self.is_final: list[bool] = []  # of each point: nothing but a signal can stop it
        self.has_happened = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(HOMES) else None

    def _line(self, frame: FrameType, event: str, _argument: object) -> Any:
        if event == "line":
            place = frame.f_code.co_filename, frame.f_lineno
            point = (*place, self._passed.get(place, 0) + 1)
            self._passed[place] = point[2]
            self.points.append(point)
            self.is_final.append(frame.f_code.co_qualname.partition(".<locals>")[0] in NO_RETURN | MAY_FAIL)
            if point == self._at and self._harm is not None:
                self.has_happened = True
                self._harm()
        return self._line


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


CONTAINERS = Scenario(
    """
from collections import OrderedDict, defaultdict, deque
class Own(list):
    pass
class Slots:
    __slots__ = ("a", "b")
class Plain:
    pass
class Other:
    pass
class Guarded:
    def __setattr__(self, name, value): raise AttributeError(name)
class State:
    def __init__(self): self.raw = [1]
    def __getstate__(self): return {"raw": self.raw}
    def __setstate__(self, state): self.raw = state["raw"]
items, table, ordered = [1, [2], 3], {"b": 1, "a": [2]}, OrderedDict([("z", 1), ("y", 2)])
default, ring, group, raw = defaultdict(list, {"k": [1]}), deque([1, 2], maxlen=3), {1, 2}, bytearray(b"abc")
own, slots, plain, turns, guarded, with_state = Own([1]), Slots(), Plain(), Plain(), Guarded(), State()
own.note, slots.a, plain.b, plain.a, turns.x = "n", [1], 1, [2], 1
alias, inner, knot = items, table["a"], []
knot.append(knot)
iterator = iter(items)
pair = (items, [1])
bystander, holder, put = [ring], Plain(), (lambda ring: lambda: ring)(ring)
holder.ring = ring
empty_list, empty_table = [], {}
gone, late = [1], 1
""",
    """
items[1].append(4)
items.insert(0, {"new": inner})
table.pop("b"); table["c"] = items; table["b"] = 2; inner.append(table)
ordered.move_to_end("z"); ordered["x"] = knot
default["m"].append(1); default.default_factory = dict
ring = deque(ring, maxlen=9); ring.append(3)
group.add("x"); group.discard(1); raw += b"def"; raw[0] = 0
own.append(own); own.note = items; own.more = 1
slots.b = slots; del slots.a
del plain.b; plain.c = plain; plain.a.append(1)
turns.__class__ = Other; turns.y = 2
object.__setattr__(guarded, "__class__", Other); guarded.x = 1
with_state.raw = [items]
knot.append(1)
next(iterator)
pair[1].append(pair)
empty_list.append(1); empty_table["x"] = 1
del gone
late, fresh = [items], {"a": plain}
""",
)

DEFINITIONS = Scenario(
    """
import ast
import functools
def plain(a, b=[1], *, c={"k": 1}) -> int:
    "Says."
    return a
plain.note = [1]
def make():
    count, empty = [0], 1
    def step():
        count.append(empty)
        return count
    def other(): return count
    def forget():
        nonlocal empty
        empty = 2
    return step, other, forget
step, other, forget = make()
@functools.lru_cache
def cached(n): return n
cached.note = 1
class Base:
    limit, items = 1, [1]
    def method(self): return 1
    @property
    def size(self): return 1
    @staticmethod
    def fixed(): return 1
class Child(Base):
    __slots__ = ("x",)
    total = 0
class Bare:
    __slots__ = ("x",)
one, bare, part, bound = Child(), Bare(), functools.partial(plain, 1, b=[2]), Base.method
one.x = [1]
method = one.method
old = plain
""",
    """
def swapped(a, b=2): return a + b
plain.__code__ = (lambda a, b=2, *, c=3: [a, b, c]).__code__
plain.__defaults__ = ([2], bare); plain.__kwdefaults__ = {"c": 2}; plain.__annotations__ = {"a": str, "b": Base}
plain.__name__, plain.__doc__ = "other", None
plain.more = swapped; plain.note.append(2)
step(); forget()
cached.note = 2; cached.more = 3
Base.limit = [2]; Base.items.append(bare); bare.x = Base; Base.extra = 1; del Base.size
Base.method = swapped; Base.fixed = staticmethod(plain)
Child.total += 1; one.x.append(Base); one.y = 1
class New(Child): pass
fresh = New()
part.keywords["b"].append(1)
def late(): return late
old = 1
""",
    hidden=("cached",),
    probe="((cached.__dict__.get('note'), cached.__dict__.get('more'), cached(3)), [cached, cached.__wrapped__])",
)

ERRORS = Scenario(
    """
import os
class Mine(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b
kept, mine, plain = ValueError("x", [1]), Mine(1, [2]), KeyError("k")
mine.__cause__ = plain
shared = kept.args[1]
""",
    """
import random
kept.args = ("y", shared); shared.append(2); kept.__cause__ = mine; kept.note = 1
mine.__cause__ = None; mine.b.append(kept)
plain.add_note("note")
random.random()
os.environ["BULLETIN_NOT_THIS"] = "1"; os.environ["TRANSACTION"] = "1"
first = 1
raise mine
""",
)

ARRAYS = Scenario(
    """
import numpy as np
flat, grid, order = np.arange(6.0), np.arange(12).reshape(3, 4), np.asfortranarray(np.ones((2, 3)))
view, turned, whole = flat[1:4], grid.T, grid[:]
objects, rows = np.array([1, [2], None], dtype=object), np.zeros(2, dtype=[("a", "i4"), ("b", "f8")])
shaped, grows, typed, locked, empty = np.arange(6), np.arange(3), np.arange(4), np.arange(3), np.zeros((0, 2))
locked.flags.writeable = False
raw = bytearray(8)
window = np.frombuffer(raw, dtype="i4")
text, scalar, zero = np.array(["a", "bc"]), np.float64(2), np.array(5)
inner = objects[1]
holder = [grows]
record = np.rec.array([(1, 2.0)], dtype=[("x", "i4"), ("y", "f8")])
""",
    """
flat[2] = 9; grid[0, 0] = -1; order[1, 1] = 7; turned[3, 2] = 5; rows["b"][1] = 2.5
objects[1].append(objects); objects[0] = "z"; objects[2] = flat
shaped.shape = (2, 3); shaped[0, 0] = 4
grows = np.arange(9); typed.dtype = "u8"; locked.flags.writeable = True; locked[0] = 8; locked.flags.writeable = False
window[1] = 3; view[0] = -5; zero[...] = 6; text[0] = "q"; record.x[0] = 7
flat.flags.writeable = False
fresh, large = flat[::2], np.arange(9000.0)
pair = (fresh, large[10:20])
np.random.rand()
del whole
""",
    needs="numpy",
)

FRAMES = Scenario(
    """
import numpy as np, pandas as pd
frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [0.5, 1.5, 2.5]})
series, other, index = pd.Series([1.0, 2.0], name="s"), frame[["a"]], frame.index
frame.attrs["note"] = [1]
kept, holder = frame, {"frame": frame, "series": series}
def known():
    held = [frame, series, frame.attrs, index, frame.index, frame.columns]
    return (list(index), list(frame.index), str(frame.index.dtype)), held
""",
    """
frame.loc[1, "a"] = 9; frame["d"] = frame["c"] * 2; frame.attrs["note"].append(2)
frame.drop(index=[0], inplace=True); frame.rename(columns={"b": "B"}, inplace=True)
series[0] = 7.0; series.name = "t"; series.index = ["p", "q"]
other = other + 1
fresh = frame.groupby("B").sum()
""",
    hidden=("index",),
    probe="known()",
    needs="pandas",
)

TORCH = Scenario(
    """
import torch
torch.manual_seed(1)
def see(t):
    numbers = t.detach().double().numpy().round(4).tolist()  # the last bit depends on where memory lies
    return (tuple(t.shape), t.stride(), str(t.dtype), t.requires_grad, numbers, dict(vars(t)),
        None if t.grad is None else see(t.grad))
def all_of(*tensors):
    return [part for t in tensors for part in (t, t.grad, t.data_ptr())]
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
best = torch.optim.Adam(model.parameters(), lr=0.1)
def train():
    best.zero_grad()
    model(torch.ones(4, 2) * torch.rand(4, 2)).pow(2).sum().backward()
    best.step()
train()
plain, part = torch.arange(6.0), None
part = plain[2:4]
leaf, resized = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
leaf.note = [1]
resized.grad = torch.ones(3)
shape = torch.arange(4)
cleared = torch.ones(2, requires_grad=True)
cleared.grad = torch.ones(2)
def known():
    tensors = [*model.parameters(), *model.buffers(), plain, part, leaf, resized, shape, cleared]
    moments = [held["exp_avg"] for held in best.state.values()]
    rest = (model.training, [sorted(map(str, group)) for group in best.param_groups], best.param_groups[0]["lr"])
    return ([see(t) for t in tensors + moments], rest, torch.get_rng_state().numpy().tobytes()), [
        *all_of(*tensors, *moments), model, best, *model, best.param_groups, *best.param_groups]
""",
    """
train()
model.eval(); model[0].extra = 1; best.param_groups[0]["lr"] = 0.5
plain[3] = 9; part.mul_(2)
leaf.requires_grad_(False); leaf.note.append(2); leaf.more = 1
resized.data = torch.zeros(5); resized.grad = torch.zeros(5)
shape.unsqueeze_(0)
cleared.grad = None
fresh = plain[1:]
del train
""",
    hidden=("model", "best", "plain", "part", "leaf", "resized", "shape", "cleared", "fresh"),
    probe="known()",
    needs="torch",
)

HANDLES = Scenario(
    """
import io
from threading import Lock
def held():
    lock = Lock()
    lock.acquire()
    return lock
locked = held()
box, text, raw = {"lock": locked, "n": [1]}, io.StringIO("abc"), io.BytesIO(b"xyz")
text.read(1)
""",
    """
box["n"].append(2); box["again"] = box["lock"]
text.seek(2); raw.write(b"q")
made = (i for i in "ab")
box["made"] = [made]
""",
    hidden=("locked", "box", "text", "raw", "made"),
    probe="((list(box), box['n'], text.tell(), text.getvalue(), raw.getvalue()), [box, *box.values(), text, raw])",
)

MODULES = Scenario(
    """
import importlib, os, pathlib, sys
from bulletin.state import modules
def write(text):
    pathlib.Path(name + ".py").write_text(text)
    importlib.invalidate_caches()
name = "transaction_reloaded_" + os.urandom(4).hex()
write("LIMIT = 1\\nitems = [1]\\ndef f(): return 1\\n")
reloaded = importlib.import_module(name)
modules.observe()
write("LIMIT = 2\\nitems = [2]\\ndef f(): return 2\\nEXTRA = 1\\n")
kept = []
def known():
    held = sys.modules[name]
    found = [part for part in vars(held) if part != "__builtins__"]
    data = found, held.LIMIT, list(held.items), held.f(), vars(held).get("EXTRA")
    return data, [reloaded, held, held.f, held.items]
""",
    """
import importlib
kept.append(reloaded.LIMIT)
importlib.reload(reloaded)
reloaded.items.append(reloaded.LIMIT)
kept.append(reloaded.f())
""",
    hidden=("name", "reloaded"),
    probe="known()",
)

SCENARIOS = {
    "modules": MODULES,
    "containers": CONTAINERS,
    "definitions": DEFINITIONS,
    "errors": ERRORS,
    "arrays": ARRAYS,
    "frames": FRAMES,
    "torch": TORCH,
    "handles": HANDLES,
}


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


def some_of(points: list[Point]) -> list[Point]:
    """Every third moment, others in each run of the tests, and all of the last ones, after which nothing is undone.

    Where a fault fails, a stop nearly always does: each of them would take minutes. With BULLETIN_SOAK it is each.
    """
    if "BULLETIN_SOAK" in os.environ:
        return points
    return points[random.randrange(3) : -30 : 3] + points[-30:]


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


def is_handler(point: Point) -> bool:
    """Whether it is where an exception is handled: Python loses count of exceptions if a tracer raises one there."""
    return point[1] in handlers(point[0])


@functools.cache
def handlers(file: str) -> frozenset[int]:
    """The lines of a file that belong to an `except` or a `finally`."""
    parts: list[ast.AST] = []
    for node in ast.walk(ast.parse(Path(file).read_text())):
        if isinstance(node, ast.Try):
            parts += [*node.handlers, *node.finalbody]
    lines = {line for part in parts for line in range(part.lineno, (part.end_lineno or part.lineno) + 1)}  # type: ignore[attr-defined]
    before = {part.lineno - 1 for part in parts}  # type: ignore[attr-defined]  # the line of `finally:` itself
    return frozenset(lines | {line for line in before if linecache.getline(file, line).strip().startswith("finally")})


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
