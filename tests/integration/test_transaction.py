"""Whatever dies while results come back: the notebook is as before the cell or as after it, and the next cell works."""

import signal
import threading
from collections.abc import Callable

import psutil
import pytest

from tests.integration.conftest import Notebook, PoolProcess

#: Seconds after the last statement of the cell: from before its results are gathered until they have landed.
MOMENTS_S = (0.0, 0.05, 0.1, 0.2)
SETUP = """
import numpy as np
big, kept = np.zeros(50_000_000, "u1"), [0]
alias, window = kept, big[10:20]
def seen():
    return int(big.min()), int(big.max()), int(window[0]), kept == list(range(len(kept))), len(kept), alias is kept
"""
CELL = "%%gpu\nbig += 1\nkept.append(len(kept))\nprint('over', flush=True)"


def kill(pool: PoolProcess, _: Notebook, part: str) -> None:
    pool.part(part).send_signal(signal.SIGKILL)


def pause(pool: PoolProcess, _: Notebook, part: str) -> None:
    """The link is silent for a while, and everything that was said meanwhile comes at once."""
    process = pool.part(part)
    process.send_signal(signal.SIGSTOP)
    threading.Event().wait(0.3)
    process.send_signal(signal.SIGCONT)


def press(_: PoolProcess, notebook: Notebook, __: str) -> None:
    for _press in range(2):
        notebook.interrupt()
        threading.Event().wait(0.02)


def harm_at(moment_s: float, harm: Callable[[], None]) -> None:
    threading.Event().wait(moment_s)
    try:
        harm()
    except psutil.NoSuchProcess:
        return  # the cell was over before, and with it the process


@pytest.mark.parametrize(
    ("harm", "part"),
    [(kill, "executor"), (kill, "agent"), (pause, "agent"), (press, "")],
)
def test_the_notebook_is_as_before_or_as_after_when_results_are_cut_off(
    harm: Callable[[PoolProcess, Notebook, str], None],
    part: str,
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
) -> None:
    pytest.importorskip("numpy")
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run(SETUP)
    times = 0
    for moment_s in MOMENTS_S:
        output = notebook.run_until(
            CELL,
            shows="over",
            then=lambda: harm_at(moment_s, lambda: harm(pool, notebook, part)),  # noqa: B023
        )
        is_after = notebook.value("seen()") == seen_after(times + 1)
        assert is_after or notebook.value("seen()") == seen_after(times), output.shown
        # by its reply: IPython shows no traceback of a cell that is stopped again while it writes one
        assert is_after or output.reply["status"] == "error", output.shown
        times += is_after
        again = notebook.run(CELL)
        if (
            again.error is not None and again.error["ename"] == "CellLost"
        ):  # it was sent to a process that has just died
            assert notebook.value("seen()") == seen_after(times), again.shown
            again = notebook.run(CELL)
        assert again.error is None, again.shown
        times += 1
        assert notebook.value("seen()") == seen_after(times)


def seen_after(times: int) -> str:
    """What `seen()` says after so many cells."""
    return str((times, times, times, True, times + 1, True))
