"""A node that does not share the notebook's folder: a cell finds the files there, and leaves files there, as if local.

Notebook and pool are in mount namespaces of their own, each with another folder under the same name.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, Output, PoolProcess, until


def skip_without_mounts() -> None:
    """Skip where no mount namespace can be made, with the reason."""
    if shutil.which("unshare") is None or os.getuid() != 0:
        pytest.skip("only root makes mount namespaces here, with unshare(1)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notebook's."""
    return tmp_path_factory.mktemp("home") / "course"


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[PoolProcess]:
    """A pool on a host that has an empty folder where the notebook's is, and files for temporary files of its own."""
    skip_without_mounts()
    folder.mkdir()
    base = tmp_path_factory.mktemp("pool")
    boot, scratch = base / "boot_id", base / "tmp"
    boot.write_text(str(uuid.uuid4()))
    scratch.mkdir()
    mounts = f"mount -t tmpfs tmpfs {folder}; mount --bind {boot} /proc/sys/kernel/random/boot_id"
    under = ["unshare", "-m", "env", f"TMPDIR={scratch}", "sh", "-ec", f'{mounts}; exec "$@"', "sh"]
    process = PoolProcess(base / "p", "--slots", "2", "--Pool.preload=numpy", under=under)
    yield process
    process.stop()
    assert list(scratch.iterdir()) == [], "no file of a notebook stays on the node"


@pytest.fixture(scope="module")
def notebook(pool: PoolProcess, folder: Path) -> Iterator[Notebook]:
    """A notebook in the folder."""
    opened = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}, folder)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _clean(folder: Path) -> Iterator[None]:
    yield
    left = [path.name for path in folder.rglob(".bulletin-*")]
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    assert left == [], "nothing of our own stays in the notebook's folder"


def gpu(notebook: Notebook, code: str) -> Output:
    """Run a cell on the pool, which must succeed."""
    output = notebook.run(f"%%gpu\n{code}")
    assert output.error is None, output.shown
    return output


READERS = {
    "open": "print(open('data.csv').read())",
    "Path": "from pathlib import Path\nprint(Path('data.csv').read_text())",
    "os.open": "import os\nprint(os.read(os.open('data.csv', os.O_RDONLY), 99).decode())",
    "pandas": "import pandas\nprint(pandas.read_csv('data.csv').to_csv(index=False))",
    "numpy": "import numpy\nprint(numpy.loadtxt('data.csv', delimiter=',', dtype=str))",
    "shell": "!cat data.csv",
    "subprocess": "import subprocess\nprint(subprocess.check_output(['cat', 'data.csv'], text=True))",
    "fork": "import os\nif os.fork() == 0:\n    os.execvp('cat', ['cat', 'data.csv'])\nos.waitpid(-1, 0)",
    "pool of processes": "from concurrent.futures import ProcessPoolExecutor\nfrom pathlib import Path\n"
    "with ProcessPoolExecutor(2) as workers:\n    print(*workers.map(Path.read_text, [Path('data.csv')]))",
    "C code that holds the interpreter": "import ctypes, os\n"
    "print(os.read(ctypes.PyDLL(None).open(b'data.csv', 0), 99).decode())",
    "mmap": "import mmap\nwith open('data.csv') as f:\n"
    "    print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:].decode())",
    "copy": "import shutil\nshutil.copy('data.csv', '/dev/shm/copy')\nprint(open('/dev/shm/copy').read())",
    "thread": "from concurrent.futures import ThreadPoolExecutor\nfrom pathlib import Path\n"
    "with ThreadPoolExecutor(4) as threads:\n    print(*threads.map(lambda n: Path('data.csv').read_text(), range(4)))",
}


@pytest.mark.parametrize("how", READERS)
def test_a_cell_reads_a_file_of_the_notebooks_folder(notebook: Notebook, folder: Path, how: str) -> None:
    if how == "pandas" and importlib.util.find_spec(how) is None:
        pytest.skip("pandas is not installed")
    (folder / "data.csv").write_text(f"name,{how.replace(' ', '-')}\nx,1\n")
    shown = gpu(notebook, READERS[how]).stream()
    assert how.replace(" ", "-") in shown, shown


