"""A cell finds the files of the notebook's folder, whatever opens them, as if it were local."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, PoolProcess
from tests.integration.unshared_folder.conftest import gpu

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


def test_a_file_of_some_size_comes_whole_to_who_opens_it_in_c(notebook: Notebook, folder: Path) -> None:
    content = os.urandom(2**20) * 24 + b"end"
    (folder / "big.bin").write_bytes(content)
    expected = subprocess.run(["sha256sum", folder / "big.bin"], capture_output=True, text=True, check=True).stdout
    assert gpu(notebook, "!sha256sum big.bin").stream().split()[0] == expected.split()[0]


def test_a_large_file_that_a_cell_names_is_there_before_it_runs(notebook: Notebook, folder: Path) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(101_000_000)
        file.write(b"begins")
    shown = gpu(notebook, "import os\nprint(os.stat('large.bin').st_blocks > 0)\n!head -c 6 large.bin").stream()
    assert shown == "True\nbegins"
