"""An agent that is told to end: SIGTERM, or the end of its host's time. Cells are told, and nothing of them is lost."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration import nodes
from tests.integration.conftest import Notebook, until

#: It ends when the file is there.
WAITS = """%%gpu
import os, time
tries = tries + 1 if 'tries' in globals() else 1
open({log!r}, 'a').write('x')
print('began')
while not os.path.exists({gate!r}):
    time.sleep(0.02)
print('done')
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[nodes.Part]:
    part = nodes.Part("broker", tmp_path / "pool")
    part.until_said("broker ready")
    yield part
    part.stop()


@pytest.fixture
def start_agent(broker: nodes.Part) -> Iterator[Callable[..., nodes.Part]]:
    """Start the agent of the pool's folder, in one life after the other."""
    started: list[nodes.Part] = []

    def start(*options: str) -> nodes.Part:
        before = broker.log.read_text().count("agent registered")
        options = ("--device", "cpu", "--slots", "1", "--isolation", "shared", "--Pool.preload=numpy", *options)
        started.append(nodes.Part("agent", broker.folder, *options))
        broker.until_said("agent registered", before + 1)
        return started[-1]

    yield start
    for part in started:
        part.stop()


@pytest.fixture
def notebook(broker: nodes.Part, tmp_path: Path, start_agent: Callable[..., nodes.Part]) -> Iterator[Notebook]:
    until(lambda: (broker.folder / "connection.json").exists(), "the pool to let notebooks in")
    opened = Notebook({"BULLETIN_CONNECTION_FILE": str(broker.folder / "connection.json")}, tmp_path)
    yield opened
    opened.close()


def assert_runs_again(notebook: Notebook, message: str, gate: Path, log: Path) -> None:
    """Let the cell end, which begins for the second time on the next agent, with the variables from before."""
    until(lambda: log.read_text() == "xx", "the cell to run again")
    gate.touch()
    output = notebook.collect(message)
    assert output.error is None, output.shown
    assert "The node that ran your cell was shut down. The cell is run again from its beginning" in output.shown
    assert notebook.value("tries") == "1", "what the first run changed came to nothing"


def test_a_cell_that_ends_within_its_grace_is_as_any_other(
    broker: nodes.Part, start_agent: Callable[..., nodes.Part], notebook: Notebook, tmp_path: Path
) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    agent = start_agent("--Pool.leave_grace=60")
    message = notebook.start_until(WAITS.format(gate=str(gate), log=str(log)), shows="began")
    agent.process.send_signal(signal.SIGTERM)
    notebook.wait_until("The node of your cell is being shut down. Your cell has 60 s to end")
    gate.touch()
    output = notebook.collect(message)
    assert output.error is None, output.shown
    assert "done" in output.shown
    assert notebook.value("tries") == "1"
    assert agent.process.wait(60) == 128 + signal.SIGTERM
    broker.until_said("agent left")
    assert "agent lost" not in broker.log.read_text()


def test_a_cell_that_does_not_is_run_again_by_the_next_agent_and_charged_once(
    broker: nodes.Part, start_agent: Callable[..., nodes.Part], notebook: Notebook, tmp_path: Path
) -> None:
    gate, log = tmp_path / "gate", tmp_path / "log"
    agent = start_agent("--Pool.leave_grace=0.2")
    message = notebook.start_until(WAITS.format(gate=str(gate), log=str(log)), shows="began")
    agent.process.send_signal(signal.SIGTERM)
    assert agent.process.wait(60) == 128 + signal.SIGTERM
    start_agent()
    assert_runs_again(notebook, message, gate, log)
    cells = nodes.run("usage", "--folder", str(broker.folder), "--cells", "--csv")
    assert cells.count(",reclaimed,") == 1, cells
    assert cells.count(",returned,") == 1, cells


def test_an_agent_that_is_killed_within_that_grace_takes_no_cell_with_it(
    broker: nodes.Part, start_agent: Callable[..., nodes.Part], notebook: Notebook, tmp_path: Path
) -> None:
    """As Slurm kills it, where its KillWait is shorter than Pool.leave_grace."""
    gate, log = tmp_path / "gate", tmp_path / "log"
    agent = start_agent("--Pool.leave_grace=60")
    message = notebook.start_until(WAITS.format(gate=str(gate), log=str(log)), shows="began")
    agent.process.send_signal(signal.SIGTERM)
    notebook.wait_until("The node of your cell is being shut down. Your cell has 60 s to end")
    agent.process.kill()
    agent.process.wait()
    broker.until_said("agent lost")
    start_agent()
    assert_runs_again(notebook, message, gate, log)


def test_a_node_that_left_is_none_that_is_missed_and_takes_cells_when_it_is_back(
    broker: nodes.Part, start_agent: Callable[..., nodes.Part], notebook: Notebook
) -> None:
    agent = start_agent()
    agent.process.send_signal(signal.SIGTERM)
    agent.process.wait(60)
    broker.until_said("agent left")
    assert "is not there" not in nodes.run("status", "--folder", str(broker.folder))
    start_agent()
    assert notebook.run("%%gpu\nprint(40 + 2)").stream() == "42\n"


def test_nothing_starts_that_could_not_end_before_the_host_is_taken_away(
    broker: nodes.Part, start_agent: Callable[..., nodes.Part], notebook: Notebook
) -> None:
    agent = start_agent(f"--Pool.ends_at={time.time() + 600}", "--Pool.leave_grace=1")
    assert notebook.run("%%gpu --time 5min\nprint(40 + 2)").stream() == "42\n"
    output = notebook.run("%%gpu --time 20min --max-wait 2s\nprint(1)")
    assert "before yours could end" in output.shown
    assert agent.process.poll() is None


def test_an_agent_is_gone_before_its_host_is(broker: nodes.Part, start_agent: Callable[..., nodes.Part]) -> None:
    agent = start_agent(f"--Pool.ends_at={time.time() + 15}", "--Pool.leave_grace=1")
    assert agent.process.wait(60) == 128 + signal.SIGTERM
    broker.until_said("agent left")


def test_an_agent_that_an_engine_started_does_not_outlive_its_broker_for_long(
    broker: nodes.Part, start_agent: Callable[..., nodes.Part]
) -> None:
    agent = start_agent("--Pool.leave_alone=3")
    broker.stop()
    assert agent.process.wait(60) == 128 + signal.SIGTERM
