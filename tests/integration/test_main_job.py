"""A notebook's cell runs on the pool and leaves everything as if it had run in the notebook."""

from collections.abc import Callable

from bulletin.wire import messages as wire
from tests.integration.conftest import Notebook, PoolProcess, until

BROKEN = """
class Broken(ValueError):
    def __init__(self, part, why):
        super().__init__(f'{part}: {why}')
        self.part = part
"""


def test_a_cell_sees_the_notebooks_variables_and_leaves_its_own(notebook: Notebook) -> None:
    notebook.run("import os\nhere = os.getpid()\nx = [1, 2]\nunused = (n for n in x)")
    output = notebook.run("%%gpu\nimport os\nthere = os.getpid()\nx.append(3)\ny = sum(x)\nprint('y is', y)")
    assert output.error is None, output.shown
    assert output.stream() == "y is 6\n"
    assert notebook.value("(x, y, there != here)") == "([1, 2, 3], 6, True)"


def test_the_last_expression_is_shown_once_with_the_notebooks_number_and_remembered(notebook: Notebook) -> None:
    output = notebook.run("%%gpu\n6 * 7")
    results = output.of("execute_result")
    assert [result["data"]["text/plain"] for result in results] == ["42"]
    assert results[0]["execution_count"] == output.reply["execution_count"]
    assert notebook.value("_ + 1") == "43"


def test_output_arrives_in_order_and_on_its_own_stream(notebook: Notebook) -> None:
    output = notebook.run(
        "%%gpu\nimport sys\nfrom IPython.display import display, HTML\n"
        "print('one'); print('two', file=sys.stderr); display(HTML('<b>three</b>')); print('four')"
    )
    kinds = [(m["msg_type"], m["content"].get("name")) for m in output.own]
    kinds = [kind for kind in kinds if kind[0] in ("stream", "display_data")]
    assert kinds == [("stream", "stdout"), ("stream", "stderr"), ("display_data", None), ("stream", "stdout")]


def test_output_is_live(notebook: Notebook) -> None:
    """The cell waits for input that is only given once its first line has been seen."""
    message_id = notebook.start("%%gpu\nprint('before')\nname = input('who? ')\nprint('hello', name)")
    answered: list[str] = []

    def look(message: dict[str, object]) -> None:
        if "before" in str(message["content"]) and message["msg_type"] == "stream":
            notebook.answer("ada")
            answered.append("ada")

    output = notebook.collect(message_id, look)
    assert answered
    assert "hello ada" in output.stream()


def test_an_exception_is_the_users_own_with_a_traceback_that_points_to_the_line(notebook: Notebook) -> None:
    notebook.run(BROKEN)
    output = notebook.run("%%gpu\nstep = 1\nraise Broken('wheel', 'flat')")
    error = output.error
    assert error is not None
    assert (error["ename"], error["evalue"]) == ("Broken", "wheel: flat")
    text = "\n".join(error["traceback"])
    assert "line 3" in text.replace("\x1b[39m", "").replace("\x1b[32m", "").replace("\x1b[36m", ""), text
    assert "bulletin" not in text.lower()
    assert notebook.value("step") == "1"
    caught = notebook.run(
        "try:\n    get_ipython().run_cell_magic('gpu', '', 'raise Broken(\"wheel\", \"flat\")')\n"
        "except Broken as error:\n    print(type(error) is Broken, error.part)"
    )
    assert "True wheel" in caught.stream()


def test_a_variable_that_cannot_travel_is_refused_before_anything_runs(notebook: Notebook) -> None:
    notebook.run("import sqlite3\nconn = sqlite3.connect(':memory:')\nz = 1")
    output = notebook.run("%%gpu\nz = 2\nconn.execute('select 1')")
    assert output.error is not None
    assert output.error["ename"] == "CannotSend"
    assert "'conn'" in output.error["evalue"]
    assert "sqlite3.Connection" in output.error["evalue"]
    assert notebook.value("z") == "1"


def test_a_group_of_exceptions_is_shown_once_and_without_frames_of_ours(notebook: Notebook) -> None:
    output = notebook.run("%%gpu\nraise ExceptionGroup('both', [ValueError('a'), TypeError('b')])")
    assert output.error is not None
    assert output.error["ename"] == "ExceptionGroup"
    assert output.shown.count("ValueError: a") == 1
    assert "bulletin" not in output.shown


