"""The command line in a hub server: the hub says who asks. A real broker, and the answers that it asks a hub for."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import RequestId
from bulletin.wire import keys, messages as wire
from gpu_worker import cli
from tests.integration.conftest import PATIENCE_S, Client, until
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[keys.Connection]:
    """The kernels' door of a broker that a hub manages."""
    hub = FakeHub()
    hub.users["root-token"] = {"name": "root", "kind": "user", "scopes": [SCOPE, "custom:bulletin:manage"]}
    hub.users["server-of-root-token"] = {"name": "root", "kind": "user", "admin": True, "scopes": [SCOPE]}
    hub.admins.add("root")
    hub.users["eve-token"]["scopes"] = [SCOPE]
    environ = {
        **os.environ,
        "JUPYTERHUB_API_URL": f"http://127.0.0.1:{hub.server_address[1]}/hub/api",
        "JUPYTERHUB_API_TOKEN": "service",
    }
    with hub.serving(), (tmp_path / "broker.log").open("wb") as log:
        broker = subprocess.Popen(
            [sys.executable, "-m", "gpu_worker.cli", "broker", "--folder", str(tmp_path / "pool")],
            env=environ,
            stderr=log,
        )
        file = tmp_path / "pool" / "pool.json"
        try:
            found = until(
                lambda: file.exists() and (files := keys.read_private(file, keys.PoolFile)).kernel_address and files,
                "the broker to listen",
            )
            yield keys.Connection(address=found.kernel_address, public_key=found.keys.public)
        finally:
            broker.terminate()
            broker.wait(PATIENCE_S)


def test_each_sees_and_cancels_what_is_their_own_and_an_admin_all(
    connection: keys.Connection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLETIN_ADDRESS", connection.address)
    monkeypatch.setenv("BULLETIN_PUBLIC_KEY", connection.public_key)

    def bulletin(user: str, *words: str) -> str:
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", f"{user}-token")
        with pytest.raises(SystemExit):
            cli.main(list(words))
        said = capsys.readouterr()
        return said.out + said.err

    clients = {}
    for user in ("ada", "eve"):
        clients[user] = Client(connection)
        assert isinstance(clients[user].hello(f"{user}-token", kernel=user), wire.Welcome)
        clients[user].send(wire.Submit(request=RequestId(f"cell-of-{user}")))
    until(lambda: bulletin("root", "queue").startswith("2 waiting"), "both requests")
    assert "eve" in bulletin("root", "queue")
    shown = bulletin("ada", "queue")
    assert "no node is connected to the pool" in shown
    assert "someone else" in shown
    assert "eve" not in shown
    assert "of yours" in bulletin("ada", "cancel", "cell-of-eve")
    assert "Only admins" in bulletin("ada", "drain", "node")
    assert "of yours" in bulletin("ada", "hold", "cell-of-eve")
    assert "Only admins" in bulletin("ada", "top", "cell-of-ada")
    assert "Only admins" in bulletin("ada", "requeue", "cell-of-ada")
    for command in (["drain", "node"], ["top", "cell-of-eve"], ["cancel", "cell-of-eve"], ["queue", "--user=eve"]):
        said = bulletin("server-of-root", *command)  # an admin's, by what their notebook server has
        assert "a token of the hub with the scope custom:bulletin:manage, in JUPYTERHUB_API_TOKEN" in said
        assert said.count("\n") == 1
    assert "eve" not in bulletin("server-of-root", "queue")
    assert "is held" in bulletin("root", "hold", "cell-of-ada", "--why=the exam comes first")
    assert "held by an admin: the exam comes first" in bulletin("ada", "queue")
    assert "Only an admin releases it" in bulletin("ada", "release", "cell-of-ada")
    assert "is released" in bulletin("root", "release", "cell-of-ada")
    assert "is held" in bulletin("ada", "hold", "cell-of-ada")
    assert "is released" in bulletin("ada", "release", "cell-of-ada")
    assert "is the first of project" in bulletin("root", "top", "cell-of-eve")
    assert "still waits" in bulletin("root", "extend", "cell-of-eve", "30min")
    assert "Only admins" in bulletin("eve", "boost", "eve", "--project=default", "--until=+2h")
    assert "Only admins" in bulletin("eve", "boost")
    assert "There is no project 'x'" in bulletin("root", "boost", "eve", "--project=x", "--until=+2h")
    assert "Only admins" in bulletin("eve", "announce", "Mine.", "--until=+2h")
    assert "Say until when" in bulletin("root", "announce", "It is down at six.")
    assert "256 letters at most" in bulletin("root", "announce", "x" * 257, "--until=+2h")
    assert "Announced by root until" in bulletin("root", "announce", "It is down at six.", "--until=+2h")
    assert bulletin("ada", "announce").endswith(": It is down at six.\n")
    assert "Announcement by root: It is down at six." in bulletin("ada", "status")
    while not isinstance(queued := clients["ada"].receive(), wire.Queued) or not queued.announcement:
        pass
    assert queued.announcement == "Announcement by root: It is down at six."
    assert bulletin("root", "announce", "--undo") == "Nothing is announced.\n"
    assert "eve" not in bulletin("ada", "quota")
    assert "does not know your server's token" in bulletin("mallory", "queue")
    assert "is withdrawn" in bulletin("root", "cancel", "cell-of-eve")
    while not isinstance(refused := clients["eve"].receive(), wire.Refusal):
        pass
    assert (refused.code, refused.sentence) == (RefusalCode.CANCELLED, "An admin (root) cancelled this cell.")
    assert bulletin("eve", "queue").startswith("1 waiting")
    for client in clients.values():
        client.close()
