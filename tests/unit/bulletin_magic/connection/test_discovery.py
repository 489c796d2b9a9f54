"""Where the pool is, and what is said when it is not."""

import os
import socket
import stat
from pathlib import Path

import pytest

from bulletin.errors import NoPool
from bulletin.wire.keys import Connection, make_keys, write_private
from bulletin_magic.connection import discovery, own_pool


def silent(text: str) -> None:
    raise AssertionError(text)


def test_the_hub_comes_before_a_connection_file() -> None:
    environ = {
        "BULLETIN_ADDRESS": "tcp://hub:1",
        "BULLETIN_PUBLIC_KEY": "key",
        "JUPYTERHUB_API_TOKEN": "secret",
        "BULLETIN_CONNECTION_FILE": "/nowhere",
    }
    place = discovery.find_pool(environ, silent)
    assert place.connection == Connection(address="tcp://hub:1", public_key="key", token="secret")
    assert not place.is_own


def test_a_connection_file_is_read(tmp_path: Path) -> None:
    connection = Connection(address="tcp://here:1", public_key="key", token="t")
    write_private(tmp_path / "c.json", connection)
    assert discovery.find_pool({"BULLETIN_CONNECTION_FILE": str(tmp_path / "c.json")}, silent).connection == connection


@pytest.mark.parametrize("problem", ["missing", "open to others", "junk", "folder"])
def test_a_connection_file_that_cannot_be_used_is_no_pool(problem: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    if problem == "open to others":
        write_private(path, Connection(address="a", public_key="b"))
        path.chmod(0o644)
    elif problem == "junk":
        path.touch(mode=0o600)
        path.write_text("{}")
    elif problem == "folder":
        path.mkdir(mode=0o700)
    with pytest.raises(NoPool, match="Nothing was run"):
        discovery.find_pool({"BULLETIN_CONNECTION_FILE": str(path)}, silent)


def test_kernels_are_named_after_their_connection_file() -> None:
    assert discovery.kernel_id("/run/kernel-1234-abcd.json") == f"1234-abcd-{os.getpid()}"
    assert discovery.kernel_id(None) != discovery.kernel_id(None)


def test_the_folder_of_an_own_pool_is_private_and_belongs_to_one_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"BULLETIN_RUNTIME_DIR": str(tmp_path / "run")}
    first = own_pool.make_folder(environ)
    assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert own_pool.make_folder(environ) == first
    monkeypatch.setattr("sys.executable", "/another/python")
    assert own_pool.make_folder(environ) != first


def test_an_address_where_nobody_listens_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert not own_pool.is_answering(Connection(address=f"tcp://127.0.0.1:{port}", public_key=make_keys().public))
