"""A cell works in the folder that the notebook is in, and the notebook goes where the cell went."""

from pathlib import Path

from tests.integration.conftest import Notebook
from tests.integration.unshared_folder.conftest import gpu


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


def test_of_a_folder_that_the_node_shares_and_cannot_write_to_that_is_said_once(
    notebook: Notebook, folder: Path
) -> None:
    shared = folder.with_name("read-only")
    (shared / "data.csv").write_text("name,x\n")
    notebook.run(f"import os; os.chdir({str(shared)!r})")
    try:
        read = gpu(notebook, "import os; print(os.getcwd(), open('data.csv').read())")
        assert f"{shared} name,x" in read.stream(), "there, and not in a copy"
        assert f"Cells cannot write into {shared} on this node, where it is mounted read-only." in read.shown
        assert "cannot write" not in gpu(notebook, "print(open('data.csv').read())").shown
    finally:
        notebook.run(f"os.chdir({str(folder)!r})")
