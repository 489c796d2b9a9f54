"""A pool of the user's own, as a process beside the kernels: found if it runs, else started.

Not filelock: the pool inherits the lock with its descriptor and holds it after this process has let go, and the library
closes its descriptors in children.
"""

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import zmq

from bulletin.errors import BadConfig, NoPool
from bulletin.own_pool_facts import can_start, name_folder
from bulletin.wire import channel
from bulletin.wire.frames import pack
from bulletin.wire.keys import Connection, read_private
from bulletin.wire.messages import Ping

_START_S = 60.0
#: How often a pool that comes up is looked for.
_POLL_S = 0.05
_ANSWER_MS = 3_000
_IDLE_EXIT_S = 600
_LOG = "pool.log"
_LOG_LINES = 15
#: Pools that this kernel started. They outlive it; one that ended meanwhile is reaped when the next is looked for.
_started: list[subprocess.Popen[bytes]] = []


def make_folder(environ: Mapping[str, str]) -> Path:
    """Make the folder of this user's pool for this interpreter, if need be, and close it to others."""
    own = name_folder(environ)
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    own.chmod(0o700)
    return own


def find_or_start(environ: Mapping[str, str], say: Callable[[str], None]) -> Connection:
    """Return the connection of a pool that answers; start one if there is none.

    Raises
    ------
    NoPool
        If the part that would start one is not installed, or it does not come up; with the end of its log.
    """
    home = make_folder(environ)
    _started[:] = [pool for pool in _started if pool.poll() is None]
    if (running := _connection_of_running(home)) is not None:
        return running
    if not can_start():
        raise NoPool(
            "There is no GPU pool here, and the part that would start one is not installed.",
            "Install it with: pip install 'bulletin[pool]', or name a pool with `%gpu connect PATH`.",
        )
    say("⏳ Starting a pool of your own …")
    return _start(home, environ)


def is_answering(connection: Connection) -> bool:
    """Tell whether a pool is there, and has the key that it should have."""
    url = urlsplit(connection.address)
    try:
        socket.create_connection((url.hostname or "", url.port or 0), timeout=_ANSWER_MS / 1000).close()
    except (OSError, ValueError):
        return False
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        probe = channel.connect(
            context.socket(zmq.DEALER), connection.address, connection.public_key, channel.CONTROL_LIMIT
        )
        channel.send(probe, connection.address, pack(Ping()))
        return bool(probe.poll(_ANSWER_MS))
    finally:
        context.destroy(linger=0)


def _connection_of_running(home: Path) -> Connection | None:
    try:
        connection = read_private(home / "connection.json", Connection)
    except (OSError, BadConfig):
        return None
    return connection if is_answering(connection) else None


def _start(home: Path, environ: Mapping[str, str]) -> Connection:
    """Start a pool unless one lives, and wait until it answers.

    The pool inherits the lock that its starter took, and so holds it for as long as it lives: another kernel never
    starts a second one beside a pool that is coming up, or that is just replacing a broker.
    """
    pool: subprocess.Popen[bytes] | None = None
    give_up_s = time.monotonic() + _START_S
    while time.monotonic() < give_up_s:
        with (home / "pool.lock").open("w") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if pool is not None:
                break  # the lock is free again: it has ended
            pool = _spawn(home, environ, lock.fileno())
        if (running := _connection_of_running(home)) is not None:
            return running
        time.sleep(_POLL_S)
    is_over = pool is not None and time.monotonic() < give_up_s
    how = f"ended with status {pool.wait()}" if pool and is_over else f"did not answer within {_START_S:.0f} s"
    log = home / _LOG
    raise NoPool(f"A pool of your own was started and {how}.", f"Its log, {log}, ends with:\n{_tail(log)}")


def _spawn(home: Path, environ: Mapping[str, str], lock: int) -> subprocess.Popen[bytes]:
    (home / "connection.json").unlink(missing_ok=True)
    command = [sys.executable, "-P", "-m", "gpu_worker.cli", "pool", "--folder", str(home)]
    command += ["--idle-exit", str(_IDLE_EXIT_S), "--isolation", "shared"]  # nobody else runs anything there
    clean = {name: value for name, value in environ.items() if not name.startswith(("JUPYTERHUB_", "JPY_"))}
    with os.fdopen(os.open(home / _LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        pool = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=clean,
            cwd=home,
            start_new_session=True,
            pass_fds=[lock],
        )
    _started.append(pool)
    return pool


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    return "\n".join(lines) or "(nothing)"
