"""What the pool promises, with several people and real cells: one pool of eight slots, and a quota file for each promise.

The promises are those of docs/explanation/promises.md. That somebody is served at all is what is shown: without the promise
they would wait for cells that end only afterwards, or for an hour of back-off.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gpu_worker.broker.ledger import Ledger
from tests.integration.conftest import PATIENCE_S, Notebook, PoolProcess, until
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
    return notebook.value(f"[{', '.join(f'{name}.result()' for name in names)}]")


def used_ms(pool: PoolProcess, project: str) -> int:
    """What `bulletin usage` has of a project that is charged to it: slots times milliseconds."""
    command = [
        sys.executable,
        "-m",
        "gpu_worker.cli",
        "usage",
        "--folder",
        str(pool.folder),
        "--by",
        "project",
        "--json",
    ]
    said = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S).stdout
    rows = [row for row in msgspec.json.decode(said) if row["of"] == project]
    return sum(int(row["slot_ms"]) for row in rows)


def test_nobody_waits_for_the_batch_cells_of_another_user_of_the_only_group(pool: HubPool, tmp_path: Path) -> None:
    folder = tmp_path / "batch"
    folder.mkdir()
    eve, ada = pool.open("eve", "students"), pool.open("ada", "students")
    began, names = in_background(eve, SLOTS, folder, "--qos batch")
    until(lambda: len(list(began.iterdir())) == SLOTS, "the pool to be full")
    assert ada.run("%%gpu\nprint('typed')").stream() == "typed\n"
    ada.run("%gpu stop")
    (folder / "gate").touch()
    assert results(eve, names) == str(names), "who made room has run again"


def test_a_class_that_arrives_at_a_pool_that_was_borrowed_whole_runs_all_at_once(pool: HubPool, tmp_path: Path) -> None:
    pool.obey(f"[projects.class]\nguaranteed = {SLOTS}\n")
    borrowed, taught = tmp_path / "borrowed", tmp_path / "taught"
    borrowed.mkdir()
    taught.mkdir()
    eve = pool.open("eve", "lab")
    began, names = in_background(eve, SLOTS, borrowed)
    until(lambda: len(list(began.iterdir())) == SLOTS, "the pool to be full")
    student = pool.open("ada", "class")
    arrived, cells = in_background(student, SLOTS, taught)
    until(lambda: len(list(arrived.iterdir())) == SLOTS, "all of the class to run at the same time")
    (taught / "gate").touch()
    assert results(student, cells) == str(cells)
    student.run("%gpu stop")
    (borrowed / "gate").touch()
    assert results(eve, names) == str(names), "nothing is lost"
    with Ledger.open(pool.ledger, upgrade=False) as ledger:
        rows = [row for row in ledger.each_cell() if row["project"] in ("class", "lab")]
    ends = sorted((row["project"], row["outcome"]) for row in rows)
    assert ends == [("class", "returned")] * SLOTS + [("lab", "reclaimed")] * SLOTS + [("lab", "returned")] * SLOTS
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
    pool.obey("[projects.lab]\nguaranteed = 4\n[projects.school]\nguaranteed = 4\n")
    ann, bob = pool.open("ann", "lab"), pool.open("bob", "lab")
    sue = pool.open("sue", "school")
    reserved = "%%gpu --qos reserved --gpus 4\n"
    assert ann.run(f"{reserved}kept = 1").error is None
    assert pool.count("hot") == 4
    his = bob.start_until(f"{reserved}print('runs')\ninput()", shows="runs")
    school = sue.start_until("%%gpu --gpus 4\nprint('runs')\ninput()", shows="runs")
    assert (pool.count("busy"), pool.projects()["lab"].used_milli) == (SLOTS, 4000)

    def let_go() -> None:
        assert (pool.count("busy"), pool.projects()["lab"].used_milli) == (SLOTS, 4000)
        bob.answer("go")

    output = ann.run_until(f"{reserved}print(kept)", shows="QoS 'reserved' never borrows", then=let_go)
    assert output.stream() == "1\n"
    assert "the guarantee of project 'lab' is in use" in output.shown
    assert bob.collect(his).error is None
    sue.answer("go")
    assert sue.collect(school).error is None
    with Ledger.open(pool.ledger, upgrade=False) as ledger:
        rows = [row for row in ledger.each_cell() if row["qos"] == "reserved"]
    assert [row["borrowed_ms"] for row in rows] == [0, 0, 0]


def test_a_budget_is_not_overspent_at_its_edge(pool: HubPool) -> None:
    pool.obey('[projects.club]\nbudget = "0.05 GPU-hours per month"\n')
    ann, bob = pool.open("ann", "club"), pool.open("bob", "club")
    refused = ann.run("%%gpu --time 4min\n1").shown
    assert "1 CPU slot for 4 min is more than the 3 CPU slot-minutes that project 'club' has each month." in refused
    assert "Ask for 3 min or less with --time." in refused.replace("180 s", "3 min")
    hers = ann.start_until("%%gpu --time 2min\nprint('runs')\ninput()", shows="runs")
    waits = bob.run_until("%%gpu --time 2min\n1", shows="in line", then=bob.interrupt).shown
    assert "the 3 CPU slot-minutes of this month in project 'club' are enough for " in waits
    assert "beside what runs, and yours may take 2 min: ask for less with --time" in waits
    assert bob.run("%%gpu --time 45s\nprint('fits')").stream() == "fits\n"
    ann.answer("go")
    assert ann.collect(hers).error is None
    for notebook in (ann, bob):
        notebook.run("%gpu stop")
    until(lambda: pool.count("free") == SLOTS, "the ends of all leases")
    left_ms = pool.projects()["club"].budget_left_ms
    assert left_ms is not None
    used = until(lambda: used_ms(pool.process, "club"), "what the club used in the ledger")
    assert 0 < used <= 180_000
    assert abs(180_000 - left_ms - used) <= 1_000, "the scheduler and the ledger have counted the same"
