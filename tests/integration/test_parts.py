"""Broker and agent as processes of their own, without `bulletin pool` around them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bulletin.wire import keys, messages as wire
from tests.integration.conftest import PATIENCE_S, Client, until


def start(part: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpu_worker.cli", part, "--folder", str(folder)]
        + ["--slots", "1", "--device", "cpu", "--isolation", "shared"] * (part != "broker"),
        stderr=subprocess.DEVNULL,
    )


def slots(folder: Path) -> tuple[wire.SlotPicture, ...]:
    try:
        connection = keys.read_private(folder / "connection.json", keys.Connection)
    except FileNotFoundError:
        return ()
    client = Client(connection)
    try:
        client.hello(connection.token)
        client.send(wire.Look())
        while not isinstance(picture := client.receive(), wire.Picture):
            pass
        return picture.slots
    finally:
        client.close()


def test_an_agent_finds_a_broker_that_had_to_move(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    parts = [start("broker", folder)]
    try:
        until((folder / "pool.json").exists, "the broker")
        until(lambda: json.loads((folder / "pool.json").read_text())["agent_address"], "its address")
        parts.append(start("agent", folder))
        until(lambda: slots(folder), "the agent")
        parts[0].kill()
        parts[0].wait()
        old = keys.read_private(folder / "pool.json", keys.PoolFile)
        squatters = [
            socket.create_server(("127.0.0.1", int(address.rpartition(":")[2])))
            for address in (old.kernel_address, old.agent_address)
        ]
        (folder / "connection.json").unlink()
        parts.append(start("broker", folder))
        until(lambda: slots(folder), "the agent to find the broker at its new address")
        assert keys.read_private(folder / "pool.json", keys.PoolFile).agent_address != old.agent_address
        for squatter in squatters:
            squatter.close()
    finally:
        for part in parts:
            part.terminate()
            part.wait(PATIENCE_S)


def test_a_pool_of_a_hub_does_not_start_before_somebody_has_chosen_whose_unix_user_cells_run_as(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    hub = os.environ | {"JUPYTERHUB_API_TOKEN": "token", "JUPYTERHUB_API_URL": "http://127.0.0.1:9/hub/api"}
    command = [sys.executable, "-m", "gpu_worker.cli"]
    pool = subprocess.run(
        [*command, "pool", "--folder", str(folder)], env=hub, capture_output=True, text=True, check=False
    )
    assert pool.returncode == 78
    assert "Pool.isolation is not chosen, and this pool serves a hub. Choose 'unix-user'" in pool.stderr
    broker = subprocess.Popen([*command, "broker", "--folder", str(folder)], env=hub)
    try:
        until(lambda: (folder / "pool.json").exists(), "the broker to start")
        until(lambda: keys.read_private(folder / "pool.json", keys.PoolFile).agent_address, "its address")
        agent = subprocess.run(  # on a node of its own: it does not know the hub
            [*command, "agent", "--folder", str(folder)], capture_output=True, text=True, check=False
        )
    finally:
        broker.terminate()
        broker.wait(PATIENCE_S)
    assert agent.returncode == 78
    assert "Pool.isolation is not chosen" in agent.stderr


@pytest.mark.skipif(os.getuid() == 0, reason="root may choose it")
def test_a_pool_that_is_not_root_cannot_run_cells_as_others(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpu_worker.cli", "pool", "--folder", str(tmp_path / "p")]
    done = subprocess.run([*command, "--isolation", "unix-user"], capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert "needs a pool or agent that runs as root" in done.stderr


def test_bad_configuration_is_one_sentence_and_its_own_exit_status(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    quotas = tmp_path / "quotas.toml"
    quotas.write_text("[projects.physics]\nweigth = 3\n")
    for arguments, words in [
        (["agent", "--folder", str(tmp_path / "nothing")], "type there: bulletin node add NAME"),
        (["broker", "--folder", str(tmp_path / "p"), "--Pool.kernel_port=99999"], "0 to 65535"),
        (["broker", "--folder", str(tmp_path / "p"), "--database", "nonsense"], "sqlite:///"),
        (["broker", "--folder", str(tmp_path / "p"), "--slots", "2"], "that the agent obeys, and this is the broker"),
        (["agent", "--folder", str(tmp_path / "p"), "--database", "x"], "that the broker obeys, and this is the agent"),
        (["broker", "--folder", str(open_to_all)], "can be changed by other users"),
        (["agent", "--folder", str(open_to_all)], "can be changed by other users"),
        (["pool", "--folder", str(open_to_all), "--isolation", "shared"], "can be changed by other users"),
        (["pool", "--folder", str(tmp_path / "p"), "--config", str(tmp_path / "none.py")], "none.py"),
        (["broker", "--folder", str(tmp_path / "p"), "--Pool.max_walltime=gold=5"], "gold"),
        (["broker", "--folder", str(tmp_path / "p"), f"--Pool.quota_file={quotas}"], "quotas.toml:2"),
    ]:
        done = subprocess.run(
            [sys.executable, "-m", "gpu_worker.cli", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 78, done.stderr
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
