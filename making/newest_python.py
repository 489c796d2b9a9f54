"""The main job on the newest Python that there is: `python -m making.newest_python`."""

from __future__ import annotations

import sys
from pathlib import Path

from making.processes import HERE, Problem, do, say, works
from making.python_environments import PYTHON, PYTHON_MINORS, PYTHON_NEEDED, VENV, digest, find_minor

#: What the newest Python must play: a cell's variables, output and errors, on a pool. And what that needs.
MAIN_JOB = "tests/integration/test_main_job.py"
#: (hypothesis: tests/conftest.py sets its profile for all tests.)
MAIN_JOB_NEEDS = (
    "hypothesis",
    "ipykernel",
    "jupyter-client",
    "matplotlib",
    "numpy",
    "psutil",
    "pytest",
    "pytest-timeout",
)


def test_newest() -> None:
    """The main job on the newest Python that is found, in an environment of its own, where it is newer than .venv's."""
    tested = int(works(PYTHON, "-c", "import sys; print(sys.version_info.minor)") or PYTHON_NEEDED[1])
    for minor in PYTHON_MINORS:
        python = find_minor(minor) if minor > tested else None
        if python is not None:
            break
    else:
        say(f"there is no Python newer than 3.{tested} here: the main job was tested on that alone")
        return
    say(f"the main job on Python 3.{minor}")
    venv = HERE / f".venv-3.{minor}"
    pins = HERE / "requirements" / "test.txt"
    stamp, now = venv / ".installed", digest(pins, HERE / "pyproject.toml", Path(__file__))
    uv = VENV / "bin" / "uv"
    if not stamp.exists() or stamp.read_text() != now:
        do(uv, "venv", "--quiet", "--clear", "--python", python, venv)
        install_here = [uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python", "-c", pins]
        do(*install_here, "--editable", ".[pool]", *MAIN_JOB_NEEDS)
        stamp.write_text(now)
    do(venv / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", MAIN_JOB)


if __name__ == "__main__":
    try:
        test_newest()
    except Problem as problem:
        sys.exit(str(problem))
