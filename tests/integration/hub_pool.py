"""A pool of CPU slots that a hub manages: its users are several people, in groups, and its quota file changes."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
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


class ToldHub:
    """A hub that knows whom a test has told it."""

    def __init__(self, hub: FakeHub) -> None:
        self._hub = hub

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which a service of it knows it."""
        return {
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{self._hub.server_address[1]}/hub/api",
            "JUPYTERHUB_API_TOKEN": "service",
        }

    def add_user(self, name: str, group: str) -> str:
        """Let it know a user, who is in one group; the token of their server."""
        token = f"{name}-token"
        assert self._hub.groups.get(name, [group]) == [group], f"brokers remember {name}'s group: use another user"
        self._hub.users[token] = {"name": name, "kind": "user", "scopes": [SCOPE]}
        self._hub.groups[name] = [group]
        return token


@contextlib.contextmanager
def started_hub() -> Iterator[ToldHub]:
    """A hub that answers until the end of the block."""
    hub = FakeHub()
    with hub.serving():
        yield ToldHub(hub)


class HubPool:
    """A pool, its hub, and the notebooks of its users."""

    def __init__(self, folder: Path, slots: int, *options: str, under: Sequence[str] = (), **environ: str) -> None:
        """Start it, with more options, and variables of the hub's own environment; by the command `under` if given."""
        self._folder, self._numbers = folder, itertools.count()
        self._quotas = folder / "quotas.toml"
        self._quotas.write_text(SHORT)
        self._running = contextlib.ExitStack()
        self._hub = self._running.enter_context(started_hub())
        options = ("--slots", str(slots), "--Pool.preload=numpy", f"--Pool.quota_file={self._quotas}", *options)
        self.process = PoolProcess(folder / "pool", *options, hub=self._hub.environ | environ, under=under)
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
        connection = self.process.connection
        environ = {
            "BULLETIN_ADDRESS": connection.address,
            "BULLETIN_PUBLIC_KEY": connection.public_key,
            "JUPYTERHUB_API_TOKEN": self._hub.add_user(user, group),
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
        self._running.close()


def _has_stopped(notebook: Notebook) -> bool:
    return bool(notebook.run("%gpu stop").reply["status"] == "ok")
