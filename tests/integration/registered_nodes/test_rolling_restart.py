"""Agents are started again in turn, as for an upgrade, while cells run and wait: none is lost, and all are told."""

import signal
from collections.abc import Callable
from pathlib import Path

from tests.integration.conftest import Notebook, until
from tests.integration.nodes import AGENT, Part, add, nodes, run

#: It ends when the file is there, and says each time that it begins.
WAITS = """%%gpu
import os, time
open({log!r}, 'a').write('x')
print('began')
while not os.path.exists({gate!r}):
    time.sleep(0.02)
tries += 1
"""


def test_agents_are_started_again_in_turn_and_no_cell_is_lost(
    broker: Part, start: Callable[..., Part], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    def start_agent(name: str, grace: float) -> Part:
        return start("agent", name, *AGENT, f"--Pool.leave_grace={grace}")

    def submit(name: str) -> tuple[Notebook, str]:
        notebook = open_notebook(BULLETIN_CONNECTION_FILE=str(broker.folder / "connection.json"))
        notebook.run("tries = 0")
        return notebook, notebook.start(WAITS.format(gate=str(tmp_path / f"{name}.gate"), log=str(tmp_path / name)))

    def began(name: str, times: int = 1) -> None:
        log = tmp_path / name
        until(lambda: log.exists() and log.read_text() == "x" * times, f"the cell {name} to begin {times} times")

    def let_go(name: str) -> None:
        (tmp_path / f"{name}.gate").touch()

    for name in ("node1", "node2"):
        add(broker, name, name)
    # The first is given a cell before the other is there.
    first = start_agent("node1", 60)
    until(lambda: nodes(broker.folder) == {"node1"}, "the first node")
    ends, its_cell = submit("ends")
    began("ends")
    second = start_agent("node2", 0.2)
    until(lambda: nodes(broker.folder) == {"node1", "node2"}, "the second node")
    again, other_cell = submit("again")
    began("again")
    waits, last_cell = submit("waits")
    waits.wait_until("1st in line")

    first.process.send_signal(signal.SIGTERM)
    ends.wait_until("The node of your cell is being shut down. Your cell has 60 s to end")
    let_go("ends")
    output = ends.collect(its_cell)
    assert output.error is None, output.shown
    assert first.process.wait(60) == 128 + signal.SIGTERM
    start_agent("node1", 60)
    began("waits")

    second.process.send_signal(signal.SIGTERM)
    assert second.process.wait(60) == 128 + signal.SIGTERM
    start_agent("node2", 60)
    began("again", times=2)
    let_go("again")
    output = again.collect(other_cell)
    assert output.error is None, output.shown
    assert "The node that ran your cell was shut down. The cell is run again from its beginning" in output.shown

    let_go("waits")
    output = waits.collect(last_cell)
    assert output.error is None, output.shown
    assert [one.value("tries") for one in (ends, again, waits)] == ["1", "1", "1"]
    cells = run("usage", "--folder", str(broker.folder), "--cells", "--csv")
    assert (cells.count(",returned,"), cells.count(",reclaimed,")) == (3, 1), cells
    assert "is not there" not in run("status", "--folder", str(broker.folder))
