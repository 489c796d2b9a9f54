"""A living pool writes its journal, and the journal played again decides the same."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.integration.conftest import Notebook, PoolProcess, until


def test_a_pools_journal_is_played_again_over_a_restart_of_its_broker(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    pool = start_pool("--slots", "1", f"--Pool.journal_file={journal}")
    notebook = open_notebook(pool)
    assert notebook.run("%%gpu\nprint('mine')").stream() == "mine\n"
    pool.part("broker").kill()
    until(lambda: journal.read_bytes().count(b'"Began"') == 2, "the broker to begin anew")
    until(lambda: b"AgentJoined" in journal.read_bytes().rpartition(b'"Began"')[2], "the agent to come back")
    command = [sys.executable, "-m", "gpu_worker.cli", "simulate", "--journal", str(journal), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r" grant .*: cpu-\d+ of .*, after \d+ ms\n", done.stdout), done.stdout
    assert " 2 lives of the scheduler\n" in done.stdout
    assert done.stdout.endswith("every promise and every index held after each event\n")
