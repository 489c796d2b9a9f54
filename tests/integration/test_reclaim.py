"""What is borrowed goes back to its owner, and the borrower's cell runs again: a real pool, real notebooks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import Notebook, PoolProcess, until

QUOTAS = """
[projects.lab]
guaranteed = 1

[qos.interactive]
min_runtime = "0 s"
grace = "{grace}"
preemption = "{preemption}"
"""
BORROWED = """%%gpu --project guests
import os, time
print('run', len(marks.append(1) or marks))
path = 'ran_before'
is_again = os.path.exists(path)
open(path, 'w').close()
while not is_again:
    time.sleep(0.01)
done = True"""


def outcomes(pool: PoolProcess) -> list[str]:
    return sorted(cell.outcome for cell in pool.picture().recent)


@pytest.mark.parametrize("preemption", ["requeue", "pause"])  # no agent can pause a cell yet, and each says so
def test_a_borrowed_cell_is_ended_for_the_owner_and_runs_again_from_its_beginning(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path, preemption: str
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text(QUOTAS.format(grace="1 s", preemption=preemption))
    pool = start_pool("--slots", "1", f"--Pool.quota_file={file}")
    borrower, owner = open_notebook(pool), open_notebook(pool)
    borrower.run("marks, done = [], False")
    busy = borrower.start_until(BORROWED, shows="run 1")
    assert owner.run("%%gpu --project lab\nprint('mine')").stream() == "mine\n"
    output = borrower.collect(busy)
    assert output.error is None
    assert output.stream() == "run 1\n"  # for the second time: the variables were those from before the cell
    assert "1.0 s to end" in output.shown
    assert "run again from its beginning" in output.shown
    assert borrower.value("done, marks") == "(True, [1])"
    until(lambda: outcomes(pool) == ["reclaimed", "returned", "returned"], "the three runs in the ledger")


def test_a_borrowed_cell_that_ends_within_the_grace_ends_as_usual(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text(QUOTAS.format(grace="1 h", preemption="requeue"))
    pool = start_pool("--slots", "1", f"--Pool.quota_file={file}")
    borrower, owner = open_notebook(pool), open_notebook(pool)
    busy = borrower.start_until("%%gpu --project guests\nprint('run')\ninput()\nx = 1", shows="run")
    mine = owner.start("%%gpu --project lab\nprint('mine')")
    until(lambda: any(slot.state == "leaving" for slot in pool.picture().slots), "the slot to be wanted back")
    borrower.answer("go")
    assert borrower.collect(busy).error is None
    assert borrower.value("x") == "1"
    assert owner.collect(mine).stream() == "mine\n"
    until(lambda: outcomes(pool) == ["returned", "returned"], "the two cells in the ledger")


def test_who_has_filled_the_pool_gives_half_of_it_to_another_project_that_waits(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text('[qos.interactive]\nmin_runtime = "0 s"\ngrace = "1 s"\nshare_after = "1 s"\n')
    pool = start_pool("--slots", "2", f"--Pool.quota_file={file}")
    first, second, other = open_notebook(pool), open_notebook(pool), open_notebook(pool)
    kept = first.start_until("%%gpu --project early\nprint('run')\ninput()", shows="run")
    second.start_until("%%gpu --project early\nimport time\nprint('run')\nwhile True: time.sleep(0.01)", shows="run")
    assert other.run("%%gpu --project late\nprint('mine')").stream() == "mine\n"
    second.wait_until("Somebody who has less than their share needs the place of your cell.")
    first.answer("go")
    assert first.collect(kept).error is None
    until(lambda: outcomes(pool) == ["reclaimed", "returned", "returned"], "the three runs in the ledger")
