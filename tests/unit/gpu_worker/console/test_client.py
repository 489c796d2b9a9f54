"""Which pool a command asks: the one that is named, else the hub's, else that of the environment's file."""

from pathlib import Path

import pytest

from bulletin.errors import NotDone
from bulletin.wire import keys
from gpu_worker.console import client


def connection(path: Path, token: str) -> Path:
    keys.write_private(path, keys.Connection(address="tcp://127.0.0.1:1", public_key="key", token=token))
    return path


def test_a_folder_that_is_named_comes_before_the_hub_and_the_hub_before_a_file(tmp_path: Path) -> None:
    connection(tmp_path / "connection.json", "of the folder")
    file = str(connection(tmp_path / "other.json", "of the file"))
    hub = {"BULLETIN_ADDRESS": "tcp://hub:1", "BULLETIN_PUBLIC_KEY": "key", "JUPYTERHUB_API_TOKEN": "of the server"}
    environ = {**hub, "BULLETIN_CONNECTION_FILE": file}
    assert client.find_pool(tmp_path, is_named=True, environ=environ).token == "of the folder"
    assert client.find_pool(tmp_path, is_named=False, environ=environ).token == "of the server"
    assert client.find_pool(tmp_path, is_named=False, environ={"BULLETIN_CONNECTION_FILE": file}).token == "of the file"
    assert client.find_pool(tmp_path, is_named=False, environ={}).token == "of the folder"


def test_where_there_is_no_pool_the_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotDone, match=f"No pool runs in {tmp_path}"):
        client.find_pool(tmp_path, is_named=True, environ={})


def test_a_folder_that_nobody_named_and_that_has_none_gives_way_to_the_hosts(tmp_path: Path) -> None:
    here, host = tmp_path / "bulletin-pool", tmp_path / "host"
    host.mkdir()
    connection(host / "connection.json", "of the host")
    assert client.find_pool(here, is_named=False, environ={}, system_folder=host).token == "of the host"
    with pytest.raises(NotDone, match=f"No pool runs in {here}"):
        client.find_pool(here, is_named=True, environ={}, system_folder=host)
    here.mkdir()
    connection(here / "connection.json", "of the folder")
    assert client.find_pool(here, is_named=False, environ={}, system_folder=host).token == "of the folder"
