"""Whatever dies in mid-cell: one clear message, the variables from before, and the next cell works."""

import os
import re
import signal
from collections.abc import Callable
from functools import partial

import psutil
import pytest

from tests.integration.conftest import Notebook, PoolProcess, until
from tests.processes import has_ended

RUNS = "%%gpu\nx.append(2)\nnew = 1\nprint('started')\nimport time\nwhile True: time.sleep(0.1)"


@pytest.mark.parametrize(
    ("part", "words", "ended"),
    [
        ("executor", "killed (SIGKILL)", "its process died"),
        ("agent", "restarted", "its node was (lost|restarted)"),
        ("zygote", "has ended, and yours with it", "its process died"),
    ],
)
def test_the_notebook_is_as_before_when_a_part_is_killed(
    part: str, words: str, ended: str, start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run("x = [1]")
    output = notebook.run_until(RUNS, shows="started", then=lambda: pool.part(part).send_signal(signal.SIGKILL))
    assert output.error is not None
    assert output.error["ename"] == "CellLost"
    assert words in output.error["evalue"], output.error["evalue"]
    assert len(output.error["traceback"]) == 1
    assert notebook.value("(x, 'new' in dir())") == "([1], False)"
    (receipts,) = notebook.run("%gpu receipts").of("display_data")
    assert re.search(rf"\[\d+\] +{ended} ", receipts["data"]["text/plain"]), receipts
    listed = notebook.run("%gpu attach").stream()
    assert "in a notebook that is there" not in listed
    assert re.search(r"^\[\d+\]  .+  \(ended ", listed, re.MULTILINE), listed
    again = notebook.run("%%gpu\nx.append(3)\nprint('again')")
    assert again.error is None, again.shown
    assert notebook.value("x") == "[1, 3]"


def test_a_cell_goes_on_while_the_broker_is_killed_and_the_ledger_has_it(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run("x = [1]")
    old = pool.part("broker").pid

    def kill() -> None:
        os.kill(old, signal.SIGKILL)
        until(lambda: pool.part("broker").pid != old, "the broker to be started again")
        until(lambda: any(slot.state == "busy" for slot in pool.picture().slots), "the lease to be learned again")
        notebook.answer("go")

    output = notebook.run_until(
        "%%gpu\nx.append(2)\nprint('started')\ninput()\nprint('over')", shows="started", then=kill
    )
    assert output.error is None, output.shown
    assert "over" in output.stream()
    assert notebook.value("x") == "[1, 2]"
    assert notebook.run("%%gpu\nprint('next')").stream() == "next\n"
    until(
        lambda: [cell.outcome for cell in pool.picture().recent] == ["returned", "returned"], "both cells in the ledger"
    )


def test_a_queued_cell_is_queued_again_when_the_broker_is_killed(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    old = pool.part("broker").pid

    def kill() -> None:
        os.kill(old, signal.SIGKILL)
        until(lambda: pool.part("broker").pid != old, "the broker to be started again")
        until(lambda: pool.picture().waiting, "the request to be there again")
        first.answer("go")

    output = second.run_until("%%gpu\nprint('mine')", shows="1st in line", then=kill)
    assert output.error is None, output.shown
    assert "mine" in output.stream()
    assert "restarted" in output.shown
    first.collect(busy)


def test_a_cell_in_c_code_is_ended_by_a_second_stop(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    """A C call that holds the interpreter hears no interrupt; pressing stop again ends its process."""
    notebook = open_notebook(start_pool("--slots", "1"))
    notebook.run("x = 1")
    presses: list[int] = []
    message_id = notebook.start("%%gpu\nx = 2\nprint('started', flush=True)\nsum(range(10**14))")

    def look(message: dict[str, object]) -> None:
        text = str(message["content"])
        if (message["msg_type"] == "stream" and "started" in text and not presses) or (
            "stop again" in text and len(presses) == 1
        ):
            presses.append(1)
            notebook.interrupt()

    output = notebook.collect(message_id, look)
    assert len(presses) == 2
    assert output.error is not None
    assert "as before the cell" in output.shown
    assert notebook.value("x") == "1"
    assert notebook.run("%%gpu\nprint('again')").stream() == "again\n"


def test_a_cell_ends_at_its_walltime_and_the_user_is_told(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1", "--Pool.walltime_grace=0.5")
    notebook = open_notebook(pool)
    notebook.run("x = 1")
    output = notebook.run("%%gpu --time 1s\nx = 2\nsum(range(10**14))")
    assert output.error is not None
    assert "walltime of 1" in output.error["evalue"]
    assert notebook.value("x") == "1"
    until(lambda: [cell.outcome for cell in pool.picture().recent] == ["walltime"], "the ledger")


def test_a_session_outlives_its_kernel_by_the_keep_time_and_no_longer(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1", "--keep", "2")
    notebook = open_notebook(pool)
    notebook.run("%%gpu\nimport subprocess\nchild = subprocess.Popen(['sleep', '600']).pid")
    child = int(notebook.value("child"))
    executor = pool.part("executor")
    os.kill(notebook.manager.provisioner.process.pid, signal.SIGKILL)  # type: ignore[union-attr]
    until(lambda: not executor.is_running(), "the executor to be ended")
    until(lambda: has_ended(child), "its child to be ended")
    assert [slot.state for slot in until(lambda: [s for s in pool.picture().slots if s.state == "free"], "a free slot")]


def test_what_cells_have_started_does_not_outlive_a_killed_agent(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    """A program, and a fork that has left its process group: nobody's parent-death signal reaches them."""
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run(
        "%%gpu\nimport os, signal, subprocess\n"
        "program = subprocess.Popen(['sleep', '600'], start_new_session=True).pid\n"
        "fork = os.fork()\n"
        "if fork == 0:\n    os.setsid()\n    signal.pause()\n"
    )
    children = [int(pid) for pid in notebook.value("[program, fork]").strip("[]").split(",")]
    assert all(psutil.pid_exists(pid) for pid in children)
    pool.part("agent").send_signal(signal.SIGKILL)
    for pid in children:
        until(partial(has_ended, pid), "a child to be ended")
