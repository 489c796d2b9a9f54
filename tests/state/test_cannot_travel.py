# ruff: noqa: E501  cells are one line each
"""What cannot travel: refused where the cell names it, else left behind as a handle that says so when it is touched."""

import threading

import pytest

from bulletin import state
from bulletin.errors import CannotSend, StayedBehind

from .notebook import Notebook

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
