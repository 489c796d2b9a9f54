"""Stop is pressed while what a cell reads is being prepared: it ends with one clear line, whatever was interrupted."""

from collections.abc import Callable

import pytest

from tests.integration.conftest import Notebook, PoolProcess

#: A value whose way to the pool leads through code of the user's, in which the button is pressed; once.
SETUP = """import os, signal, time
here, presses = os.getpid(), []

def press():
    if os.getpid() == here and not presses:
        presses.append(1)
        os.kill(here, signal.SIGINT)
        while True: time.sleep(0.01)

class Plain:
    def __reduce__(self):
        press()
        return str, ("travelled",)

class Careless:
    def __reduce__(self):
        try:
            press()
        except BaseException:
            pass
        return str, ("travelled",)

value = None
"""


@pytest.mark.parametrize("options", ["", "--background train"])
@pytest.mark.parametrize("kind", ["Plain", "Careless"])
def test_a_stop_before_a_cell_is_sent_ends_it_and_shows_nothing_of_ours(
    kind: str, options: str, pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)
    notebook.run(f"{SETUP}value = {kind}()")
    cell = f"%%gpu {options}\nran = str(value)"
    stopped = notebook.run(cell)
    assert stopped.error is not None, stopped.shown
    assert stopped.error["ename"] == "CellStopped"
    assert stopped.error["traceback"] == [
        "CellStopped: The cell was stopped before it ran. Your variables are as before the cell."
    ]
    assert notebook.value("'ran' in dir(), presses") == "(False, [1])"
    assert notebook.run(cell).error is None
    assert notebook.run("train.result()" if options else "").error is None
    assert notebook.value("ran") == "'travelled'"


def test_a_stop_that_a_destructor_swallows_while_the_pool_is_connected_to_ends_the_cell(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)
    notebook.run(SETUP)
    notebook.run(
        """import sys
class Dying:
    def __del__(self):
        press()

def let_it_die(frame, event, _):
    if event == "call" and frame.f_code.co_qualname == "PoolClient._connect":
        sys.setprofile(None)
        Dying()
"""
    )
    cell = "%%gpu\nprint('it ran')\nran = 'in the end'"
    notebook.run("sys.setprofile(let_it_die)")
    stopped = notebook.run(cell)
    assert notebook.value("presses") == "[1]"
    assert stopped.error is not None, stopped.shown
    assert stopped.error["traceback"] == [
        "CellStopped: The cell was stopped before it ran. Your variables are as before the cell."
    ]
    assert "it ran" not in stopped.stream()
    assert notebook.value("'ran' in dir()") == "False"
    assert notebook.run(cell).stream() == "it ran\n"
    assert notebook.value("ran") == "'in the end'"
