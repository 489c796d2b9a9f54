"""What one user does, on purpose or by chance, harms no other."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin.wire import messages as wire
from tests.integration.conftest import Client, Notebook, PoolProcess, until


def test_asking_and_leaving_in_one_breath_leaks_no_slot(start_pool: Callable[..., PoolProcess]) -> None:
    pool = start_pool("--slots", "1")
    client = Client(pool.connection)
    client.hello(pool.connection.token)
    for number in range(10):
        client.send(wire.Submit(request=f"r{number}"))  # type: ignore[arg-type]
        client.send(wire.Withdraw(request=f"r{number}"))  # type: ignore[arg-type]
        until(lambda: pool.picture().slots[0].state == "free" and not pool.picture().waiting, "the slot to be free")
    client.close()


FORGED = """%%gpu
import gc
from bulletin.wire.messages import Ended, Parcel
relay = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Relay")
cell = relay.owners.cell
relay.send(Ended(cell=cell, outcome="returned", parcel=Parcel(sizes={sizes}, inline={inline}), ran_ms={ran_ms}))
"""


def test_a_cell_that_forges_its_own_end_harms_only_itself(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "2")
    honest, forger = open_notebook(pool), open_notebook(pool)
    honest.run("%%gpu\nx = 1")
    pids = [pool.part(part).pid for part in ("broker", "agent")]
    lost = forger.run(FORGED.format(sizes=(2**64 - 1, 2**64 - 1), inline=False, ran_ms=1))
    assert lost.error is not None
    assert lost.error["ename"] == "CellLost"
    forger.run(FORGED.format(sizes=(), inline=True, ran_ms=2**63))
    assert honest.run("%%gpu\nx += 1\nprint('unharmed')").stream() == "unharmed\n"
    until(lambda: len(pool.picture().recent) >= 4, "all four cells in the ledger")
    assert [pool.part(part).pid for part in ("broker", "agent")] == pids


#: Ways to spoil the link of an executor, and what its user reads of them.
EACH_SOCKET = """
for name in os.listdir("/proc/self/fd"):
    try:
        socket.socket(fileno=int(name)).{}
    except OSError:
        pass
"""
CLOSED = "closed its link to the node"
SPOILED = {
    "junk": (EACH_SOCKET.format("sendall(b'junk' * 1000)"), "wrote on its link to the node what is no message"),
    "mute": (EACH_SOCKET.format("shutdown(socket.SHUT_WR)"), CLOSED),
    "deaf": (EACH_SOCKET.format("shutdown(socket.SHUT_RD)"), CLOSED),
    "deaf-and-mute": (EACH_SOCKET.format("shutdown(socket.SHUT_RDWR)"), CLOSED),
    "closed": ("os.closerange(3, 10_000)", CLOSED),
    "replaced": ("for number in range(3, 100):\n    os.dup2(0, number)", CLOSED),
    "held-by-another": (
        "import ctypes\nif ctypes.CDLL(None).fork() == 0:\n    time.sleep(10_000)\nos.closerange(3, 10_000)",
        CLOSED,
    ),
}
SPOIL = """%%gpu
import os, socket, time
print("said before", flush=True)
{attack}
{then}
"""
GOES_ON = "while True:\n    time.sleep(1)"


@pytest.mark.parametrize("then", [GOES_ON, ""], ids=["goes-on", "ends"])
@pytest.mark.parametrize("attack", SPOILED)
def test_who_spoils_the_link_of_their_executor_reads_that_and_not_that_memory_ran_out(
    pool: PoolProcess, notebook: Notebook, attack: str, then: str
) -> None:
    code, sentence = SPOILED[attack]
    lost = notebook.run(SPOIL.format(attack=code, then=then))
    assert lost.error is not None
    assert sentence in lost.error["evalue"]
    assert "memory" not in lost.error["evalue"]
    assert "said before" in lost.stream()
    until(lambda: not {"busy", "leaving"} & {slot.state for slot in pool.picture().slots}, "the slot to be given back")
    until(lambda: [cell.outcome for cell in pool.picture().recent][:1] == ["executor-died"], "the cell in the ledger")


#: Long names, which an agent would keep with each output.
FORGED_OFTEN = """%%gpu
import gc
from bulletin.wire.messages import Output
relay = next(thing for thing in gc.get_objects() if type(thing).__name__ == "Relay")
cell = relay.owners.cell
for _ in range(150):
    relay.send({message}, [b'{{}}'])
    relay.flush()
