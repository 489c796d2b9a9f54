"""What every engine promises: agents when cells need them, words when one is gone, and nothing left behind."""

import contextlib
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from bulletin.wire import keys
from tests.integration.conftest import PATIENCE_S, Notebook, until
from tests.integration.engine_pools import EnginePool, command_options, kill, slurm_options
from tests.integration.nodes import run
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
SCALED = ("command", "slurm")
StartPool = Callable[..., EnginePool]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with cluster() as made:
        yield made


@pytest.fixture(params=("local", *SCALED))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def start_pool(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartPool]:
    """Start a pool with the engine."""
    with contextlib.ExitStack() as started:

        def start(*options: str) -> EnginePool:
            environ = {}
            words = ["--slots", "1"]
            if engine == "command":
                words = list(command_options(tmp_path / "hosts"))
            elif engine == "slurm":
                environ = request.getfixturevalue("slurm").environ
                words = list(slurm_options())
            pool = EnginePool(tmp_path / "pool", *words, *options, environ=environ)
            started.callback(pool.stop)
            return pool

        yield start


@pytest.fixture
def open_notebook(tmp_path: Path) -> Iterator[Callable[[EnginePool], Notebook]]:
    with contextlib.ExitStack() as opened:

        def start(pool: EnginePool) -> Notebook:
            notebook = Notebook({"BULLETIN_CONNECTION_FILE": str(pool.connection_file)}, tmp_path)
            opened.callback(notebook.close)
            return notebook

        yield start


OpenNotebook = Callable[[EnginePool], Notebook]


def waiting_cell(folder: Path, name: str = "") -> tuple[str, Path, Path]:
    """A cell that waits for a file; where it writes that it began."""
    gate, log = folder / f"gate{name}", folder / f"log{name}"
    return WAITS.format(gate=str(gate), log=str(log)), gate, log


def test_a_cell_runs_where_there_was_nothing(start_pool: StartPool, open_notebook: OpenNotebook) -> None:
    output = open_notebook(start_pool()).run("%%gpu\nprint(40 + 2)")
    assert output.stream() == "42\n", output.shown


def test_an_agent_that_dies_during_a_cell_costs_words_and_no_hang(
    start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path, engine: str
) -> None:
    """Where nobody but the broker looks after the agent, the cell is lost with words; else it is run again."""
    pool = start_pool()
    notebook = open_notebook(pool)
    cell, gate, log = waiting_cell(tmp_path)
    message = notebook.start_until(cell, shows="began")
    kill(pool.agents())
    if engine == "local":
        output = notebook.collect(message)
        assert output.error is not None
        assert output.error["ename"] == "CellLost"
    else:
        until(lambda: log.read_text() == "xx", "the cell to run again")
        gate.touch()
        output = notebook.collect(message)
        assert output.error is None, output.shown
        assert "The cell is run again from its beginning" in output.shown
        assert notebook.value("done") == "'done'"
    assert notebook.run("%%gpu\nprint(40 + 2)").stream() == "42\n"


