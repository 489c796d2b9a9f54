"""Modules of the notebook's own: there by name, as the notebook has loaded them, and kept alike on both sides."""

import builtins
import importlib.util
import os
import pickle
import random
import struct
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from bulletin.errors import BulletinError, ModulesTooLarge
from bulletin.state import lookups, modules
from bulletin.state.modules import attributes, sources

from .notebook import ROOT, run_cell


class Executor:
    """A process in a folder of its own that sees none of the notebook's files."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, str(Path(__file__).with_name("modules_child.py"))]
        self.folder = folder
        self.known = modules.Known()
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env={"PYTHONPATH": str(ROOT)}
        )

    def start_anew(self) -> None:
        self.known = modules.Known()
        self.ask()

    def ask(self, *request: Any) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        body = pickle.dumps(request)
        self._child.stdin.write(struct.pack("<Q", len(body)) + body)
        self._child.stdin.flush()
        (size,) = struct.unpack("<Q", self._child.stdout.read(8))
        answer: dict[str, Any] = pickle.loads(self._child.stdout.read(size))
        return answer

    def close(self) -> None:
        with self._child:  # closes both ends and waits
            pass


class Book:
    """A notebook in `folder`: cells run here (`local`), or in the executor (`gpu`)."""

    def __init__(self, folder: Path, executor: Executor) -> None:
        self.folder, self.executor = folder, executor
        self.modules = modules.NotebookModules()
        self.ns: dict[str, Any] = types.ModuleType("__main__").__dict__
        self.answer: dict[str, Any] = {}
        self.shipment: modules.Shipment | None = None
        self.failed: dict[str, BaseException] = {}
        self.is_shared = False  # whether the executor sees the files too
        self.modules.observe()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        importlib.invalidate_caches()
        return path

    def local(self, source: str) -> Any:
        try:
            return run_cell(dedent(source), self.ns, "<local>")
        finally:
            self.modules.observe()

    def gpu(self, source: str, **values: Any) -> Any:
        """The result of the cell, in the executor; `values` are what the cell finds in its namespace."""
        source = dedent(source)
        executor = self.executor
        self.shipment, known = self.modules.out(modules.imports_of_cell(source), executor.known)
        away = self.folder if self.is_shared else self.folder.with_name("away")
        self.folder.rename(away)
        answer = self.answer = executor.ask(self.shipment, pickle.dumps(values), source)
        away.rename(self.folder)
        self.failed = self.modules.follow(answer["changes"])
        result = pickle.loads(answer["result"])
        executor.known = self.modules.apply(answer["changes"], known)
        if answer["error"]:
            raise RuntimeError(answer["error"])
        return result


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    child = Executor(tmp_path_factory.mktemp("executor"))
    yield child
    child.close()


@pytest.fixture
def book(executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Book]:
    """A fresh notebook, and an executor that knows nothing; afterwards this process has none of these modules."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a cache takes two edits of one size in a second for one
    monkeypatch.chdir(folder)
    before, state = set(sys.modules), random.getstate()
    executor.start_anew()
    yield Book(folder, executor)
    random.setstate(state)
    for name in set(sys.modules) - before:
        if sources.location_of(name, sources.spec_in(sys.modules[name])) is not None:
            del sys.modules[name]


# --- by name, as source


def test_a_class_of_a_local_module_is_that_class_on_both_sides(book: Book) -> None:
    book.write("shapes.py", "class Square:\n    def __init__(self, side): self.side = side\n")
    square = book.local("import shapes\nshapes.Square(3)")
    found = book.gpu("import shapes\n(type(q) is shapes.Square, shapes.Square(q.side + 1))", q=square)
    assert found[0]
    assert type(found[1]) is square.__class__
    assert found[1].side == 4


def test_a_value_alone_brings_its_module(book: Book) -> None:
    book.write("shapes.py", "class Square:\n    area = 4\n")
    assert book.gpu("q.area", q=book.local("import shapes\nshapes.Square()")) == 4


