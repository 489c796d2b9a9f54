"""Environments of Python: which Python there is, and what is installed into .venv."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from making.debian_packages import apt, may_apt
from making.processes import HERE, Problem, do, say, works

VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
UV = "uv==0.13.8"
#: No dependencies: their tests run where pip can get them. pip, since uv does not look where pip does.
TORCH = "torch==2.13.0 accelerate==1.15.0"
PYTHON_NEEDED = (3, 11)
#: Minor versions of Python 3 that are looked for, the newest first.
PYTHON_MINORS = (14, 13, 12, 11)
#: Files that an environment has a copy of, also where Bulletin is installed to be edited.
COPIED = ("bulletin_magic/startup.py", "bulletin_lab/server_config.json")


def find_python() -> str:
    """Find a Python that is new enough and that runs: this one, else what is on PATH."""
    if sys.version_info >= PYTHON_NEEDED:
        return sys.executable
    for minor in PYTHON_MINORS:
        path = find_minor(minor)
        if path:
            return path
    raise Problem(f"Bulletin needs Python 3.11 or newer; this is {sys.version.split()[0]}, and PATH has no newer one.")


def find_minor(minor: int) -> str | None:
    """Find a Python 3 of this minor version, on PATH or of pyenv, whose names on PATH may be shims that run nothing."""
    prefix = works("pyenv", "prefix", f"3.{minor}")
    for path in (f"python3.{minor}", *([f"{prefix}/bin/python"] if prefix else [])):
        found = works(path, "-c", "import sys, venv; print(sys.executable)")
        if found:
            return found
    return None


def make_venv() -> None:
    """.venv with uv in it. An environment whose Python went away is made again."""
    if works(PYTHON, "-c", "import sys; assert sys.version_info >= (3, 11)") is None:
        say("making .venv")
        shutil.rmtree(VENV, ignore_errors=True)
        python = find_python()
        makes_venv = (python, "-c", "import ensurepip, venv")
        if works(*makes_venv) is None and python.startswith("/usr/bin/") and may_apt():
            apt("python3-venv")  # Debian's Python comes without
        if works(*makes_venv) is not None:
            do(python, "-m", "venv", VENV)
        elif shutil.which("uv"):
            do("uv", "venv", "--quiet", "--seed", "--python", python, VENV)
        else:
            raise Problem(f"{python} cannot make environments. On Debian: apt install python3-venv (or install uv).")
    if works(VENV / "bin" / "uv", "--version") is None:
        do(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV)


def digest(*paths: Path) -> str:
    """Compute a digest of what these files say now."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def install(kind: str) -> None:
    """Install what requirements/KIND.txt names, if it has the hashes there, and Bulletin itself, to be edited."""
    make_venv()
    wanted = HERE / "requirements" / f"{kind}.txt"
    stamp, now = (
        VENV / f".installed-{kind}",
        digest(wanted, HERE / "pyproject.toml", *(HERE / name for name in COPIED)),
    )
    if stamp.exists() and stamp.read_text() == now:
        return
    say(f"installing requirements/{kind}.txt into .venv")
    uv = [VENV / "bin" / "uv", "pip", "install", "--quiet", "--python", PYTHON]
    do(*uv, "--require-hashes", "-r", wanted)
    do(*uv, "--no-deps", "--editable", ".")
    stamp.write_text(now)


def install_torch() -> None:
    """Install the one large library that tests want and nobody must have, and what needs it."""
    is_there = "from importlib.util import find_spec; assert find_spec('torch') and find_spec('accelerate')"
    if works(PYTHON, "-c", is_there) is not None:
        return
    tried = VENV / ".tried-torch"
    if tried.exists() and tried.read_text() == TORCH and not os.environ.get("CI"):
        return
    say(f"installing {TORCH} with pip")
    words = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *TORCH.split()]
    if subprocess.run(words, cwd=HERE, check=False).returncode:
        say(f"pip cannot get {TORCH}; tests marked torch will be skipped. Remove {tried} to try again.")
    tried.write_text(TORCH)
