"""What Debian has, where this may install it."""

from __future__ import annotations

import os
import shutil
import subprocess

from making.processes import Problem, do, say


def may_apt() -> bool:
    """Whether Debian's packages can be installed from here."""
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def apt(package: str) -> None:
    """Install a Debian package."""
    say(f"installing {package} with apt-get")
    quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    if subprocess.run(command, check=False, **quiet).returncode:  # type: ignore[call-overload]
        do("apt-get", "update", "-qq", **quiet)
        do(*command, **quiet)


def install_chromium() -> None:
    """Install the browser of the acceptance tests, from Debian. Elsewhere they are skipped, and say why."""
    if shutil.which("chromium"):
        return
    strict = bool(os.environ.get("CI"))
    if may_apt():
        apt("chromium")
    elif strict:
        raise Problem("CI runs every test, and the browser tests need chromium on PATH. Install Debian's chromium.")
    else:
        say("no chromium on PATH: browser tests will be skipped. On Debian: apt install chromium")
