# ruff: noqa: E501  cells are one line each
"""What goes out, what comes back, and what happens when something cannot."""

import argparse
import linecache
import os
import pickle
import random
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin import state

from .notebook import ROOT, Notebook


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