def test_a_cell_may_import_a_module_that_the_notebook_has_not(book: Book) -> None:
    book.write("fresh.py", "class Leaf: pass\n")
    leaf = book.gpu("import fresh\nfresh.Leaf()")
    assert type(leaf) is sys.modules["fresh"].Leaf


def test_what_such_a_module_prints_and_draws_happens_once(book: Book, capsys: pytest.CaptureFixture[str]) -> None:
    book.write("fresh.py", "import random\nprint('loading')\nseen = random.random()\n")
    state = random.getstate()
    book.gpu("import fresh")
    assert book.answer["printed"] == "loading\n"
    assert capsys.readouterr().out == ""
    assert "fresh" in sys.modules
    assert random.getstate() == state


def test_a_module_that_the_notebook_has_loaded_is_loaded_unnoticed(book: Book) -> None:
    book.write("loud.py", "import random\nprint('loading')\nrandom.seed(1)\n")
    book.local("import loud")
    found = book.gpu(
        "import random\nrandom.seed(5)\nimport loud\na = random.random()\nrandom.seed(5)\na == random.random()"
    )
    assert found
    assert book.answer["printed"] == ""


def test_packages_with_relative_imports(book: Book) -> None:
    book.write("pack/__init__.py", "from .inner.deep import depth\nfrom . import near\n")
    book.write("pack/near.py", "from .inner import deep\nwhere = deep.__name__\n")
    book.write("pack/inner/__init__.py", "")
    book.write("pack/inner/deep.py", "from ..near import __name__ as other\ndepth = 2\n")
    found = book.gpu("import pack\npack.depth, pack.near.where, pack.inner.deep.other, pack.__package__")
    assert found == (2, "pack.inner.deep", "pack.near", "pack")


def test_a_module_says_of_itself_what_it_says_in_the_notebook(book: Book) -> None:
    book.write("pack/__init__.py", "")
    book.write("pack/part.py", '"""About."""\nhere = __file__\n')
    question = """
        import pack.part
        part = pack.part
        spec = part.__spec__
        (part.__name__, part.__doc__, part.__file__, part.here, part.__package__, pack.__path__, repr(part), spec.name,
         spec.origin, spec.parent, spec.has_location, list(pack.__spec__.submodule_search_locations))
    """
    assert book.gpu(question) == book.local(question)


def test_packages_without_an_init_file(book: Book) -> None:
    book.write("space/ship.py", "crew = 3\n")
    book.write("space/port/dock.py", "boats = 4\n")
    assert book.gpu("import space.ship\nfrom space.port import dock\nspace.ship.crew, dock.boats") == (3, 4)
    assert book.gpu("space.ship.crew, len(space.__path__), space.__file__") == book.local(
        "import space.ship\nspace.ship.crew, len(space.__path__), space.__file__"
    )


def test_a_package_without_an_init_file_whose_parent_is_taken_out(book: Book) -> None:
    book.write("space/port/dock.py", "boats = 4\n")
    book.local("import sys, space.port.dock as dock\ndel sys.modules['space']")
    assert book.gpu("import space.port.dock as d\nd.boats") == 4


def test_a_package_is_imported_from_an_archive(book: Book) -> None:
    import zipfile

    archive = book.folder / "lib.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("zipped/__init__.py", "from .part import x\n")
        made.writestr("zipped/part.py", "x = 7\n")
    sys.path.insert(0, str(archive))
    assert book.gpu("import zipped\nzipped.x") == 7
    assert book.local("import zipped\nzipped.x") == book.gpu("zipped.x") == 7


def test_source_is_found_by_inspect_and_by_tracebacks(book: Book) -> None:
    book.write("code.txt", "")
    book.write("failing.py", "def fail():\n    # why\n    raise ValueError('no')\n")
    book.local("import failing")
    assert book.gpu("import failing, inspect\ninspect.getsource(failing.fail)").splitlines()[1] == "    # why"
    with pytest.raises(RuntimeError) as caught:
        book.gpu("failing.fail()")
    assert f'File "{book.folder / "failing.py"}", line 3, in fail' in str(caught.value)
    assert "raise ValueError('no')" in str(caught.value)