def test_what_has_no_name_stays_behind_without_a_word(notebook: Notebook) -> None:
    output = notebook.run("%%gpu\n(n for n in [1])")
    assert output.error is None
    assert "stays on the pool" not in output.shown
    assert notebook.value("_") == "<_ is a generator and stayed on the pool>"
    assert notebook.run("%%gpu\nkept = list(_)").error is None
    assert notebook.value("kept") == "[1]"
    shown = notebook.run("%%gpu\ng = (n for n in [1])").shown
    assert "g is a generator, which cannot come to the notebook. It stays on the pool" in shown


def test_functions_and_classes_of_the_notebook_work_there_and_stay_themselves(notebook: Notebook) -> None:
    notebook.run(
        "count = 0\ndef bump():\n    global count\n    count += 1\n    return count\n"
        "class Point:\n    def __init__(self, x): self.x = x\n    def twice(self): return Point(helper(self.x))\n"
        "def helper(n): return 2 * n\np = Point(4)"
    )
    output = notebook.run("%%gpu\nbump(); bump()\nq = p.twice()")
    assert output.error is None, output.shown
    assert notebook.value("(count, type(q) is Point, q.x)") == "(2, True, 8)"


def test_magics_shell_and_await_work_in_the_cell(notebook: Notebook) -> None:
    output = notebook.run(
        "%%gpu\nimport asyncio\nawait asyncio.sleep(0)\n!echo from the shell\n%timeit -n1 -r1 pass\nok = True"
    )
    assert output.error is None, output.shown
    assert "from the shell" in output.stream()
    assert "per loop" in output.stream()
    assert notebook.value("ok") == "True"


def test_the_stop_button_stops_the_cell_and_the_kernel_lives_on(notebook: Notebook) -> None:
    output = notebook.run_until(
        "%%gpu\nimport time\ndone = []\nprint('started')\nwhile True:\n    done.append(1)\n    time.sleep(0.01)",
        shows="started",
        then=notebook.interrupt,
    )
    assert output.error is not None
    assert output.error["ename"] == "KeyboardInterrupt"
    assert notebook.value("len(done) > 0") == "True"
    assert notebook.run("%%gpu\nprint('again')").stream() == "again\n"


def test_a_figure_is_an_image_of_its_cell(notebook: Notebook) -> None:
    output = notebook.run("%%gpu\nimport matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('loss')")
    figures = [shown["data"] for shown in output.of("display_data") if "image/png" in shown["data"]]
    assert len(figures) == 1, output.shown


def test_a_big_array_goes_there_and_back_whole(notebook: Notebook) -> None:
    notebook.run("import numpy as np\nbig = np.arange(5_000_000, dtype='f8')\nview = big[:3]")
    output = notebook.run("%%gpu\nchanged = big + 1\nbig[0] = -1\nsame = view[0] == -1")
    assert output.error is None, output.shown
    assert (
        notebook.value("(big[0] == -1, changed[-1] == 5_000_000, changed.nbytes)") == "(np.True_, np.True_, 40000000)"
    )


def test_many_lines_arrive_whole_and_in_order(notebook: Notebook) -> None:
    output = notebook.run("%%gpu\nfor n in range(100_000):\n    print(n)")
    assert output.stream() == "".join(f"{n}\n" for n in range(100_000))


def test_nothing_is_left_of_a_kernel_that_ends(pool: PoolProcess, open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook(pool)
    notebook.run("%%gpu\nprint(1)")
    assert any(slot.state == "hot" for slot in pool.picture().slots)
    before = sum(slot.state == "hot" for slot in pool.picture().slots)
    notebook.manager.shutdown_kernel(now=False)
    until(lambda: sum(s.state == "hot" for s in pool.picture().slots) < before, "the lease to be given back")


def test_the_ledger_has_each_cell_once_with_its_outcome(pool: PoolProcess, notebook: Notebook) -> None:
    known = {cell.cell for cell in pool.picture().recent}
    notebook.run("%%gpu --label ledger\nprint(1)")
    notebook.run("%%gpu --label ledger\n1 / 0")

    def newest() -> list[wire.CellPicture]:
        recent = [cell for cell in pool.picture().recent if cell.cell not in known]
        return recent if [cell.outcome for cell in recent[:2]] == ["raised", "returned"] else []

    cells = until(newest, "the ledger to have both cells")
    assert len({cell.cell for cell in cells}) == len(cells)
    assert all(cell.ran_ms >= 0 and cell.gpu_ms == 0 for cell in cells)
