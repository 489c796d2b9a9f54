"""What is too large or outside the folder does not follow, nothing stays on the node, and a keeper may be killed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, until
from tests.integration.unshared_folder.conftest import gpu


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


def test_a_large_file_that_is_opened_is_said_to_come_while_the_cell_waits_and_once(
    notebook: Notebook, folder: Path
) -> None:
    with (folder / "large.bin").open("wb") as file:
        file.truncate(110_000_000)
    read = "import os\nwith open('large.' + 'bin', 'rb') as file: print(len(file.read(10)))"
    output = gpu(notebook, read)
    assert output.stream() == "10\n"
    said = "large.bin (110 MB) is brought to the node, all of it."
    assert output.shown.index(said) < output.shown.index("10\n"), output.shown
    assert said not in gpu(notebook, read).shown, "it is there"


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


@pytest.mark.parametrize(
    "still",
    [
        "os.kill(one.pid, signal.SIGSTOP)",
        "assert ctypes.CDLL(None).ptrace(16, one.pid, None, None) == 0",  # PTRACE_ATTACH
    ],
)
def test_a_cell_that_stops_its_own_keeper_ends_all_the_same(notebook: Notebook, folder: Path, still: str) -> None:
    (folder / "x.txt").write_text("x")
    stop = (
        "import ctypes, os, psutil, signal\n"
        "(one,) = [p for p in psutil.Process().children() if 'folder_keeper' in ' '.join(p.cmdline())]\n"
        f"{still}"
    )
    stopped = notebook.run(f"%%gpu\n{stop}")
    assert "What the cell wrote was not brought to the notebook's folder: the process" in stopped.stream("stderr")
    notebook.run("%gpu reset")
    assert gpu(notebook, "print(open('x.txt').read())").stream() == "x\n"
