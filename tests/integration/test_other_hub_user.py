"""A hub that is one Unix user, and a pool that is another: servers and page find it, and read nothing else of it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bulletin_spawner.ports import find_free_ports
from tests.integration.conftest import until
from tests.integration.hub_pool import HubPool
from tests.other_users import free_uid, in_mount_namespace, with_readable_python

if os.getuid() != 0:
    pytest.skip("only root may become another user", allow_module_level=True)

ASKS = """
import asyncio, json, pathlib, sys
from bulletin.errors import NoPool
from bulletin_spawner.service.broker_client import BrokerClient
from bulletin_spawner.spawner import pool_environment

folder = pathlib.Path(sys.argv[1])

async def look(token):
    client = BrokerClient(folder, token)
    try:
        return str(len((await client.fetch_picture()).slots))
    except NoPool as error:
        return str(error)
    finally:
        client.close()

def read(name):
    try:
        return (folder / name).read_text()
    except OSError as error:
        return type(error).__name__

print(json.dumps({
    "servers": pool_environment(folder),
    "page": asyncio.run(look("service")),
    "stranger": asyncio.run(look("guessed")),
    "files": {name: read(name) for name in ("pool.json", "connection.json", "agent.json", "ledger.sqlite")},
}))
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[HubPool]:
    # Not below pytest's folder, which is for its user alone.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        pool = HubPool(folder, 1)
        yield pool
        pool.stop()


@pytest.fixture
def as_hub(tmp_path: Path) -> list[str]:
    """Words before a program that is to run as the hub's Unix user."""
    uid = str(free_uid(61_000))
    become = ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups"]
    return [*in_mount_namespace(with_readable_python(tmp_path)), *become]


def test_servers_and_page_find_the_pool_and_read_nothing_else_of_it(pool: HubPool, as_hub: list[str]) -> None:
    asked = subprocess.run(
        [*as_hub, sys.executable, "-c", ASKS, str(pool.process.folder)], check=True, stdout=subprocess.PIPE, text=True
    )
    found = json.loads(asked.stdout)
    connection = pool.process.connection
    assert found["servers"] == {
        "BULLETIN_ADDRESS": connection.address,
        "BULLETIN_PUBLIC_KEY": connection.public_key,
    }
    assert found["page"] == "1"
    assert "does not let its own page in" in found["stranger"]
    assert set(found["files"].values()) == {"PermissionError"}


def test_a_page_without_a_pool_of_its_own_needs_no_right_to_the_folder_and_ends_with_its_hub(
    pool: HubPool, as_hub: list[str]
) -> None:
    (port,) = find_free_ports([0])
    page_words = ["-P", "-m", "bulletin_spawner.service", "--folder", str(pool.process.folder), "--no-pool"]
    starts = f"import subprocess, sys; subprocess.run([sys.executable, *{page_words!r}])"
    hub = subprocess.Popen(
        [*as_hub, sys.executable, "-c", starts],
        env={**os.environ, "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{port}", "JUPYTERHUB_SERVICE_PREFIX": "/pool/"},
    )
    process = psutil.Process(hub.pid)
    page = until(lambda: find_child(process, "--no-pool"), "the page")
    until(lambda: page.net_connections("tcp"), "the page to listen")
    hub.kill()
    hub.wait()
    until(lambda: not page.is_running(), "the page to end")


def find_child(process: psutil.Process, word: str) -> psutil.Process | None:
    """Find the child that was started with this word, among some that may be ending."""
    for child in process.children():
        with contextlib.suppress(psutil.Error):
            if word in child.cmdline():
                return child
    return None