print('said')
"""


@pytest.mark.parametrize(
    "message", ["Output(cell=cell, type='x' * 3_000_000)", "Output(cell='x' * 3_000_000, type='stream')"]
)
def test_what_an_executor_says_beside_its_outputs_takes_no_memory_of_the_agent(
    pool: PoolProcess, open_notebook: Callable[..., Notebook], message: str
) -> None:
    honest, forger = open_notebook(pool), open_notebook(pool)
    honest.run("%%gpu\nx = 1")
    agent = pool.part("agent")
    before_bytes = agent.memory_info().rss
    forger.run(FORGED_OFTEN.format(message=message))
    assert agent.memory_info().rss - before_bytes < 200_000_000
    assert honest.run("%%gpu\nx += 1\nprint('unharmed')").stream() == "unharmed\n"


FORGED_WITHOUT_RESULTS = (
    FORGED.format(sizes=(3_000_000_000,), inline=False, ran_ms=1).replace(
        "%%gpu\n", "%%gpu --project guests\nprint('runs')\n"
    )
    + "import time\nwhile True:\n    time.sleep(1)\n"
)


def test_a_cell_that_says_that_it_has_ended_and_hands_nothing_back_keeps_no_owner_waiting(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text('[projects.lab]\nguaranteed = 1\n[qos.interactive]\nmin_runtime = "0 s"\ngrace = "1 s"\n')
    pool = start_pool("--slots", "1", f"--Pool.quota_file={file}")
    forger, owner = open_notebook(pool), open_notebook(pool)
    free_bytes = shutil.disk_usage(pool.folder).free
    forger.start_until(FORGED_WITHOUT_RESULTS, shows="runs")
    assert owner.run("%%gpu --project lab\nprint('mine')").stream() == "mine\n"
    assert free_bytes - shutil.disk_usage(pool.folder).free < 1_000_000_000, "what it says is not what is written"


def test_a_cell_that_says_that_it_has_ended_and_hands_nothing_back_is_ended(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    lost = open_notebook(pool).run(FORGED_WITHOUT_RESULTS)
    assert lost.error is not None
    assert "did not hand its results back in time" in lost.shown
    until(lambda: [cell.outcome for cell in pool.picture().recent] == ["return-late"], "the cell in the ledger")


#: A library that makes fork fail while a file is there, as it does for who has used up the system's processes.
NO_MORE_PROCESSES = """
import errno, os, pathlib
fork = os.fork
def failing():
    if pathlib.Path({file!r}).exists():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return fork()
os.fork = failing
"""


def test_a_process_that_cannot_be_forked_is_the_trouble_of_who_asked_for_it(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = tmp_path / "full"
    (tmp_path / "no_more_processes.py").write_text(NO_MORE_PROCESSES.format(file=str(full)))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    pool = start_pool("--slots", "2", "--Pool.preload=no_more_processes")
    honest, other = open_notebook(pool), open_notebook(pool)
    honest.run("%%gpu\nimport os\nfirst = os.getpid()")
    full.touch()
    refused = other.run("%%gpu\nprint(1)")
    assert refused.error is not None
    assert "Resource temporarily unavailable" in refused.shown
    full.unlink()
    assert honest.run("%%gpu\nsecond = os.getpid()").error is None
    assert honest.value("first == second") == "True"
    assert other.run("%%gpu\nprint('again')").stream() == "again\n"


def test_an_environment_that_does_not_start_harms_only_who_asks_for_it(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "2", "--Pool.environments=broken=/bin/false")
    honest, other = open_notebook(pool), open_notebook(pool)
    honest.run("%%gpu\nimport os\nfirst = os.getpid()")
    refused = other.run("%%gpu --environment broken\nprint(1)")
    assert refused.error is not None
    again = honest.run("%%gpu\nsecond = os.getpid()")
    assert again.error is None, again.shown
    assert honest.value("first == second") == "True"


def test_a_crowd_at_the_door_does_not_end_the_agent(pool: PoolProcess, notebook: Notebook) -> None:
    agent = pool.part("agent").pid
    crowd = []
    for _ in range(300):
        visitor = socket.socket(socket.AF_UNIX)
        visitor.setblocking(False)
        try:
            visitor.connect(str(pool.folder / "door"))
        except BlockingIOError:  # the line before the door is full
            visitor.close()
            continue
        crowd.append(visitor)
    assert len(crowd) >= 64
    assert notebook.run("%%gpu\nprint('inside')").stream() == "inside\n"
    assert pool.part("agent").pid == agent
    for visitor in crowd:
        visitor.close()
