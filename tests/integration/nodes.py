"""Broker and agents as processes of their own, as on several hosts."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bulletin.wire import keys, messages as wire
from tests.integration.conftest import PATIENCE_S, Client, until

COMMAND = (sys.executable, "-m", "gpu_worker.cli")


def run(*words: str, under: Sequence[str] = (), status: int = 0) -> str:
    """What a command of ours prints, on both ways."""
    done = subprocess.run(
        [*under, *COMMAND, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=clean_environ()
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def clean_environ() -> dict[str, str]:
    """The environment without what tells of another pool."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTERHUB_", "BULLETIN_"))}


class Part:
    """A broker or an agent, with its log."""

    def __init__(
        self, part: str, folder: Path, *options: str, under: Sequence[str] = (), hub: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.log = folder, folder.with_name(f"{folder.name}.{part}.log")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*under, *COMMAND, part, "--folder", str(folder), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environ() | dict(hub or {}),
            )

    def until_said(self, words: str, times: int = 1) -> str:
        """Wait until its log has the words so often; all that it said."""
        until(lambda: self.log.read_text().count(words) >= times, f"{words!r} in {self.log}")
        return self.log.read_text()

    def stop(self) -> None:
        """The end, unless it has come."""
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def picture(folder: Path) -> wire.Picture | None:
    """The pool as its owner sees it; None before anybody may come."""
    try:
        connection = keys.read_private(folder / "connection.json", keys.Connection)
    except FileNotFoundError:
        return None
    client = Client(connection)
    try:
        client.hello(connection.token)
        client.send(wire.Look())
        while not isinstance(seen := client.receive(), wire.Picture):
            pass
        return seen
    finally:
        client.close()


def nodes(folder: Path) -> set[str]:
    """The nodes that have slots in the pool."""
    seen = picture(folder)
    return set() if seen is None else {slot.node for slot in seen.slots}
