"""Pools whose agents an engine starts, and what each engine needs for it on this host."""

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from bulletin.wire import keys
from gpu_worker.node_registry import NodeRegistry
from tests.clean_environ import clean_environ
from tests.integration.conftest import LEAVES_SOON, PATIENCE_S, until
from tests.integration.nodes import picture
from tests.processes import has_ended, is_running

#: Soon, so that tests need not wait.
SOON = ("--Scaling.look=0.3", "--Scaling.patience=0", LEAVES_SOON)
START = """#!/bin/sh
[ -e {stop} ] && {{ echo 'no host is left' >&2; exit 3; }}
folder={hosts}/$BULLETIN_NODE
mkdir -m 711 "$folder" && install -m 600 "$BULLETIN_NODE_FILE" "$folder/node.json" || exit 1
setsid {python} -m gpu_worker.cli agent --folder "$folder" --config "$BULLETIN_AGENT_CONFIG" \\
    > "$folder.log" 2>&1 < /dev/null &
echo $!
"""
STOP = "#!/bin/sh\nkill -TERM $BULLETIN_JOB 2>/dev/null\nexit 0\n"
#: A process that ended and that nobody waits for is none.
LOOK = "#!/bin/sh\nstate=$(ps -o stat= -p $BULLETIN_JOB)\ncase $state in ''|Z*) exit 1;; esac\n"


class EnginePool:
    """`bulletin pool` with an engine, in a folder of its own; its agents offer one CPU slot each."""

    def __init__(
        self, folder: Path, *options: str, environ: Mapping[str, str] | None = None, under: Sequence[str] = ()
    ) -> None:
        """Start it, by the command `under` if given."""
        self._under = under
        self.folder, self.log = folder, folder.with_name(f"{folder.name}.log")
        self._options, self._environ = options, dict(environ or {})
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        words = ["--device", "cpu", "--isolation", "shared", "--Pool.preload=numpy", "--host", "127.0.0.1", *SOON]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [
                    *self._under,
                    sys.executable,
                    "-m",
                    "gpu_worker.cli",
                    "pool",
                    "--folder",
                    str(self.folder),
                    *words,
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environ() | self._environ,
            )
        until(self.connection_file.exists, f"the pool; see {self.log}")
        return process

    @property
    def connection_file(self) -> Path:
        return self.folder / "connection.json"

    def agents(self) -> list[psutil.Process]:
        """The processes of its agents, wherever they were started."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            is_agent = "gpu_worker.cli" in words and "agent" in words
            if is_agent and str(self.folder.parent) in " ".join(words) and not has_ended(process):
                found.append(process)
        return found

    def nodes(self) -> set[str]:
        """The nodes that have slots in it."""
        seen = picture(self.folder)
        return set() if seen is None else {slot.node for slot in seen.slots}

    def registered(self) -> set[str]:
        """The nodes that may come."""
        return {node.node for node in NodeRegistry(self.folder).read()}

    def secrets(self) -> set[str]:
        """What nobody else may see: the secret keys of the pool and of its nodes."""
        found = {keys.read_private(self.folder / "pool.json", keys.PoolFile).keys.secret}
        for file in (self.folder / "agents").glob("*.node.json"):
            found.add(keys.read_private(file, keys.NodeFile).keys.secret)
        return found

    def kill(self) -> None:
        """Kill the pool's own processes, and nothing that they started elsewhere."""
        own = psutil.Process(self.process.pid)
        parts = [child for child in own.children() if is_running(child, "broker")]
        self.process.kill()
        self.process.wait(PATIENCE_S)
        for part in parts:
            part.wait(PATIENCE_S)
        self.connection_file.unlink(missing_ok=True)

    def start_again(self) -> None:
        self.process = self._start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def command_options(folder: Path) -> Sequence[str]:
    """Write the commands of an engine `command` that starts agents on this host; its settings."""
    folder.mkdir(mode=0o755)
    script = START.format(hosts=folder, python=sys.executable, stop=folder / "full")
    for name, content in (("start", script), ("stop", STOP), ("look", LOOK)):
        folder.joinpath(name).write_text(content)
        folder.joinpath(name).chmod(0o755)
    commands = [f"--CommandAgents.{name}={folder / name}" for name in ("start", "stop", "look")]
    return ["--engine", "command", "--slots", "1", *commands]


def slurm_options(*options: str) -> Sequence[str]:
    """Settings of an engine `slurm` whose nodes have a GPU of the cluster each."""
    return ["--engine", "slurm", "--slots", "1", "--SlurmAgents.gres=gpu:1", "--SlurmAgents.time=3600", *options]


def kill(processes: Sequence[psutil.Process]) -> None:
    """Kill agents, and wait until they are gone; one may be by itself."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, PATIENCE_S)
