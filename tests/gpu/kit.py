#!/usr/bin/env python3
"""Take the GPU suite to a machine with a GPU and no network: Linux, x86-64, Python 3.12 with torch, numpy and pip.

    python3 tests/gpu/kit.py gather        fill .gpu-kit/ with wheels, tests and the script `run`; needs a network
    python3 tests/gpu/kit.py run [ARGS]    there: install what was gathered, run the suite, print its figures
    sh .gpu-kit/run [ARGS]                 the same, where nothing but .gpu-kit/ was carried along

`run --figures FILE` also writes the figures to FILE. Other ARGS go to pytest; a path among them replaces tests/gpu.
What `run` installs is gone when it ends; nothing of the machine's own Python is changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON_THERE = (3, 12)
LIMIT_BYTES = 60_000_000
#: pip takes these tags word for word: a wheel for an older glibc needs its own.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 26, 24, 17)] + [
    "manylinux2014_x86_64",
    "manylinux1_x86_64",
]
#: What the tests need beyond Bulletin and its pool. pyproject.toml asks for the timeout.
TOOLS = ("ipykernel", "jupyter-client", "psutil", "pytest", "pytest-timeout")
PACKAGES = ("bulletin", "bulletin_magic", "bulletin_spawner", "gpu_worker")
TESTS = ("tests/__init__.py", "tests/integration", "tests/gpu", "pyproject.toml")
RUN = '#!/bin/sh\nexec python3 "$(dirname "$0")/tests/gpu/kit.py" run "$@"\n'


class Problem(Exception):
    """What stands in the way, as a sentence for the person at the keyboard."""


def do(*command: object, **options: object) -> None:
    words = [str(word) for word in command]
    code = subprocess.run(words, check=False, **options).returncode  # type: ignore[call-overload]
    if code:
        raise Problem(f"this failed with {code}: {' '.join(words)}")


def files(*names: str) -> list[Path]:
    """The files of the checkout below these names, caches left out."""
    found = []
    for name in names:
        path = ROOT / name
        found += [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def digest() -> str:
    """What the checkout's code and tests say now."""
    told = hashlib.sha256()
    for path in files(*PACKAGES, *TESTS):
        told.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return told.hexdigest()


def gather(kit: Path) -> None:
    """Fill the kit anew. Versions are those of requirements/test.txt."""
    shutil.rmtree(kit, ignore_errors=True)
    wheels = kit / "wheels"
    wheels.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip"]
    do(*pip, "wheel", "-qq", "--no-deps", "--wheel-dir", wheels, ROOT)
    (ours,) = wheels.iterdir()
    # pip wants a hash of our own wheel, too, where it is given any.
    pins = re.findall(r"^\S+==[^\\\n]*", (ROOT / "requirements" / "test.txt").read_text(), re.MULTILINE)
    (kit / "versions.txt").write_text("\n".join(pins))
    do(
        *(*pip, "download", "-qq", "--only-binary=:all:", "--implementation", "cp", "--dest", wheels),
        *("--python-version", ".".join(map(str, PYTHON_THERE))),
        *(word for platform in PLATFORMS for word in ("--platform", platform)),
        *("--constraint", kit / "versions.txt", f"{ours}[pool]", *TOOLS),
    )
    for path in files(*TESTS):
        target = kit / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    (kit / "digest").write_text(digest())
    (kit / "run").write_text(RUN)
    (kit / "run").chmod(0o755)
    size = sum(path.stat().st_size for path in kit.rglob("*") if path.is_file())
    print(f"{kit.name}: {len(list(wheels.iterdir()))} wheels and the tests, {size / 1e6:.1f} MB")
    if size > LIMIT_BYTES:
        shutil.rmtree(kit)
        raise Problem(f"that is more than the {LIMIT_BYTES / 1e6:.0f} MB that a kit may have, and was thrown away.")


def run(kit: Path, arguments: list[str]) -> int:
    """Install the kit into a folder that lives as long as the run, and test there; pytest's exit status."""
    if not (kit / "wheels").is_dir():
        raise Problem(f"there is no {kit.name} here. Fill it where there is a network: python3 tests/gpu/kit.py gather")
    if sys.version_info[:2] != PYTHON_THERE:
        raise Problem(
            f"the kit's wheels are for Python {'.'.join(map(str, PYTHON_THERE))}; this is {sys.version.split()[0]}."
        )
    if kit != ROOT and (kit / "digest").read_text() != digest():
        raise Problem("code or tests have changed since the kit was gathered. Gather again.")
    keep = None
    if "--figures" in arguments:
        at = arguments.index("--figures")
        keep = Path(*arguments[at + 1 : at + 2]).resolve()
        arguments = arguments[:at] + arguments[at + 2 :]
    with tempfile.TemporaryDirectory(prefix="bulletin-gpu-") as scratch:
        site, figures = Path(scratch, "site"), Path(scratch, "figures.jsonl")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTEST_"))}
        do(  # with dependencies: a wheel that was forgotten is an error here, not in the middle of a test
            *(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-cache-dir", "--no-compile"),
            *("--disable-pip-version-check", "--target", site, *sorted((kit / "wheels").iterdir())),
            env=clean | {"PIP_CONFIG_FILE": os.devnull, "PIP_ROOT_USER_ACTION": "ignore"},
        )
        pytest = [sys.executable, "-m", "pytest"]
        done = subprocess.run(
            [*pytest, "-p", "pytest_timeout", "-p", "no:cacheprovider", "-o", "testpaths=tests/gpu", *arguments],
            cwd=kit,  # no Bulletin lies here: what is tested is the wheel, in every process
            env=clean
            | {
                "PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")])),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the machine's other plugins are not ours to test
                "GPU_SUITE_FIGURES": str(figures),
            },
            check=False,
        )
        told = figures.read_text() if figures.exists() else ""
        sys.stdout.write(told or "no figures: nothing was measured\n")
        if keep is not None:
            keep.write_text(told)
        return done.returncode


def main(words: list[str]) -> int:
    kit = ROOT if (ROOT / "wheels").is_dir() else ROOT / ".gpu-kit"
    try:
        match words:
            case ["gather"] if kit != ROOT:
                gather(kit)
                return 0
            case ["run", *arguments]:
                return run(kit, arguments)
    except Problem as problem:
        print(f"kit.py: {problem}", file=sys.stderr)
        return 1
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
