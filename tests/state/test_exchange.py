# ruff: noqa: E501  cells are one line each
"""What goes out, what comes back, and what happens when something cannot."""

import argparse
import linecache
import os
import pickle
import random
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin import state
from bulletin.errors import CannotReturn, CannotSend, StayedBehind
from bulletin.state import load_transaction

from .notebook import ROOT, Executor, Notebook


def test_only_what_the_cell_reaches_is_sent(notebook: Notebook) -> None:
    notebook.local("big = [0] * 1000\nk = 2\ndef h(): return k\ndef f(): return h()\nother = 5")
    notebook.gpu("r = f()\nbig = r")
    assert notebook.captured is not None
    assert sorted(notebook.captured.names) == ["f", "h", "k"]
    assert notebook["big"] == 2


def test_functions_are_reached_by_any_path(notebook: Notebook) -> None:
    notebook.local("k = 1\nj = 2\nclass C:\n  def m(self): return k\nbox = {'a': [C()], 'b': lambda: j}")
    notebook.gpu("box")
    assert notebook.captured is not None
    assert sorted(notebook.captured.names) == ["C", "box", "j", "k"]


def test_a_dynamic_look_up_in_a_reached_function_sends_everything(notebook: Notebook) -> None:
    notebook.local("a = 1\nb = 2\ndef f(s): return eval(s)")
    applied = notebook.gpu("f('a + b')")
    assert applied.extra["result"] == 3


def test_a_bystander_that_cannot_travel_disturbs_nothing(notebook: Notebook) -> None:
    notebook.local("gen = (i for i in 'ab')\nlock = __import__('threading').Lock()\nlock.acquire()\na = 1\nkept = gen")
    assert notebook.gpu("a += 1").stayed == []
    assert notebook.gpu("b = globals()['a']").stayed == []
    assert (notebook["a"], notebook["b"], notebook["gen"] is notebook["kept"]) == (2, 2, True)


def test_a_name_that_only_a_function_may_look_up_is_left_behind_and_said(notebook: Notebook) -> None:
    notebook.local("gen = (i for i in 'ab')\ndef f(use):\n  return next(gen) if use else 1")
    applied = notebook.gpu("r = f(False)")
    assert notebook.captured is not None
    assert [(stayed.name, stayed.kind) for stayed in notebook.captured.stayed] == [("gen", "generator")]
    assert (notebook["r"], applied.stayed, next(notebook["gen"])) == (1, [], "a")
    assert "gen is a generator and stayed in the notebook" in str(notebook.gpu("r = f(True)").extra["error"])


DIRECT = {
    "gen = (i for i in 'ab')": "generator",
    "gen = lock": "_thread.lock",
    "import zlib\ngen = zlib.compressobj()": "zlib.Compress",
}


@pytest.mark.parametrize("setup", DIRECT)
def test_a_name_that_cannot_travel_is_refused(setup: str, notebook: Notebook) -> None:
    notebook.ns["lock"] = threading.Lock()
    with notebook.ns["lock"]:
        notebook.local(setup)
        with pytest.raises(CannotSend) as caught:
            notebook.gpu("gen")
    assert (caught.value.name, caught.value.path, caught.value.kind) == ("gen", "gen", DIRECT[setup])


NESTED = {
    "cfg = {'db': type('Db', (), {})(), 'ok': 1}\ncfg['db'].opts = {'sync': [lock]}": ("cfg['db'].opts['sync'][0]", "cfg['db'].opts['sync'][0]", "a lock"),
    "fh = [open('/dev/null')]\n": ("fh[0]", "fh[0]", "an open file"),
    "def mk():\n  g = iter(x for x in 'a')\n  return lambda: g\nf = mk()": ("f()", "the variable 'g' inside f", "a generator"),
    "import functools\np = functools.partial(print, lock)": ("p.args[0]", "p.args[0]", "a lock"),
    "class S:\n  __slots__ = ('v',)\ns = S()\ns.v = (1, lock)": ("s.v[1]", "s.v[1]", "a lock"),
    "import zlib\nm = {3: zlib.compressobj()}": ("m[3]", "m[3]", "a zlib.Compress"),
}  # fmt: skip


@pytest.mark.parametrize("setup", NESTED)
def test_what_cannot_travel_and_is_nested_is_a_handle_that_names_itself_when_touched(
    setup: str, notebook: Notebook
) -> None:
    expression, path, kind = NESTED[setup]
    notebook.ns["lock"] = threading.Lock()
    with notebook.ns["lock"]:
        notebook.local(setup)
        notebook.local(f"kept = {expression}")
        touched = notebook.gpu(f"held = {expression}\nheld.anything").extra["error"]
        assert str(touched).startswith(f"{path} is {kind} and stayed in the notebook. ")
        assert notebook["held"] is notebook["kept"]
        assert notebook.local(expression) is notebook["kept"]
    if setup.startswith("fh"):
        notebook["fh"][0].close()


