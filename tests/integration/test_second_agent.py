"""Somebody starts the agent of a node a second time, on the same host and in the same folder."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bulletin.wire import keys
from gpu_worker.agent.folder_lock import alone_in
from tests.clean_environ import clean_environ
from tests.integration.conftest import PATIENCE_S, Notebook, PoolProcess

WAITS = "%%gpu\nimport os, time\nprint('began')\nwhile not os.path.exists({gate!r}): time.sleep(0.02)\nprint('ended')"


def start_agent(folder: Path) -> "subprocess.Popen[str]":
    words = ["agent", "--folder", str(folder), "--device", "cpu", "--isolation", "shared"]
    return subprocess.Popen(
        [sys.executable, "-m", "gpu_worker.cli", *words],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environ(),
    )


def test_a_second_agent_waits_for_the_first_and_its_cells_go_on(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    pool, gate = start_pool("--slots", "1"), tmp_path / "gate"
    notebook = open_notebook(pool)
    message = notebook.start_until(WAITS.format(gate=str(gate)), shows="began")
    second = start_agent(pool.folder)
    try:
        assert second.stderr is not None
        said = next(line for line in second.stderr if "another agent runs in this folder" in line)
        assert f"process={pool.part('agent').pid}" in said
        assert "end one of them" in said
        gate.touch()
        ran = notebook.collect(message)
        assert ran.error is None, ran.shown
        assert ran.stream() == "ended\n", "it goes on where it was"
    finally:
        second.terminate()
        second.communicate(timeout=PATIENCE_S)


def test_an_agent_that_has_waited_goes_by_the_file_that_is_there_then(tmp_path: Path) -> None:
    folder, broker = tmp_path / "node", keys.make_keys().public

    def bring(address: str) -> None:
        file = keys.NodeFile(node="n1", broker_address=address, broker_public_key=broker, keys=keys.make_keys())
        keys.write_private(folder / "node.json", file)

    bring("tcp://127.0.0.1:9")
    with alone_in(folder):
        second = start_agent(folder)
        assert second.stderr is not None
        assert any("another agent runs in this folder" in line for line in second.stderr)
        bring("tcp://127.0.0.1:10")
    try:
        begins = next(line for line in second.stderr if "listening" in line)
        assert "broker=tcp://127.0.0.1:10" in begins
    finally:
        second.terminate()
        second.communicate(timeout=PATIENCE_S)
