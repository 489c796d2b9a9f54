"""%%gpu among other magics, in functions and loops, and a cell's walltime: as a notebook's user meets them."""

from collections.abc import Callable

from tests.integration.conftest import Notebook, PoolProcess


def test_gpu_works_below_magics_that_run_the_cell(notebook: Notebook) -> None:
    timed = notebook.run("%%time\n%%gpu\na = 3")
    assert "Wall time" in timed.stream()
    captured = notebook.run("%%capture out\n%%gpu\nprint('captured')\na + 1")
    assert captured.shown == ""
    assert notebook.value("(a, out.stdout, out.outputs[0].data['text/plain'])") == r"(3, 'captured\n', '4')"


def test_gpu_works_above_magics_that_take_the_cell(notebook: Notebook) -> None:
    assert "Wall time" in notebook.run("%%gpu\n%%time\nb = 5").stream()
    assert notebook.run("%%gpu\n%%bash\necho from bash").stream() == "from bash\n"
    assert notebook.run("%%gpu\n%%writefile made.txt\nhello").error is None
    assert notebook.run("%%gpu\n%%capture got\nprint('inside')").shown == ""
    assert notebook.value("(b, open('made.txt').read(), got.stdout)") == r"(5, 'hello\n', 'inside\n')"


def test_a_remote_cell_asks_for_no_gpu(notebook: Notebook) -> None:
    notebook.run("import os\nhere = os.getpid()")
    assert notebook.run("%%remote --label none\nos.getpid() != here").result == "True"
    assert "start the cell with %%gpu" in notebook.run("%%remote --gpus 2\n1").shown


def test_what_cells_cost_and_how_the_pool_is_can_be_looked_at(notebook: Notebook) -> None:
    notebook.run("%%gpu\nx = 1")
    (shown,) = notebook.run("%gpu receipts 1").of("display_data")
    assert "1 cell: ran" in shown["data"]["text/plain"]
    (shown,) = notebook.run("%gpu").of("display_data")
    assert "This notebook holds a CPU slot" in shown["data"]["text/plain"]
    assert "Last cells:" in shown["data"]["text/plain"]
    assert "<table>" in shown["data"]["text/html"]
    assert " kept ready" in shown["data"]["text/plain"]
    notebook.run("%%gpu\n1 / 0")
    (shown,) = notebook.run("%gpu").of("display_data")
    assert shown["data"]["text/plain"].endswith(" · raised an error")


def test_help_fits_the_page_and_stands_where_it_is_looked_for(notebook: Notebook) -> None:
    for asked in ("%%gpu --help\n1", "%gpu --help", "%gpu help"):
        text = notebook.run(asked).stream()
        assert "this notebook" in text or "`each`" in text
        assert max(map(len, text.splitlines())) <= 90
    for wrong in ("%gpu nonsense", "%gpu push nothing_of_that_name"):
        problem = notebook.run(wrong).error
        assert problem is not None
        assert problem["evalue"].endswith("Nothing was done. `%gpu?` shows what there is.")


def test_gpu_works_in_functions_and_loops(notebook: Notebook) -> None:
    notebook.run("n = 0\ndef step():\n    get_ipython().run_cell_magic('gpu', '', 'n += 1')\n    return n")
    assert notebook.value("[step() for _ in range(3)]") == "[1, 2, 3]"


def test_capital_letters_and_misplaced_lines_meet_with_kindness(notebook: Notebook) -> None:
    assert notebook.run("%%GPU\nprint('there')").stream() == "there\n"
    misplaced = notebook.run("above = 1\n%%gpu\nbelow = 1")
    assert "must be the first line of its cell" in misplaced.shown
    assert notebook.value("('above' in dir(), 'below' in dir())") == "(True, False)"
    above_code = notebook.run("%gpu\nhere = 1")
    assert "write %%gpu" in above_code.shown
    assert "write %%gpu" not in notebook.run("%gpu").shown


def test_a_cell_at_its_walltime_lands_what_it_did_and_says_so_in_one_line(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)
    output = notebook.run("%%gpu --time 1s\nimport time\nn = 0\nwhile True:\n    n += 1\n    time.sleep(0.01)")
    assert output.error is not None
    assert output.error["ename"] == "WalltimeReached"
    assert len(output.error["traceback"]) == 1
    assert notebook.value("n > 0") == "True"
    # The next cell has a walltime of its own.
    assert notebook.run("%%gpu\nimport time\ntime.sleep(1.2)\nprint('over')").stream() == "over\n"


def test_an_environment_that_is_not_there_is_said_at_once(notebook: Notebook) -> None:
    output = notebook.run("%%gpu --environment nope\n1")
    assert output.error is not None
    assert "there is no environment 'nope' here" in output.error["evalue"]
    assert output.error["evalue"].endswith("Nothing was run; your variables are unchanged.")
    assert "default. The cell runs here instead" in notebook.run("%%gpu --environment nope --fallback cpu\n1").shown
