"""`bulletin doctor` names what is wrong with a pool, each fault made for real, with what to do; and is silent else."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bulletin.wire import keys
from tests.integration.conftest import PoolProcess, until
from tests.integration.doctor.conftest import SHARED, as_root
from tests.integration.examining import examine
from tests.other_users import in_mount_namespace
from tests.processes import has_ended


def test_of_a_pool_that_runs_and_is_sound_nothing_is_said(pool: PoolProcess) -> None:
    examined = examine("--folder", pool.folder, SHARED, f"--notebook-python={sys.executable}")
    assert (examined.status, examined.found) == (0, {})
    words = [sys.executable, "-P", "-m", "gpu_worker.cli", "doctor", "--folder", pool.folder, SHARED]
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/").stdout
    assert said.startswith(f"Nothing is wrong.\nLooked at: the pool in {pool.folder}.\nNot looked at: a hub")


def test_others_can_change_the_folder_or_read_its_keys(folder: Path) -> None:
    folder.chmod(0o777)
    (folder / "pool.json").write_text("{}")
    (folder / "pool.json").chmod(0o644)
    examined = examine("--folder", folder, SHARED)
    assert f"chmod go-w {folder}" in examined.says("folder-mode")
    assert f"chmod 600 {folder / 'pool.json'}" in examined.says("file-mode")
    (folder / "pool.json").chmod(0o600)
    folder.chmod(0o711)
    assert "is not a file of Bulletin" in examine("--folder", folder, SHARED).says("file-broken")


@as_root
def test_a_file_is_of_whoever_ran_a_command_as_somebody_else(folder: Path) -> None:
    path = folder / "nodes.json"
    path.write_text("{}")
    path.chmod(0o600)
    os.chown(path, 12345, 12345)
    assert "belongs to '12345', and its folder to 'root'. Somebody ran" in examine("--folder", folder, SHARED).says(
        "file-owner"
    )


def test_the_clock_was_set_back(folder: Path) -> None:
    keys.write_private(folder / "nodes.json", keys.NodesFile())
    ahead = time.time() + 7200
    os.utime(folder / "nodes.json", (ahead, ahead))
    assert "timedatectl" in examine("--folder", folder, SHARED).says("clock")


def test_a_port_is_taken_and_an_address_is_anothers(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        examined = examine("--folder", folder, SHARED, f"--Pool.kernel_port={port}")
        assert f"Port {port} of 127.0.0.1 is another program's, and Pool.kernel_port" in examined.says("port-taken")
    examined = examine("--folder", folder, SHARED, "--Pool.host=192.0.2.1")
    assert "192.0.2.1 is no address of this host" in examined.says("host-foreign")
    assert "tcp://HOST:PORT" in examine("--folder", folder, SHARED, "--Pool.advertise=gpu1").says("advertise")


def test_the_ledger_is_of_another_bulletin(folder: Path) -> None:
    with sqlite3.connect(folder / "ledger.sqlite") as ledger:
        ledger.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        ledger.execute("INSERT INTO alembic_version VALUES ('from-the-future')")
    ledger.close()
    (folder / "ledger.sqlite").chmod(0o600)
    assert "version from-the-future, which this Bulletin does not know" in examine("--folder", folder, SHARED).says(
        "ledger"
    )


@as_root
def test_a_disk_is_full_and_shared_memory_small(folder: Path) -> None:
    under = in_mount_namespace(
        [f"mount -t tmpfs -o size=1m,mode=711 tmpfs {folder}", "mount -t tmpfs -o size=64m tmpfs /dev/shm"]
    )
    if subprocess.run([*under, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    examined = examine("--folder", folder, SHARED, under=under)
    assert "0.00 GB left" in examined.says("disk-full")
    assert "--shm-size" in examined.says("shm-small")


def test_a_pool_that_was_killed_is_dead(pool: PoolProcess) -> None:
    broker = pool.part("broker")
    pool.process.send_signal(signal.SIGKILL)
    pool.process.wait()
    until(lambda: has_ended(broker), "the broker to end with its parent")
    examined = examine("--folder", pool.folder, SHARED)
    assert "has not ended as it should" in examined.says("pool-dead")


@as_root
def test_who_may_not_look_into_a_folder_is_told_so(folder: Path, tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv (util-linux) to be less than root with")
    folder.chmod(0o700)
    os.chown(folder, 12345, 12345)
    without = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    for within in (folder, folder / "deeper"):
        examined = examine("--folder", within, SHARED, under=without)
        assert "sudo -u USER bulletin doctor" in examined.says("folder-closed")
    examined = examine("--hub", folder / "jupyterhub_config.py", under=without)
    assert "may not see it" in examined.says("hub-config")
    examined = examine("--folder", tmp_path, SHARED, "--config", folder / "c.py", under=without)
    assert "may not see" in examined.says("config-closed")


def test_what_an_agent_must_give_and_cannot_is_named_and_else_only_advised(folder: Path) -> None:
    words = ("--folder", folder, SHARED, "--Pool.require=memory-limit")
    examined = examine(*words)
    if "memory-limit" not in examined.found:
        pytest.skip("the kernel limits memory here")
    assert examined.status == 1
    assert "Pool.require lists it" in examined.says("memory-limit")
    hub = {"JUPYTERHUB_API_URL": "http://127.0.0.1:1/hub/api", "JUPYTERHUB_API_TOKEN": "t"}
    assert examine("--folder", folder, SHARED, **hub).found["memory-limit"]["level"] == "advice"


@as_root
def test_root_looks_at_the_pool_of_another_user(pool: PoolProcess) -> None:
    for path in (pool.folder, *pool.folder.iterdir()):
        os.chown(path, 12345, 12345)
    examined = examine("--folder", pool.folder, SHARED)
    assert (examined.status, examined.found) == (0, {})