WRITE_DATABASE = """import sqlite3
d = sqlite3.connect('a.d')
d.execute('create table t as select 44999850000 as x')
d.close()
del d
"""
ARRAYS = {
    "numpy": (
        "import numpy as np\nnp.save('a.bin.npy', np.arange(300_000))",
        "import numpy as np\nprint(np.load('a.bin.npy').sum())",
    ),
    "memmap": (
        "import numpy as np\nnp.arange(300_000).tofile('a.bin')",
        "import numpy as np\nprint(np.memmap('a.bin', dtype=int, mode='r').sum())",
    ),
    "torch": (
        "import torch\ntorch.save(torch.arange(300_000), 'a.pt')",
        "import torch\nprint(int(torch.load('a.pt').sum()), int(torch.load('a.pt', mmap=True).sum()))",
    ),
    "h5py": (
        "import h5py\nwith h5py.File('a.h5', 'w') as f: f['x'] = range(300_000)",
        "import h5py\nprint(h5py.File('a.h5')['x'][:].sum())",
    ),
    "PIL": (
        "from PIL import Image\nImage.new('L', (100, 3000), 1).save('a.png')",
        "from PIL import Image\nprint(sum(Image.open('a.png').tobytes()) + 44999550000)",
    ),
    "sqlite3": (
        WRITE_DATABASE,
        "import sqlite3\nprint(sqlite3.connect('a.d').execute('select x from t').fetchone()[0])",
    ),
    "pyarrow": (
        "import pyarrow as pa, pyarrow.parquet as pq\npq.write_table(pa.table({'x': range(300_000)}), 'a.parquet')",
        "import pyarrow.parquet as pq\nprint(sum(pq.read_table('a.parquet')['x'].to_pylist()))",
    ),
}


@pytest.mark.parametrize("library", ARRAYS)
@pytest.mark.parametrize("writes_there", [True, False], ids=["written there", "written here"])
def test_libraries_that_open_files_in_c_read_and_write_them(
    notebook: Notebook, library: str, writes_there: bool
) -> None:
    module = {"memmap": "numpy"}.get(library, library)
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    write, read = ARRAYS[library]
    if writes_there:
        gpu(notebook, write)
        shown = notebook.run(read)
    else:
        written = notebook.run(write)
        assert written.error is None, written.shown
        shown = gpu(notebook, read)
    assert "44999850000" in shown.stream(), shown.shown


