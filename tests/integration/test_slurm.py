"""Agents as jobs of a real Slurm: what becomes of cells when it takes a node or loses one, and what is told."""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.conftest import Notebook, until
from tests.integration.engine_pools import EnginePool, kill, slurm_options
from tests.integration.nodes import picture, run
from tests.integration.slurm_cluster import Slurm, cluster

#: It ends when the file is there, and says each time that it begins.
WAITS = """%%gpu
import os, time
open({log!r}, 'a').write('x')
print('began')
while not os.path.exists({gate!r}):
    time.sleep(0.02)
done = 'done'
"""
StartPool = Callable[..., EnginePool]
OpenNotebook = Callable[[EnginePool], Notebook]


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    """A cluster of one's own: its nodes are taken and lost."""
    with cluster() as made:
        yield made


@pytest.fixture
def start_pool(slurm: Slurm, tmp_path: Path) -> Iterator[StartPool]:
    with contextlib.ExitStack() as started:

        def start(*options: str, **environ: str) -> EnginePool:
            pool = EnginePool(tmp_path / "pool", *slurm_options(*options), environ=slurm.environ | environ)
            started.callback(lambda: kill(pool.agents()))  # of a node that Slurm has lost, it ends nothing
            started.callback(pool.stop)
            return pool

        yield start


@pytest.fixture
def open_notebook(tmp_path: Path) -> Iterator[OpenNotebook]:
    with contextlib.ExitStack() as opened:

        def start(pool: EnginePool) -> Notebook:
            notebook = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.connection_file)}, tmp_path)
            opened.callback(notebook.close)
            return notebook

        yield start


