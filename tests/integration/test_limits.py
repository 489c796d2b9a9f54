"""What uses more of its node than it may ends alone, with one sentence, and its notebook is as before."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from bulletin.ids import CellId, LeaseId
from bulletin.wire import channel, frames, messages as wire
from gpu_worker.agent.cgroups import LeaseCgroup, find_base
from tests.conformance.agent_side import LEAVES
from tests.integration.conftest import Notebook, PoolProcess, until

#: Takes memory, or whatever, and stays.
TAKES = "print('begins', flush=True)\n{takes}\nimport time\nwhile True:\n    time.sleep(1)"
TOO_MUCH_MEMORY = {
    "at once": "large = b'x' * 600_000_000",
    "in a program": "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', "
    "\"large = b'x' * 600_000_000\\nimport time\\ntime.sleep(1000)\"])",
    "in many processes": "import os\nfor _ in range(6):\n    if os.fork() == 0:\n        large = b'x' * 100_000_000\n"
    "        break",
    "in what processes share": "import mmap\nlarge = mmap.mmap(-1, 600_000_000)\nlarge.write(b'x' * 600_000_000)\n",
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolProcess]:
    options = ("--slots", "2", "--Pool.preload=numpy", "--Pool.memory_per_slot=0.3", "--Pool.processes=150")
    process = PoolProcess(tmp_path_factory.mktemp("pool") / "p", *options)
    yield process
    process.stop()


@pytest.mark.parametrize("how", TOO_MUCH_MEMORY)
def test_a_cell_over_its_memory_ends_alone_with_one_sentence(
    pool: PoolProcess, open_notebook: Callable[..., Notebook], how: str
) -> None:
    greedy, neighbour = open_notebook(pool), open_notebook(pool)
    neighbour.run("%%gpu\nimport os\nfirst = os.getpid()")
    greedy.run("kept = [1, 2]")
    lost = greedy.run("%%gpu\nkept.append(3)\n" + TAKES.format(takes=TOO_MUCH_MEMORY[how]))
    assert lost.error is not None
    assert lost.error["ename"] == "CellLost"
    said = lost.error["evalue"]
    assert said.startswith("Your session used ")
    assert "of its node's memory and may use 300 MB, so its process was ended" in said
    assert "%%gpu --memory" in said
    assert "ended" not in lost.stream("stderr")
    assert greedy.value("kept") == "[1, 2]"
    assert neighbour.run("%%gpu\nsecond = os.getpid()").error is None
    assert neighbour.value("first == second") == "True"
    until(lambda: "memory-limit" in [cell.outcome for cell in pool.picture().recent], "the cell in the ledger")
    (panel,) = greedy.run("%gpu").of("display_data")
    assert panel["data"]["text/plain"].endswith(" · used too much memory"), "as the hub's page says it"
    assert greedy.run("%%gpu\nprint(kept)").stream() == "[1, 2]\n"


def test_who_asks_for_more_memory_may_use_it_and_not_more_than_that(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(pool)
    uses = "%%gpu --memory 900MB\nlarge = b'x' * {size}\nimport time\ntime.sleep(2.5)\nprint(len(large))\ndel large"
    assert notebook.run(uses.format(size=500_000_000)).stream() == "500000000\n"
    lost = notebook.run(uses.format(size=1_200_000_000))
    assert lost.error is not None
    assert "may use 900 MB" in lost.error["evalue"]


def test_what_processes_share_with_the_zygote_is_nobodys_use(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    """Each of these processes has the libraries that were imported before it was forked, and none of its own."""
    notebook = open_notebook(pool)
    forks = "for _ in range(20):\n    if os.fork() == 0:\n        time.sleep(1000)"
    assert notebook.run(f"%%gpu\nimport os, time\n{forks}\ntime.sleep(2.5)\nprint(1)").stream() == "1\n"


def test_too_many_processes_end_with_their_session_and_nobody_elses(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    bomber, neighbour = open_notebook(pool), open_notebook(pool)
    neighbour.run("%%gpu\nimport os\nfirst = os.getpid()")
    forks = "import os\nfor _ in range(200):\n    if os.fork() == 0:\n        break"
    lost = bomber.run("%%gpu --memory 4GB\n" + TAKES.format(takes=forks))
    assert lost.error is not None
    assert "processes and threads and may have 150, so all of it was ended" in lost.error["evalue"]
    assert neighbour.run("%%gpu\nsecond = os.getpid()").error is None
    assert neighbour.value("first == second") == "True"
    until(lambda: "process-limit" in [cell.outcome for cell in pool.picture().recent], "the cell in the ledger")
    assert bomber.run("%%gpu\nprint('again')").stream() == "again\n"


def cgroup_of(pid: int) -> LeaseCgroup:
    """The cgroup of a lease, by its executor."""
    line = next(line for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::"))
    mounts = [row.split() for row in Path("/proc/self/mounts").read_text().splitlines()]
    return LeaseCgroup(next(Path(row[1]) for row in mounts if row[2] == "cgroup2") / line.removeprefix("0::/"))


@pytest.fixture
def can_make_cgroups() -> None:
    try:
        find_base()
    except LookupError as error:
        pytest.skip(f"no cgroups here: {error}")


#: Leaves a thread that never stops.
WORKS_ON = """%%gpu
import itertools, threading
turns = itertools.count()
def work():
    while True:
        last[0] = next(turns)
