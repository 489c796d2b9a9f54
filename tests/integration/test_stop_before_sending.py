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