class WaitingCell:
    """A cell that runs until it is let go, and counts how often it began."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self.gate, self.log = folder / f"gate{name}", folder / f"log{name}"
        self.source = WAITS.format(gate=str(self.gate), log=str(self.log))

    def until_begun(self, times: int) -> None:
        until(lambda: self.log.exists() and self.log.read_text() == "x" * times, f"the cell to begin {times} times")


def is_executor(process: psutil.Process) -> bool:
    """Whether a process was forked from a zygote."""
    parent = process.parent()
    return parent is not None and all("gpu_worker.executor" in one.cmdline() for one in (process, parent))


def finish(notebook: Notebook, message: str, cell: WaitingCell) -> str:
    """Let the cell end; what it showed."""
    cell.gate.touch()
    output = notebook.collect(message)
    assert output.error is None, output.shown
    assert notebook.value("done") == "'done'"
    return output.shown


def charged(pool: EnginePool) -> list[str]:
    """How the runs of cells ended, and whether they were charged, by the ledger."""
    lines = run("usage", "--folder", str(pool.folder), "--cells", "--csv").splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=False)) for line in lines[1:]]
    return sorted(row["outcome"] for row in rows)


def test_a_job_has_the_gpus_that_were_asked_for_and_its_agent_knows_when_it_ends(
    slurm: Slurm, start_pool: StartPool, open_notebook: OpenNotebook
) -> None:
    pool = start_pool("--SlurmAgents.options=--comment=ours", "--SlurmAgents.partition=low")
    output = open_notebook(pool).run("%%gpu\nprint(40 + 2)")
    assert output.error is None, output.shown
    (job,) = slurm.jobs("RUNNING")
    shown = slurm.run("scontrol", "show", "job", job)
    for words in ("Partition=low", "Comment=ours", "TimeLimit=01:00:00", "Requeue=0"):
        assert words in shown
    assert re.search(r"TresPerNode=gres[:/]gpu:1", shown), shown
    seen = picture(pool.folder)
    assert seen is not None
    (slot,) = seen.slots
    assert slot.drains_in_ms is not None
    assert 50 * 60_000 < slot.drains_in_ms < 60 * 60_000


def test_a_job_whose_limit_is_changed_gets_the_cells_that_can_end_by_then_and_no_others(
    slurm: Slurm, start_pool: StartPool, open_notebook: OpenNotebook
) -> None:
    pool = start_pool()
    notebook = open_notebook(pool)
    where = "%%gpu --qos batch --time 30min\nimport os\nprint(os.environ['SLURM_JOB_ID'])"
    ran = notebook.run(where)
    assert ran.error is None, ran.shown
    (first,) = ran.stream().split()

    def limit(minutes: int) -> None:
        slurm.run("scontrol", "update", f"JobId={first}", f"TimeLimit={minutes}")
        until(lambda: minutes - 10 < drained_in_minutes() < minutes, "the node to be drained before its job's new end")

    def drains_in_ms() -> list[int | None]:
        seen = picture(pool.folder)
        assert seen is not None
        return [slot.drains_in_ms for slot in seen.slots]

    def drained_in_minutes() -> float:
        (in_ms,) = drains_in_ms()
        assert in_ms is not None
        return in_ms / 60_000

    limit(20)
    limit(90)
    assert notebook.run(where).stream().split() == [first]
    limit(20)
    ran = notebook.run(where)
    assert ran.error is None, ran.shown
    assert ran.stream().split() != [first]
    slurm.run("scontrol", "update", f"JobId={first}", "TimeLimit=UNLIMITED")
    until(lambda: None in drains_in_ms(), "the node not to be drained any more")


def test_a_cell_that_no_job_could_hold_is_refused_with_words(
    start_pool: StartPool, open_notebook: OpenNotebook, slurm: Slurm
) -> None:
    output = open_notebook(start_pool()).run("%%gpu --qos batch --time 2h\nprint(1)")
    assert "is more than the" in output.shown
    assert slurm.jobs() == []


def test_a_cell_whose_job_is_cancelled_runs_again_in_another_and_is_charged_once(
    slurm: Slurm, start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    pool = start_pool()
    notebook, cell = open_notebook(pool), WaitingCell(tmp_path)
    message = notebook.start_until(cell.source, shows="began")
    (job,) = slurm.jobs("RUNNING")
    slurm.run("scancel", job)
    cell.until_begun(2)
    shown = finish(notebook, message, cell)
    assert "The cell is run again from its beginning" in shown
    assert charged(pool) == ["reclaimed", "returned"]
    until(lambda: len(pool.registered()) == 1, "the cancelled job to be over, whose agent gives its cell its grace")


def test_a_preempted_job_costs_its_cell_a_requeue_and_slurms_own_reason_is_told(
    slurm: Slurm, start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    pool = start_pool("--SlurmAgents.partition=low")
    notebook, cell = open_notebook(pool), WaitingCell(tmp_path)
    message = notebook.start_until(cell.source, shows="began")
    taking = ("-p", "main", "-N", "2", "--exclusive", "-t", "30", "-o", "/dev/null", "--wrap", "sleep 900")
    other = slurm.run("sbatch", "--parsable", *taking)
    notebook.wait_until("The cell is run again from its beginning")
    notebook.wait_until("Slurm: the partition low has none free until about")
    until(lambda: other in slurm.jobs("RUNNING"), "the other job to have the nodes")
    slurm.run("scancel", other)
    cell.until_begun(2)
    finish(notebook, message, cell)


def test_a_cell_on_a_node_that_slurm_lost_runs_again_elsewhere_and_its_first_process_ends(
    slurm: Slurm, start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    pool = start_pool()
    notebook, cell = open_notebook(pool), WaitingCell(tmp_path)
    message = notebook.start_until(cell.source, shows="began")
    (job,) = slurm.jobs("RUNNING")
    (agent,) = pool.agents()
    (executor,) = [child for child in agent.children(recursive=True) if is_executor(child)]
    slurm.kill_node(slurm.run("squeue", "-h", "-j", job, "-o", "%N"))
    cell.until_begun(2)
    until(lambda: not executor.is_running(), "the process of the first run to end, on the host that Slurm has lost")
    assert "The cell is run again from its beginning" in finish(notebook, message, cell)


def test_a_job_that_slurm_refuses_is_told_in_slurms_words(
    start_pool: StartPool, open_notebook: OpenNotebook, slurm: Slurm
) -> None:
    pool = start_pool("--SlurmAgents.partition=nowhere")
    notebook = open_notebook(pool)
    notebook.start_until("%%gpu --max-wait 60s\nprint(1)", shows="Slurm refused the job: ")
    assert slurm.jobs() == []
    assert pool.registered() == set()


#: Slurm takes the job, and its answer is lost; what is said instead, a terminal would obey.
LOSES_ANSWERS = """#!/bin/sh
{sbatch} "$@" > {taken}
printf 'sbatch: error: \\033[2J\\033]0;x\\007Socket timed out on send/recv operation\\n' >&2
exit 1
"""


def test_a_job_that_slurm_took_though_its_answer_was_lost_is_ended(
    slurm: Slurm, start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    programs, taken = tmp_path / "programs", tmp_path / "taken"
    programs.mkdir()
    script = LOSES_ANSWERS.format(taken=taken, sbatch=shutil.which("sbatch"))
    programs.joinpath("sbatch").write_text(script)
    programs.joinpath("sbatch").chmod(0o755)
    pool = start_pool(PATH=f"{programs}:{os.environ['PATH']}")
    notebook = open_notebook(pool)
    notebook.start_until("%%gpu\nprint(40 + 2)", shows="Slurm refused the job: ")
    until(lambda: slurm.jobs() == [], "the job to end that Slurm took")
    assert taken.read_text().strip().isdecimal()
    assert pool.registered() == set()