def test_the_folder_looks_as_it_does_in_the_notebook(notebook: Notebook, folder: Path) -> None:
    (folder / "images" / "cats").mkdir(parents=True)
    for name in ("images/cats/1.png", "images/cats/2.png", "images/dog.png", "notes.txt"):
        (folder / name).write_text(name)
    (folder / "run.sh").write_text("#!/bin/sh\necho ran with $1\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "latest").symlink_to("images/dog.png")
    look = (
        "import glob, os\nfrom pathlib import Path\n"
        "print(sorted(os.listdir()), sorted(map(str, Path().rglob('*'))))\n"
        "print(sorted(glob.glob('**/*.png', recursive=True)))\n"
        "print(os.path.exists('notes.txt'), os.path.exists('none'), os.path.getsize('images/dog.png'))\n"
        "print(Path('notes.txt').stat().st_mtime_ns, sorted((e.name, e.is_dir()) for e in os.scandir()))\n"
        "print(open('latest').read(), os.access('run.sh', os.X_OK), Path.cwd().name)"
    )
    here = notebook.run(look)
    assert here.error is None, here.shown
    assert gpu(notebook, look).stream() == here.stream()
    assert gpu(notebook, "!./run.sh here").stream().startswith("ran with here")


def test_what_a_cell_writes_and_removes_is_so_in_the_notebooks_folder(notebook: Notebook, folder: Path) -> None:
    (folder / "old.txt").write_text("old")
    (folder / "kept.txt").write_text("kept")
    (folder / "log.txt").write_text("one\n")
    (folder / "gone").mkdir()
    (folder / "gone" / "file").write_text("x")
    gpu(
        notebook,
        "import os, shutil\nfrom pathlib import Path\n"
        "Path('model.pt').write_bytes(bytes(range(256)) * 20_000)\n"
        "Path('logs/run1').mkdir(parents=True); Path('logs/run1/events').write_text('a')\n"
        "Path('empty').mkdir(); Path('nothing').touch()\n"
        "os.remove('old.txt'); shutil.rmtree('gone')\n"
        "print('two', file=open('log.txt', 'a'))\n"
        "Path('tool').write_text('#!/bin/sh'); os.chmod('tool', 0o750)\n"
        "os.symlink('kept.txt', 'link')",
    )
    assert (folder / "model.pt").read_bytes() == bytes(range(256)) * 20_000
    assert (folder / "logs" / "run1" / "events").read_text() == "a"
    assert (folder / "empty").is_dir()
    assert (folder / "nothing").read_text() == ""
    assert not (folder / "old.txt").exists()
    assert not (folder / "gone").exists()
    assert (folder / "log.txt").read_text() == "one\ntwo\n"
    assert (folder / "tool").stat().st_mode & 0o777 == 0o750
    assert str((folder / "link").readlink()) == "kept.txt"
    assert (folder / "kept.txt").read_text() == "kept"


KINDS = {
    "file": "with open('thing', 'w') as f: f.write('of the file')",
    "folder": "os.mkdir('thing'); open('thing/in', 'w').write('in the folder'); os.mkdir('thing/deep')",
    "link": "os.symlink('kept.txt', 'thing')",
    "other link": "os.symlink('nowhere', 'thing')",
}
LOOK = (
    "import os\nprint(os.path.islink('thing') and os.readlink('thing'), os.path.isdir('thing') and "
    "sorted(os.listdir('thing')), os.path.isfile('thing') and open('thing').read())"
)


@pytest.mark.parametrize("after", KINDS)
@pytest.mark.parametrize("before", KINDS)
def test_what_takes_the_place_of_something_else_does_so_in_the_notebook(
    notebook: Notebook, folder: Path, before: str, after: str
) -> None:
    (folder / "kept.txt").write_text("kept")
    made = notebook.run(f"import os\n{KINDS[before]}")
    assert made.error is None, made.shown
    remove = "import shutil\nshutil.rmtree('thing')" if before == "folder" else "os.remove('thing')"
    output = gpu(notebook, f"{remove}\n{KINDS[after]}\n{LOOK}")
    there = output.stream().splitlines()[-1]
    assert output.stream("stderr") == ""
    assert notebook.run(LOOK).stream().splitlines()[-1] == there
    assert gpu(notebook, LOOK).stream().splitlines()[-1] == there, "nor is it taken back with the next cell"
    assert (folder / "kept.txt").read_text() == "kept"


def test_a_link_to_the_latest_run_is_moved_by_each_cell(notebook: Notebook, folder: Path) -> None:
    for run in ("run-1", "run-2", "run-3"):
        gpu(
            notebook,
            f"import os\nos.mkdir('{run}')\nos.symlink('{run}', 'new')\nos.replace('new', 'latest')\n"
            "open('latest/metrics.csv', 'w').write('1')",
        )
        assert str((folder / "latest").readlink()) == run
    assert (folder / "run-3" / "metrics.csv").read_text() == "1"


def test_what_the_notebook_has_put_in_the_place_of_a_link_meanwhile_is_kept(notebook: Notebook, folder: Path) -> None:
    (folder / "latest").symlink_to("old")
    go = Path("/dev/shm/bulletin-go")

    def change() -> None:
        (folder / "latest").unlink()
        (folder / "latest").write_text("the notebook's own")
        go.touch()

    output = notebook.run_until(
        "%%gpu\nimport os, time\nos.remove('latest'); os.symlink('new', 'latest')\nprint('linked', flush=True)\n"
        "while not os.path.exists('/dev/shm/bulletin-go'): time.sleep(0.05)",
        "linked",
        change,
    )
    go.unlink()
    assert (folder / "latest").read_text() == "the notebook's own"
    assert "latest was changed in the notebook, and is kept though the cell made it a link." in output.shown


#: As macOS names its pictures of the screen, an emoji of several characters, a space of the full width, hidden signs.
NAMES = [
    "at 9.41.00\u202fAM.txt",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467.txt",
    "日本\u3000語.txt",
    "so\u00adft\u00a0.txt",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_files_of_any_name_that_is_text_follow_both_ways(notebook: Notebook, folder: Path, name: str) -> None:
    (folder / name).write_text("here")
    output = gpu(
        notebook,
        f"name = {name!r}\nprint(open(name).read())\n"
        "open('made ' + name, 'w').write('there')\nopen(name, 'a').write('+')",
    )
    assert output.stream() == "here\n"
    assert ((folder / name).read_text(), (folder / f"made {name}").read_text()) == ("here+", "there")


def test_a_plan_says_which_files_would_travel(notebook: Notebook, folder: Path) -> None:
    (folder / "data.csv").write_text("x" * 5000)
    (folder / "second.csv").write_text("x" * 7000)
    notebook.run("%gpu stop\nname = 'second.csv'")
    cell = "%%gpu --plan\nprint(open('data.csv').read(), open(name).read(), '/etc/passwd')"
    plan = notebook.run(cell).shown
    assert "Whether the node shares the notebook's folder is found when the cell runs." in plan
    assert "data.csv (5 KB), second.csv (7 KB)" in plan
    gpu(notebook, "print(name)")
    plan = notebook.run(cell).shown
    assert "The node does not share the notebook's folder" in plan
    assert "These would come, unless they are there already: data.csv (5 KB), second.csv (7 KB)." in plan
    notebook.run("%config BulletinMagics.folder_file_mb = 0")
    plan = notebook.run(cell).shown
    notebook.run("%config BulletinMagics.folder_file_mb = 4000")
    assert "data.csv would not come: it has 5 KB" in plan


def test_files_come_back_from_a_cell_that_raises_and_from_one_that_is_stopped(notebook: Notebook, folder: Path) -> None:
    raised = notebook.run("%%gpu\nopen('a.txt', 'w').write('a')\nraise KeyError('as meant')")
    assert raised.error is not None
    assert raised.error["ename"] == "KeyError"
    assert (folder / "a.txt").read_text() == "a"
    stopped = notebook.run_until(
        "%%gpu\nimport time\nopen('b.txt', 'w').write('b')\nprint('written', flush=True)\nwhile True: time.sleep(0.05)",
        "written",
        notebook.interrupt,
    )
    assert stopped.error is not None
    assert (folder / "b.txt").read_text() == "b"


def test_each_side_sees_what_the_other_has_changed(notebook: Notebook, folder: Path) -> None:
    (folder / "x.txt").write_text("1")
    assert gpu(notebook, "print(open('x.txt').read())").stream() == "1\n"
    (folder / "x.txt").write_text("22")
    (folder / "new.txt").write_text("new")
    assert gpu(notebook, "print(open('x.txt').read(), open('new.txt').read())").stream() == "22 new\n"
    gpu(notebook, "open('x.txt', 'w').write('333')\nimport os\nos.rename('new.txt', 'renamed.txt')")
    assert (folder / "x.txt").read_text() == "333"
    assert (folder / "renamed.txt").read_text() == "new"
    (folder / "x.txt").unlink()
    shown = gpu(notebook, "import os\nprint(os.path.exists('x.txt'), os.path.exists('renamed.txt'))").stream()
    assert shown == "False True\n"


def test_the_working_folder_follows_both_ways(notebook: Notebook, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "x.txt").write_text("in sub")
    notebook.run("import os; os.chdir('sub')")
    try:
        assert gpu(notebook, "print(open('x.txt').read(), open('../sub/x.txt').read())").stream() == "in sub in sub\n"
        gpu(notebook, "import os\nos.chdir('..')")
        assert notebook.value("os.getcwd()") == repr(str(folder))
    finally:
        notebook.run(f"os.chdir({str(folder)!r})")


def test_a_folder_whose_name_is_no_text_holds_up_no_cell(notebook: Notebook, folder: Path) -> None:
    notebook.run("import os; os.mkdir(b'\\xff'); os.chdir(b'\\xff')")
    try:
        assert gpu(notebook, "print(1)").stream() == "1\n"
    finally:
        notebook.run(f"os.chdir({str(folder)!r})")


def test_a_cell_goes_up_from_the_folder_that_its_session_began_in(notebook: Notebook, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "above.txt").write_text("above")
    notebook.run("%gpu reset")
    notebook.run("import os; os.chdir('sub')")
    try:
        gpu(notebook, "import os\nos.chdir('..')")
        assert notebook.value("os.getcwd()") == repr(str(folder))
        assert gpu(notebook, "print(open('above.txt').read())").stream() == "above\n"
    finally:
        notebook.run(f"os.chdir({str(folder)!r})")
        notebook.run("%gpu reset")  # the session of the next test does not begin in a folder that is gone


def test_a_folder_that_is_gone_holds_up_no_cell_that_runs_elsewhere(notebook: Notebook, folder: Path) -> None:
    (folder / "gone").mkdir()
    notebook.run("%gpu reset")
    notebook.run("import os; os.chdir('gone')")
    try:
        gpu(notebook, "print(1)")
    finally:
        notebook.run(f"os.chdir({str(folder)!r})")
    (folder / "gone").rmdir()
    (folder / "x.txt").write_text("x")
    try:
        assert gpu(notebook, "print(open('x.txt').read())").stream() == "x\n"
    finally:
        notebook.run("%gpu reset")


def test_a_file_of_another_folder_is_found_too(
    notebook: Notebook, folder: Path, tmp_path: Path, pool: PoolProcess
) -> None:
    """The node has this folder under the same name, by chance or as here indeed."""
    (tmp_path / "other.txt").write_text("shared")
    notebook.run(f"import os; os.chdir({str(tmp_path)!r})")
    try:
        assert (
            gpu(notebook, "import os\nprint(open('other.txt').read(), os.getcwd())").stream() == f"shared {tmp_path}\n"
        )
        assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]
        plan = notebook.run("%%gpu --plan\nopen('other.txt')").shown
        assert "The node shares the notebook's folder: the cell works in it." in plan
    finally:
        notebook.run(f"os.chdir({str(folder)!r})")


def test_one_that_both_have_changed_stays_and_the_cells_one_is_beside_it(notebook: Notebook, folder: Path) -> None:
    (folder / "x.txt").write_text("before")

    def change() -> None:
        (folder / "x.txt").write_text("the notebook's own")

    output = notebook.run_until(
        "%%gpu\nimport time\nopen('x.txt', 'w').write('the cell')\nprint('written', flush=True)\n"
        "while not os.path.exists('/dev/shm/bulletin-go'): time.sleep(0.05)",
        "written",
        lambda: (change(), Path("/dev/shm/bulletin-go").touch())[0],
    )
    Path("/dev/shm/bulletin-go").unlink()
    assert (folder / "x.txt").read_text() == "the notebook's own"
    (beside,) = folder.glob("x.cell-*.txt")
    assert beside.read_text() == "the cell"
    assert f"what the cell wrote is {beside.name}" in output.shown


@pytest.fixture
def small_limits(notebook: Notebook) -> Iterator[None]:
    notebook.run("%config BulletinMagics.folder_file_mb = 1\n%config BulletinMagics.folder_files = 20")
    yield
    notebook.run(
        "%gpu reset\n%config BulletinMagics.folder_file_mb = 4000\n%config BulletinMagics.folder_files = 10000"
    )


@pytest.mark.usefixtures("small_limits")
def test_a_file_beyond_the_limit_is_said_to_be_in_one_sentence(notebook: Notebook, folder: Path) -> None:
    (folder / "large.bin").write_bytes(b"x" * 2_000_000)
    output = notebook.run("%%gpu\nopen('large.bin')")
    assert output.error is not None
    assert "large.bin has 2 MB, and no file of more than 1 MB follows" in output.shown
    written = notebook.run("%%gpu\nopen('made.bin', 'wb').write(b'y' * 2_000_000)")
    assert "made.bin was not brought to the notebook's folder: it has 2 MB" in written.shown
    assert not (folder / "made.bin").exists()


@pytest.mark.usefixtures("small_limits")
def test_a_folder_of_too_many_files_is_said_to_be_one(notebook: Notebook, folder: Path) -> None:
    (folder / "near.txt").write_text("near")
    (folder / "many").mkdir()
    for number in range(30):
        (folder / "many" / f"{number}.txt").write_text("x")
    output = notebook.run("%%gpu\nprint(open('near.txt').read())\nopen('many/3.txt')")
    assert output.stream() == "near\n"
    assert "with many in it, has more than 20 files" in output.shown
    gpu(notebook, "open('written.txt', 'w').write('w')")
    assert len(list((folder / "many").iterdir())) == 30, "what was not listed is not taken for removed"
    assert (folder / "written.txt").exists()


def test_nothing_outside_the_folder_is_served_or_written(notebook: Notebook, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(os.path.relpath(tmp_path / "nowhere-on-the-node", folder))
    (folder / "inside").mkdir()
    gpu(
        notebook,
        f"import os\nos.symlink('{tmp_path}', 'out')\nos.makedirs('dir'); open('dir/x', 'w').write('x')",
    )
    assert not os.path.lexists(folder / "out")
    # The notebook's folder becomes a link while the cell still has it as a folder.
    output = notebook.run_until(
        "%%gpu\nimport time\nopen('inside/planted', 'w').write('!')\nprint('written', flush=True)\n"
        "while not os.path.exists('/dev/shm/bulletin-go'): time.sleep(0.05)",
        "written",
        lambda: (
            (folder / "inside").rmdir(),
            (folder / "inside").symlink_to(tmp_path),
            Path("/dev/shm/bulletin-go").touch(),
        )[0],
    )
    Path("/dev/shm/bulletin-go").unlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret"]
    assert "inside/planted was not brought to the notebook's folder" in output.shown
    notebook.run("%gpu reset")  # it is there until the session ends


def test_a_file_of_some_size_comes_whole_to_who_opens_it_in_c(notebook: Notebook, folder: Path) -> None:
    content = os.urandom(2**20) * 24 + b"end"
    (folder / "big.bin").write_bytes(content)
    expected = subprocess.run(["sha256sum", folder / "big.bin"], capture_output=True, text=True, check=True).stdout
    assert gpu(notebook, "!sha256sum big.bin").stream().split()[0] == expected.split()[0]


def test_a_cell_in_the_background_has_the_files_too(notebook: Notebook, folder: Path) -> None:
    (folder / "in.txt").write_text("for the background")
    started = notebook.run("%%gpu --background job\nopen('out.txt', 'w').write(open('in.txt').read())")
    assert started.error is None, started.shown
    ended = notebook.run("job.result()")
    assert ended.error is None, ended.shown
    assert (folder / "out.txt").read_text() == "for the background"


def test_nothing_of_the_notebooks_stays_on_the_node(notebook: Notebook, folder: Path) -> None:
    (folder / "x.txt").write_text("x")
    where = gpu(notebook, "import os\nprint(open('x.txt').read(), os.getcwd())").stream().split()[-1]
    scratch = Path(where).parents[1]
    assert scratch.name.startswith("bulletin-files-")
    assert scratch.stat().st_mode & 0o777 == 0o700
    notebook.run("%gpu stop")
    until(lambda: not scratch.exists(), f"{scratch} to be removed")


def test_a_keeper_that_is_killed_is_told_and_a_reset_helps(notebook: Notebook, folder: Path) -> None:
    (folder / "x.txt").write_text("x")
    kill = (
        "import os, psutil, signal\n"
        "(one,) = [p for p in psutil.Process().children() if 'folder_keeper' in ' '.join(p.cmdline())]\n"
        "one.kill(); one.wait()\nopen('y.txt', 'w').write('y')"
    )
    killed = notebook.run(f"%%gpu\n{kill}")
    assert "What the cell wrote was not brought to the notebook's folder: the process" in killed.stream("stderr")
    refused = notebook.run("%%gpu\nprint(1)")
    assert "after `%gpu reset` there is another" in refused.shown
    assert (folder / "x.txt").exists()
    notebook.run("%gpu reset")
    assert gpu(notebook, "print(open('x.txt').read())").stream() == "x\n"


def test_a_large_file_that_a_cell_names_is_there_before_it_runs(notebook: Notebook, folder: Path) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(101_000_000)
        file.write(b"begins")
    shown = gpu(notebook, "import os\nprint(os.stat('large.bin').st_blocks > 0)\n!head -c 6 large.bin").stream()
    assert shown == "True\nbegins"


def test_what_a_cell_wrote_comes_to_the_notebook_that_takes_it_over(
    pool: PoolProcess, notebook: Notebook, folder: Path
) -> None:
    notebook.run("%gpu stop")
    first = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}, folder)
    first.start_until(
        "%%gpu\nimport time\nfrom pathlib import Path\nopen('model.pt', 'w').write('trained')\n"
        "print('written', flush=True)\nwhile not Path('/dev/shm/bulletin-go').exists(): time.sleep(0.05)\n"
        "trained = True",
        "written",
    )
    process = first.manager.provisioner.process  # type: ignore[union-attr]
    process.kill()
    process.wait()
    try:
        until(lambda: "running" in notebook.run("%gpu attach").stream(), "the cell to be listed")
        name = re.findall(r"^(\w{8}) ", notebook.run("%gpu attach").stream(), re.MULTILINE)[0]
        joined = notebook.run_until(f"%gpu attach {name}", "written", Path("/dev/shm/bulletin-go").touch)
    finally:
        Path("/dev/shm/bulletin-go").unlink(missing_ok=True)
        first.close()
    assert joined.error is None, joined.shown
    assert notebook.value("trained") == "True"
    assert (folder / "model.pt").read_text() == "trained"
