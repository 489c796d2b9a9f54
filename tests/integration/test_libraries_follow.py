"""Libraries that only the notebook has: they come with the cell that uses them, to a node that does not see them."""

import os
import shutil
import socket
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import xxhash

from tests.integration.conftest import Notebook, PoolProcess, until


def files_of(name: str, version: str, requires: tuple[str, ...] = (), **modules: str) -> dict[str, str]:
    """Write down a library as a wheel has it: its modules, and what its metadata says."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {f"{module}.py": source for module, source in modules.items()}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    return files


def install(site: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebook's are, which the node does not see."""
    return tmp_path_factory.mktemp("libraries") / "site-packages"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the node keeps files of cells."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, site: Path, scratch: Path) -> Iterator[PoolProcess]:
    if shutil.which("unshare") is None or os.getuid() != 0:
        pytest.skip("only root makes mount namespaces here, with unshare(1)")
    site.mkdir()
    base = tmp_path_factory.mktemp("pool")
    under = ["unshare", "-m", "env", f"TMPDIR={scratch}", "sh", "-ec", f'mount -t tmpfs tmpfs {site}; exec "$@"', "sh"]
    environments = f"--Pool.environments={{'default': '{sys.executable}'}}"
    process = PoolProcess(base / "p", "--slots=2", "--Pool.preload=numpy", environments, under=under)
    yield process
    process.stop()
    assert list(scratch.iterdir()) == [], "no library of a notebook stays on the node"