def test_the_source_that_is_shown_is_the_one_that_runs(book: Book) -> None:
    book.is_shared = True
    book.write("edited.py", "def f():\n    raise ValueError('old')\n")
    book.local("import edited")
    book.write("edited.py", "# moved\n\ndef f():\n    raise KeyError('new')\n")
    with pytest.raises(RuntimeError) as caught:
        book.gpu("import edited\nedited.f()")
    assert "raise ValueError('old')" in str(caught.value)


def test_a_traceback_through_an_import_has_only_the_users_lines(book: Book) -> None:
    book.write("outer.py", "import broken\n")
    book.write("broken.py", "1 / 0\n")
    with pytest.raises(RuntimeError) as caught:
        book.gpu("import outer")
    lines = [line for line in str(caught.value).splitlines() if line.lstrip().startswith("File")]
    assert [Path(line.split('"')[1]).name for line in lines if "/tests/" not in line] == [
        "<cell>",
        "outer.py",
        "broken.py",
    ]


def test_a_file_of_the_same_name_there_does_not_win(book: Book) -> None:
    (book.executor.folder / "twin.py").write_text("side = 'executor'\n")
    book.write("twin.py", "side = 'notebook'\n")
    assert (
        book.gpu(f"import sys\nsys.path.insert(0, {str(book.executor.folder)!r})\nimport twin\ntwin.side") == "notebook"
    )


def test_what_is_installed_or_of_the_standard_library_is_not_sent(book: Book) -> None:
    book.write("colorsys.py", "mine = True\n")
    book.write("plain.py", "import colorsys, json, cloudpickle\n")
    assert not book.gpu("import plain, colorsys\nhasattr(colorsys, 'mine')")
    assert book.shipment is not None
    assert book.shipment.entries is not None
    names = {name for name in book.shipment.entries if not name.startswith("tests")}
    assert "plain" in names
    assert names.isdisjoint({"colorsys", "json", "cloudpickle", "pytest", "bulletin", "bulletin.state", "sys"})


@pytest.mark.parametrize("is_imported", [True, False])
def test_a_module_of_ones_own_that_was_put_in_the_place_of_another(
    book: Book, monkeypatch: pytest.MonkeyPatch, *, is_imported: bool
) -> None:
    book.local("import colorsys, json")
    path = book.write("colorsys.py", "mine = True\n")
    spec = importlib.util.spec_from_file_location("colorsys", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "colorsys", module)
    imports, used = (["colorsys"], []) if is_imported else ([], ["colorsys"])
    shipment, _ = book.modules.out(imports, used=used)
    assert shipment.entries is not None
    assert "colorsys" in shipment.entries


# --- modules that nobody has loaded yet


def test_a_module_that_a_function_imports_later(book: Book) -> None:
    book.write("early.py", "def go():\n    import late\n    from helpers import part\n    return late.x + part.y\n")
    book.write("late.py", "x = 1\n")
    book.write("helpers/__init__.py", "")
    book.write("helpers/part.py", "y = 2\n")
    book.local("import early")
    assert book.gpu("import early\nearly.go()") == 3


def test_a_module_of_a_package_that_only_a_computed_name_leads_to(book: Book) -> None:
    book.write(
        "plug/__init__.py", "import importlib\ndef get(n): return importlib.import_module(f'.{n}', __name__).x\n"
    )
    book.write("plug/kinds/__init__.py", "")
    book.write("plug/kinds/one.py", "x = 1\n")
    assert book.gpu("import plug\nplug.get('kinds.one')") == 1


