"""Modules of the notebook's own are there as the notebook has loaded them, after edits and reloads, too."""

import builtins
import importlib.util
import sys
from pathlib import Path

import pytest

from .module_book import Book


def test_an_edited_file_changes_nothing_until_it_is_reloaded(book: Book) -> None:
    book.write("tune.py", "def f(): return 1\n")
    f = book.local("import tune\ntune.f")
    book.write("tune.py", "def f(): return 2\n")
    assert book.gpu("f()", f=f) == 1
    book.local("import importlib\nimportlib.reload(tune)")
    assert book.gpu("import tune\ntune.f()") == 2


def test_a_reload_keeps_the_module_and_prints_nothing_there(book: Book) -> None:
    book.write("tune.py", "print('run')\nx = 1\n")
    book.local("import tune")
    book.gpu("import tune\nheld = tune")
    book.write("tune.py", "print('run again')\nx = 2\n")
    book.local("import importlib\nimportlib.reload(tune)")
    assert book.gpu("import tune\n(held is tune, held.x)") == (True, 2)
    assert book.answer["reloaded"] == ["tune"]
    assert book.answer["printed"] == ""
    book.gpu("tune.x")
    assert book.answer["reloaded"] == []


def test_reloads_run_in_the_notebooks_order(book: Book) -> None:
    book.write("base.py", "x = 1\n")
    book.write("top.py", "from base import x\n")
    book.local("import top, base")
    assert book.gpu("import top\ntop.x") == 1
    book.write("base.py", "x = 22\n")
    book.local("import importlib\nimportlib.reload(base)\nimportlib.reload(top)")
    assert book.gpu("top.x") == book.local("top.x") == 22
    book.write("base.py", "x = 333\n")
    book.local("importlib.reload(top)\nimportlib.reload(base)")
    assert book.gpu("top.x") == book.local("top.x") == 22


def test_a_reload_in_a_cell_runs_the_file_as_it_is_and_reloads_here(book: Book) -> None:
    book.write("tune.py", "x = 1\n")
    tune = book.local("import tune\ntune")
    book.gpu("import tune")
    book.write("tune.py", "x = 22\n")
    assert book.gpu("import importlib\nimportlib.reload(tune).x") == 22
    assert book.local("tune.x") == 22
    assert sys.modules["tune"] is tune
    assert book.gpu("tune.x") == 22
    assert book.answer["reloaded"] == []  # both have run it once


def test_a_module_taken_out_and_imported_again_is_a_new_one(book: Book) -> None:
    book.write("anew.py", "class A: pass\n")
    book.local("import anew")
    book.gpu("import anew\nold, cls = anew, anew.A")
    value = book.local("import sys\ndel sys.modules['anew']\nimport anew\nanew.A()")
    assert book.gpu("import anew\n(anew is old, type(v) is cls, type(v) is anew.A)", v=value) == (False, False, True)


def test_a_package_taken_out_whole_and_imported_again(book: Book) -> None:
    count = "import builtins\nbuiltins.runs = vars(builtins).get('runs', 0) + 1\n"
    book.write("pack/__init__.py", f"{count}from .part import A\n")
    book.write("pack/part.py", "class A: n = 1\n")
    book.local("import pack")
    book.gpu("import builtins, pack\nbuiltins.runs = 0")
    book.write("pack/part.py", "class A: n = 22\n")
    book.local(
        "import sys\nfor name in [m for m in sys.modules if m[:4] == 'pack']: del sys.modules[name]\nimport pack"
    )
    question = "import pack, pack.part\n(pack.A.n, pack.A is pack.part.A, pack.part is vars(pack)['part'])"
    assert book.gpu(question) == book.local(question) == (22, True, True)
    assert book.gpu("builtins.runs") == 1
    del vars(builtins)["runs"]


def test_a_cell_that_takes_a_module_out_and_imports_it_again(book: Book) -> None:
    book.write("anew.py", "x = 1\nclass A: pass\n")
    old = book.local("import anew\nanew")
    book.gpu("import anew")
    book.write("anew.py", "x = 22\nclass A: pass\n")
    value = book.gpu("import sys\ndel sys.modules['anew']\nimport anew\nanew.A()")
    assert sys.modules["anew"] is not old
    assert type(value) is sys.modules["anew"].A
    assert book.gpu("import anew\n(anew.x, type(v) is anew.A)", v=value) == (22, True)
    assert book.answer["reloaded"] == []


