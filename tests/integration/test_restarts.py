"""The kernel is restarted or shut down in the middle of a cell: what becomes of the cell is what the user set."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.integration.conftest import PATIENCE_S, Notebook, PoolProcess, until
from tests.integration.long_cells import BEFORE, LONG, VALUES, id_when, shown, start

#: The stop button then waits for whatever may come after it: no test depends on how fast the machine is.
PATIENT = "%config BulletinMagics.stop_after_s = 600"
#: It says which process it runs in, and then waits for a word.
ASKS = """%%gpu --label mine
import os, sys, time
print('pid', os.getpid())
word = input('word? ')
print(word)
"""


def restart(notebook: Notebook) -> None:
    """What the button does; then the magics are there again."""
    notebook.manager.restart_kernel()
    notebook.client.wait_for_ready(timeout=PATIENCE_S)
    notebook.run(notebook.first_cell)


def start_asking(notebook: Notebook) -> psutil.Process:
    """Run ASKS until it waits; the process that it runs in."""
    seen: list[str] = []
    notebook.start(ASKS)
    notebook.client.get_stdin_msg(timeout=PATIENCE_S)
    while not (found := re.search(r"pid (\d+)", "".join(seen))):
        content = notebook.client.get_iopub_msg(timeout=PATIENCE_S)["content"]
        seen.append(content.get("text", ""))
    return psutil.Process(int(found[1]))


def attach_and_answer(notebook: Notebook, word: str = "hello") -> None:
    """Take the cell over that waits for a word, and give it one."""
    name = id_when(notebook, "running")
    message_id = notebook.start(f"%gpu attach {name}")
    notebook.answer(word)
    joined = notebook.collect(message_id)
    assert joined.error is None, joined.shown
    assert re.fullmatch(rf"pid \d+\n{word}\n", joined.stream())
    assert notebook.value("word") == repr(word)


def test_a_running_cell_goes_on_when_its_kernel_is_restarted(
    pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    notebook = open_notebook(pool)
    notebook.run(PATIENT)
    gate = start(notebook, tmp_path, stop=150)
    restart(notebook)
    name = id_when(notebook, "running")
    joined = notebook.run_until(f"%gpu attach {name}", shows="started", then=gate.touch)
    assert joined.error is None, joined.shown
    assert notebook.value(VALUES) == "(20480000, {'n': 2}, 8, True, False)"
    notebook.run(BEFORE.format(marker=str(tmp_path / "over"), gate=str(gate), stop=0))
    assert shown(joined) == shown(notebook.run(LONG))


def test_who_waits_behind_the_cell_of_before_the_restart_reads_so_and_how_to_have_it(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(start_pool("--slots", "1"))
    notebook.run(PATIENT)
    start_asking(notebook)
    restart(notebook)
    waited = notebook.run_until("%%gpu\n1", shows="where the stop button ends it", then=notebook.interrupt)
    told = re.search(
        r"The only CPU slot is busy; your earlier cell (\w{8}) \[mine\], whose notebook is gone, still runs on "
        r"1 CPU slot: stop this cell, then `%gpu attach (\w{8})` brings it here, where the stop button ends it\.",
        waited.shown,
    )
    assert told is not None, waited.shown
    assert told[1] == told[2] == id_when(notebook, "running")
    attach_and_answer(notebook)


def test_a_cell_that_asks_is_asked_again_after_each_restart(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    """The second time it is a cell that was taken over already."""
    notebook = open_notebook(pool)
    notebook.run(PATIENT)
    start_asking(notebook)
    restart(notebook)
    notebook.run(PATIENT)
    name = id_when(notebook, "running")
    notebook.start(f"%gpu attach {name}")
    notebook.client.get_stdin_msg(timeout=PATIENCE_S)
    restart(notebook)
    attach_and_answer(notebook)


def test_a_background_cell_goes_on_when_its_kernel_is_restarted(
    pool: PoolProcess, open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    notebook = open_notebook(pool)
    gate = tmp_path / "gate"
    cell = f"import os, sys, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\ndone = 'done'"
    notebook.run(f"%%gpu --background job --label mine\n{cell}")
    until(lambda: "running" in notebook.value("job.status"), "the cell to run")
    restart(notebook)
    name = id_when(notebook, "running")
    gate.touch()
    joined = notebook.run(f"%gpu attach {name}")
    assert joined.error is None, joined.shown
    assert notebook.value("done") == "'done'"


def test_a_kernel_that_is_ended_unasked_leaves_its_cell_to_go_on(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    first, second = open_notebook(pool), open_notebook(pool)
    start_asking(first)
    first.manager.signal_kernel(signal.SIGTERM)
    attach_and_answer(second)


def test_a_cell_ends_with_its_kernel_where_the_user_wants_that(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)
    notebook.run("%config BulletinMagics.on_restart = 'cancel'")
    executor = start_asking(notebook)
    restart(notebook)
    until(lambda: not executor.is_running(), "the cell to end with its kernel")


def test_a_cell_ends_when_its_kernel_is_shut_down(pool: PoolProcess, open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook(pool)
    executor = start_asking(notebook)
    notebook.manager.shutdown_kernel()
    until(lambda: not executor.is_running(), "the cell to end with its kernel")


def test_a_cell_outlives_a_shutdown_where_the_user_wants_that(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    first, second = open_notebook(pool), open_notebook(pool)
    first.run(f"%config BulletinMagics.on_shutdown = 'detach'\n{PATIENT}")
    start_asking(first)
    first.manager.shutdown_kernel()
    attach_and_answer(second)