def test_a_package_with_very_many_files_sends_what_is_named(book: Book) -> None:
    book.write("wide/__init__.py", "from . import m7\n")
    for number in range(320):
        book.write(f"wide/m{number}.py", "x = 1\n")
    assert book.gpu("import wide\nwide.m7.x") == 1
    assert book.shipment is not None
    assert book.shipment.entries is not None
    assert [name for name in book.shipment.entries if name.startswith("wide")] == ["wide", "wide.m7"]


def test_a_file_that_python_has_not_noticed_yet_is_found(book: Book) -> None:
    before = book.folder.stat()
    with pytest.raises(ModuleNotFoundError):
        book.local("import latest")
    (book.folder / "latest.py").write_text("class Late: pass\n")
    os.utime(book.folder, ns=(before.st_atime_ns, before.st_mtime_ns))  # within one tick of the clock
    assert type(book.gpu("import latest\nlatest.Late()")) is sys.modules["latest"].Late


def test_nothing_is_run_to_find_out_what_is_needed(book: Book) -> None:
    book.write("trap/__init__.py", "raise RuntimeError('ran')\n")
    book.write("trap/inner.py", "raise RuntimeError('ran')\n")
    book.write("user.py", "def f():\n    from trap.inner import x\n")
    book.local("import user")
    shipment, _ = book.modules.out(["trap.inner"])
    assert {"trap", "trap.inner"} <= shipment.entries.keys()  # type: ignore[union-attr]
    assert "trap" not in sys.modules


def test_a_missing_module_is_missing_as_it_is_in_the_notebook(book: Book) -> None:
    with pytest.raises(RuntimeError, match="ModuleNotFoundError: No module named 'absent'"):
        book.gpu("import absent")


def test_a_compiled_module_is_named_when_it_is_needed(book: Book) -> None:
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (book.folder / f"fast{suffix}").write_bytes(b"")
    book.write("slow.py", "try:\n    import fast\nexcept ImportError:\n    fast = None\n")
    assert book.gpu("import slow\nslow.fast is None")
    with pytest.raises(RuntimeError, match=r"ModuleNotFoundError: No module named 'fast': .*fast.*compiled"):
        book.gpu("import fast")


def test_too_much_source_is_an_error_that_names_the_largest(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    book.write("small.py", "x = 1\n")
    book.write("huge.py", f"x = '{'a' * 3_000_000}'\n")
    monkeypatch.setattr("bulletin.state.modules.notebook.MAX_SOURCES_BYTES", 2_000_000)
    with pytest.raises(ModulesTooLarge, match=r"[\d.]+ MB of source, and 2 MB may travel; the largest, 'huge'"):
        book.modules.out(["small", "huge"])
    with pytest.raises(BulletinError):
        book.modules.out(["huge"])


def test_what_the_executor_has_is_not_sent_again(book: Book) -> None:
    book.write("steady.py", "x = 1\n")
    book.gpu("import steady")
    book.gpu("steady.x")
    assert book.shipment is not None
    assert book.shipment.texts == {}
    assert book.shipment.attributes == {}
    book.gpu("steady.x")
    assert book.shipment.entries is None


def test_a_module_that_the_executor_found_by_itself_is_run_again_as_the_notebook_has_it(book: Book) -> None:
    book.is_shared = True
    book.write("shared.py", "x = 1\n")
    book.gpu(f"import sys\nsys.path.insert(0, {str(book.folder)!r})\npart = 'sha'\nheld = __import__(part + 'red')")
    book.write("shared.py", "x = 22\n")
    book.local("import shared")
    assert book.gpu("import shared\n(shared.x, shared is held)") == (22, True)


# --- as loaded: edits and reloads


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


# --- globals of modules


@pytest.mark.parametrize("is_one_cell", [True, False])
@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("V = 1\n", "mod.V = 50"),
        ("V = 1\n", "mod.V = 1.0"),
        ("V = 0.0\n", "mod.V = -0.0"),
        ("V = 1\n", "mod.W = 'new'"),
        ("V = 1\nW = 2\n", "del mod.V"),
        ("V = []\n", "mod.V.append([1, {'a': (2,)}])"),
        ("V = {'b': 1, 'a': 2}\n", "mod.V['b'] = mod.V.pop('b')"),
        ("V = {1, 2}\n", "mod.V.discard(1)"),
        ("V = 0\ndef bump():\n    global V\n    V += 1\n", "mod.bump()"),
    ],
)
def test_globals_that_the_notebook_has_changed(book: Book, text: str, change: str, is_one_cell: bool) -> None:
    book.write("mod.py", text)
    book.local(f"import mod\n{change}" if is_one_cell else "import mod")
    if not is_one_cell:
        book.gpu("import mod")
        book.local(change)
    question = "import mod\nrepr([(n, v) for n, v in vars(mod).items() if n in {'V', 'W'}])"
    assert book.gpu(question) == book.local(question)
    assert book.gpu(question) == book.local(question)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("V = 1\n", "mod.V += 1"),
        ("V = 1\n", "mod.V = True"),
        ("V = 1\n", "del mod.V\nmod.W = 3"),
        ("V = []\n", "mod.V.append(None)"),
        ("V = 0\ndef bump():\n    global V\n    V += 1\n", "mod.bump()"),
    ],
)
@pytest.mark.parametrize("first", ["local", "gpu"])
def test_globals_that_a_cell_has_changed(book: Book, text: str, change: str, first: str) -> None:
    book.write("mod.py", text)
    if first == "local":
        book.local("import mod")
    there = book.gpu(f"import mod\n{change}\nrepr([(n, v) for n, v in vars(mod).items() if n in {{'V', 'W'}}])")
    here = book.local("import mod\nrepr([(n, v) for n, v in vars(mod).items() if n in {'V', 'W'}])")
    assert here == there
    assert book.gpu("import mod\nrepr([(n, v) for n, v in vars(mod).items() if n in {'V', 'W'}])") == here


