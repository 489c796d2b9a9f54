"""A pool whose environment is not the notebook's: what differs is said before the cell runs that meets it."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, PoolProcess

MODULE = """__version__ = VERSION
class Thing:
    made_by = VERSION
class Strict:
    def __getstate__(self):
        return self.__dict__ | {"made_by": VERSION}
    def __setstate__(self, state):
        if state["made_by"] < VERSION:
            raise NotImplementedError(state)
        self.__dict__.update(state)
"""


def install(folder: Path, **versions: str) -> str:
    """Put libraries of one module each where libraries are; the folder's path."""
    site = folder / "site-packages"
    for name, version in versions.items():
        (site / f"{name}-{version}.dist-info").mkdir(parents=True)
        (site / f"{name}-{version}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        (site / f"{name}.py").write_text(MODULE.replace("VERSION", repr(version)))
    return str(site)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebook's are, which the node does not see."""
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, libraries: Path) -> Iterator[PoolProcess]:
    if shutil.which("unshare") is None or os.getuid() != 0:
        pytest.skip("only root makes mount namespaces here, with unshare(1)")
    base = tmp_path_factory.mktemp("pool")
    hidden = f'mount -t tmpfs tmpfs {libraries}; exec "$@"'
    there = install(base, differs="1.0", alike="3.0", only_there="4.0")
    process = PoolProcess(
        base / "p",
        "--slots=2",
        "--Pool.preload=numpy",
        f"--Pool.environments={{'default': '{sys.executable}'}}",
        hub={"PYTHONPATH": there},
        under=["unshare", "-m", "sh", "-ec", hidden, "sh"],
    )
    yield process
    process.stop()


@pytest.fixture
def notebook(pool: PoolProcess, libraries: Path, tmp_path: Path) -> Iterator[Notebook]:
    shutil.rmtree(libraries / "site-packages", ignore_errors=True)
    here = install(libraries, differs="2.0", alike="3.0", only_here="5.0")
    environ = {"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json"), "PYTHONPATH": here}
    opened = Notebook(environ, tmp_path)
    yield opened
    opened.close()


def test_another_version_of_what_a_cell_imports_is_said_before_it_runs_and_once(notebook: Notebook) -> None:
    first = notebook.run("%%gpu\nimport differs, alike\nprint('the cell runs with', differs.__version__)")
    said = first.stream("stderr")
    assert "differs is 1.0 in the pool's environment on " in said
    assert "and 2.0 in the notebook." in said
    assert "alike" not in said
    assert first.shown.index("differs is 1.0") < first.shown.index("the cell runs with 1.0")
    again = notebook.run("%%gpu\nimport differs\nprint(differs.__version__)")
    assert again.shown.strip() == "1.0"
    assert "differs is 1.0 in the pool's environment on " in notebook.run("%%gpu --plan\nimport differs").shown


def test_another_version_of_what_made_a_variable_is_said_before_the_cell_runs(notebook: Notebook) -> None:
    notebook.run("import differs\nthing = differs.Thing()")
    output = notebook.run("%%gpu\nprint(thing.made_by)")
    assert output.error is None
    assert "differs is 1.0 in the pool's environment" in output.stream("stderr")


def test_what_fails_to_load_in_the_notebook_says_which_versions_differ(notebook: Notebook) -> None:
    notebook.run("from differs import Strict\nstrict = Strict()")
    output = notebook.run("%%gpu\nstrict.changed = True")
    assert "CannotReturn: 'strict' could not be loaded in the notebook: NotImplementedError" in output.shown
    error = output.shown.partition("CannotReturn:")[2]
    assert "differs is 1.0 in the pool's environment on " in error
    assert "and 2.0 in the notebook." in error


def test_a_plan_knows_that_the_executor_has_refused_the_notebook(notebook: Notebook) -> None:
    """What the notebook says of its Python is put in the way: there is no other one here."""
    notebook.run(
        "from bulletin_magic.running import notebook_libraries\n"
        "notebook_libraries.PYTHON = '3.99'\nnotebook_libraries._versions.cache_clear()"
    )
    refused = notebook.run("%%gpu\n1")
    assert "The notebook runs Python 3.99, and the pool's environment on " in refused.shown
    plan = notebook.run("%%gpu --plan\n1").shown
    assert "the cell would be refused there, as the last one was" in plan
    assert "The notebook runs Python 3.99, and the pool's environment on " in plan
    assert "at once" not in plan


def test_a_module_that_only_the_notebook_has_is_named_with_the_node_and_the_remedy(notebook: Notebook) -> None:
    output = notebook.run("%%gpu\nimport only_here")
    assert output.error is not None
    assert output.error["ename"] == "ModuleNotFoundError"
    said = output.stream("stderr")
    assert "The pool's environment on " in said
    assert "has no only_here; the notebook has 5.0, and it does not follow the cell: no library that is" in said
    assert "Install it there, or use an environment of the pool" in said


def test_an_empty_cell_says_nothing_of_environments(notebook: Notebook) -> None:
    assert notebook.run("%%gpu\n1").stream("stderr") == ""


def test_modules_of_the_notebooks_own_are_no_libraries(notebook: Notebook, tmp_path: Path) -> None:
    (tmp_path / "my_helpers.py").write_text("def double(x): return 2 * x\n")
    output = notebook.run("%%gpu\nimport my_helpers\nprint(my_helpers.double(4))")
    assert output.error is None, output.shown
    assert output.shown.strip() == "8"


def test_an_environment_that_is_not_there_is_refused_with_those_that_are_each_once(notebook: Notebook) -> None:
    output = notebook.run("%%gpu --environment torch\n1")
    assert "there is no environment 'torch' here; --environment takes one of: default." in output.shown


def test_a_variable_that_is_a_module_the_node_lacks_is_named(notebook: Notebook) -> None:
    notebook.run("import only_here\nx = 1")
    output = notebook.run("%%gpu\nx = 2\nprint(only_here)")
    assert (
        "CannotSend: The cell's variables need the module 'only_here', which the environment of this pool"
        in output.shown
    )
    assert notebook.value("x") == "1"


def test_what_only_the_nodes_libraries_make_stays_on_the_pool_and_all_else_comes(notebook: Notebook) -> None:
    output = notebook.run(
        "%%gpu\nimport only_there\nfrom only_there import Thing\nthing, things = Thing(), {'one': Thing(), 'two': 2}\n"
        "other = [1, 2]\nprint('the cell runs')"
    )
    assert output.error is None, output.shown
    assert "only_there is in the pool's environment on " in output.stream("stderr")
    assert output.shown.index("what cells make with it stays there") < output.shown.index("the cell runs")
    assert notebook.value("other, things['two']") == "([1, 2], 2)"
    assert "thing is an only_there.Thing, which cannot come to the notebook. It stays on the pool" in output.shown
    again = notebook.run(
        "%%gpu\nprint(thing.made_by, things['one'].made_by, Thing is type(thing), only_there.__version__)"
    )
    assert again.stream() == "4.0 4.0 True 4.0\n", again.shown


def test_what_is_installed_in_the_notebook_meanwhile_comes(notebook: Notebook, libraries: Path) -> None:
    notebook.run("%%gpu\nimport only_there\nthing = only_there.Thing()")
    install(libraries, only_there="4.0")
    notebook.run("import importlib; importlib.invalidate_caches()")
    output = notebook.run("%%gpu\nimport only_there\nthing = only_there.Thing()")
    assert output.error is None, output.shown
    assert notebook.value("thing.made_by") == "'4.0'"
