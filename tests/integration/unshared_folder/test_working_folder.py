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
