"""What the pool promises, with several people and real cells: one pool of eight slots, a quota file for each promise.

The promises are those of docs/explanation/promises.md. That somebody is served at all is what is shown: without the
promise they would wait for cells that end only afterwards, or for an hour of back-off.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_worker.broker.ledger import Ledger
from tests.integration.conftest import Notebook, until
from tests.integration.hub_pool import HubPool

SLOTS = 8
#: Runs until it is ended; its second run is done at once.
TWICE = """%%gpu --gpus {gpus}
import os, time
is_again = os.path.exists({mark!r})
open({mark!r}, 'w').close()
print('again' if is_again else 'begun')
while not is_again:
    time.sleep(0.01)
done = True"""
#: Runs until there is a file.
UNTIL = """%%gpu {options}
import os, pathlib, time
(pathlib.Path({began!r}) / {name!r}).touch()
while not os.path.exists({gate!r}):
    time.sleep(0.01)
{name!r}"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubPool]:
    pool = HubPool(tmp_path_factory.mktemp("promises"), SLOTS)
    yield pool
    pool.stop()


@pytest.fixture
def pool(shared: HubPool) -> Iterator[HubPool]:
    """The pool, empty before and after."""
    yield shared
    shared.close_notebooks()


def in_background(notebook: Notebook, number: int, folder: Path, options: str = "") -> tuple[Path, list[str]]:
    """Begin cells in the background; where each marks that it has begun, and their names."""
    began = folder / "began"
    began.mkdir()
    names = [f"{folder.name}{index}" for index in range(number)]
    for name in names:
        cell = UNTIL.format(
            options=f"{options} --background {name}", began=str(began), gate=str(folder / "gate"), name=name
        )
        assert notebook.run(cell).error is None
    return began, names


def results(notebook: Notebook, names: list[str]) -> str:
    """Wait for cells in the background; their values."""
    return notebook.value(f"repr([{', '.join(f'{name}.result()' for name in names)}])").strip('"')


def cells_of(pool: HubPool, *projects: str) -> list[dict[str, Any]]:
    """What the ledger has of the cells of these projects that ended."""
    with Ledger.open(pool.ledger, upgrade=False) as ledger:
        return [row for row in ledger.each_cell() if row["project"] in projects]


def test_nobody_waits_for_the_batch_cells_of_another_user_of_the_only_group(pool: HubPool, tmp_path: Path) -> None:
    folder = tmp_path / "batch"
    folder.mkdir()
    eve, amy = pool.open("eve", "students"), pool.open("amy", "students")
    began, names = in_background(eve, SLOTS, folder, "--qos batch")
    until(lambda: len(list(began.iterdir())) == SLOTS, "the pool to be full")
    assert amy.run("%%gpu\nprint('typed')").stream() == "typed\n"
    amy.run("%gpu stop")
    (folder / "gate").touch()
    assert results(eve, names) == str(names), "who made room has run again"


def test_a_class_that_arrives_at_a_pool_that_was_borrowed_whole_runs_all_at_once(pool: HubPool, tmp_path: Path) -> None:
    pool.obey(f"[projects.class]\nguaranteed = {SLOTS}\n")
    borrowed, taught = tmp_path / "borrowed", tmp_path / "taught"
    borrowed.mkdir()
    taught.mkdir()
    leo = pool.open("leo", "chemistry")
    began, names = in_background(leo, SLOTS, borrowed)
    until(lambda: len(list(began.iterdir())) == SLOTS, "the pool to be full")
    student = pool.open("kim", "class")
    arrived, cells = in_background(student, SLOTS, taught, "--qos interactive")
    until(lambda: len(list(arrived.iterdir())) == SLOTS, "all of the class to run at the same time")
    (taught / "gate").touch()
    assert results(student, cells) == str(cells)
    student.run("%gpu stop")
    (borrowed / "gate").touch()
    assert results(leo, names) == str(names), "nothing is lost"
    rows = until(
        lambda: len(found := cells_of(pool, "class", "chemistry")) == 3 * SLOTS and found, "all ends in the ledger"
    )
    ends = sorted((row["project"], row["outcome"]) for row in rows)
    expected = (("chemistry", "reclaimed"), ("chemistry", "returned"), ("class", "returned"))
    assert ends == [end for end in expected for _ in range(SLOTS)]
    assert all(row["borrowed_ms"] == 0 for row in rows if row["project"] == "class")
    assert all(row["refunded_ms"] == row["held_ms"] for row in rows if row["outcome"] == "reclaimed")


def test_who_is_in_quota_is_served_although_their_project_is_under_back_off(pool: HubPool, tmp_path: Path) -> None:
    pool.obey(
        "[projects.lab]\nguaranteed = 4\n[projects.school]\nguaranteed = 4\n"
        '[scheduler]\nback_off = "1 h"\nlongest_back_off = "1 h"\n'
    )
    ann, bob = pool.open("ann", "lab"), pool.open("bob", "lab")
    sue, guest = pool.open("sue", "school"), pool.open("tom", "guests")
    hers = ann.start_until("%%gpu --gpus 4\nprint('runs')\ninput()", shows="runs")
    his = bob.start_until(TWICE.format(gpus=4, mark=str(tmp_path / "bob")), shows="begun")
    assert sue.run("%%gpu --gpus 4\nprint('mine')").stream() == "mine\n"
    assert pool.projects()["lab"].borrows_in_ms > 0
    assert "again" in bob.collect(his).stream(), "what nobody else wants it gets at once"
    for notebook in (bob, sue):
        notebook.run("%gpu stop")
    ann.answer("go")
    assert ann.collect(hers).error is None
    ann.run("%gpu stop")
    theirs = guest.start_until(TWICE.format(gpus=SLOTS, mark=str(tmp_path / "tom")), shows="begun")
    assert pool.projects()["lab"].borrows_in_ms > 0
    assert ann.run("%%gpu --gpus 4\nprint('in quota')").stream() == "in quota\n"
    assert pool.projects()["lab"].borrows_in_ms > 0, "it was served in spite of that"
    ann.run("%gpu stop")
    assert "again" in guest.collect(theirs).stream()


