"""A notebook that keeps its place between cells (`--keep`): from whom, for how long, what it costs, how it ends."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from bulletin.codes import CellOutcome
from bulletin.errors import NotDone
from bulletin.ids import LeaseId
from bulletin.kept_time import LABEL, is_kept
from bulletin.wire import console
from gpu_worker.broker.ledger import Ledger
from gpu_worker.console import client
from tests.integration.conftest import Notebook, PoolProcess, until

QUOTAS = """
[projects.default]
guaranteed = 1

[qos.reserved]
walltime = "1 h"
keep = "10 min"

[qos.brief]
walltime = "3 s"
must_be_in_quota = true
keep = "10 min"
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolProcess]:
    """One slot, which the project of all is guaranteed. A notebook is gone after 18 s of silence."""
    folder = tmp_path_factory.mktemp("pool")
    file = folder / "quotas.toml"
    file.write_text(QUOTAS)
    process = PoolProcess(
        folder / "p", "--Pool.preload=numpy", "--slots", "1", f"--Pool.quota_file={file}", "--Pool.away=3"
    )
    yield process
    process.stop()


@pytest.fixture(scope="module")
def other(pool: PoolProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """Another notebook on the pool, of somebody who waits."""
    opened = Notebook(
        {"BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json")}, tmp_path_factory.mktemp("other")
    )
    yield opened
    opened.close()


def held(pool: PoolProcess) -> str:
    """What the pool's one slot does."""
    return pool.picture().slots[0].state


def cells(pool: PoolProcess) -> list[tuple[CellOutcome, str, int]]:
    """What the ledger has of cells that ended: how, in which class, and for how long they held their slots."""
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        return [(CellOutcome(row["outcome"]), row["qos"], row["held_ms"]) for row in ledger.each_cell()]


def test_a_kept_place_is_nobody_elses_between_cells_and_is_given_back_by_hand(
    pool: PoolProcess, notebook: Notebook, other: Notebook
) -> None:
    mine = notebook
    said = mine.run('%gpu on --keep "5 min"').shown
    assert "until 5 min after its last cell" in said
    mine.run("import os\npid = os.getpid()")
    asked = other.start_until("%%gpu\nprint('mine at last')", shows="Waiting")
    assert mine.run("pid == os.getpid()").result == "True"
    assert mine.run("%%gpu\npid == os.getpid()").result == "True", "a cell that asks for nothing else runs there, too"
    block = "%%cpu\nwith gpu:\n    import os\n    block = os.getpid()\nblock == pid"
    assert mine.run(block).result == "True", "and so does a block that asks for nothing else"
    assert held(pool) == "kept"
    assert "CPU slot: kept between cells" in mine.run("%gpu").shown
    report = client.ask(client.find_pool(pool.folder, is_named=True), console.AskProjects())
    assert isinstance(report, console.ProjectReport)
    assert [row.used_milli for row in report.projects if row.project == "default"] == [1000]
    assert "Given back" in mine.run("%gpu off").shown
    assert other.collect(asked).stream() == "mine at last\n"


def test_a_place_goes_when_no_cell_has_run_for_as_long_as_was_asked_and_the_notebook_is_told(
    pool: PoolProcess, notebook: Notebook
) -> None:
    notebook.run('%%gpu --keep "3 s"\nx = 1')
    notebook.wait_until("is given back in")
    notebook.wait_until("No cell of this notebook has run for 3.0 s")
    until(lambda: held(pool) == "free", "the place to be free")
    until(
        lambda: any(one[:2] == (CellOutcome.KEPT, "reserved") and one[2] >= 3_000 for one in cells(pool)),
        "the ledger to have the time that was kept",
    )
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        assert list(ledger.audit()) == []
    assert notebook.run('%%gpu --keep "3 s"\nx + 1').result == "2", "what came back is here"
    notebook.run("%gpu stop")


def test_nobody_keeps_a_place_for_longer_than_the_walltime_of_its_class(pool: PoolProcess, notebook: Notebook) -> None:
    asked = notebook.run('%%gpu --qos brief --keep "5 min"\nimport os\nfirst = os.getpid()')
    if "all of its time" not in asked.shown:  # on a busy machine the time is over before the cell has come back
        notebook.wait_until("all of its time")
    until(lambda: held(pool) == "free", "the place to be free")
    assert notebook.run('%%gpu --qos brief --keep "5 min"\nfirst == os.getpid()').result == "False"
    notebook.run("%gpu stop")


def test_a_notebook_that_is_killed_keeps_nothing(
    pool: PoolProcess, other: Notebook, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)
    pid = int(notebook.value("__import__('os').getpid()"))
    notebook.run('%%gpu --keep "5 min"\nx = 1')
    os.kill(pid, signal.SIGKILL)
    assert other.run("%%gpu\nprint('free')").stream() == "free\n"