def test_globals_that_a_cell_has_changed_before_it_raised(book: Book) -> None:
    book.write("mod.py", "n = 0\n")
    book.local("import mod")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        book.gpu("import mod\nmod.n = 4\n1 / 0")
    assert book.local("mod.n") == 4


def test_globals_go_to_and_fro(book: Book) -> None:
    book.write("mod.py", "n = 0\nlog = []\n")
    book.local("import mod")
    for turn in range(3):
        book.local(f"mod.n += 1\nmod.log.append('here {turn}')")
        book.gpu(f"import mod\nmod.n += 10\nmod.log.append('there {turn}')")
    assert book.local("mod.n, len(mod.log)") == (33, 6)
    assert book.gpu("mod.n, mod.log[-1]") == (33, "there 2")
    assert book.shipment is not None
    assert book.shipment.attributes == {}  # what came from there is not sent there


def test_a_container_that_was_changed_stays_itself_for_those_who_hold_it(book: Book) -> None:
    book.write("conf.py", "options = {'a': 1}\nnames = ['x']\n")
    book.write("uses.py", "from conf import options, names\nclass Kept: held = (options, names)\n")
    book.local("import conf, uses")
    book.gpu("import conf, uses")
    question = """
        import conf, uses
        options, names = uses.Kept.held
        (options, options is uses.options, options is conf.options, names, names is uses.names, names is conf.names)
    """
    changes = (
        "conf.options['a'] = {}",
        "conf.names.append({})",
        "conf.names = [*conf.names]",
        "conf.options = {{1: {}}}",
    )
    for change in changes:
        book.local(change.format(2))
        assert book.gpu(question) == book.local(question)
    for change in changes:
        book.gpu(change.format(3))
        assert book.local(question) == book.gpu(question)


def test_what_a_module_computes_of_its_machine_stays_of_its_machine(book: Book) -> None:
    book.write("place.py", "import os\nprocess = os.getpid()\nif process:\n    device = f'dev{process}'\n")
    book.local("import place")
    assert book.gpu("import place, os\nplace.process == os.getpid() and place.device.endswith(str(os.getpid()))")
    assert book.local("import os\nplace.process == os.getpid()")


