"""A Jupyter server that ends idle kernels: it spares those whose cells wait, run or are in the background."""

import json
import os
import secrets
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.integration.conftest import PATIENCE_S, PoolProcess, until

#: Long enough for a kernel to start, and to load the magics, on a machine that has much else to do.
_IDLE_S = 20


class CullingServer:
    """`jupyter server`, told to end kernels that have said nothing for `_IDLE_S`, busy or not."""

    def __init__(self, folder: Path, pool: PoolProcess) -> None:
        self.folder, self.pool, self.token = folder, pool, secrets.token_hex(16)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]  # should somebody take it meanwhile, the server takes another
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "BULLETIN_"))}
        options = [f"cull_idle_timeout={_IDLE_S}", "cull_interval=1", "cull_busy=True", "cull_connected=True"]
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
        with (folder / "server.log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *command,
                    f"--port={self.port}",
                    f"--ServerApp.root_dir={folder}",
                    *(f"--MappingKernelManager.{option}" for option in options),
                ],
                env={
                    **clean,
                    "JUPYTER_TOKEN": self.token,
                    "JUPYTER_RUNTIME_DIR": str(folder),
                    "BULLETIN_CONNECTION_FILE": str(pool.folder / "connection.json"),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.clients: list[BlockingKernelClient] = []
        until(self._is_up, f"the server to start; see {log.name}")

    def ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{path}",
            method=method,
            data=b"{}" if method == "POST" else None,
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read())

    def kernels(self) -> set[str]:
        return {kernel["id"] for kernel in self.ask("GET", "kernels")}

    def open(self) -> tuple[str, BlockingKernelClient]:
        """A new kernel with the magics: its id, and a client. It says every half second what it says once a minute."""
        kernel = self.ask("POST", "kernels")["id"]
        client = BlockingKernelClient(connection_file=str(self.folder / f"kernel-{kernel}.json"))
        client.load_connection_file()
        client.start_channels()
        self.clients.append(client)
        run(client, "%load_ext bulletin_magic")
        run(client, "import bulletin_magic.running.background_runner as r\nr._OFTEN_S = r._SELDOM_S = 0.5")
        run(client, "get_ipython().magics_manager.registry['BulletinMagics'].activity_every_s = 0.5")
        return kernel, client

    def close(self) -> None:
        for client in self.clients:
            client.stop_channels()
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def _is_up(self) -> bool:
        assert self.process.poll() is None, (self.folder / "server.log").read_text()
        try:
            self.port = json.loads((self.folder / f"jpserver-{self.process.pid}.json").read_text())["port"]
            self.ask("GET", "kernels")
        except (OSError, json.JSONDecodeError):  # it is not there, or not written to its end
            return False
        return True


def run(client: BlockingKernelClient, code: str) -> None:
    """Run a cell to its end."""
    asked = client.execute(code)
    while (reply := client.get_shell_msg(timeout=PATIENCE_S))["parent_header"]["msg_id"] != asked:
        pass
    assert reply["content"]["status"] == "ok", reply


@pytest.fixture
def server(start_pool: Callable[..., PoolProcess], tmp_path: Path) -> Iterator[CullingServer]:
    opened = CullingServer(tmp_path, start_pool("--slots", "1"))
    yield opened
    opened.close()


def test_a_kernel_whose_cell_runs_or_waits_is_spared_and_an_idle_one_is_not(
    server: CullingServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    runs, client = server.open()
    client.execute(f"%%gpu\nimport os\nwhile not os.path.exists({str(gate)!r}):\n    pass")
    until(lambda: [slot.state for slot in server.pool.picture().slots] == ["busy"], "the cell to run")
    waits, client = server.open()
    client.execute("%%gpu\n1")
    maps, client = server.open()
    client.execute("gpu.map(abs, [1])")
    background, client = server.open()
    run(client, "%%gpu --background later\n1")
    until(lambda: len(server.pool.picture().waiting) == 3, "the others to wait in line")
    idle, _ = server.open()
    until(lambda: idle not in server.kernels(), "the idle kernel to be ended")
    assert server.kernels() == {runs, waits, maps, background}
    gate.touch()
    until(lambda: runs not in server.kernels(), "a kernel to be ended whose cell is over")
