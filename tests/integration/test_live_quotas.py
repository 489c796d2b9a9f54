"""Quotas in a living pool, and what the ledger says of it: every slot of every lease, to the millisecond."""

import itertools
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import msgspec
from sqlalchemy import create_engine, text

from bulletin.wire import console
from gpu_worker.broker.ledger import Ledger
from gpu_worker.console import client
from tests.integration.conftest import Notebook, PoolProcess, until

QUOTAS = """
[projects.lab]
guaranteed = 2

[projects.school]
guaranteed = 1

[qos.interactive]
min_runtime = "0 s"
grace = "1 s"
"""
ASKING = "%%gpu --project {project} --gpus {gpus}\nprint('runs')\nanswer = input()"
#: Runs until it is ended; its second run is done at once.
TWICE = """%%gpu --project guests --gpus 2
import os, time
print('run', len(runs.append(1) or runs))
is_again = os.path.exists('ran_before')
open('ran_before', 'w').close()
while not is_again:
    time.sleep(0.01)
done = True"""


class Books:
    """The ledger of a pool that runs."""

    def __init__(self, pool: PoolProcess) -> None:
        self.url = f"sqlite:///{pool.folder / 'ledger.sqlite'}"

    def cells(self) -> list[SimpleNamespace]:
        """The rows of those that ended, the first one first."""
        with Ledger.open(self.url, upgrade=False) as ledger:
            return [SimpleNamespace(**row) for row in ledger.each_cell()]

    def has_open(self, number: int) -> bool:
        """Whether so many leases have not ended."""
        with Ledger.open(self.url, upgrade=False) as ledger:
            return len(ledger.open_leases()) == number

    def balances(self) -> dict[str, int]:
        """What counts of what projects earned and spent, in GPU-milliseconds."""
        with Ledger.open(self.url, upgrade=False) as ledger:
            return {str(project): gpu_ms for project, gpu_ms in ledger.balances().items()}

    def held_ms(self) -> int:
        """How long all leases were held, from their grants."""
        engine = create_engine(self.url)
        with engine.connect() as connection:
            held_ms: int = connection.scalar(text("SELECT SUM(ended_at_ms - granted_at_ms) FROM leases"))
        engine.dispose()
        return held_ms

    def add_up(self) -> None:
        """Leases are cells and hot time, and no slot has two of them at a time."""
        with Ledger.open(self.url, upgrade=False) as ledger:
            assert list(ledger.audit()) == []
            used = ledger.usage("project")
        engine = create_engine(self.url)
        with engine.connect() as connection:
            leases = connection.execute(text("SELECT node, slots, granted_at_ms, ended_at_ms FROM leases")).all()
        engine.dispose()
        tenancies = sorted(
            (node, slot, granted_ms, ended_ms)
            for node, slots, granted_ms, ended_ms in leases
            for slot in msgspec.json.decode(slots)
        )
        for one, other in itertools.pairwise(tenancies):
            assert one[:2] != other[:2] or one[3] <= other[2], "two tenants"
        length_ms = sum(ended_ms - granted_ms for _, _, granted_ms, ended_ms in tenancies)
        assert sum(one.slot_ms + one.hot_ms for one in used) == length_ms


def busy(pool: PoolProcess) -> int:
    return sum(slot.state == "busy" for slot in pool.picture().slots)


def earned(pool: PoolProcess) -> dict[str, int]:
    """The same, as the broker that runs has it."""
    report = client.ask(client.find_pool(pool.folder, is_named=True), console.AskProjects())
    assert isinstance(report, console.ProjectReport)
    return {row.project: row.credits_ms for row in report.projects}


def spends_below(pool: PoolProcess, balance_ms: int) -> bool:
    return busy(pool) == 1 and earned(pool)["guests"] < balance_ms


def is_another(pool: PoolProcess, broker: int) -> bool:
    return pool.part("broker").pid != broker