def test_a_result_that_cannot_travel_stays_under_its_name_as_a_handle(notebook: Notebook) -> None:
    notebook.local("a = [1]")
    applied = notebook.gpu("import zlib\na.append(2)\nm = zlib.compressobj()\nok = 5\n(i for i in 'ab')")
    assert sorted((stayed.name, stayed.kind) for stayed in applied.stayed) == [
        ("_", "generator"),
        ("m", "zlib.Compress"),
    ]
    assert (notebook["a"], notebook["ok"]) == ([1, 2], 5)
    assert repr(notebook["m"]) == "<m is a zlib.Compress and stayed on the pool>"
    for touch in ("m.group()", "m[0]", "len(m)", "list(m)", "m()", "bool(m)", "m + 1", "m.x = 1", "del m.x"):
        with pytest.raises(StayedBehind, match=r"m is a zlib\.Compress and stayed on the pool"):
            notebook.local(touch)


def test_an_iterator_over_matches_stays_as_the_part_that_cannot_travel_and_later_cells_go_on_with_it(
    notebook: Notebook,
) -> None:
    stayed = notebook.gpu("import re\nfound = re.finditer('.', 'abc')\nfirst = next(found)[0]").stayed
    assert [(one.name, one.kind) for one in stayed] == [("found", "_sre.SRE_Scanner")]
    with pytest.raises(StayedBehind, match="a value inside found"):
        notebook.local("next(found)")
    notebook.gpu("rest = [match[0] for match in found]")
    assert (notebook["first"], notebook["rest"], notebook.local("list(found)")) == ("a", ["b", "c"], [])


def test_later_cells_use_a_value_that_stayed_and_it_is_said_once(notebook: Notebook) -> None:
    notebook.local("n = 0")
    notebook.gpu("def count():\n  yield from 'abc'\ngen = count()\nbox = [gen]")
    for expected in "abc":
        assert notebook.gpu("n = next(gen)").stayed == []
        assert notebook["n"] == expected
    assert notebook.gpu("box[0] is gen").extra["result"] is True
    assert notebook["box"][0] is notebook["gen"]


def test_a_handle_of_an_executor_that_is_gone_is_refused(notebook: Notebook) -> None:
    notebook.gpu("gen = (i for i in 'ab')\nbox = {'gen': gen}")
    notebook.table = state.Table()
    with pytest.raises(CannotSend, match="a generator that was lost with the process that held it"):
        notebook.gpu("next(gen)")
    touched = notebook.gpu("next(box['gen'])").extra["error"]
    assert (
        str(touched)
        == "gen is a generator and was lost with the process that held it. Run the cell that made it again."
    )


def test_a_handle_of_an_executor_that_is_gone_stops_no_cell_that_does_not_use_it(notebook: Notebook) -> None:
    notebook.gpu("gen = (i for i in 'ab')")
    notebook.table = state.Table()
    handle = notebook["gen"]
    for n in range(2):
        applied = notebook.gpu(f"globals()['n'] = {n}")
        assert (applied.extra.get("error"), notebook["n"], notebook["gen"] is handle) == (None, n, True)
    touched = notebook.gpu("next(globals()['gen'])").extra["error"]
    assert str(touched).startswith("gen is a generator and was lost with the process that held it.")
    notebook.gpu("globals()['gen'] = iter([5])")
    assert next(notebook["gen"]) == 5


def test_a_deleted_name_is_deleted_and_an_absent_name_is_absent(notebook: Notebook) -> None:
    notebook.local("a = 1\nb = 2")
    assert notebook.gpu("del a").deleted == ("a",)
    notebook.local("del b")
    assert isinstance(notebook.gpu("b").extra["error"], NameError)


def test_the_result_is_the_notebooks_own_object(notebook: Notebook) -> None:
    notebook.local("x = [1]\nclass P: pass\np = P()")
    assert notebook.gpu("x").extra["result"] is notebook["x"]
    assert notebook.gpu("x, p").extra["result"][1] is notebook["p"]
    assert type(notebook.gpu("P()").extra["result"]) is notebook["P"]


def test_an_unchanged_value_does_not_come_back(notebook: Notebook) -> None:
    notebook.local("x = [1]\ny = {'a': x}\nclass P: pass\nf = lambda: P\nkept = x, y, P, f")
    assert notebook.gpu("len(x), len(y), f()").bound == ()
    assert all(notebook[name] is was for name, was in zip("xyPf", notebook["kept"], strict=True))


def test_a_result_that_the_notebook_has_does_not_come_for_being_shown(notebook: Notebook) -> None:
    notebook.local("big = [[n] for n in range(3000)]")
    applied = notebook.gpu("big")
    assert applied.extra["result"] is notebook["big"]
    assert sum(memoryview(part).nbytes for part in notebook.answer["parts"]) < 2000
    applied = notebook.gpu("big[7].append(1)\nbig[7]")
    assert applied.extra["result"] is notebook["big"][7]
    assert notebook["big"][7] == [7, 1]


