"""The hub of this checkout: started, told, and ended with all that it started."""

from __future__ import annotations

import fcntl
import getpass
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from making.processes import HERE, Problem, say
from making.python_environments import PYTHON, VENV

RUN = Path(os.environ.get("BULLETIN_RUN", HERE / ".run")).resolve()
HUB_START_S = 180.0


def run_hub() -> None:
    """Start the hub, say where it is, and stop it with everything it started at Ctrl-C."""
    RUN.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(RUN / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    address = RUN / "address"
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        where = address.read_text() if address.exists() else "an address it has not told yet"
        raise Problem(f"this checkout's hub is already running, at {where}.") from None
    address.unlink(missing_ok=True)
    log = RUN / "hub.log"
    with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        # In a session of its own, so that Ctrl-C reaches the hub once, through us. It inherits the lock: while the hub
        # lives, there is no second one, even if we are killed.
        hub = subprocess.Popen(
            [str(PYTHON), "-m", "jupyterhub", "-f", str(HERE / "jupyterhub_config.py")],
            cwd=RUN,
            env={**os.environ, "BULLETIN_RUN": str(RUN), "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[lock],
        )
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # even where a script has us ignore them
        signal.signal(number, signal.default_int_handler)
    try:
        say("starting the hub")
        where = wait_until_healthy(hub, address, log)
        print(f"\n    {where}\n")
        print(f"    Log in as any name, with the password  {(RUN / 'password').read_text()}")
        print(f"    (as admin, with the one in {RUN / 'admin-password'})\n")
        print(
            f"    Everybody's cells run as {getpass.getuser()}, as this hub does: share the password with nobody whom"
        )
        print("    you do not trust with all that is yours. Other hubs choose: docs/howto/your-hub.md\n")
        print(f"    Ctrl-C stops the hub and its notebooks. The hub's log: {log}\n", flush=True)
        hub.wait()
        raise Problem(f"the hub has ended by itself. Its log: {log}")
    except KeyboardInterrupt:
        say("stopping the hub and its notebooks (Ctrl-C again: at once)")
    finally:
        stop(hub)
        address.unlink(missing_ok=True)


def wait_until_healthy(hub: subprocess.Popen[bytes], address: Path, log: Path) -> str:
    """Wait for the hub; return its address once it answers there."""
    deadline = time.monotonic() + HUB_START_S
    while hub.poll() is None and time.monotonic() < deadline:
        try:
            where = address.read_text()
            with urllib.request.urlopen(where + "/hub/health", timeout=5) as answer:  # noqa: S310  # our own hub
                if answer.status == 200:
                    return where
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.5)
    lines = log.read_text(errors="replace").splitlines()[-25:]
    raise Problem("\n".join(["the hub does not start. The end of its log:", *lines, f"All of it: {log}"]))


def stop(hub: subprocess.Popen[bytes]) -> None:
    """End the hub, which ends its service, servers and proxy. A second Ctrl-C does not wait for them."""
    if hub.poll() is not None:
        return
    hub.terminate()
    try:
        hub.wait(timeout=60)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        say("killing the hub; notebooks may be left running until the next start")
        hub.kill()
        hub.wait()
