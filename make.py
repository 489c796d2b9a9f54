#!/usr/bin/env python3
"""Everything one does with a checkout of Bulletin: run it, test it, check it. Needs Python >= 3.11, git, node >= 20.

    python3 make.py run              a hub on this computer; prints its address and how to log in
    python3 make.py test [ARGS]      lint, types, imports, and the tests, with the main job on the newest Python that is
                                     found, too; ARGS go to pytest
    python3 make.py soak [N]         links cut for 30 s, hosts cut off for up to 60 s and notebooks killed, at N random
                                     moments (20), 1,000 times as many random histories of the scheduler, and 50,000
                                     times as many random messages on every link of a pool, and the notebooks of the
                                     zoo; takes long
    python3 make.py check            lint, types and imports only
    python3 make.py mutants [ARGS]   break the scheduler on purpose and see whether its tests notice; some minutes
    python3 make.py pictures         take the pictures of docs/images anew, in a browser
    python3 make.py wheel            build all of it as dist/bulletin-*.whl, which pip installs elsewhere, without npm
    python3 make.py docs             make a site of docs/, and say where
    python3 make.py lab              build the extension of JupyterLab; run and test do that where it has changed
    python3 make.py lock [ARGS]      compile requirements/ again from pyproject.toml; ARGS go to uv, as in --upgrade
    python3 make.py help             this text

What it installs goes into .venv and node_modules, what the hub keeps into .run, all in the checkout. The first call
installs; later ones see that nothing has changed.
"""

from __future__ import annotations

import os
import subprocess
import sys

from making.debian_packages import install_chromium
from making.front_ends import build_lab, build_pages, install_proxy
from making.local_hub import run_hub
from making.processes import HERE, Problem, do, say
from making.python_environments import PYTHON, VENV, install, install_torch, make_venv
from making.second_try import run_tests

#: All tests, in more processes than cores: for half of its time a test waits for a kernel, a pool or a browser.
EVERYTHING = ("--numprocesses", str((os.cpu_count() or 1) + 1), "--dist", "worksteal", "--durations", "60")


def run(_: list[str]) -> None:
    """Start the hub, say where it is, and stop it with everything it started at Ctrl-C."""
    install("run")
    install_proxy()
    build_pages()
    try:
        build_lab()
    except Problem as problem:
        say(f"JupyterLab will show nothing of the pool, all else works: {problem}")
    run_hub()


def check(_: list[str]) -> None:
    """Lint, format, types, import contracts."""
    install("test")
    lint()
    do(VENV / "bin" / "mypy", "--no-error-summary")


def lint() -> None:
    """Check what takes a second: lint, format, import contracts."""
    bin_ = VENV / "bin"
    do(bin_ / "ruff", "check", "--quiet", ".")
    do(bin_ / "ruff", "format", "--quiet", "--check", ".")
    do(bin_ / "lint-imports", stdout=subprocess.DEVNULL if not sys.stdout.isatty() else None)


def test(arguments: list[str]) -> None:
    """All checks, and all tests on all cores, or what the arguments say.

    Types are checked while the tests run, and the newest Python plays the main job.
    """
    install_chromium()
    install("test")
    install_proxy()
    build_pages()
    build_lab()
    install_torch()
    lint()
    beside = {"the types are wrong": _start(VENV / "bin" / "mypy", "--no-error-summary")}
    if not arguments:
        beside["the newest Python does not play the main job"] = _start(PYTHON, "-m", "making.newest_python")
    failed = []
    try:
        if arguments:
            do(PYTHON, "-m", "pytest", *arguments)
        else:
            run_tests(*EVERYTHING)
    except Problem as problem:
        failed.append(str(problem))
    for what, process in beside.items():
        said, _ = process.communicate()
        if process.returncode:
            failed.append(f"{what}:\n{said}")
        elif said:
            print(said, end="")
    if failed:
        raise Problem("\n".join(failed))


