"""What a cell does in an executor: its result, its output, its errors."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bulletin.wire.messages import Output
from tests.conformance.agent_side import Agent, Notebook, Session


def test_a_cell_prints_and_has_a_result(session: Session) -> None:
    result = session.run("print('hello')\n6 * 7", number=5)
    assert result.outcome == "returned"
    assert result.stdout == "hello\n"
    assert result.of("execute_result") == [{"execution_count": 5, "data": {"text/plain": "42"}, "metadata": {}}]
    assert result.ended.error is None


def test_variables_go_there_and_come_back(session: Session) -> None:
    notebook = Notebook(y=1, box=[1, 2])
    alias = notebook["box"]
    ran = notebook.run(session, "x = y + 1\nbox = box + [x]\nx")
    assert ran.extra["result"] == 2
    assert notebook["x"] == 2
    assert notebook["box"] == [1, 2, 2]
    assert alias == [1, 2]


def test_an_error_leaves_what_was_done_before_it(session: Session) -> None:
    notebook = Notebook(a=1)
    ran = notebook.run(session, "a = 2\n1 / 0\na = 3")
    assert ran.result.outcome == "raised"
    assert notebook["a"] == 2
    assert isinstance(ran.extra["error"], ZeroDivisionError)


def test_a_traceback_has_the_notebooks_line_numbers_and_no_frames_of_ours(session: Session) -> None:
    result = session.run("def halve(x):\n    return x / 0\nhalve(1)", number=7)
    assert result.ended.error is not None
    assert (result.ended.error.name, result.ended.error.value) == ("ZeroDivisionError", "division by zero")
    assert "Cell In[7], line 4" in result.error
    assert "Cell In[7], line 3, in halve(x)" in result.error
    assert "----> 3     return x / 0" in result.error
    assert "gpu_worker" not in result.error
    assert "IPython" not in result.error


def test_empty_lines_above_the_code_count(session: Session) -> None:
    assert "Cell In[1], line 4" in session.run("\n\n1/0").error


def test_an_exception_of_the_users_own_class_is_shown_and_comes_back(session: Session) -> None:
    notebook = Notebook()
    ran = notebook.run(session, "class Sour(Exception):\n    pass\nraise Sour('grapes')")
    assert ran.result.ended.error is not None
    assert ran.result.ended.error.name == "Sour"
    assert "Sour: grapes" in ran.result.error
    assert type(ran.extra["error"]).__name__ == "Sour"


def test_an_error_in_a_display_shows_but_the_cell_goes_on(session: Session) -> None:
    result = session.run("class Bad:\n    def _repr_html_(self): raise KeyError('k')\ndisplay(Bad())\nprint('after')")
    assert result.outcome == "returned"
    assert [content["ename"] for content in result.of("error")] == ["KeyError"]
    assert [kind for kind, _ in result.outputs][-1] == "stream"
    assert result.stdout == "after\n"


def test_a_syntax_error_shows_the_line_and_the_place(session: Session) -> None:
    result = session.run("x = 1\ny = = 2", number=3)
    assert result.outcome == "raised"
    assert result.ended.error is not None
    assert result.ended.error.name == "SyntaxError"
    assert "Cell In[3], line 3" in result.error
    assert "y = = 2" in result.error


def test_return_outside_a_function_is_a_syntax_error(session: Session) -> None:
    result = session.run("x = 1\nreturn x")
    assert result.ended.error is not None
    assert result.ended.error.name == "SyntaxError"
    assert not result.of("error")


def test_a_group_of_exceptions_is_an_error_of_the_cell(session: Session) -> None:
    result = session.run("raise ExceptionGroup('two', [ValueError(1), KeyError(2)])")
    assert result.ended.error is not None
    assert result.ended.error.name == "ExceptionGroup"
    assert "ValueError: 1" in result.stderr + result.error


@pytest.mark.parametrize("source", ["raise SystemExit(3)", "import sys\nsys.exit('bye')", "exit", "quit()"])
def test_leaving_ends_the_cell_and_not_the_executor(session: Session, source: str) -> None:
    result = session.run(source)
    assert result.ended.error is not None
    assert result.ended.error.name == "SystemExit"
    assert result.stderr == ""
    assert session.run("1").outcome == "returned"


@pytest.mark.parametrize("line", ["%history -n", "%rerun", "%store x", "%clear", "%gpu"])
def test_a_magic_that_is_about_the_notebook_says_where_it_belongs(session: Session, line: str) -> None:
    result = session.run(f"print('above')\n{line}")
    assert result.stdout == "above\n"
    assert result.ended.error is not None
    name = line.partition(" ")[0]
    assert result.ended.error.value == f"{name} is for the notebook. Write it in a cell of its own, without %%gpu."


def test_await_works_at_the_top_level(session: Session) -> None:
    result = session.run("import asyncio\nx = await asyncio.sleep(0, 'slept')\nx")
    assert result.of("execute_result")[0]["data"] == {"text/plain": "'slept'"}
    assert "line 3" in session.run("import asyncio\nawait asyncio.wait_for(1 / 0, 1)").error


def test_the_loop_lives_from_cell_to_cell(session: Session) -> None:
    notebook = Notebook()
    notebook.run(session, "import asyncio, builtins\nbuiltins.task = asyncio.create_task(asyncio.sleep(0, 'kept'))")
    ran = notebook.run(session, "import builtins\nawait builtins.task")
    assert ran.extra["result"] == "kept"


def test_context_variables_live_from_cell_to_cell(session: Session) -> None:
    session.run("import contextvars, builtins\nbuiltins.v = contextvars.ContextVar('v')\nbuiltins.v.set(4);")
    assert session.run("print(__builtins__.v.get())").stdout == "4\n"


def test_a_cell_that_stops_the_loop_still_ends(session: Session) -> None:
    result = session.run("import asyncio\nasyncio.get_running_loop().stop()\nawait asyncio.sleep(0)\nprint('on')")
    assert result.outcome == "returned"
    assert result.stdout == "on\n"


def test_a_task_that_stops_the_loop_between_two_cells_harms_no_later_one(session: Session, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    wait = f"    while not os.path.exists({str(gate)!r}): await asyncio.sleep(0.01)"
    later = f"async def later():\n{wait}\n    print('stops')\n    asyncio.get_running_loop().stop()"
    session.run(f"import asyncio, builtins, os\n{later}\nbuiltins.task = asyncio.create_task(later())")
    gate.touch()
    while not isinstance(session.hear(), Output):
        pass
    assert session.run("print('on')").stdout == "on\n"


@pytest.mark.parametrize(
    "source", ["await asyncio.sleep(0)", "async with asyncio.timeout(9): pass", "[one async for one in numbers()]"]
)
def test_a_cell_may_await_in_each_way_that_python_has(source: str, session: Session) -> None:
    numbers = "async def numbers():\n    yield 1"
    result = session.run(f"import asyncio\n{numbers}\n{source}\nprint('done')")
    assert result.stdout.endswith("done\n")


def test_magics_work(session: Session) -> None:
    timed = session.run("%%time\nx = 5\nprint(x)")
    assert timed.stdout.startswith("5\nCPU times")
    assert "loop" in session.run("%timeit -n1 -r1 1 + 1").stdout
    assert session.run("%%capture caught\nprint('in')").stdout == ""
    assert session.run("%lsmagic").outcome == "returned"


def test_the_shell_runs_programs(session: Session) -> None:
    result = session.run("!echo out; echo err >&2\nlines = !printf 'a\\nb'\nprint(lines)")
    assert "out" in result.stdout
    assert "err" in result.stdout
    assert "['a', 'b']" in result.stdout
    assert session.run("%%bash\necho from bash").stdout == "from bash\n"


def test_main_is_the_namespace_of_the_cells(session: Session) -> None:
    result = session.run(
        "import sys\nx = 3\nmain = sys.modules['__main__']\n"
        "print(__name__, main.__dict__ is globals(), main.x, sys.argv)"
    )
    assert result.stdout == "__main__ True 3 ['']\n"


def test_the_history_knows_the_cell_by_its_number(session: Session) -> None:
    session.run("1 + 1", number=4)
    result = session.run("print(repr(In[4].strip()), Out[4], _4, _, len(In))", number=9)
    assert result.stdout == "'1 + 1' 2 2 2 10\n"


def test_a_silent_cell_leaves_no_trace_in_the_history(session: Session) -> None:
    result = session.run("1 + 1", number=4, silent=True)
    assert not result.of("execute_result")
    assert session.run("print(4 in Out)", number=5).stdout == "False\n"


def test_help_is_a_page_for_the_notebook(session: Session) -> None:
    (shown,) = session.run("len?").of("payload")
    assert "Return the number of items" in shown["data"]["text/plain"]


def test_input_and_getpass_ask_the_user(session: Session) -> None:
    result = session.run("print('before')\nname = input('Name? ')\nprint(name)", answers=["Ada"])
    assert (session.asked.prompt, session.asked.password) == ("Name? ", False)
    assert result.stdout == "before\nAda\n"
    assert session.run("import getpass\nprint(getpass.getpass('Key: '))", answers=["s3"]).stdout == "s3\n"
    assert (session.asked.prompt, session.asked.password) == ("Key: ", True)


def test_a_figure_is_shown_at_the_end_of_its_cell(session: Session) -> None:
    result = session.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);\nprint('drawn')")
    assert [kind for kind, _ in result.outputs] == ["stream", "display_data"]
    assert result.of("display_data")[0]["data"]["image/png"].startswith("iVBOR")
    assert session.run("%matplotlib inline\nplt.plot([2, 1]);").of("display_data")
    assert not session.run("1").of("display_data")


def test_a_screen_is_not_offered(session: Session) -> None:
    result = session.run("%gui qt")
    assert "no screen" in result.stderr


def test_numbers_are_multiplied_after_the_fork(session: Session) -> None:
    assert session.run("import numpy as np\na = np.ones((300, 300))\nprint((a @ a).sum())").stdout == "27000000.0\n"


def test_two_executors_have_different_random_numbers(agent: Agent, session: Session) -> None:
    other = agent.fork()
    try:
        source = "import numpy as np\nprint(np.random.rand())"
        assert session.run(source).stdout != other.run(source).stdout
    finally:
        other.close()


@pytest.mark.parametrize("through_ring", [True, False])
def test_a_large_array_goes_there_and_back(session: Session, through_ring: bool) -> None:
    array = np.arange(2_500_000, dtype=np.float64)
    notebook = Notebook(a=array, np=np)
    ran = notebook.run(session, "b = a * 2\nfloat(a.sum())", through_ring=through_ring)
    assert ran.extra["result"] == float(array.sum())
    assert np.array_equal(notebook["b"], array * 2)


def test_state_that_cannot_be_loaded_is_a_clear_error_and_nothing_runs(session: Session) -> None:
    notebook = Notebook(x=1)
    parts = notebook.capture("print(x)")
    parts[0] = bytes(parts[0])[:-5]
    result = session.run("print(x)", parts)
    assert result.outcome == "raised"
    assert result.ended.error is not None
    assert result.ended.error.name == "CannotSend"
    assert "Nothing was run" in result.ended.error.value
    assert result.stdout == ""
    assert notebook.run(session, "print(x)").result.stdout == "1\n"


def test_a_missing_module_is_named(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    import sys

    spec = importlib.util.spec_from_loader("only_in_the_notebook", loader=None, origin="installed where it runs")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec("class Thing:\n    pass", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_in_the_notebook", module)
    result = Notebook(thing=module.Thing()).run(session, "thing").result
    assert result.ended.error is not None
    assert "'only_in_the_notebook'" in result.ended.error.value
    assert "environment of this pool" in result.ended.error.value


def test_a_value_that_cannot_travel_stays_for_the_next_cell(session: Session) -> None:
    notebook = Notebook()
    notebook.run(session, "def count():\n    yield from range(9)\ng = count()\nnext(g)")
    assert repr(notebook["g"]) == "<g is a generator and stayed on the pool>"
    assert notebook.run(session, "next(g)").extra["result"] == 1


def test_an_outrageous_parcel_is_refused_and_the_next_cell_runs(session: Session) -> None:
    from bulletin.ids import CellId
    from bulletin.wire.messages import Parcel, Run

    session.say(Run(cell=CellId("big"), source="1", number=1, parcel=Parcel(sizes=(2**37,) * 40, inline=False)))
    result = session.finish(CellId("big"))
    assert result.ended.error is not None
    assert "Nothing was run" in result.ended.error.value
    assert session.run("print(1)").stdout == "1\n"


def test_pickled_functions_of_the_executor_are_found_again(session: Session) -> None:
    notebook = Notebook()
    ran = notebook.run(
        session, "def double(x):\n    return 2 * x\nimport pickle\npickle.loads(pickle.dumps(double))(4)"
    )
    assert ran.extra["result"] == 8
    double: Any = notebook["double"]
    assert double(5) == 10
    assert pickle.loads(pickle.dumps(ran.extra["result"])) == 8
