"""A pool of CPU slots that a hub manages: its users are several people, in groups, and its quota file changes."""

import itertools
import threading
from functools import partial
from pathlib import Path

from bulletin.wire import console
from gpu_worker.console import client
from tests.integration.conftest import Notebook, PoolProcess, until
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

#: Who is reclaimed has a second, and nobody is too young for it.
SHORT = """
[qos.interactive]
min_runtime = "0 s"
grace = "1 s"

[qos.batch]
min_runtime = "0 s"
grace = "1 s"
"""


class HubPool:
    """A pool, its hub, and the notebooks of its users."""

    def __init__(self, folder: Path, slots: int, *options: str, **environ: str) -> None:
        """Start it, with more options, and variables of the hub's own environment."""
        self._folder, self._numbers = folder, itertools.count()
        self._quotas = folder / "quotas.toml"
        self._quotas.write_text(SHORT)
        self._hub = FakeHub()
        self._thread = threading.Thread(target=self._hub.serve_forever)
        self._thread.start()
        hub = {
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{self._hub.server_address[1]}/hub/api",
            "JUPYTERHUB_API_TOKEN": "service",
        }
        options = ("--slots", str(slots), "--Pool.preload=numpy", f"--Pool.quota_file={self._quotas}", *options)
        self.process = PoolProcess(folder / "pool", *options, hub=hub | environ)
        self._opened: list[Notebook] = []

    @property
    def ledger(self) -> str:
        """The database."""
        return f"sqlite:///{self.process.folder / 'ledger.sqlite'}"

    def obey(self, quotas: str) -> None:
        """Write the quota file, with short graces, and wait until it holds."""
        mark = f"written-{next(self._numbers)}"
        self._quotas.write_text(f"{quotas}\n{SHORT}\n[projects.{mark}]\n")
        until(lambda: mark in self.projects(), "the quota file to be read")

    def projects(self) -> dict[str, console.ProjectRow]:
        """How each project stands."""
        report = client.ask(client.find_pool(self.process.folder, is_named=True), console.AskProjects())
        assert isinstance(report, console.ProjectReport)
        return {row.project: row for row in report.projects}

    def count(self, state: str) -> int:
        """How many slots are in a state."""
        return sum(slot.state == state for slot in self.process.picture().slots)

    def open(self, user: str, group: str) -> Notebook:
        """Open a notebook of a user, who is in one group: always the same one, which brokers remember."""
        self._hub.users[f"{user}-token"] = {"name": user, "kind": "user", "scopes": [SCOPE]}
        self._hub.groups[user] = [group]
        connection = self.process.connection
        environ = {
            "BULLETIN_ADDRESS": connection.address,
            "BULLETIN_PUBLIC_KEY": connection.public_key,
            "JUPYTERHUB_API_TOKEN": f"{user}-token",
        }
        self._opened.append(Notebook(environ, self._folder))
        return self._opened[-1]

    def close_notebooks(self) -> None:
        """Close all notebooks, and wait until the pool is empty."""
        while self._opened:
            notebook = self._opened.pop()
            notebook.interrupt()  # should a cell of a test that failed run there: what comes right after it is aborted
            until(partial(_has_stopped, notebook), "the cell that was interrupted to end")
            notebook.close()
        until(lambda: self.count("free") == len(self.process.picture().slots), "all slots to be free again")

    def stop(self) -> None:
        """End the pool and its hub."""
        self.process.stop()
        self._hub.shutdown()
        self._hub.server_close()
        self._thread.join()


def _has_stopped(notebook: Notebook) -> bool:
    return bool(notebook.run("%gpu stop").reply["status"] == "ok")
