"""`%gpu on`: a notebook whose cells say nothing of a GPU, in a real kernel and on a real pool."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, PoolProcess


@pytest.fixture(scope="module")
def notebook(pool: PoolProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A notebook whose cells all run on the pool. `here` is the process of its kernel."""
    environ = {"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}
    opened = Notebook(environ, tmp_path_factory.mktemp("nb"))
    opened.run("import os\nhere = os.getpid()")
    assert "every cell runs on the pool" in opened.run("%gpu on").shown
    yield opened
    opened.close()


def test_a_plain_cell_runs_on_the_pool_and_leaves_its_results_here(notebook: Notebook) -> None:
    done = notebook.run("kept = [os.getpid() != here]\nprint('there')\nlen(kept)")
    assert (done.stream(), done.result) == ("there\n", "1")
    assert notebook.value("kept") == "[True]"
    assert notebook.run("%%cpu\nkept.append(os.getpid() == here)\nkept").result == "[True, True]"


def test_history_counts_and_results_are_those_of_the_users_own_text(notebook: Notebook) -> None:
    first = notebook.run("6 * 7")
    number = first.of("execute_result")[0]["execution_count"]
    assert first.reply["execution_count"] == number
    assert notebook.value("_") == "42"
    assert notebook.value(f"(In[{number}], Out[{number}], _i{number}, _{number})") == "('6 * 7', 42, '6 * 7', 42)"
    assert notebook.run(f"%history {number}").stream() == "6 * 7\n"
    assert notebook.run("'unseen';").result is None


def test_errors_are_those_of_the_cell(notebook: Notebook) -> None:
    raised = notebook.run("a = 1\nb = a / 0")
    assert raised.error is not None
    assert raised.error["ename"] == "ZeroDivisionError"
    assert "----> 2 b = a / 0" in raised.shown
    assert "run_cell_magic" not in raised.shown
    assert "gpu" not in raised.shown
    wrong = notebook.run("for x in:\n    pass")
    assert wrong.error is not None
    assert wrong.error["ename"] == "SyntaxError"
    assert "gpu" not in wrong.shown
    below = notebook.run("%%cpu\na = 1\na / 0")
    assert "----> 3 a / 0" in below.shown


def test_await_shell_lines_and_code_magics_run_there(notebook: Notebook) -> None:
    awaited = notebook.run("import asyncio\nawait asyncio.sleep(0, os.getpid() != here)")
    assert awaited.result == "True", awaited.shown
    assert notebook.run("%%cpu\nimport asyncio\nawait asyncio.sleep(0, os.getpid() == here)").result == "True"
    assert notebook.run("!echo $BULLETIN_EXECUTOR").stream().strip() != ""
    timed = notebook.run("%%time\nwas_there = os.getpid() != here")
    assert "Wall time" in timed.stream()
    notebook.run("%%capture got\nprint('captured', os.getpid() != here)")
    assert notebook.value("was_there, got.stdout") == r"(True, 'captured True\n')"


def test_what_is_for_the_notebook_stays_here(notebook: Notebook) -> None:
    assert "payload" in notebook.run("len?").reply
    assert notebook.run("len?").reply["payload"][0]["source"] == "page"
    notebook.run("%env OF_THE_NOTEBOOK=1")
    assert notebook.value("os.environ['OF_THE_NOTEBOOK']") == "'1'"
    assert notebook.run("%%html\n<b>bold</b>").of("display_data")[0]["data"]["text/html"] == "<b>bold</b>\n"
    assert notebook.run("# a remark").shown == ""
    assert notebook.run("").shown == ""


def test_questions_of_a_front_end_stay_here(notebook: Notebook) -> None:
    def ask(**how: bool) -> str:
        code = "asked_in = os.getpid() == here"
        notebook.collect(notebook.client.execute(code, user_expressions={"there": "os.getpid() != here"}, **how))
        return notebook.value("asked_in")

    assert ask(silent=True) == "True"
    assert ask(store_history=False) == "True"
    assert ask() == "False"


def test_a_cell_that_says_where_it_runs_is_left_alone(notebook: Notebook) -> None:
    notebook.run("%%gpu --label mine\nsaid = os.getpid() != here")
    notebook.run("%%capture\n%%cpu\nstayed = os.getpid() == here")
    assert notebook.value("said, stayed") == "(True, True)"
    refused = notebook.run("%%cpu --now\n1")
    assert refused.error is not None
    assert "%%cpu takes no options" in refused.error["evalue"]


def test_options_are_those_of_every_cell_and_are_checked_at_once(notebook: Notebook) -> None:
    wrong = notebook.run("%gpu on --gpu 3")
    assert wrong.error is not None
    assert "Did you mean --gpus?" in wrong.error["evalue"]
    assert "with --environment nope" in notebook.run("%gpu on --environment nope").shown
    assert "there is no environment 'nope'" in notebook.run("1").shown
    assert "without options" in notebook.run("%gpu on").shown
    assert notebook.run("1").result == "1"


def test_questions_and_the_stop_button_work(notebook: Notebook) -> None:
    message = notebook.start("name = input('who? ')\nname")
    notebook.answer("Ada")
    assert notebook.collect(message).result == "'Ada'"
    stopped = notebook.run_until(
        "import time\nprint('begun', flush=True)\ntime.sleep(600)", "begun", notebook.interrupt
    )
    assert stopped.error is not None
    assert stopped.error["ename"] == "KeyboardInterrupt"
    assert notebook.value("name") == "'Ada'"


def test_the_loop_of_the_docs_takes_one_command_after_the_other(notebook: Notebook) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "every-cell.md").read_text()
    (loop,) = [cell for cell in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "input(" in cell]
    notebook.run("%cd /usr\n%env SHELL_OF=docs")
    message = notebook.start(loop)
    for command in ("pwd", "echo here $SHELL_OF", "exit"):
        notebook.answer(command)
    output = notebook.collect(message)
    notebook.run("%cd -")
    assert output.error is None
    assert "/usr" in output.shown
    assert "here docs" in output.shown


def test_it_ends_with_off_and_with_the_extension(pool: PoolProcess, open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook(pool, BULLETIN="on")
    notebook.run("%%cpu\nimport os\nhere = os.getpid()")
    assert notebook.value("os.getpid() == here") == "False"
    assert "again" in notebook.run("%gpu off").shown
    assert notebook.value("os.getpid() == here") == "True"
    assert "already" in notebook.run("%gpu off").shown
    notebook.run("%gpu on")
    notebook.run("%unload_ext bulletin_magic")
    assert notebook.value("os.getpid() == here") == "True"
    assert "not found" in notebook.run("%%cpu\n1").shown
