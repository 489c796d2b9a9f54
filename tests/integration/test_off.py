"""`BULLETIN=off`: a notebook that asks for the pool in every way there is runs where it is, to the same results."""

from collections.abc import Callable

import pytest

from tests.integration.conftest import Notebook


@pytest.fixture
def alone(open_notebook: Callable[..., Notebook]) -> Notebook:
    """Whoever asks the pool after all is told that there is none."""
    notebook = open_notebook(BULLETIN="off", BULLETIN_CONNECTION_FILE="/nowhere/connection.json")
    notebook.run("import asyncio, os\nhere = os.getpid()")
    return notebook


def test_a_cell_runs_here_as_if_nothing_stood_above_it(alone: Notebook) -> None:
    done = alone.run('%%gpu --time "10 min"\nx = os.getpid() == here\nawait asyncio.sleep(0)\nprint(x)\nx')
    assert (done.stream(), done.result, done.of("display_data")) == ("True\n", "True", [])
    assert alone.value("%%remote\n_ and x") == "True"
    raised = alone.run("%%gpu\ny = 1\ny / 0")
    assert raised.error is not None
    assert raised.error["ename"] == "ZeroDivisionError"
    assert "----> 3 y / 0" in raised.shown
    assert alone.run("%%capture said\n%%gpu\nprint('inside')").shown == ""
    assert alone.value("said.stdout") == "'inside\\n'"
    assert "Did you mean --gpus?" in alone.run("%%gpu --gpu 3\n1").shown


def test_every_cell_stays_whatever_is_switched_on(alone: Notebook) -> None:
    assert "Bulletin is off in this notebook" in alone.run("%gpu on").shown
    assert alone.value("await asyncio.sleep(0)\nos.getpid() == here") == "True"
    assert "Bulletin is off" in alone.run("%gpu").shown
    assert "Bulletin is off" in alone.run("%%gpu --plan\nplanned = 1").shown
    assert alone.value("'planned' in globals()") == "False"


def test_a_background_cell_has_run_when_it_returns(alone: Notebook) -> None:
    begun = alone.run("%%gpu --background train\ntotal = [os.getpid() == here]\nprint('epoch')\nlen(total)")
    assert (begun.stream(), begun.result) == ("epoch\n", "1")
    assert alone.value("train.done(), train.result(), total, train.vars, train") == (
        "(True, 1, [True], {'total': [True]}, train: ✓ ran here)"
    )
    failed = alone.run("%%gpu --background bad\nhalf = 1\nhalf / 0")
    assert failed.error is None
    assert "bad failed: ZeroDivisionError: division by zero" in failed.shown
    assert alone.run("bad.cancel()\nbad.result(5)").reply["ename"] == "ZeroDivisionError"
    assert alone.value("%%gpu --background\n3\nNone").startswith("the cell: ✓")


def test_the_elements_of_a_sweep_come_in_order_and_bind_nothing(alone: Notebook) -> None:
    alone.run("def double(x):\n    return 2 * x\ngrid = [{'x': 3}, {'x': 0}, {'x': 4}]\nx = 'mine'")
    swept = alone.run("%%gpu --each grid\nmade = double(x)\nprint(each)\n12 // made")
    assert swept.result == "[2, ZeroDivisionError('integer division or modulo by zero'), 1]"
    assert swept.stream() == "{'x': 3}\n{'x': 0}\n{'x': 4}\n"
    assert "1 of 3 elements failed; at first number 1" in swept.shown
    assert alone.value("x, 'made' in globals(), 'each' in globals(), len(_)") == "('mine', False, False, 3)"