def test_a_reload_starts_globals_anew(book: Book) -> None:
    book.write("mod.py", "n = 0\n")
    book.local("import mod, importlib\nmod.n = 5\nmod.extra = 'kept'")
    assert book.gpu("import mod\n(mod.n, mod.extra)") == (5, "kept")
    book.local("importlib.reload(mod)")
    assert book.gpu("mod.n, mod.extra") == book.local("mod.n, mod.extra") == (0, "kept")


def test_a_reload_undoes_what_was_on_its_way_to_a_module(book: Book) -> None:
    book.write("mod.py", "n = 0\n")
    book.local("import mod\nmod.n = 5")
    book.gpu("1")
    book.local("import importlib\nimportlib.reload(mod)\nmod.extra = 2")
    assert book.gpu("import mod\n(mod.n, mod.extra)") == (0, 2)


def test_what_is_not_plain_data_stays_on_its_side(book: Book) -> None:
    book.write("mod.py", "import threading\nlock = threading.Lock()\nitems = []\nloop = []\nloop.append(loop)\n")
    book.local("import mod\nmod.items.append(mod.lock)\nmod.made = object()")
    assert book.gpu("import mod\nmod.items.append(object())\nhasattr(mod, 'made'), len(mod.items)") == (False, 1)
    assert book.local("mod.items == [mod.lock]")


# --- decisions, without an executor


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b as c, d", ["a.b", "d"]),
        ("from a import b, c", ["a", "a.b", "a.c"]),
        ("from a import *", ["a"]),
        ("def f():\n    class C:\n        import inner\n", ["inner"]),
        ("importlib.import_module('x.y')\n__import__('z')", ["x.y", "z"]),
        ("'not.imported'", []),
        ("async def f():\n    import g\nawait f()", ["g"]),
        ("%time import timed", ["timed"]),
        ("%%time\nimport timed", ["timed"]),
        ("!ls\nimport after", ["after"]),
        ("import broken (", []),
        ("if True:\n" + "".join(f"    x{n} = {n}.5\n" for n in range(400)) + "    import far\n", ["far"]),
    ],
)
def test_imports_of_a_cell(source: str, names: list[str]) -> None:
    assert list(modules.imports_of_cell(source)) == names


def test_relative_imports_start_from_the_package() -> None:
    text = "from . import a\nfrom .b import c\nfrom ..d import e\nfrom ....f import g"
    assert modules.imports_of(text, "p.q") == ("p.q", "p.q.a", "p.q.b", "p.q.b.c", "p.d", "p.d.e")
    assert lookups.imports(compile("from .x import y", "<f>", "exec")) == (".x", ".x.y")


@pytest.mark.parametrize("pair", [(1, True), (0.0, -0.0), ([1], (1,)), ({1: 2, 3: 4}, {3: 4, 1: 2}), ("a", b"a")])
def test_tokens_tell_values_apart(pair: tuple[object, object]) -> None:
    first, second = map(attributes.token_of, pair)
    assert first is not None
    assert second is not None
    assert first != second


def test_tokens_do_not_depend_on_who_else_holds_a_value() -> None:
    text = f"some {'text'}"
    assert attributes.token_of([text, text]) == attributes.token_of([f"some {word}" for word in ("text", "text")])
    assert attributes.token_of([object()]) is None
    assert attributes.token_of({"a": {1: bytearray()}}) is None


def test_a_value_that_nothing_but_code_of_its_own_describes_is_not_asked(book: Book) -> None:
    class Strange(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    class Stranger:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    sys.modules["strange_one"], sys.modules["strange_two"] = Strange("strange_one"), Stranger()  # type: ignore[assignment]
    try:
        shipment, _ = book.modules.out(["strange_one", "strange_two.part"])
    finally:
        del sys.modules["strange_one"], sys.modules["strange_two"]
    assert shipment.wanted == ()
