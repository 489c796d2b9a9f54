"""A node that a user has brought to a hub's pool: their cells run there, nobody else's do, and it costs nothing."""

import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_worker.broker.ledger import Ledger
from tests.integration.conftest import until
from tests.integration.hub_pool import HubPool
from tests.integration.nodes import AGENT, Part, add, run
from tests.other_users import free_uid, in_mount_namespace, with_readable_python


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[HubPool]:
    """The pool of a hub, with a slot for all."""
    (tmp_path / "hub").mkdir()
    pool = HubPool(tmp_path / "hub", 1)
    yield pool
    pool.stop()


def on_box(pool: HubPool) -> tuple[str, str | None]:
    """What goes on at ann's box, as an admin sees it."""
    [slot] = [slot for slot in pool.process.picture().slots if slot.owner == "ann"]
    return slot.state, slot.user


def test_its_owners_cells_run_there_and_others_wait_for_the_pool_though_it_does_nothing(
    pool: HubPool, start: Callable[..., Part]
) -> None:
    pool.obey("[projects.maths]\nguaranteed = 1\nuser_limit = 1\n")
    folder = add(pool.process, "box", "../box", "--user=ann")
    assert "box (ann's own)" in run("node", "list", "--folder", str(pool.process.folder))
    agent = start("agent", folder.name, *AGENT)
    until(lambda: len(pool.process.picture().slots) == 2, "the box of ann's")
    ann, bob, other = pool.open("ann", "maths"), pool.open("bob", "maths"), pool.open("bob2", "maths")
    assert ann.run("%%gpu\nprint('ran')").stream() == "ran\n"
    until(lambda: on_box(pool) == ("hot", "ann"), "her session to be kept there")
    assert "box (ann's own)" in ann.run("%gpu").shown
    busy = bob.start_until("%%gpu\nprint('started')\ninput()", shows="started")

    def look() -> None:
        assert on_box(pool) == ("hot", "ann"), "a hot session leaves for who waits, but not here"
        assert pool.projects()["maths"].used_milli == 1000, "of bob's cell alone"
        assert ann.run("%%gpu\nprint('again')").stream() == "again\n"
        bob.answer("go")

    assert other.run_until("%%gpu\nprint('mine')", shows="CPU slot is busy", then=look).stream() == "mine\n"
    bob.collect(busy)
    assert "box" not in other.run("%gpu").shown
    agent.stop()
    until(lambda: len(pool.process.picture().slots) == 1, "the box to be gone")
    assert ann.run("%%gpu\nprint('elsewhere')").stream() == "elsewhere\n"
    assert run("status", "--folder", str(pool.process.folder)), "nobody misses it: exit status 0"

    def rows() -> list[tuple[str, str, int]]:
        with Ledger.open(pool.ledger, upgrade=False) as ledger:
            return sorted((row.user, row.node, row.charged) for row in ledger.cells())

    shared = {slot.node for slot in pool.process.picture().slots}.pop()
    paid = [("ann", shared, 1000), ("bob", shared, 1000), ("bob2", shared, 1000)]
    until(lambda: len(set(rows())) >= 4, "the ledger to have all cells")
    assert sorted(set(rows())) == sorted([("ann", "box", 0), *paid])


def test_a_cell_there_goes_on_through_a_restart_of_the_broker_which_knows_it_from_its_ledger(
    pool: HubPool, start: Callable[..., Part]
) -> None:
    start("agent", add(pool.process, "box", "../box", "--user=ann").name, *AGENT)
    until(lambda: len(pool.process.picture().slots) == 2, "the box of ann's")
    ann = pool.open("ann", "maths")
    busy = ann.start_until("%%gpu\nprint('started')\ninput()\nprint('over')", shows="started")
    until(lambda: on_box(pool) == ("busy", "ann"), "the broker to know that it runs")

    def is_written() -> bool:
        with Ledger.open(pool.ledger, upgrade=False) as ledger:
            return any(one.running is not None for one in ledger.open_leases())

    until(is_written, "the ledger to have it")
    old = pool.process.part("broker").pid
    os.kill(old, signal.SIGKILL)
    until(lambda: pool.process.part("broker").pid != old, "another broker")
    until(lambda: len(pool.process.picture().slots) == 2, "the box to come again")
    assert on_box(pool) == ("busy", "ann")
    ann.answer("go")
    assert "over" in ann.collect(busy).stream()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_cells_there_run_as_whoever_starts_its_agent_who_sets_nothing_for_it() -> None:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as started:  # pytest's is for its user alone
        folder, uid = Path(name), free_uid(61_000)
        folder.chmod(0o711)
        (folder / "hub").mkdir()
        pool = HubPool(folder / "hub", 1)
        started.callback(pool.stop)
        box = add(pool.process, "box", "../box", "--user=ann").resolve()
        for path in (box, box / "node.json"):
            os.chown(path, uid, uid)
        become = ("setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups")
        under = (*in_mount_namespace(with_readable_python(folder)), *become)
        agent = Part("agent", box, "--device", "cpu", "--slots", "1", "--Pool.preload=[]", under=under)
        started.callback(agent.stop)
        until(lambda: len(pool.process.picture().slots) == 2, "the box of ann's")
        assert pool.open("ann", "maths").run("%%gpu\nimport os\nprint(os.getuid())").stream() == f"{uid}\n"
        assert len(pool.process.picture().shared_accounts) == 1, "nobody else's cells run as ann"