def test_a_module_that_a_cell_takes_out_is_out(book: Book) -> None:
    book.write("gone.py", "x = 1\n")
    book.local("import gone")
    book.gpu("import sys, gone\ndel sys.modules['gone']")
    assert "gone" not in sys.modules
    assert not book.gpu("'gone' in sys.modules")


def test_a_module_that_the_notebook_takes_out_is_out_there(book: Book) -> None:
    book.write("gone.py", "x = 1\n")
    book.local("import gone")
    book.gpu("import sys, gone")
    book.local("import sys\ndel sys.modules['gone']")
    assert not book.gpu("'gone' in sys.modules")


@pytest.mark.parametrize(("is_automatic", "there"), [(True, (22, 22, 22)), (False, (1, 1, 1))])
def test_old_functions_have_the_new_code_after_an_autoreload(
    book: Book, is_automatic: bool, there: tuple[int, int, int]
) -> None:
    from IPython.extensions.autoreload import superreload

    book.write("lib.py", "def f(): return 1\nclass C:\n    def m(self): return 1\n")
    book.write("app.py", "from lib import f, C\nmade = C()\ndef run(): return f(), made.m(), C().m()\n")
    book.local("import app, lib")
    assert book.gpu("import app\napp.run()") == (1, 1, 1)
    book.write("lib.py", "def f(): return 22\nclass C:\n    def m(self): return 22\n")
    (superreload if is_automatic else importlib.reload)(sys.modules["lib"])
    book.modules.observe()
    assert book.gpu("import app\napp.run()") == book.local("app.run()") == there


def test_an_autoreload_that_patches_functions_in_place_is_seen_there(book: Book) -> None:
    from IPython.extensions.deduperreload.deduperreload import DeduperReloader

    book.write("lib.py", "class C:\n    def m(self): return 1\ndef f(): return 1\n")
    book.write("app.py", "from lib import f, C\nmade = C()\ndef run(): return f(), made.m(), C().m()\n")
    book.local("import app, lib")
    assert book.gpu("import app\napp.run()") == (1, 1, 1)
    reloader = DeduperReloader()
    reloader.source_by_modname["lib"] = (book.folder / "lib.py").read_text()
    for text, there in (
        ("class C:\n    def m(self): return 22\ndef f(): return 22\n", (22, 22, 22)),
        ("class C:\n    def m(self): return 333\ndef f(): return 22\ndef g(): return 4\n", (22, 333, 333)),
    ):
        book.write("lib.py", text)
        module = sys.modules["lib"]
        spec = module.__spec__
        assert reloader.maybe_reload_module(module)
        assert module.__spec__ is spec
        book.modules.observe()
        assert book.gpu("import app\napp.run()") == book.local("app.run()") == there
    assert book.gpu("import lib\nlib.g()") == 4


def test_a_module_that_only_runs_in_the_notebook_raises_where_it_is_imported(book: Book) -> None:
    data = book.write("data.txt", "1")
    book.write("reads.py", "import pathlib\nx = pathlib.Path(__file__).with_name('data.txt').read_text()\n")
    book.local("import reads")
    data.unlink()  # as it is on a machine without the notebook's folder
    assert book.gpu("1 + 1") == 2
    with pytest.raises(RuntimeError, match=r"FileNotFoundError: .*data.txt"):
        book.gpu("import reads")


def test_a_module_that_only_runs_there(book: Book) -> None:
    book.write("picky.py", "import sys\nif hasattr(sys, 'is_here'): raise RuntimeError('not here')\nx = 1\n")
    sys.is_here = True  # type: ignore[attr-defined]
    try:
        assert book.gpu("import picky\npicky.x") == 1
        assert str(book.failed["picky"]) == "not here"
    finally:
        del sys.is_here  # type: ignore[attr-defined]
    book.gpu("picky.x += 1")
    assert book.gpu("import picky\npicky.x") == 2


def test_a_new_executor_gets_everything(book: Book, tmp_path: Path) -> None:
    book.write("state.py", "x = 1\ntable = {}\n")
    book.local("import state\nstate.x = 5")
    book.gpu("import state\nstate.table['a'] = 1")
    book.executor.start_anew()
    assert book.gpu("import state\n(state.x, state.table)") == (5, {"a": 1})