def test_a_broker_that_is_killed_still_knows_of_it(pool: PoolProcess, notebook: Notebook, other: Notebook) -> None:
    notebook.run('%%gpu --keep "5 min"\nimport os\nfirst = os.getpid()')
    old = pool.part("broker").pid
    os.kill(old, signal.SIGKILL)
    until(lambda: pool.part("broker").pid != old and pool.picture().slots, "another broker")
    asked = other.start_until("%%gpu\nprint('after it')", shows="Waiting")
    assert notebook.run('%%gpu --keep "5 min"\nfirst == os.getpid()').result == "True"
    notebook.run("%gpu stop")
    assert other.collect(asked).stream() == "after it\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--keep '11 min'", "keeps a place for 10 min after the last cell at most"),
        ("--keep '1 min' --qos interactive", "the QoS 'interactive' keeps no place. Choose reserved or brief."),
        ("--keep '1 min' --background one", "--keep and --background cannot stand together"),
        ("--keep '0 s'", "a GPU is kept for some time after each cell"),
        ("--keep '1 min' --project guests", "which never borrows, and project 'guests' has 0 CPU slots guaranteed"),
    ],
)
def test_what_may_not_be_kept_is_refused_with_what_may(notebook: Notebook, options: str, sentence: str) -> None:
    assert sentence in notebook.run(f"%%gpu {options}\n1").shown


def kept_lease(pool: PoolProcess) -> LeaseId:
    """Wait for the place that is kept to be listed as running: the notebook has its result before the broker hears."""

    def running() -> list[LeaseId]:
        queue = client.ask(client.find_pool(pool.folder, is_named=True), console.AskQueue())
        assert isinstance(queue, console.QueueReport)
        return [row.lease for row in queue.running]

    until(running, "the place among what runs")
    (lease,) = running()
    return lease


def test_an_admin_takes_a_kept_place_away(pool: PoolProcess, notebook: Notebook) -> None:
    notebook.run('%%gpu --keep "5 min"\nx = 1')
    lease = kept_lease(pool)
    answered = client.ask(client.find_pool(pool.folder, is_named=True), console.Cancel(id=lease))
    assert isinstance(answered, console.Cancelled)
    assert answered.what == "ended"
    notebook.wait_until("gave back the place that this notebook kept")
    until(lambda: held(pool) == "free", "the place to be free")
    assert notebook.run("%%gpu\nx + 1").result == "2"
    notebook.run("%gpu stop")


def test_an_admin_gives_a_kept_place_more_time_and_runs_nothing_of_it_again(
    pool: PoolProcess, notebook: Notebook
) -> None:
    notebook.run('%%gpu --qos brief --keep "4 s"\nx = 1')
    ask = partial(client.ask, client.find_pool(pool.folder, is_named=True))
    lease = kept_lease(pool)
    ask(console.Extend(id=lease, more_ms=3_600_000))
    with pytest.raises(NotDone, match="keeps the place between two cells, and nothing could run again"):
        ask(console.Requeue(id=lease))
    notebook.wait_until("gave the place that this notebook keeps 60 min more")
    notebook.wait_until("No cell of this notebook has run for 4.0 s")  # and not: all of its time
    until(lambda: held(pool) == "free", "the place to be free")


def test_a_place_that_goes_with_its_process_or_its_node_is_said_to_be_gone(
    pool: PoolProcess, notebook: Notebook
) -> None:
    error = notebook.run('%%gpu --keep "5 min"\nimport os\nos._exit(3)').error
    assert error is not None
    assert "with status 3 (as os._exit does). This notebook keeps no place any more;" in error["evalue"]
    notebook.run('%%gpu --keep "5 min"\nx = 1')
    lease = kept_lease(pool)
    agent = pool.part("agent")
    agent.kill()
    notebook.wait_until("what ran there has ended. This notebook keeps no place any more;")
    until(lambda: pool.part("agent").pid != agent.pid and pool.picture().slots, "another agent")
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        until(lambda: [one for one in ledger.each_cell() if is_kept(one["cell"]) and one["lease"] == lease], "its row")
        (row,) = [one for one in ledger.each_cell() if is_kept(one["cell"]) and one["lease"] == lease]
        assert (row["outcome"], row["label"], row["ran_ms"]) == (CellOutcome.NOT_HELD, LABEL, 0)
        assert list(ledger.audit()) == []


def test_what_the_quota_file_lets_nobody_keep_any_more_is_given_back_and_the_notebook_reads_why(
    pool: PoolProcess, notebook: Notebook
) -> None:
    notebook.run('%%gpu --keep "5 min"\nx = 1')
    file = pool.folder.parent / "quotas.toml"
    file.write_text(QUOTAS.replace('keep = "10 min"', 'keep = "0 s"'))
    notebook.wait_until("The QoS 'reserved' keeps no place any more. This notebook keeps no place any more;")
    until(lambda: held(pool) == "free", "the place to be free")
    file.write_text(QUOTAS)
    until(lambda: notebook.run('%%gpu --keep "5 min"\nx').error is None, "the file to be read again")
    notebook.run("%gpu stop")