last = [0]
threading.Thread(target=work, daemon=True).start()
"""


@pytest.mark.usefixtures("can_make_cgroups")
def test_what_a_cell_has_left_running_stands_still_until_the_next(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1", "--Pool.freeze_hot=True")
    notebook = open_notebook(pool)
    notebook.run(WORKS_ON)
    executor = pool.part("executor")
    cgroup = cgroup_of(executor.pid)
    until(lambda: cgroup.is_frozen, "it to stand still")
    before = executor.cpu_times()
    assert executor.cpu_times() == before
    assert notebook.run("%%gpu\nprint(last[0] > 0)").stream() == "True\n"
    until(lambda: cgroup.is_frozen, "it to stand still again")
    assert executor.cpu_times().user > before.user, "it went on meanwhile"
    notebook.run("%gpu reset")
    until(lambda: not executor.is_running(), "an executor that stands still to be ended")
    until(lambda: not cgroup.folder.exists(), "its cgroup to be removed")


#: What shows a session's ticket.
GRANTED = """
import gc
granted = next(one for one in gc.get_objects() if type(one).__name__ == "Granted")
print(granted.agent.address, granted.agent.public_key, granted.lease, granted.ticket)
"""


@pytest.mark.usefixtures("can_make_cgroups")
def test_nothing_that_a_notebook_says_between_cells_lets_what_a_cell_has_left_running_go_on(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    """It would have a GPU for as long as nobody else waits for one, and nobody would be charged for it."""
    pool = start_pool("--slots", "1", "--Pool.freeze_hot=True")
    notebook = open_notebook(pool)
    notebook.run(WORKS_ON)
    address, key, lease, ticket = notebook.run(GRANTED).stream().split()
    cell = CellId(
        notebook.run(
            "%%gpu\nimport gc\nprint(next(one for one in gc.get_objects() if "
            "type(one).__name__ == 'Relay').owners.cell)"
        )
        .stream()
        .strip()
    )
    executor = pool.part("executor")
    cgroup = cgroup_of(executor.pid)
    context = zmq.Context()
    kernel = channel.connect(context.socket(zmq.DEALER), address, key, channel.DATA_LIMIT)

    def say(message: wire.Message, *blobs: bytes) -> None:
        kernel.send_multipart(frames.pack(message, blobs))
        kernel.send_multipart(frames.pack(wire.Ping()))
        assert kernel.poll(60_000)
        kernel.recv_multipart()

    attach = wire.Attach(protocol=wire.PROTOCOL, lease=LeaseId(lease), ticket=ticket, cell=cell, seen=1_000)
    say(attach)
    until(lambda: cgroup.is_frozen, "it to stand still")
    before = executor.cpu_times().user
    for _ in range(50):
        say(wire.Took(cell=cell))
        say(wire.Chunk(cell=cell, size=1), b"x")
        say(wire.Seen(cell=cell, seq=1))
        say(wire.Seen(cell=cell, seq=1, late=True))
        say(wire.Answer(cell=cell, text="x"))
        say(wire.Stop(cell=cell))
    assert executor.cpu_times().user == before
    context.destroy(linger=0)


@pytest.mark.usefixtures("can_make_cgroups")
def test_what_leaves_its_executor_on_purpose_ends_before_its_slot_is_given_on(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    """Also where its executor adopts no orphans."""
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run(f"%%gpu\nimport ctypes\nctypes.CDLL(None).prctl(36, 0)\n{LEAVES}")
    cgroup = cgroup_of(pool.part("executor").pid)
    assert len((cgroup.folder / "cgroup.procs").read_text().split()) == 2
    assert open_notebook(pool).run("%%gpu\nprint('the next')").stream() == "the next\n"
    assert not cgroup.is_populated


@pytest.mark.usefixtures("can_make_cgroups")
def test_what_an_agent_that_was_killed_has_left_is_ended_by_the_next(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    notebook.run(f"%%gpu\nimport ctypes\nctypes.CDLL(None).prctl(36, 0)\n{LEAVES}")
    cgroup = cgroup_of(pool.part("executor").pid)
    for part in ("zygote", "agent"):  # the zygote would have ended it
        pool.part(part).send_signal(signal.SIGSTOP)
    for part in ("zygote", "agent"):
        pool.part(part).kill()
    until(lambda: not cgroup.is_populated, "nothing of it to be left")