def _start(*command: object) -> subprocess.Popen[str]:
    """Start what runs beside the tests; what it says comes when they are over."""
    words = [str(word) for word in command]
    return subprocess.Popen(words, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def mutants(arguments: list[str]) -> None:
    """Run the scheduler's tests against bugs that were put in: names of mutants, or all."""
    install("test")
    do(PYTHON, "-m", "tests.mutants.check", *arguments)


def soak(arguments: list[str]) -> None:
    """Break at many moments what may break at any, play many histories of the scheduler, and a zoo of libraries."""
    install("test")
    count = arguments[0] if arguments else "20"
    if not count.isdecimal():
        raise Problem(f"{count!r} is not a number. Write how many moments: python3 make.py soak 20.")
    do(PYTHON, "-m", "tests.scheduler.promises.soak", int(count) * 1000)
    do(PYTHON, "-m", "tests.fuzz.soak", int(count) * 50_000)
    do(PYTHON, "-m", "tests.zoo.soak")
    names = ("test_lost_links", "test_random_cuts", "test_attach")
    files = [f"tests/integration/{name}.py" for name in names]
    do(PYTHON, "-m", "pytest", *files, env={**os.environ, "BULLETIN_SOAK": count})


def pictures(_: list[str]) -> None:
    """Take the pictures of JupyterLab that the docs show, by the tests that walk through it."""
    install_chromium()
    install("test")
    install_proxy()
    build_pages()
    build_lab()
    do(PYTHON, "-m", "pytest", "-m", "browser", "tests/acceptance", env={**os.environ, "BULLETIN_SCREENSHOTS": "1"})


def lock(arguments: list[str]) -> None:
    """Pin what the extras of pyproject.toml need, on every platform and Python that we support, by version and hash."""
    make_venv()
    uv = [VENV / "bin" / "uv", "pip", "compile", "--quiet", "--universal", "--no-header", "--no-annotate"]
    uv += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links"]
    uv += ["--python-version", "3.11", "pyproject.toml", *arguments]
    folder = HERE / "requirements"
    do(*uv, "--extra", "demo", "-o", folder / "run.txt", stdout=subprocess.DEVNULL)
    do(*uv, "--extra", "test", "-c", folder / "run.txt", "-o", folder / "test.txt", stdout=subprocess.DEVNULL)


def lab(_: list[str]) -> None:
    """Build the extension of JupyterLab."""
    install("run")
    install_proxy()
    build_lab()


def wheel(_: list[str]) -> None:
    """Build the wheel, with the hub's pages and the extension of JupyterLab in it, and say where it is."""
    install("run")
    install_proxy()
    build_pages()
    build_lab()
    do(VENV / "bin" / "uv", "build", "--quiet", "--wheel", "--out-dir", HERE / "dist", HERE)
    for built in sorted((HERE / "dist").glob("*.whl")):
        print(built)


def docs(_: list[str]) -> None:
    """Make a site of docs/; what a page leads to and is not there is an error."""
    install("test")
    site = HERE / "docs" / "_site"
    do(PYTHON, "-m", "sphinx", "--quiet", "-W", "--keep-going", "-b", "html", HERE / "docs", site)
    print(site / "index.html")


def help_(_: list[str]) -> None:
    """Print what this file is for."""
    print(__doc__)


COMMANDS = {
    "run": run,
    "test": test,
    "soak": soak,
    "check": check,
    "mutants": mutants,
    "pictures": pictures,
    "lock": lock,
    "wheel": wheel,
    "docs": docs,
    "lab": lab,
}
COMMANDS |= dict.fromkeys(("help", "--help", "-h"), help_)


def main(words: list[str]) -> int:
    """Run one command; its exit status."""
    command = COMMANDS.get(words[0] if words else "help")
    if command is None:
        say(f"no command {words[0]!r}. python3 make.py help shows them.")
        return 2
    try:
        command(words[1:])
    except Problem as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