@pytest.mark.parametrize("engine", ["command"])
def test_who_is_started_after_the_broker_has_new_keys_has_these(
    start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    """Also while the broker is still reached by its old ones."""
    pool = start_pool()
    old = keys.read_private(pool.folder / "pool.json", keys.PoolFile).keys
    run("keys", "rotate", "--folder", str(pool.folder))
    pool.connection_file.unlink()
    kill([child for child in psutil.Process(pool.process.pid).children() if "broker" in child.cmdline()])
    until(pool.connection_file.exists, "the broker to be there again")
    new = keys.read_private(pool.folder / "pool.json", keys.PoolFile)
    assert (new.earlier and new.earlier.keys, new.keys != old) == (old, True)
    assert open_notebook(pool).run("%%gpu\nprint(40 + 2)").stream() == "42\n"
    [file] = tmp_path.glob("hosts/*/node.json")
    assert keys.read_private(file, keys.NodeFile).broker_public_key == new.keys.public


def test_nothing_is_left_of_a_pool_that_ended(start_pool: StartPool, open_notebook: OpenNotebook) -> None:
    pool = start_pool()
    open_notebook(pool).run("%%gpu\nprint(40 + 2)")
    assert pool.agents()
    pool.stop()
    until(lambda: not pool.agents(), "its agents to end")
    assert pool.registered() == set()
    assert list(pool.folder.glob("agents/*.json")) == []


def test_no_secret_can_be_read_by_others(start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path) -> None:
    pool = start_pool()
    open_notebook(pool).run("%%gpu\nprint(40 + 2)")
    secrets = pool.secrets()
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        assert not any(secret in words for secret in secrets), words
    for path in tmp_path.rglob("*"):
        if path.is_file() and not path.is_symlink():
            is_private = not stat.S_IMODE(path.stat().st_mode) & 0o077
            content = path.read_bytes().decode(errors="replace")
            assert is_private or not any(secret in content for secret in secrets), path


@pytest.mark.parametrize("engine", SCALED, indirect=True)
def test_agents_end_when_nobody_needs_them_and_come_back(start_pool: StartPool, open_notebook: OpenNotebook) -> None:
    pool = start_pool("--Scaling.idle=0.5")
    notebook = open_notebook(pool)
    notebook.run("%%gpu\nvalue = 41")
    until(lambda: not pool.nodes(), "the node to go")
    until(lambda: not pool.registered() and not pool.agents(), "all of it to go")
    assert notebook.run("%%gpu\nprint(value + 1)").stream() == "42\n"


@pytest.mark.parametrize("engine", SCALED, indirect=True)
def test_who_waits_has_an_agent_of_their_own_up_to_the_most(
    start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    pool = start_pool("--Scaling.max_nodes=2")
    cells = [waiting_cell(tmp_path, str(number)) for number in range(3)]
    notebooks = [open_notebook(pool) for _ in cells]
    messages = [notebook.start(cell) for notebook, (cell, _, _) in zip(notebooks, cells, strict=True)]
    until(lambda: sum(log.exists() for _, _, log in cells) == 2, "two cells to run")
    (last,) = [number for number, (_, _, log) in enumerate(cells) if not log.exists()]
    notebooks[last].wait_until("the pool has all 2 nodes that it may have")
    assert len(pool.registered()) == 2
    for _, gate, _ in cells:
        gate.touch()
    for notebook, message in zip(notebooks, messages, strict=True):
        output = notebook.collect(message)
        assert output.error is None, output.shown


@pytest.mark.parametrize("engine", SCALED, indirect=True)
def test_a_limit_is_no_reason_to_start_an_agent(
    start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    quotas = tmp_path / "quotas.toml"
    quotas.write_text("[projects.default]\nlimit = 1\n")
    pool = start_pool(f"--Pool.quota_file={quotas}")
    cell, gate, _ = waiting_cell(tmp_path)
    first, second = open_notebook(pool), open_notebook(pool)
    message = first.start_until(cell, shows="began")
    waits = second.start("%%gpu\nprint(40 + 2)")
    second.wait_until("uses 1 of 1")
    gate.touch()
    assert first.collect(message).error is None
    assert second.collect(waits).stream() == "42\n"
    assert pool.log.read_text().count("an agent is started") == 1


@pytest.mark.parametrize("engine", SCALED, indirect=True)
def test_a_cell_goes_on_when_the_pool_is_killed_and_started_again(
    start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    pool = start_pool()
    notebook = open_notebook(pool)
    cell, gate, log = waiting_cell(tmp_path)
    message = notebook.start_until(cell, shows="began")
    before = {process.pid for process in pool.agents()}
    pool.kill()
    pool.start_again()
    until(pool.nodes, "the agent to be back")
    gate.touch()
    output = notebook.collect(message)
    assert output.error is None, output.shown
    assert log.read_text() == "x"
    assert {process.pid for process in pool.agents()} == before
    pool.stop()
    until(lambda: not pool.agents(), "the agent to end with the pool that found it")


@pytest.mark.parametrize("engine", ["command"], indirect=True)
def test_who_waits_is_told_why_no_agent_can_be_started(
    start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    pool = start_pool()
    full = tmp_path / "hosts" / "full"
    full.touch()
    notebook = open_notebook(pool)
    message = notebook.start_until("%%gpu\nprint(40 + 2)", shows="no host is left")
    assert pool.registered() == set()
    full.unlink()
    assert notebook.collect(message).stream() == "42\n"


@pytest.mark.parametrize("engine", ["command"], indirect=True)
def test_a_command_that_hangs_is_a_node_that_is_starting_and_keeps_no_pool_from_its_end(
    start_pool: StartPool, open_notebook: OpenNotebook, tmp_path: Path
) -> None:
    pool = start_pool()
    hangs = tmp_path / "hosts" / "start"
    hangs.write_text(f"#!/bin/sh\ntouch {tmp_path / 'hangs'}\nsleep 600\necho 1\n")
    open_notebook(pool).start_until("%%gpu\nprint(40 + 2)", shows="A node is starting")
    until((tmp_path / "hangs").exists, "the command to hang")
    (command,) = [one for one in psutil.process_iter(["cmdline"]) if str(hangs) in (one.info["cmdline"] or [])]
    started = [command, *command.children()]
    pool.stop()
    assert psutil.wait_procs(started, PATIENCE_S)[1] == []
    assert pool.registered() == set()
    assert list(pool.folder.glob("agents/*.json")) == []