def test_hot_sessions_that_never_borrow_begin_no_cell_beyond_the_guarantee(pool: HubPool) -> None:
    pool.obey("[projects.maths]\nguaranteed = 4\n[projects.school]\nguaranteed = 4\n")
    ann, bob = pool.open("flo", "maths"), pool.open("gus", "maths")
    sue = pool.open("sue", "school")
    reserved = "%%gpu --qos reserved --gpus 4\n"
    assert ann.run(f"{reserved}kept = 1").error is None
    until(lambda: pool.count("hot") == 4, "her session to be hot")
    his = bob.start_until(f"{reserved}print('runs')\ninput()", shows="runs")
    school = sue.start_until("%%gpu --gpus 4\nprint('runs')\ninput()", shows="runs")
    until(lambda: pool.count("busy") == SLOTS, "the pool to know that both run")
    assert pool.projects()["maths"].used_milli == 4000

    def let_go() -> None:
        assert (pool.count("busy"), pool.projects()["maths"].used_milli) == (SLOTS, 4000)
        bob.answer("go")

    output = ann.run_until(f"{reserved}print(kept)", shows="QoS 'reserved' never borrows", then=let_go)
    assert output.stream() == "1\n"
    assert "the guarantee of project 'maths' is in use" in output.shown
    assert bob.collect(his).error is None
    sue.answer("go")
    assert sue.collect(school).error is None
    rows = until(lambda: len(found := cells_of(pool, "maths")) == 3 and found, "all ends in the ledger")
    assert [row["borrowed_ms"] for row in rows] == [0, 0, 0]


def test_a_budget_at_its_edge_starts_only_what_it_can_finish(pool: HubPool) -> None:
    """0.05 GPU-hours are three minutes: of two cells that ask for two each, one waits for what the other leaves."""
    pool.obey('[projects.physics]\nbudget = "0.05 GPU-hours per month"\n')
    ann, bob, jim = pool.open("ida", "physics"), pool.open("ben", "physics"), pool.open("jim", "physics")
    refused = ann.run("%%gpu --time 4min\n1")
    assert refused.error is not None
    assert "each month" in refused.error["evalue"]
    hers = ann.start_until("%%gpu --time 2min\nprint('runs')\ninput()", shows="runs")

    def others_go_on() -> None:
        short = jim.run("%%gpu --time 20s\nprint('short')")
        assert short.stream() == "short\n", "what fits the rest starts at once, past the one that does not"
        ann.answer("go")

    output = bob.run_until("%%gpu --time 2min\nprint('later')", shows="of this month", then=others_go_on)
    assert output.stream() == "later\n", "what she did not use is there again, and her hot session made way"
    assert ann.collect(hers).error is None
    assert pool.projects()["physics"].budget_left_ms is not None
    rows = until(lambda: len(found := cells_of(pool, "physics")) == 3 and found, "all ends in the ledger")
    assert sum(row["held_ms"] for row in rows) < 180_000


def test_groups_that_nobody_wrote_down_are_bounded_together_also_by_another_broker(pool: HubPool) -> None:
    pool.obey(
        '[projects.crowd]\nlimit = 2\n[group_rules.crowds]\ngroups = ["crowd-*"]\nparent = "crowd"\nuser_limit = 1\n'
    )
    people = {"uma": "crowd-1", "ira": "crowd-2", "zoe": "crowd-3"}
    uma, ira, zoe = (pool.open(user, group) for user, group in people.items())
    refused = uma.run("%%gpu --gpus 2\n1").error
    assert refused is not None
    assert "one user of project 'crowd-1' may use 1 CPU slot at most" in refused["evalue"]
    assert "'crowd-1' is a group that the rule 'crowds' is for: each of them has user_limit 1 GPU" in refused["evalue"]
    busy = [one.start_until("%%gpu\nprint('started')\ninput()", shows="started") for one in (uma, ira)]
    old = pool.process.part("broker").pid
    os.kill(old, signal.SIGKILL)
    until(lambda: pool.process.part("broker").pid != old and pool.count("busy") == 2, "another broker")
    rows = pool.projects()
    assert (rows["crowd"].used_milli, rows["crowd-1"].rule, rows["crowd-2"].parent) == (2000, "crowds", "crowd")

    mine = zoe.start("%%gpu\nprint('mine')")
    until(lambda: pool.process.picture().waiting, "zoe to wait")
    [reason] = [one.reason for one in pool.process.picture().waiting]
    assert reason == "project 'crowd' uses 2 of 2 CPU slots that it may use"
    uma.answer("go")
    uma.collect(busy[0])
    assert zoe.collect(mine).stream().endswith("mine\n")
    ira.answer("go")
    ira.collect(busy[1])
