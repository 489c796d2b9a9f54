"""`with gpu:` and `@gpu` in a real kernel: the work runs in another process, and its place does not notice."""

import pytest

from tests.integration.conftest import Notebook

_WHERE = "import os\nhere = os.getpid()\n"


def test_a_block_runs_elsewhere_and_changes_the_notebooks_variables(notebook: Notebook) -> None:
    done = notebook.run(
        f"{_WHERE}total = [1]\nalso = total\nwith gpu:\n    total.append(os.getpid() != here)\n    new = 3"
    )
    assert done.reply["status"] == "ok", done.shown
    assert notebook.value("total, also is total, new") == "([1, True], True, 3)"


def test_the_names_of_recent_results_are_the_users_once_a_block_has_bound_them(notebook: Notebook) -> None:
    notebook.run("'recent'")
    notebook.run("with gpu:\n    for _ in range(4): last = _")
    assert notebook.value("_, last") == "(3, 3)"
    notebook.run("del _")
    notebook.run("'recent'")
    notebook.run("with gpu:\n    seen = _")
    assert notebook.value("_, seen") == "('recent', 'recent')"


def test_a_block_in_a_loop_in_a_function_changes_its_local_variables(notebook: Notebook) -> None:
    notebook.run(_WHERE)
    notebook.run("""
def f(n):
    seen = []
    for k in range(n):
        with gpu:
            seen.append(os.getpid() != here)
            if k == 1:
                continue
            if k == 2:
                return seen, last
            last = k
            print("block", k)
    return seen
""")
    ran = notebook.run("f(4)")
    assert (ran.result, ran.stream()) == ("([True, True, True], 0)", "block 0\n")


def test_a_block_in_a_method_changes_its_object(notebook: Notebook) -> None:
    notebook.run(_WHERE)
    notebook.run("""
class Base:
    def fit(self): self.fitted = os.getpid() != here
class Net(Base):
    def __init__(self): self.__steps = 0
    def fit(self):
        with gpu(label="training"):
            super().fit()
            self.__steps += 1
        return self.fitted, self.__steps
net = Net()
""")
    assert notebook.value("net.fit(), net.fit()") == "((True, 1), (True, 2))"


def test_a_decorated_function_sees_the_objects_that_it_is_given(notebook: Notebook) -> None:
    notebook.run(_WHERE)
    notebook.run("@gpu\ndef work(values, *, more):\n    values.append(more)\n    return values, os.getpid() != here")
    assert notebook.value("own = []\nback, away = work(own, more=2)\nback is own, own, away") == "(True, [2], True)"


def test_await_in_a_block_and_in_a_decorated_function(notebook: Notebook) -> None:
    notebook.run(f"import asyncio\n{_WHERE}")
    assert notebook.value("with gpu:\n    await asyncio.sleep(0)\n    away = os.getpid() != here\naway") == "True"
    notebook.run("@gpu\nasync def later(x):\n    await asyncio.sleep(0)\n    return x, os.getpid() != here")
    assert notebook.value("await later(3)") == "(3, True)"


def test_an_error_in_a_block_is_caught_by_the_code_around_it(notebook: Notebook) -> None:
    source = """
def f(n):
    try:
        with gpu:
            n += 1
            1 / 0
    except ZeroDivisionError as error:
        return n, str(error)
f(1)"""
    assert notebook.value(source) == "(2, 'division by zero')"


def test_a_traceback_leads_through_the_notebook_into_the_block(notebook: Notebook) -> None:
    notebook.run(
        """
x = 1

def bad(n):
    y = n
    with gpu:
        z = y / 0
    return z

def middle():
    return bad(1)"""
    )
    failed = notebook.run("middle()")
    lines = failed.shown.splitlines()
    assert next(line for line in lines if line.startswith("Cell In")).endswith("line 1")
    assert [line.split(", ")[1:] for line in lines if line.startswith("Cell In")][1:] == [
        ["line 10", "in middle()"],
        ["line 6", "in bad()"],
    ]
    assert [line.split()[1:] for line in lines if line.startswith("---")][1:] == [
        ["1", "middle()"],
        ["10", "return", "bad(1)"],
        ["6", "z", "=", "y", "/", "0"],
    ]
    assert "bulletin" not in failed.shown


def test_what_a_block_names_and_cannot_have_is_told_before_it_runs(notebook: Notebook) -> None:
    refused = notebook.run(
        "def f():\n    s = open('/dev/null')\n    with gpu:\n        print('ran')\n        s.read()\nf()"
    )
    assert refused.shown.startswith("CannotSend: %%gpu cannot send 's': it is an open file. Nothing was run")
    refused = notebook.run("t = open('/dev/null')\nwith gpu:\n    print('ran')\n    t.read()")
    assert refused.shown.startswith("CannotSend: %%gpu cannot send 't': it is an open file.")
    refused = notebook.run("@gpu\ndef g(file): print('ran')\ng(open('/dev/null'))")
    assert refused.shown.startswith("CannotSend: %%gpu cannot send 'args[0]': it is an open file.")


def test_a_wrong_option_is_told_as_of_the_magic(notebook: Notebook) -> None:
    assert notebook.run("with gpu(gpsu=2):\n    pass").shown.startswith("BadOption: %%gpu has no option '--gpsu'.")
    assert "not a whole number" in notebook.run("gpu(gpus='x')").shown


def test_figures_displays_and_questions_of_a_block_are_the_cells(notebook: Notebook) -> None:
    shown = notebook.run("with gpu:\n    display('shown')\n    print('printed')\n    'not shown'")
    assert shown.of("display_data")[0]["data"]["text/plain"] == "'shown'"  # a receipt may follow
    assert (shown.stream(), shown.result) == ("printed\n", None)
    message = notebook.start("with gpu:\n    name = input('Who? ')\nname")
    notebook.answer("Ada")
    assert notebook.collect(message).result == "'Ada'"


def test_a_block_inside_a_gpu_cell_runs_where_the_cell_does(notebook: Notebook) -> None:
    notebook.run(f"{_WHERE}def f():\n    with gpu:\n        return os.getpid()")
    assert (
        notebook.value("%%gpu\nwith gpu:\n    one = os.getpid()\none == f() == os.getpid(), one != here")
        == "(True, True)"
    )


def test_it_leaves_no_names_and_no_history(notebook: Notebook) -> None:
    notebook.run("from bulletin.state.names import CALL\nwith gpu:\n    pass")
    assert notebook.value("[name for name in globals() if CALL in name or name.startswith('_gpu')]") == "[]"
    assert notebook.value("%%gpu\n[text for text in In if CALL in text]") == "[]"


def test_switched_off_it_runs_in_the_notebook(open_notebook: pytest.FixtureRequest) -> None:
    alone: Notebook = open_notebook(BULLETIN="off")  # type: ignore[operator]
    assert alone.value(f"{_WHERE}with gpu:\n    same = os.getpid() == here\nsame") == "True"


def test_a_name_of_the_users_own_stays(open_notebook: pytest.FixtureRequest) -> None:
    alone: Notebook = open_notebook()  # type: ignore[operator]
    alone.run("%unload_ext bulletin_magic")
    alone.run("gpu = 5")
    alone.run("%load_ext bulletin_magic")
    assert alone.value("gpu") == "5"