def test_what_a_changed_value_let_go_of_brings_its_new_functions(notebook: Notebook) -> None:
    notebook.local("class P: pass\nbox = [P()]\nkept = box[0]")
    notebook.gpu("last = box.pop()\nlast.f = lambda: len(box)\nclass Q(P): pass\nlast.__class__ = Q\ndel last, Q")
    assert (notebook["box"], notebook["kept"].f(), type(notebook["kept"]).__name__) == ([], 0, "Q")


def test_a_change_is_made_in_place_and_binds_nothing(notebook: Notebook) -> None:
    notebook.local("part = [1]\na = {'k': part}\nb = (part,)\nc = [2]\ndel part")
    applied = notebook.gpu("a['new'] = 1; b; c")
    assert applied.bound == ()
    assert notebook["a"]["k"] is notebook["b"][0]


def test_a_changed_value_still_holds_the_notebooks_own_unchanged_one(notebook: Notebook) -> None:
    notebook.local("inner = [1]\na = {'k': inner}\nkept = inner")
    assert notebook.gpu("a['new'] = 1; inner").bound == ()
    assert notebook["a"]["k"] is notebook["inner"] is notebook["kept"]


def test_an_exception_of_the_notebook_comes_back_as_its_own_class(notebook: Notebook) -> None:
    notebook.local(
        "class Bad(Exception):\n  def __init__(self, a, *, b):\n    super().__init__('text'); self.a = a; self.b = [b]"
    )
    error = notebook.gpu("raise Bad(1, b=2)").extra["error"]
    assert type(error) is notebook["Bad"]
    assert (error.args, error.a, error.b) == (("text",), 1, [2])


def test_random_numbers_go_on_where_they_were(notebook: Notebook) -> None:
    random.seed(11)
    expected = [random.random() for _ in range(3)]
    random.seed(11)
    notebook.local("import random")
    first = random.random()
    assert [first, notebook.gpu("random.random()").extra["result"], random.random()] == expected


def test_random_states_travel_where_they_have_changed_and_only_there(notebook: Notebook) -> None:
    random.seed(12)
    notebook.local("import random")
    notebook.gpu("import threading\ndrawn = threading.Event()")
    notebook.gpu("pass")
    assert notebook.captured is not None
    assert len(notebook.captured.parts[0]) < 2_000, "the 625 numbers of the state are there already"
    expected = random.Random(12).random()
    assert notebook.gpu("random.seed(13); random.random()").extra["result"] == random.Random(13).random()
    random.seed(12)
    assert notebook.gpu("random.random()").extra["result"] == expected
    notebook.gpu("pass")
    again = random.Random(12)
    assert [again.random(), random.random()] == [expected, again.random()]


def test_a_value_that_draws_as_it_loads_leaves_the_cells_random_numbers_alone(notebook: Notebook) -> None:
    random.seed(14)
    notebook.local("import random\nclass Drawing:\n  def __setstate__(self, state): self.drawn = random.random()")
    notebook.gpu("pass")
    notebook.local("value = Drawing(); value.kept = 1")
    assert notebook.gpu("value.drawn, random.random()").extra["result"][1] == random.Random(14).random()


