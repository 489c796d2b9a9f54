"""The pool while the server of its ledger is away: cells run on, and each is accounted once, when it is back."""

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_worker.broker.ledger import Ledger
from tests.integration.conftest import Notebook, PoolProcess, until
from tests.unit.gpu_worker.broker.postgres import PASSWORD, Server, programs_or_skip


def status(pool: PoolProcess) -> str:
    """What an admin reads at the command line, as one line."""
    command = [sys.executable, "-m", "gpu_worker.cli", "status", "--folder", str(pool.folder)]
    return " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_cells_that_end_while_the_ledger_is_away_are_accounted_once_when_it_is_back(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with Server(programs_or_skip(), is_durable=True) as server:
        url = f"postgresql://bulletin@/postgres?host={server.folder}"
        pool = start_pool("--slots", "1", "--database", url)
        log, broker = Path(pool.log.name), pool.part("broker").pid
        notebook = open_notebook(pool)
        assert notebook.run("%%gpu\nprint('one')").stream() == "one\n"
        until(lambda: pool.picture().recent, "the first cell in the ledger")
        server.kill()
        assert notebook.run("%%gpu\nprint('two')").stream() == "two\n"
        until(lambda: "cells wait for the ledger" in log.read_text(), "the broker to meet a server that is not there")
        picture = pool.picture()
        assert picture.slots
        assert picture.recent == ()
        assert "does not answer" in status(pool)
        server.start()
        until(lambda: len(pool.picture().recent) == 2, "the second cell in the ledger")
        assert pool.part("broker").pid == broker, "nothing was started again"
        assert PASSWORD not in log.read_text()
        with Ledger.open(url) as ledger:
            (usage,) = ledger.usage("user")
            assert (usage.cells, list(ledger.audit())) == (2, [])


def test_cells_that_end_while_the_ledgers_disk_is_full_are_accounted_once_when_there_is_room(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    log, broker = Path(pool.log.name), pool.part("broker").pid
    notebook = open_notebook(pool)
    assert notebook.run("%%gpu\nprint('one')").stream() == "one\n"
    until(lambda: pool.picture().recent, "the first cell in the ledger")
    used_bytes = (pool.folder / "ledger.sqlite-wal").stat().st_size
    before = resource.prlimit(broker, resource.RLIMIT_FSIZE, (used_bytes, resource.RLIM_INFINITY))
    assert notebook.run("%%gpu\nprint('two')").stream() == "two\n"
    until(lambda: "cells wait for the ledger" in log.read_text(), "the broker to meet a disk without room")
    assert "cannot be used now" in status(pool)
    resource.prlimit(broker, resource.RLIMIT_FSIZE, before)
    until(lambda: len(pool.picture().recent) == 2, "the second cell in the ledger")
    assert "cannot be used now" not in status(pool)
    assert pool.part("broker").pid == broker, "nothing was started again"
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        (usage,) = ledger.usage("user")
        assert (usage.cells, list(ledger.audit())) == (2, [])