def test_what_is_borrowed_given_back_and_run_again_is_in_the_ledger_to_the_millisecond(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text(QUOTAS)
    pool = start_pool("--slots", "4", f"--Pool.quota_file={file}")
    ann, bob, eve = open_notebook(pool), open_notebook(pool), open_notebook(pool)
    hers = ann.start_until(ASKING.format(project="lab", gpus=1), shows="runs")
    until(lambda: busy(pool) == 1, "the first cell to be known")
    his = bob.start_until(ASKING.format(project="lab", gpus=2), shows="runs")
    until(lambda: busy(pool) == 3, "the second cell, which goes beyond the guarantee, to be known")
    ann.answer("done")
    assert ann.collect(hers).error is None  # and what is guaranteed is bob's
    eve.run("runs, done = [], False")
    again = eve.start_until(TWICE, shows="run 1")
    assert ann.run("%%gpu --project school\nprint('mine')").stream() == "mine\n"
    output = eve.collect(again)
    assert output.error is None
    assert eve.value("done, runs") == "(True, [1])"
    bob.answer("done")
    assert bob.collect(his).error is None
    assert "This notebook holds 2 CPU slots of" in (held := bob.run("%gpu").shown)
    assert ", in quota." in held, "it borrowed when it began"
    for notebook in (ann, bob, eve):
        notebook.run("%gpu stop")
    books = Books(pool)
    until(lambda: books.has_open(0), "the ends of all leases in the ledger")
    books.add_up()
    first, lost, owner, second, beyond = books.cells()
    assert [(one.project, one.outcome) for one in (first, lost, owner, second, beyond)] == [
        ("lab", "returned"),
        ("guests", "reclaimed"),
        ("school", "returned"),
        ("guests", "returned"),
        ("lab", "returned"),
    ]
    assert (lost.cell, lost.attempt, second.attempt) == (second.cell, 1, 2)
    assert lost.lease != second.lease
    assert lost.refunded_ms == lost.held_ms >= 1_000, "it had the grace"
    assert [one.refunded_ms for one in (first, owner, second, beyond)] == [0, 0, 0, 0]
    assert first.borrowed_ms == owner.borrowed_ms == 0
    assert (lost.in_quota_ms, second.in_quota_ms) == (0, 0)
    assert beyond.borrowed_ms > 0, "two beside one go beyond two"
    assert beyond.in_quota_ms >= lost.held_ms, "they are in quota when that one is over"
    assert beyond.borrowed_ms + beyond.in_quota_ms == beyond.held_ms


def test_a_broker_that_is_killed_leaves_no_gap_and_the_next_one_knows_what_was_spent(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text('[projects.lab]\nguaranteed = 1\n[projects.club]\nbudget = "0.009 GPU-hours per month"\n')
    pool = start_pool("--slots", "3", f"--Pool.quota_file={file}")
    books = Books(pool)
    ann, eve = open_notebook(pool), open_notebook(pool)
    hers = ann.start_until(ASKING.format(project="lab", gpus=1), shows="runs")
    until(lambda: busy(pool) == 1, "the cell to be known")
    waits = "import time\nover = time.monotonic() + 3.7\nwhile time.monotonic() < over:\n    pass"
    spends = f"%%gpu --project club --time 30s\n{waits}"
    assert eve.run(spends).error is None
    until(lambda: books.cells() and books.has_open(1), "what the club used in the ledger")
    old = pool.part("broker").pid
    os.kill(old, signal.SIGKILL)
    ann.answer("done")
    assert ann.collect(hers).error is None
    until(lambda: pool.part("broker").pid != old, "another broker")
    more = "%%gpu --project club --time 30s\nprint('more')"
    eve.run_until(more, shows="of the 32.4 CPU slot-seconds of this month", then=eve.interrupt)
    for notebook in (ann, eve):
        notebook.run("%gpu stop")
    until(lambda: books.has_open(0), "the ends of all leases in the ledger")
    books.add_up()
    cells = {one.project: one for one in books.cells()}
    assert sorted(one.project for one in books.cells()) == ["club", "lab"]
    assert (cells["lab"].borrowed_ms, cells["lab"].refunded_ms) == (0, 0)
    assert cells["lab"].in_quota_ms >= cells["club"].ended_at_ms - cells["club"].started_at_ms, "it ran all that time"
    assert cells["club"].borrowed_ms == cells["club"].held_ms >= 3_600


def test_credits_go_on_with_the_next_broker_and_are_counted_once(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text("[projects.lab]\nguaranteed = 2\n")
    pool = start_pool("--slots", "2", f"--Pool.quota_file={file}")
    books, eve = Books(pool), open_notebook(pool)
    hers = eve.start_until(ASKING.format(project="guests", gpus=1), shows="runs")
    known = earned(pool)
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        before, old = known.get("guests", 0), pool.part("broker").pid
        until(partial(spends_below, pool, before), "the guests to spend more")
        os.kill(old, signal_number)
        until(partial(is_another, pool, old), "another broker")
        kept = books.balances()
        known = earned(pool)
        assert kept["guests"] == -kept["lab"] < 0
        assert known["guests"] <= kept["guests"]
        assert known["lab"] >= kept["lab"]
    until(partial(spends_below, pool, known["guests"]), "the guests to spend more with the last broker")
    eve.answer("done")
    assert eve.collect(hers).error is None
    eve.run("%gpu stop")
    until(lambda: books.has_open(0), "the end of the lease in the ledger")
    known = earned(pool)
    pool.stop()
    assert books.balances() == known
    assert kept["lab"] < known["lab"] == -known["guests"] <= books.held_ms()
