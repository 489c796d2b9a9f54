"""What an admin types at a pool that runs: who waits and why, stop this, empty that node. Real kernels, real cells."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import RequestId
from bulletin.wire import messages as wire
from gpu_worker import cli
from tests.integration.conftest import Client, Notebook, PoolProcess, until

STUBBORN = """%%gpu
import time
print('started')
while True:
    try:
        time.sleep(100)
    except KeyboardInterrupt:
        print('not now')"""

Bulletin = Callable[..., str]


@pytest.fixture
def type_at(capsys: pytest.CaptureFixture[str]) -> Callable[[PoolProcess], Bulletin]:
    """Type commands at a pool."""

    def at(pool: PoolProcess) -> Bulletin:
        def bulletin(*words: str, status: int = 0) -> str:
            with pytest.raises(SystemExit) as ended:
                cli.main([*words, "--folder", str(pool.folder)])
            said = capsys.readouterr()
            assert ended.value.code == status, said
            return said.err if status else said.out

        return bulletin

    return at


@pytest.fixture
def bulletin(pool: PoolProcess, type_at: Callable[[PoolProcess], Bulletin]) -> Bulletin:
    """Type commands at the shared pool."""
    return type_at(pool)


def queue(bulletin: Bulletin) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bulletin("queue", "--json"))
    return found


def of_busy(bulletin: Bulletin) -> dict[str, Any]:
    """The lease whose cell runs, once the broker has heard of it."""
    found: dict[str, Any] = until(
        lambda: next((row for row in queue(bulletin)["running"] if row["state"] == "busy"), None), "the cell to begin"
    )
    return found


def test_who_waits_is_listed_explained_and_withdrawn(
    pool: PoolProcess, bulletin: Bulletin, notebook: Notebook, open_notebook: Callable[..., Notebook]
) -> None:
    first, second = open_notebook(pool), notebook
    busy = first.start_until("%%gpu --gpus 2\nprint('started')\ninput()", shows="started")
    waits = second.start_until("%%gpu --label mine\nx = 1", shows="1st in line")
    running = of_busy(bulletin)
    assert bulletin("queue").splitlines()[0] == "1 waiting, 1 running"
    (waiting,) = queue(bulletin)["waiting"]
    assert waiting["reason"] == "all 2 CPU slots are busy"
    assert bulletin("explain", waiting["lease"][:8]).startswith(
        f"{waiting['lease'][:10]} of {waiting['user']} waits: all 2 CPU slots are busy."
    )
    assert "runs a cell on" in bulletin("explain", running["cell"])
    assert bulletin("quota", "show").splitlines()[0] == "1 project, 2 CPU slots used, 1 waiting"
    assert "is withdrawn" in bulletin("cancel", waiting["lease"])
    output = second.collect(waits)
    assert output.error is not None
    assert output.error["ename"] == "CellStopped"
    assert output.error["evalue"].startswith("You cancelled this cell.")
    assert queue(bulletin)["waiting"] == []
    first.answer("go")
    assert first.collect(busy).error is None
    until(lambda: running["cell"] in [cell.cell for cell in pool.picture().recent], "the cell in the ledger")
    assert "is over: returned" in bulletin("explain", running["cell"][:12])
    assert second.run("%%gpu\nprint('again')").stream() == "again\n"


def test_a_running_cell_is_stopped_and_what_it_did_is_kept(bulletin: Bulletin, notebook: Notebook) -> None:
    busy = notebook.start_until("%%gpu\nimport time\nx = 1\nprint('started')\ntime.sleep(1000)", shows="started")
    assert "is interrupted" in bulletin("cancel", of_busy(bulletin)["lease"])
    output = notebook.collect(busy)
    assert output.error is not None
    assert output.error["ename"] == "KeyboardInterrupt"
    assert "You cancelled this cell." in output.shown
    assert notebook.value("x") == "1"


def test_a_cell_that_will_not_stop_is_ended_when_it_is_said_again(bulletin: Bulletin, notebook: Notebook) -> None:
    busy = notebook.start_until(STUBBORN, shows="started")
    lease = of_busy(bulletin)["lease"]
    done: list[str] = []

    def once_more(message: dict[str, Any]) -> None:
        if "not now" in str(message["content"]) and not done:
            done.append(bulletin("cancel", lease))

    assert "is interrupted" in bulletin("cancel", lease)
    output = notebook.collect(busy, once_more)
    assert "is ended" in done[0]
    assert output.error is not None
    assert output.error["ename"] == "CellLost"
    assert "stopped by ending its process" in output.error["evalue"]
    assert notebook.run("%%gpu\nprint('again')").stream() == "again\n"


def test_what_was_granted_and_has_not_begun_never_begins(pool: PoolProcess, bulletin: Bulletin) -> None:
    client = Client(pool.connection)
    client.hello(pool.connection.token, kernel="slow")
    client.send(wire.Submit(request=RequestId("r")))
    while not isinstance(granted := client.receive(), wire.Granted):
        pass
    assert "is withdrawn" in bulletin("cancel", granted.lease)
    while not isinstance(refused := client.receive(), wire.Refusal):
        pass
    client.close()
    assert (refused.code, refused.request) == (RefusalCode.CANCELLED, "r")
    assert granted.lease not in [row["lease"] for row in queue(bulletin)["running"] if row["state"] != "leaving"]


def test_a_drained_node_empties_itself_and_stays_empty_when_the_broker_is_killed(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    type_at: Callable[[PoolProcess], Bulletin],
) -> None:
    pool = start_pool("--slots", "2")
    bulletin = type_at(pool)
    idle, busy = open_notebook(pool), open_notebook(pool)
    idle.run("%%gpu\nx = 1")
    runs = busy.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    until(lambda: sorted(row["state"] for row in queue(bulletin)["running"]) == ["busy", "hot"], "one hot session")
    node = queue(bulletin)["running"][0]["node"]
    assert bulletin("drain", node, "--why=a new disk").splitlines()[0] == (
        f"{node} is given nothing more; 1 cell still runs there, and 1 idle session leaves. "
        f"Undo: bulletin drain {node} --undo"
    )
    until(lambda: len(queue(bulletin)["running"]) == 1, "the idle session to leave")
    waits = idle.start_until("%%gpu\nprint('mine')", shows="is being drained")
    pool.part("broker").kill()
    until(lambda: "busy" in [slot.state for slot in pool.picture().slots], "the broker to know its leases again")
    until(lambda: queue(bulletin)["waiting"], "the request to be said again")
    row = queue(bulletin)["waiting"][0]
    assert row["reason"] == f"node {node} is being drained"
    assert "is being drained: a new disk" in bulletin("explain", row["lease"])
    busy.answer("go")
    assert busy.collect(runs).error is None
    until(lambda: queue(bulletin)["running"] == [], "the node to be empty")
    assert bulletin("status").count(": drained: a new disk\n") == 2
    assert bulletin("drain", node, "--undo") == f"{node} is given cells again.\n"
    assert idle.collect(waits).stream() == "mine\n"
    bulletin("drain", node, "--at=+5h", "--why=a new disk")
    assert "free, drained in 4 h: a new disk\n" in bulletin("status")


def test_what_is_not_there_is_said(bulletin: Bulletin) -> None:
    assert bulletin("explain", "l-0000000", status=1) == (
        "bulletin explain: No request, lease or cell with the id 'l-0000000' is known.\n"
    )
    assert "waits or runs" in bulletin("cancel", "l-0000000", status=1)
    assert "There is no node 'moon'" in bulletin("drain", "moon", status=1)
    assert bulletin("cancel", status=2) == "usage: bulletin cancel ID [--json]\n"


def test_a_folder_without_a_pool_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["queue", "--folder", str(tmp_path)])
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(f"bulletin queue: No pool runs in {tmp_path}.")


RUNS_TWICE = """%%gpu
import os, time
print('run')
is_again = os.path.exists('ran_before')
open('ran_before', 'w').close()
while not is_again:
    time.sleep(0.01)"""


def test_what_is_held_starts_when_it_is_released_and_a_cell_runs_again(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    type_at: Callable[[PoolProcess], Bulletin],
    tmp_path: Path,
) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text('[qos.interactive]\ngrace = "1 s"\n')
    pool = start_pool("--slots", "1", f"--Pool.quota_file={file}")
    bulletin = type_at(pool)
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    waits = second.start_until(RUNS_TWICE, shows="1st in line")
    (row,) = queue(bulletin)["waiting"]
    assert "is held" in bulletin("hold", row["lease"], "--why=not yet")
    first.answer("go")
    assert first.collect(busy).error is None
    (row,) = queue(bulletin)["waiting"]
    assert row["reason"] == "you hold it: not yet"
    assert "is released" in bulletin("release", row["lease"])
    said: list[str] = []

    def have_it_run_again(message: dict[str, Any]) -> None:
        if "run" in str(message["content"].get("text", "")) and not said:
            said.append(bulletin("requeue", of_busy(bulletin)["lease"], "--why=the node must go"))

    output = second.collect(waits, have_it_run_again)
    assert output.error is None
    assert "to end; if it has not by then, it runs again" in said[0]
    assert "An admin wants your cell to leave its place." in output.shown
    until(lambda: "reclaimed" in [cell.outcome for cell in pool.picture().recent], "the ledger to have its first run")


def test_a_cell_that_was_given_more_time_ends_later_and_says_how_much_it_had(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    type_at: Callable[[PoolProcess], Bulletin],
) -> None:
    pool = start_pool("--slots", "1", "--Pool.walltime_grace=0.5")
    bulletin, notebook = type_at(pool), open_notebook(pool)
    busy = notebook.start_until("%%gpu --time 20s\nprint('started')\nimport time\ntime.sleep(1000)", shows="started")
    assert "may take 22 s in all" in bulletin("extend", of_busy(bulletin)["lease"], "2s", "--why=it converges")
    output = notebook.collect(busy)
    assert output.error is not None
    assert "gave this cell 2.0 s more" in output.shown
    assert "walltime of 22 s" in output.error["evalue"]


def test_what_is_counted_is_written_as_prometheus_reads_it(
    pool: PoolProcess, bulletin: Bulletin, notebook: Notebook
) -> None:
    def returned() -> float:
        lines = [line for line in bulletin("metrics").splitlines() if line.startswith("bulletin_cells_total{")]
        return sum(float(line.split()[-1]) for line in lines if 'outcome="returned"' in line)

    before = returned()
    assert notebook.run("%%gpu\nx = 1").error is None
    until(lambda: returned() == before + 1, "the cell to be counted, once")


def test_quotas_are_changed_while_the_pool_runs_and_a_restart_keeps_them(
    start_pool: Callable[..., PoolProcess], type_at: Callable[[PoolProcess], Bulletin], tmp_path: Path
) -> None:
    file = tmp_path / "quotas.toml"
    text = "# the faculty's\n[projects.lab]\nlimit = 1  # for now\n"
    file.write_text(text)
    pool = start_pool(f"--Pool.quota_file={file}")
    bulletin = type_at(pool)

    def limit() -> int | None:
        rows = json.loads(bulletin("quota", "--json"))["projects"]
        return next(row["limit_milli"] for row in rows if row["project"] == "lab")

    assert "No cell ran in the last 7 days" in bulletin("quota", "preview", "projects.lab.limit=2")
    said = bulletin("quota", "set", "projects.lab.limit=2", "projects.lab.walltime=4 h", "--why=the exam")
    assert "limit of project 'lab': 1 GPU -> 2 GPUs" in said
    assert file.read_text() == text.replace("= 1  # for now\n", '= 2  # for now\nwalltime = "4 h"\n')
    assert limit() == 2000
    bulletin("quota", "set", "projects.lab.limit=-1", status=1)
    assert "larger than any number" in bulletin("quota", "set", f"projects.lab.limit={10**30}", status=78)
    assert "-1" not in file.read_text()
    version = json.loads(bulletin("quota", "file", "--json"))["version"]
    old = pool.part("broker")
    old.kill()
    until(lambda: pool.part("broker").pid != old.pid, "another broker")
    until(lambda: pool.picture().slots, "its agent")
    assert limit() == 2000
    log = json.loads(bulletin("quota", "log", "--json"))["versions"]
    assert (log[0]["version"], log[0]["why"]) == (version, "the exam")
    assert "limit of project 'lab': 2 GPUs -> 1 GPU" in bulletin("quota", "undo")
    assert (file.read_text(), limit()) == (text, 1000)
    bulletin("quota", "unset", "projects.lab", f"--version={version}", status=1)
    assert file.read_text() == text