def test_the_working_folder_is_shared_both_ways(notebook: Notebook, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    assert notebook.gpu("import os\nhere = os.getcwd()\nos.chdir('below')").extra.get("error") is None
    assert (notebook["here"], Path.cwd()) == (str(tmp_path), tmp_path / "below")


def test_changes_of_the_environment_travel_and_secrets_do_not(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COURSE_DATA", "/data")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    monkeypatch.delenv("MADE_THERE", raising=False)
    cell = "import os\nseen = os.environ.get('COURSE_DATA'), os.environ.get('JUPYTERHUB_API_TOKEN')\nos.environ['MADE_THERE'] = '1'"
    notebook.gpu(cell)
    assert notebook["seen"] == ("/data", None)
    assert os.environ.pop("MADE_THERE") == "1"
    monkeypatch.delenv("COURSE_DATA")
    notebook.gpu("seen = os.environ.get('COURSE_DATA'), os.environ.get('MADE_THERE')")
    assert notebook["seen"] == (None, None)


def test_a_traceback_through_a_function_from_the_cell_shows_its_source(notebook: Notebook) -> None:
    source = "def fail():\n    raise ValueError('here')\n"
    linecache.cache["<ipython-input-7>"] = (len(source), None, source.splitlines(keepends=True), "<ipython-input-7>")
    exec(compile(source, "<ipython-input-7>", "exec"), notebook.ns)
    notebook.gpu("import inspect\ntext = inspect.getsource(fail)")
    assert notebook["text"] == source
    with pytest.raises(ValueError, match="here") as caught:
        notebook["fail"]()
    assert "raise ValueError('here')" in "".join(traceback.format_exception(caught.value))


def test_a_module_that_the_executor_lacks_is_said_before_anything_runs(
    notebook: Notebook, install: Callable[[str, str], Path]
) -> None:
    folder = install("only_here", "x = 1")
    notebook.local("import only_here")
    sys.path.remove(str(folder))  # the notebook has it from somewhere that the executor does not see
    with pytest.raises(RuntimeError, match=r"CannotSend.*'only_here'.*cannot be imported there"):
        notebook.gpu("only_here.x")


def test_large_arrays_travel_beside_the_stream_without_a_copy(notebook: Notebook) -> None:
    np = pytest.importorskip("numpy")
    notebook.local("import numpy as np\na = np.ones(100_000)\nb = np.ones(3)")
    captured = state.capture(notebook.ns, state.needs("a, b", notebook.ns))
    [beside] = [part for part in captured.parts if memoryview(part).nbytes == 800_000]
    assert np.shares_memory(np.frombuffer(beside), notebook["a"])
    assert captured.names["a"] >= 800_000


def in_a_process(script: str, captured: state.Captured) -> None:
    """Run it where `parts` are what was captured: a process never is both sides, for it would run its modules again."""
    begin = "import pickle, sys\nfrom bulletin import state\nparts = pickle.load(sys.stdin.buffer)\n"
    sent = pickle.dumps([bytearray(part) for part in captured.parts])
    child = subprocess.run(
        [sys.executable, "-c", begin + script], input=sent, cwd=ROOT, stderr=subprocess.PIPE, check=False
    )
    assert child.returncode == 0, child.stderr.decode()


@pytest.mark.parametrize(("memory", "is_taken_over"), [("bytearray", True), ("received", True), ("lent", False)])
def test_a_large_array_takes_over_the_buffer_it_came_in(memory: str, *, is_taken_over: bool) -> None:
    np = pytest.importorskip("numpy")
    captured = state.capture({"a": np.zeros(3_000_000)}, state.Needs(reads=("a",)))
    restored = f"""
import numpy as np
from bulletin.wire.blobs import allocate
def received(part):
    found = memoryview(allocate(len(part)))
    found[:] = part
    return found
def lent(part):
    return memoryview(np.array(part))
here = {{}}
parts = [{memory}(part) for part in parts]
state.restore(parts, here, state.Table())
largest = max(parts, key=len)
assert np.shares_memory(here["a"], np.frombuffer(largest)) is {is_taken_over}
here["a"][:] = 1
del parts, largest
assert here["a"].sum() == 3_000_000
"""
    in_a_process(restored, captured)


def answered(notebook: Notebook, executor: Executor, setup: str, cell: str) -> tuple[state.Captured, list[bytearray]]:
    notebook.local(setup)
    captured = state.capture(notebook.ns, state.needs(cell, notebook.ns))
    return captured, executor.ask(cell, captured.parts)["parts"]


FRAGILE = "x = [1]\ny = 'keep'\nclass P:\n  n = 1\n  def up(self): return 1\np = P()\ndef f(): return 1\nf.calls = 0"
BREAKING = "x = [2]\nP.n = 2\nf.calls = 5\ndel y\nclass Bomb:\n  def __reduce__(self): return (int, ('not a number',))\nzz = p.b = Bomb()\np.a = 3; f"


def facts(notebook: Notebook) -> tuple[object, ...]:
    return notebook["x"], notebook["y"], notebook["P"].n, notebook["f"].calls, vars(notebook["p"]), sorted(notebook.ns)


def test_an_answer_that_does_not_load_leaves_everything_as_it_was(notebook: Notebook, executor: Executor) -> None:
    captured, parts = answered(notebook, executor, FRAGILE, BREAKING)
    before = facts(notebook)
    with pytest.raises(CannotReturn) as caught:
        state.apply(parts, notebook.ns, sent=captured)
    assert caught.value.name == "p"
    assert facts(notebook) == before


def test_a_new_value_that_does_not_load_stays_on_the_pool_and_costs_no_other(notebook: Notebook) -> None:
    notebook.local(FRAGILE)
    code = "class Bomb:\n  def __init__(self): self.arms = [1]\n  def __reduce__(self): return (int, ('no number',))\n"
    applied = notebook.gpu(f"{code}zz = [Bomb()]\nsame = zz\nx.append(2)\nw = 'new'\np.a = 3; f.calls = 5")
    assert (notebook["x"], notebook["w"], notebook["p"].a, notebook["f"].calls) == ([1, 2], "new", 3, 5)
    assert [(one.name, one.path) for one in applied.stayed] == [("zz", "zz")]
    assert "ValueError: invalid literal for int()" in applied.stayed[0].kind
    with pytest.raises(StayedBehind, match="zz is a value that fails to load here and stayed on the pool"):
        notebook["zz"].append(1)
    assert notebook.gpu("zz is same, zz[0].arms").extra["result"] == (True, [1])
    assert notebook["same"] is notebook["zz"]
    notebook.gpu("zz = same = zz[0].arms")
    assert notebook["zz"] == [1]


def test_memory_of_a_value_that_did_not_load_is_known_when_another_value_shows_it(notebook: Notebook) -> None:
    code = "import numpy as np\nclass Bomb:\n  def __init__(self, a): self.a = a\n  def __setstate__(self, state): int(self.__class__.word)\n  word = '1'\n"
    notebook.gpu(f"{code}Bomb.word = 'no number'\nzz = [Bomb(np.arange(5))]")
    notebook.gpu("part = zz[0].a[1:]")
    assert notebook["part"].tolist() == [1, 2, 3, 4]
    notebook.local("part[0] = 7")
    assert notebook.gpu("part[0], zz[0].a[1]").extra["result"] == (7, 7)


def test_what_looks_for_a_name_where_it_is_loaded_finds_those_of_the_notebook(notebook: Notebook) -> None:
    code = "import sys\nclass Formula:\n  def __init__(self, text): self.text = text\n  def __setstate__(self, state):\n    self.text = state['text']; self.value = eval(self.text, sys._getframe(1).f_globals)\n"
    notebook.gpu(f"{code}rate = 3\nformula = Formula('rate + 1')")
    assert notebook["formula"].value == 4
    notebook.local("rate = 5\nformula.text = 'rate + 2'")
    assert notebook.gpu("rate, formula.value").extra["result"] == (5, 7)


def test_what_was_lost_before_it_could_be_loaded_is_called_a_value(notebook: Notebook) -> None:
    code = "class Bomb:\n  def __reduce__(self): return (int, ('no number',))\n"
    notebook.gpu(f"{code}zz = Bomb()")
    notebook.table.clear()
    with pytest.raises(CannotSend, match="it is a value that was lost with the process that held it"):
        notebook.gpu("zz")


def test_a_damaged_answer_leaves_everything_as_it_was(notebook: Notebook, executor: Executor) -> None:
    captured, parts = answered(notebook, executor, FRAGILE, BREAKING.replace("zz = Bomb()", ""))
    assert len(parts) == 1
    before = facts(notebook)
    places = range(0, len(parts[0]), 37)
    for damaged in [*(parts[0][:place] for place in places), *(flipped(parts[0], place) for place in places)]:
        with pytest.raises(CannotReturn):
            state.apply([damaged], notebook.ns, sent=captured)
    assert facts(notebook) == before


def flipped(stream: bytearray, place: int) -> bytearray:
    return stream[:place] + bytes([stream[place] ^ 0x10]) + stream[place + 1 :]


def test_a_missing_buffer_leaves_everything_as_it_was(notebook: Notebook, executor: Executor) -> None:
    pytest.importorskip("numpy")
    captured, parts = answered(notebook, executor, "import numpy as np\nn = 1", "n = 2\na = np.ones(50_000)")
    assert len(parts) == 2
    with pytest.raises(CannotReturn):
        state.apply(parts[:1], notebook.ns, sent=captured)
    assert (notebook["n"], "a" in notebook.ns) == (1, False)


def test_a_failure_while_existing_classes_change_is_undone(
    notebook: Notebook, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured, parts = answered(notebook, executor, FRAGILE, BREAKING.replace("zz = Bomb()", ""))
    before = facts(notebook)
    made = load_transaction.LoadTransaction.later

    def then_fail(self: load_transaction.LoadTransaction, change: Callable[[], None], undo: Callable[[], None]) -> None:
        made(self, change, undo)
        made(self, lambda: 1 / 0, lambda: None)  # type: ignore[arg-type, return-value]

    monkeypatch.setattr(load_transaction.LoadTransaction, "later", then_fail)
    with pytest.raises(CannotReturn):
        state.apply(parts, notebook.ns, sent=captured)
    assert facts(notebook) == before


def test_a_name_bound_anew_while_the_cell_ran_does_not_mislead_the_answer(
    notebook: Notebook, executor: Executor
) -> None:
    captured, parts = answered(notebook, executor, "x = [1]\nkept = x", "y = [x]")
    notebook.local("x = 'other'")
    state.apply(parts, notebook.ns, sent=captured)
    assert notebook["y"][0] is notebook["kept"]


def test_a_class_keeps_its_identity_over_many_cells(notebook: Notebook) -> None:
    notebook.local("class P:\n  def __init__(self): self.seen = []\nps = [P()]\nkept = P")
    for turn in range(3):
        notebook.gpu(f"ps.append(P()); ps[0].seen.append({turn})")
    assert notebook["P"] is notebook["kept"]
    assert {type(p) for p in notebook["ps"]} == {notebook["kept"]}
    assert notebook["ps"][0].seen == [0, 1, 2]


def test_the_history_is_there_for_the_cell_and_does_not_come_back(notebook: Notebook) -> None:
    notebook.ns.update({"_": 41, "Out": {3: "three"}, "get_ipython": "fixed"})
    applied = notebook.gpu("r = _ + 1, Out[3]\nOut[3] = 0")
    assert (notebook["r"], notebook["_"], applied.bound) == ((42, "three"), 41, ("r",))


def test_a_recent_result_that_the_cell_binds_is_the_users(notebook: Notebook) -> None:
    notebook.ns["_"] = 41
    notebook.gpu("for _ in range(3): pass")
    assert notebook["_"] == 2


def moved(notebook: Notebook, cell: str) -> tuple[int, int]:
    """Bytes that went there and came back, apart from settings, sources of modules and the like."""
    for _ in range(2):  # the first takes sources along
        notebook.gpu("0")
    assert notebook.captured is not None
    idle = (
        sum(memoryview(part).nbytes for part in notebook.captured.parts),
        sum(len(part) for part in notebook.answer["parts"]),
    )
    notebook.gpu(cell)
    there = sum(memoryview(part).nbytes for part in notebook.captured.parts)
    return there - idle[0], sum(len(part) for part in notebook.answer["parts"]) - idle[1]


UNCHANGED = {
    "array": "import numpy as np\nx = np.ones(1 << 20)",
    "list of dicts": "x = [{'a': n, 'b': str(n)} for n in range(2000)]",
    "instances": "class P:\n  def __init__(self, n): self.n = n; self.kids = [n]\nx = [P(n) for n in range(500)]",
    "frame": "import pandas as pd\nx = pd.DataFrame({'a': range(9999), 'b': ['text'] * 9999})",
    "what C code makes anew each time, with what that holds": (
        "class P: pass\nclass W:\n  def __init__(self, v): self.v = v\n"
        "  def __reduce__(self): return W.of, (slice(P()), slice(slice(P())), self.v)\n"
        "  @staticmethod\n  def of(a, b, v): return W(v)\n"
        "x = [W(str(n) * 9) for n in range(500)]"
    ),
    "estimator": "from sklearn.ensemble import RandomForestClassifier\nimport numpy as np\nx = RandomForestClassifier(5).fit(np.eye(50), [0, 1] * 25)",
    "figure": "import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt\nx, ax = plt.subplots()\nax.plot([1, 2])",
    "model and optimizer": "import torch\nm = torch.nn.Linear(200, 200)\nx = torch.optim.Adam(m.parameters())\nm(torch.ones(1, 200)).sum().backward()\nx.step()",
}


@pytest.mark.parametrize("kind", UNCHANGED)
def test_what_has_not_changed_is_not_sent_again(kind: str, notebook: Notebook) -> None:
    pytest.importorskip("torch" if "torch" in UNCHANGED[kind] else "sklearn")
    notebook.local(UNCHANGED[kind])
    first = moved(notebook, "n = id(x)")
    again = moved(notebook, "n = id(x)")
    assert first[0] > 4000
    assert again[0] < 1000
    assert max(first[1], again[1]) < 1000


def test_of_a_large_array_only_the_block_that_changed_moves(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    notebook.local("import numpy as np\nx = np.zeros(8 << 20, dtype='u1')\nkept, view = x, x[5:]")
    assert moved(notebook, "x[3 << 20] = 1")[0] > 8 << 20
    assert moved(notebook, "x[(5 << 20) + 7] = 2")[1] < (1 << 20) + 2000
    notebook.local("view[0] = 3")
    assert 1 << 20 < moved(notebook, "n = int(x.sum())")[0] < (1 << 20) + 2000
    assert (notebook["n"], notebook.local("kept is x and view.base is x and int(view[(5 << 20) + 2])")) == (6, 2)


def test_memory_that_only_one_side_still_finds_is_not_lost(notebook: Notebook) -> None:
    pytest.importorskip("pandas")
    notebook.local(
        "import pandas as pd\nt = pd.DataFrame({'a': [1, 2, 3], 'b': ['x', None, 'y']})\nc = t[t.columns[0]]"
    )
    notebook.gpu("t['c'] = 1.5\nn = int(c.sum())")
    notebook.gpu("del t[t.columns[-1]]")
    notebook.gpu("c = c * 2\nt['b'] = 'z'")
    assert notebook.local("list(t.columns), t['b'].tolist(), c.tolist(), n") == (["a", "b"], ["z"] * 3, [2, 4, 6], 6)
    notebook.local("del t, c")
    notebook.gpu("0")
    assert not notebook.table.regions


def test_names_to_keep_are_left_alone() -> None:
    captured = state.capture({"a": 1, "__name__": "there"}, state.Needs(reads=("a", "__name__")))
    left_alone = """
here = {"__name__": "here", "mine": 5, "left": 6}
baseline = state.restore(parts, here, state.Table(), keep=frozenset({"mine"}))
assert here == {"__name__": "here", "mine": 5, "a": 1}, here
here["mine"] = 7
assert state.changes(here, baseline).names == []
"""
    in_a_process(left_alone, captured)


def test_a_value_nested_deeper_than_python_likes_travels(notebook: Notebook) -> None:
    notebook.local("deep = []\nfor _ in range(20_000): deep = [deep]\nkept = deep")
    notebook.gpu("depth, at = 0, deep\nwhile at: depth, at = depth + 1, at[0]\nat.append(7)\ndel at")
    assert notebook["depth"] == 20_000
    assert notebook.local("at = kept\nwhile isinstance(at, list): at = at[0]\nat") == 7


def test_a_frame_that_was_only_read_stays_the_notebooks_own(notebook: Notebook) -> None:
    pytest.importorskip("pandas")
    notebook.local("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})\ns = df['a']\nkept = df")
    assert notebook.gpu("n = df.groupby('b').sum(), s.max(), df.describe(), df.loc[0]").bound == ("n",)
    assert notebook["df"] is notebook["kept"]


def test_a_function_that_came_to_hold_what_cannot_travel_does_not_stop_the_rest(notebook: Notebook) -> None:
    notebook.local("def f(): return 1\nx = [1]\nboth = [f]")
    applied = notebook.gpu("f.gen = (i for i in 'a')\nx.append(2)\nboth.append(3)")
    assert [(stayed.path, stayed.kind) for stayed in applied.stayed] == [("f.gen", "generator")]
    assert (notebook["x"], notebook["both"], notebook["f"]()) == ([1, 2], [notebook["f"], 3], 1)
    assert repr(notebook["f"].gen) == "<f.gen is a generator and stayed on the pool>"


def test_a_method_that_came_to_hold_what_cannot_travel_does_not_stop_the_rest(notebook: Notebook) -> None:
    notebook.local("class P: pass\np = P()\nx = [1]")
    applied = notebook.gpu(
        "def mk():\n  g = (i for i in 'a')\n  return lambda self: g\nP.f = mk()\np.a = 1\nx.append(2)"
    )
    assert [stayed.kind for stayed in applied.stayed] == ["generator"]
    assert (notebook["x"], notebook["p"].a, type(notebook["p"]) is notebook["P"]) == ([1, 2], 1, True)


GROW = """
import random as _r
_d = _r.Random({seed})
_all = [[] if _d.random() < 0.5 else {{}} for _ in range(12)]
for _v in _all:
    for _ in range(_d.randrange(4)):
        _w = _d.choice([*_all, _d.randrange(5), 'text', (_d.choice(_all), 1)])
        if isinstance(_v, list): _v.append(_w)
        else: _v[_d.randrange(5)] = _w
a, b, c, d, e = _all[:5]
"""
CHANGE = """
a, b, c, d, e
import random as _r
_d = _r.Random({seed})
_found, _queue = [], [a, b, c, d, e]
while _queue:
    _v = _queue.pop(0)
    if any(_v is _w for _w in _found): continue
    _found.append(_v)
    _queue += [_w for _w in (_v.values() if isinstance(_v, dict) else _v) if isinstance(_w, (list, dict, tuple))]
_boxes = [_v for _v in _found if not isinstance(_v, tuple)]
for _ in range(_d.randrange(4)):
    _v, _w = _d.choice(_boxes), _d.choice(_found)
    if isinstance(_v, list): _v.append(_w)
    elif _v and _d.random() < 0.5: _v.popitem()
    else: _v['new'] = _w
if _d.random() < 0.3: e = [a, _d.choice(_found)]
"""


def shape(values: list[object]) -> list[object]:
    """Values with a number for each container: equal for two graphs only if they share in the same places."""
    numbers: dict[int, int] = {}
    found: list[object] = []
    queue = list(values)
    while queue:
        value = queue.pop(0)
        if not isinstance(value, list | dict | tuple):
            found.append(value)
            continue
        is_new = id(value) not in numbers
        found.append((type(value).__name__, numbers.setdefault(id(value), len(numbers))))
        if is_new:
            found.append(list(value) if isinstance(value, dict) else len(value))
            queue += value.values() if isinstance(value, dict) else value
    return found


@pytest.mark.parametrize("seed", range(25))
def test_a_random_graph_of_shared_values_comes_back_in_the_same_shape(seed: int, notebook: Notebook) -> None:
    notebook.local(GROW.format(seed=seed))
    plain = Notebook(notebook.executor)
    plain.local(GROW.format(seed=seed))
    for turn in range(3):
        cell = CHANGE.format(seed=1000 * seed + turn)
        plain.local(cell)
        assert notebook.gpu(cell).extra.get("error") is None
        assert shape([notebook[name] for name in "abcde"]) == shape([plain[name] for name in "abcde"])


def test_an_array_in_a_file_stays_in_its_file(notebook: Notebook, tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    path = tmp_path / "array.bin"
    notebook.local(f"import numpy as np\nmm = np.memmap({str(path)!r}, dtype='f8', mode='w+', shape=(4,))\nmm[0] = 1")
    applied = notebook.gpu("mm[1] = mm[0] + 1\nmm.flush()\nkind = type(mm).__name__")
    assert notebook["kind"] == "memmap"
    assert notebook["mm"].tolist() == [1, 2, 0, 0]
    assert np.fromfile(path).tolist() == [1, 2, 0, 0]
    assert "mm" not in applied.bound


def test_a_generator_of_torch_is_changed_in_place_and_is_there_for_the_next_cell(notebook: Notebook) -> None:
    pytest.importorskip("torch")
    notebook.local(
        "import torch\ng = torch.Generator().manual_seed(3)\nheld = {'g': g}\nshould = torch.Generator().manual_seed(3)"
    )
    notebook.gpu("drawn = torch.rand(2, generator=g)\nnew = [g]")
    notebook.gpu("more = torch.rand(2, generator=held['g'])\nnewer = [g]")
    same = "(new[0] is g, newer[0] is g, held['g'] is g)"
    assert notebook.local(same) == (True, True, True)
    assert notebook.local("[torch.equal(x, torch.rand(2, generator=should)) for x in (drawn, more)]") == [True, True]
    assert notebook.local("torch.equal(g.get_state(), should.get_state())") is True


@pytest.mark.parametrize(("attribute", "travelled_before"), [("shared", False), ("shared_later", True)])
def test_instances_that_are_as_one_by_the_dict_of_their_librarys_class_stay_so(
    attribute: str, travelled_before: bool, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    if travelled_before:  # an instance whose dict somebody else holds, while the class has none
        notebook.local("import argparse\nalone = argparse.Namespace(a=0)\nheld = vars(alone)")
        notebook.gpu("alone.a = 1; held")
        assert notebook["held"] == {"a": 1}
    shared: dict[str, int] = {}
    monkeypatch.setattr(argparse.Namespace, attribute, shared, raising=False)
    one = f"{{}} = argparse.Namespace(); {{}}.__dict__ = argparse.Namespace.{attribute}"
    notebook.gpu(f"import argparse\nargparse.Namespace.{attribute} = {{}}")
    notebook.local(f"{one.format('x', 'x')}; x.a = 1")
    applied = notebook.gpu(f"kept = x\n{one.format('y', 'y')}; y.b = x.a + 1; r = y.a")
    notebook.gpu(f"del argparse.Namespace.{attribute}")  # the other tests' executor is the same
    assert "error" not in applied.extra, applied.extra["error"]
    assert (notebook["r"], notebook["x"].b, shared) == (1, 2, {"a": 1, "b": 2})
    assert all(vars(notebook[name]) is shared for name in ("x", "y"))


def test_workers_of_a_loader_that_wait_for_the_next_round_are_each_sides_own(notebook: Notebook) -> None:
    pytest.importorskip("torch")
    notebook.local("import torch\nx = torch.utils.data.DataLoader([1, 2], 1)\nx._iterator = iter(x)")
    notebook.gpu("n = [b.tolist() for b in x]")
    assert (notebook["n"], notebook["x"].batch_size) == ([[1], [2]], 1)


def test_the_gradient_of_a_frozen_parameter_is_the_one_that_the_cell_left(notebook: Notebook) -> None:
    pytest.importorskip("torch")
    notebook.local("import torch\np = torch.nn.Parameter(torch.ones(2))\np.grad = torch.ones(2)")
    notebook.gpu("p.requires_grad_(False)\np.grad = None")
    assert (notebook["p"].grad, notebook["p"].requires_grad) == (None, False)
    notebook.gpu("p.grad = torch.ones(2) * 3")
    assert notebook["p"].grad.tolist() == [3, 3]


def test_a_hook_that_a_cell_registers_takes_no_other_ones_place(notebook: Notebook) -> None:
    pytest.importorskip("torch")
    notebook.local(
        "import torch\nx = torch.nn.Identity()\nseen = []\nx.register_forward_hook(lambda *_: seen.append(1))"
    )
    notebook.gpu("x.register_forward_hook(lambda *_: seen.append(2))")
    notebook.local("x.register_forward_hook(lambda *_: seen.append(3))\nx(torch.ones(1))")
    assert notebook["seen"] == [1, 2, 3]


@pytest.mark.parametrize("change", ["del Box.mark", "Box.mark = property(lambda self: 5)"])
def test_a_slot_that_its_class_no_longer_has_does_not_travel_with_an_instance_that_travelled_before(
    change: str, notebook: Notebook
) -> None:
    notebook.local("class Box(list):\n    __slots__ = ('mark',)\nbox = Box([1])\nbox.mark = 1")
    notebook.gpu("box.append(box.mark + 1)")
    assert notebook["box"] == [1, 2]
    notebook.local(change)
    applied = notebook.gpu("box.append(3)")
    assert "error" not in applied.extra, applied.extra["error"]
    assert notebook["box"] == [1, 2, 3]
