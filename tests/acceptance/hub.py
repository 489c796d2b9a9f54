"""A whole hub for tests: the real jupyterhub_config.py, in a folder and on ports of its own."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

REPOSITORY = Path(__file__).parents[2]
CONFIG = REPOSITORY / "jupyterhub_config.py"
START_S = 180.0

#: The real configuration, with a pool of one slot for the members of one group, and an API token for the test.
_TEST_CONFIG = """\
import os
import bulletin_spawner.setup as setup

options = ["--slots=1", "--device=cpu", "--Pool.leave_grace=1"]
test = {{"groups": ["course"], "pool_args": options, "manage_from_servers": False}}
setup.configure = lambda c, real=setup.configure, **given: real(c, **(given | test))
load_subconfig({config!r})
c = get_config()
c.JupyterHub.load_groups = {{"course": {{"users": ["ada", "bob", "newcomer", "student"]}}}}
c.JupyterHub.services.append({{"name": "test", "api_token": os.environ["BULLETIN_TEST_TOKEN"]}})
c.JupyterHub.load_roles.append({{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "tokens", "access:servers", "access:services", "shutdown"]}})
"""


@contextmanager
def _unless(status: int) -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != status:
            raise


class Hub:
    """Started by `start`, stopped by `stop`. `api` speaks as an administrator's program."""

    def __init__(self, folder: Path, config: str = "", under: Sequence[str] = ()) -> None:
        """Take the text of a configuration of its own, and the command under which it is started, if there are any.

        Such a configuration asks for `_TEST_CONFIG`'s service by itself, and writes where it is to `run / "address"`.
        """
        self.folder = folder
        self._config, self._under = config or _TEST_CONFIG.format(config=str(CONFIG)), under
        self._token = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    @property
    def run(self) -> Path:
        """What jupyterhub_config.py calls its run folder."""
        return self.folder / "run"

    def start(self) -> None:
        """Start it, and wait until its health page answers. Started again, it is where it was."""
        config = self.folder / "jupyterhub_config.py"
        config.write_text(self._config)
        environment = {
            **os.environ,
            "BULLETIN_RUN": str(self.run),
            "BULLETIN_PORT": str(urlsplit(self.address).port or 0),
            "BULLETIN_TEST_TOKEN": self._token,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        environment.pop("BULLETIN_ADDRESS", None)
        with (self.folder / "hub.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self._under, sys.executable, "-m", "jupyterhub", "-f", str(config)],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_S
        while not self._is_healthy():
            assert self._process.poll() is None, f"the hub ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"the hub does not start:\n{self.log()}"
            time.sleep(0.25)  # the one way to learn that a hub is up is to ask

    def stop(self) -> None:
        """Stop it as Ctrl-C in `make.py run` does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def log(self) -> str:
        """The end of what the hub, its service, its pool and its proxy have said."""
        return (self.folder / "hub.log").read_text(errors="replace")[-6000:]

    def left_over(self) -> list[str]:
        """Processes that have to do with this hub's folder: there are none after `stop`."""
        found, folder = [], str(self.folder).encode()
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit():
                    words = (entry / "cmdline").read_bytes()
                    traces = (words, (entry / "environ").read_bytes(), bytes((entry / "cwd").readlink()))
                    if any(folder in trace for trace in traces):
                        found.append(words.replace(b"\0", b" ").decode())
            except OSError:
                continue  # gone meanwhile, or another user's
        return found

    def command_lines(self) -> str:
        """The command lines of all processes of this host that can be read."""
        lines = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit():
                    lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
        return "\n".join(lines)

    def api(self, method: str, path: str, body: object = None, token: str | None = None, base: str = "/hub/api") -> Any:
        """Ask the hub, or (with another `base`) a server behind it. Raises urllib.error.HTTPError."""
        with self._ask(method, base + path, body, token) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def token_of(self, user: str) -> str:
        """A token with which to use this user's server, as their browser does."""
        token: str = self.api("POST", f"/users/{user}/tokens", {"note": "acceptance test"})["token"]
        return token

    def make_user(self, user: str) -> None:
        """Make the user, unless there is one."""
        with _unless(409):
            self.api("POST", f"/users/{user}")

    def start_server(self, user: str) -> None:
        """Make the user and start their server, if it does not run; returns when it is ready."""
        self.make_user(user)
        with _unless(400):  # it runs
            self.api("POST", f"/users/{user}/server")
        with self._ask("GET", f"/hub/api/users/{user}/server/progress") as events:
            for line in events:
                if line.startswith(b"data:"):
                    event = json.loads(line[5:])
                    assert not event.get("failed"), f"{event}\n{self.log()}"
                    if event.get("ready"):
                        return
        raise AssertionError(f"the server of {user} is not ready:\n{self.log()}")

    def _ask(self, method: str, path: str, body: object = None, token: str | None = None) -> HTTPResponse:
        request = urllib.request.Request(
            self.address + path,
            method=method,
            data=json.dumps(body).encode() if body is not None else (b"" if method == "POST" else None),
            headers={"Authorization": f"token {token or self._token}", "Accept": "application/json, text/event-stream"},
        )
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=120)
        return answer

    def _is_healthy(self) -> bool:
        try:
            self.address = (self.run / "address").read_text()
            with urllib.request.urlopen(self.address + "/hub/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, ValueError):
            return False