def open_on(pool: PoolProcess, site: Path, folder: Path) -> Notebook:
    environ = {"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json"), "PYTHONPATH": str(site)}
    return Notebook(environ, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook's."""
    return tmp_path_factory.mktemp("course")


@pytest.fixture(scope="module")
def opened(pool: PoolProcess, site: Path, folder: Path) -> Iterator[Notebook]:
    opened = open_on(pool, site, folder)
    yield opened
    opened.close()


@pytest.fixture
def notebook(opened: Notebook, site: Path, folder: Path) -> Notebook:
    """One whose session is new and which has no library yet. Its modules stay: each test has names of its own."""
    for path in (*site.iterdir(), *folder.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    opened.run("%gpu reset\n%config BulletinMagics.library_mb = 200")
    return opened


def test_a_library_comes_with_what_it_needs_and_what_it_makes_goes_back(notebook: Notebook, site: Path) -> None:
    shape = (
        "from needed import twice\nclass Shape:\n    def __init__(self, n): self.n = n\n"
        "    def area(self): return twice(self.n)\n"
    )
    needs = ("The.Needed>=1", "not-there; extra == 'more'")
    install(site, files_of("the-tool", "1.2", needs, **{"tool/__init__": shape, "tool/deep": "X = 7\n"}))
    install(site, files_of("the-needed", "3.0", needed="def twice(n): return 2 * n\n"))
    output = notebook.run("%%gpu\nimport tool, tool.deep\nshape = tool.Shape(21)\nprint(shape.area(), tool.deep.X)")
    assert output.error is None, output.shown
    assert output.stream("stdout") == "42 7\n"
    said = output.stream("stderr")
    assert "the-tool 1.2 and the-needed 3.0 come from the notebook for this session" in said
    assert f"the pool's environment on {socket.gethostname()} has no tool." in said
    assert notebook.value("shape.area(), type(shape).__module__") == "(42, 'tool')"
    again = notebook.run("%%gpu\nimport tool\nprint(shape.area(), tool.__file__.count('site-packages'))")
    assert (again.stream("stdout"), again.stream("stderr")) == ("42 1\n", "")


def test_a_variable_made_with_a_library_that_the_node_lacks_goes_there(notebook: Notebook, site: Path) -> None:
    install(site, files_of("boxes", "2.0", boxes="class Box:\n    def __init__(self, n): self.n = n\n"))
    notebook.run("from boxes import Box\nbox = Box(5)")
    output = notebook.run("%%gpu\nbox.n += 1\nprint(box.n)")
    assert output.error is None, output.shown
    assert notebook.value("box.n, type(box) is Box") == "(6, True)"


def test_compiled_modules_come_and_metadata_is_there(notebook: Notebook, site: Path) -> None:
    compiled = next(Path(xxhash.__file__).parent.glob("_xxhash*.so"))
    install(site, files_of("fast", "0.1", **{"fast/__init__": "from fast._xxhash import xxh64_hexdigest\n"}))
    shutil.copy(compiled, site / "fast")
    record = site / "fast-0.1.dist-info" / "RECORD"
    record.write_text(f"{record.read_text()}fast/{compiled.name},,\n")
    output = notebook.run(
        "%%gpu\nimport fast\nfrom importlib.metadata import version\nprint(fast.xxh64_hexdigest(b'a'), version('fast'))"
    )
    assert output.error is None, output.shown
    assert output.stream("stdout") == f"{xxhash.xxh64_hexdigest(b'a')} 0.1\n"


def test_what_pip_installs_in_the_notebook_is_there_in_the_next_cell(
    notebook: Notebook, site: Path, tmp_path: Path
) -> None:
    wheel = tmp_path / "fresh-4.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files_of("fresh", "4.0", fresh="def say(): return 'fresh'\n").items():
            archive.writestr(path, text)
    before = notebook.run("%%gpu\nimport fresh")
    assert before.error is not None
    assert before.error["ename"] == "ModuleNotFoundError"
    installed = notebook.run(f"%pip install --quiet --no-index --no-deps --target {site} {wheel}")
    assert installed.error is None, installed.shown
    output = notebook.run("%%gpu\nimport fresh\nprint(fresh.say())")
    assert output.error is None, output.shown
    assert output.stream("stdout") == "fresh\n"


def test_an_import_in_a_function_of_the_notebook_is_found_also_after_it_failed(notebook: Notebook, site: Path) -> None:
    notebook.run("def late():\n    import later\n    return later.X")
    failed = notebook.run("%%gpu\nlate()")
    assert failed.error is not None
    install(site, files_of("later", "1.0", later="X = 5\n"))
    output = notebook.run("%%gpu\nprint(late())")
    assert output.error is None, output.shown
    assert output.stream() == "5\n"


def test_what_modules_beside_the_notebook_import_comes_with_them(notebook: Notebook, site: Path, folder: Path) -> None:
    install(site, files_of("at-once", "1.0", at_once="X = 1\n"))
    install(site, files_of("in-time", "1.0", in_time="X = 2\n"))
    (folder / "helper.py").write_text(
        "import at_once\nfrom helper_of_helper import late\n\ndef now():\n    return at_once.X\n"
    )
    (folder / "helper_of_helper.py").write_text("def late():\n    import in_time\n    return in_time.X\n")
    output = notebook.run("%%gpu\nimport helper\nprint(helper.now(), helper.late())")
    assert output.error is None, output.shown
    notebook.run("import helper\n%gpu reset")
    again = notebook.run("%%gpu\nprint(helper.now(), helper.late())")
    assert again.error is None, again.shown
    assert (output.stream(), again.stream()) == ("1 2\n", "1 2\n")


def test_a_value_inside_others_brings_its_library(notebook: Notebook, site: Path) -> None:
    install(site, files_of("crates", "1.0", crates="class Crate:\n    def __init__(self, n): self.n = n\n"))
    notebook.run("from crates import Crate\nshelves = {'left': [Crate(3)]}")
    output = notebook.run("%%gpu\nprint(shelves['left'][0].n)")
    assert output.error is None, output.shown
    assert output.stream() == "3\n"


def test_extras_that_a_library_asks_of_another_come_too(notebook: Notebook, site: Path) -> None:
    install(site, files_of("server", "1.0", ("base[fast]>=1; python_version > '3'",), server="import base, turbo\n"))
    install(site, files_of("base", "1.0", ("turbo; extra == 'fast'", "other; extra == 'slow'"), base="X = 1\n"))
    install(site, files_of("turbo", "1.0", ("base[fast]",), turbo="X = 1\n"))
    install(site, files_of("other", "1.0", other="X = 1\n"))
    output = notebook.run("%%gpu\nimport server\nprint(server.turbo.X)")
    assert output.error is None, output.shown
    assert "other 1.0" not in output.stream("stderr")


def test_programs_and_data_of_a_library_are_there_as_they_were_installed(notebook: Notebook, site: Path) -> None:
    source = (
        "from importlib import resources\nimport subprocess\nfrom pathlib import Path\n"
        "def text(): return resources.files('outfit').joinpath('data/ä b.txt').read_text()\n"
        "def program(): return subprocess.check_output([Path(__file__).parent / 'bin' / 'tool'], text=True).strip()\n"
    )
    files = files_of("outfit", "1.0", **{"outfit/__init__": source})
    info = "outfit-1.0.dist-info"
    files |= {"outfit/data/ä b.txt": "text", "outfit/bin/tool": "#!/bin/sh\necho ran\n"}
    files[f"{info}/entry_points.txt"] = "[fits]\none = outfit:text\n"
    files[f"{info}/RECORD"] += "outfit/data/ä b.txt,,\noutfit/bin/tool,,\n../../../bin/outfit,,\n"
    files[f"{info}/RECORD"] += f"{info}/entry_points.txt,,\n"
    install(site, files)
    (site / "outfit" / "bin" / "tool").chmod(0o755)
    output = notebook.run(
        "%%gpu\nimport outfit\nfrom importlib.metadata import entry_points\n"
        "(one,) = entry_points(group='fits')\nprint(outfit.text(), outfit.program(), one.load()())"
    )
    assert output.error is None, output.shown
    assert output.stream() == "text ran text\n"


def test_each_notebook_has_the_version_that_it_had_when_its_session_began(
    notebook: Notebook, pool: PoolProcess, site: Path, tmp_path: Path
) -> None:
    cell = "%%gpu\nimport moving\nprint(moving.X)"
    install(site, files_of("moving", "1.0", moving="X = 1\n"))
    assert notebook.run(cell).stream() == "1\n"
    shutil.rmtree(site / "moving-1.0.dist-info")
    install(site, files_of("moving", "2.0", moving="X = 2 + 0\n"))
    other = open_on(pool, site, tmp_path)
    try:
        assert other.run(cell).stream() == "2\n"
        assert notebook.run(cell).stream() == "1\n"
    finally:
        other.close()
    notebook.run("%gpu reset")
    assert notebook.run(cell).stream() == "2\n"


def test_one_that_was_too_large_comes_once_it_may(notebook: Notebook, site: Path) -> None:
    install(site, files_of("medium", "1.0", medium="X = 1\n" + "#" * 3_000_000))
    notebook.run("%config BulletinMagics.library_mb = 2")
    assert "at most 2 MB" in notebook.run("%%gpu\nimport medium").stream("stderr")
    notebook.run("%config BulletinMagics.library_mb = 4")
    output = notebook.run("%%gpu\nimport medium\nprint(medium.X)")
    assert output.error is None, output.shown
    assert output.stream() == "1\n"


def test_why_one_does_not_come_is_said_also_where_nothing_lists_it(
    notebook: Notebook, site: Path, tmp_path: Path
) -> None:
    install(site, {"copied_by_hand.py": "X = 1\n"})
    said = notebook.run("%%gpu\nimport copied_by_hand").stream("stderr")
    assert "it does not follow the cell: no library that is installed there names it among its files" in said
    install(site, files_of("linked", "1.0", linked=""))
    (tmp_path / "linked.py").write_text("X = 1\n")
    (site / "linked.py").unlink()
    (site / "linked.py").symlink_to(tmp_path / "linked.py")
    said = notebook.run("%%gpu\nimport linked").stream("stderr")
    assert "it does not follow the cell: its files are links to others, and links are not followed" in said
    assert "comes from the notebook" not in said


def test_one_that_is_too_large_stays_and_says_why(notebook: Notebook, site: Path) -> None:
    install(site, files_of("large", "1.0", large="X = 1\n" + "#" * 3_000_000))
    notebook.run("%config BulletinMagics.library_mb = 2")
    output = notebook.run("%%gpu\nimport large")
    assert output.error is not None
    assert output.error["ename"] == "ModuleNotFoundError"
    assert (
        "has no large; the notebook has 1.0, and it does not follow the cell: it has 3 MB, and at most 2 MB of a "
        "library follow a cell (BulletinMagics.library_mb). Install it there"
    ) in output.stream("stderr")


def test_one_that_needs_what_cannot_come_stays_too(notebook: Notebook, site: Path) -> None:
    install(site, files_of("huge", "1.0", huge="#" * 3_000_000))
    install(site, files_of("user-of-it", "1.0", ("huge",), user_of_it="import huge\n"))
    notebook.run("%config BulletinMagics.library_mb = 2")
    output = notebook.run("%%gpu\ntry:\n    import user_of_it\nexcept ModuleNotFoundError as error:\n    print(error)")
    assert output.stream("stdout") == "No module named 'user_of_it'\n"
    assert "it does not follow the cell: it needs huge, which does not either: it has 3 MB" in output.stream("stderr")


def test_nothing_of_it_is_left_on_the_node_when_the_session_is_over(
    notebook: Notebook, site: Path, scratch: Path
) -> None:
    install(site, files_of("passing", "1.0", passing="X = 1\n"))
    assert notebook.run("%%gpu\nimport passing\nprint(passing.X)").stream("stdout") == "1\n"
    assert list(scratch.rglob("passing.py"))
    notebook.run("%gpu reset")
    until(lambda: not list(scratch.rglob("passing.py")), "the end of its files")
