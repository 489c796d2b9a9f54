"""A cell leaves files in the notebook's folder, as if it were local, and takes none that the notebook has changed."""

import re
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, PoolProcess, until
from tests.integration.unshared_folder.conftest import gpu


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


def test_a_cell_in_the_background_has_the_files_too(notebook: Notebook, folder: Path) -> None:
    (folder / "in.txt").write_text("for the background")
    started = notebook.run("%%gpu --background job\nopen('out.txt', 'w').write(open('in.txt').read())")
    assert started.error is None, started.shown
    ended = notebook.run("job.result()")
    assert ended.error is None, ended.shown
    assert (folder / "out.txt").read_text() == "for the background"


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
