#!/usr/bin/env python3
"""Everything one does with a checkout of Bulletin: run it, test it, check it. Needs Python >= 3.11, git, node >= 20.

    python3 make.py run              a hub on this computer; prints its address and how to log in
    python3 make.py test [ARGS]      lint, types, imports, and the tests, with the main job on the newest Python that is
                                     found, too; ARGS go to pytest
    python3 make.py soak [N]         links cut for 30 s and notebooks killed, at N random moments (20), 1,000 times as
                                     many random histories of the scheduler, and 50,000 times as many random messages
                                     on every link of a pool, and the notebooks of the zoo; takes long
    python3 make.py check            lint, types and imports only
    python3 make.py mutants [ARGS]   break the scheduler on purpose and see whether its tests notice; some minutes
    python3 make.py pictures         take the pictures of docs/images anew, in a browser
    python3 make.py lab              build the extension of JupyterLab; run and test do that where it has changed
    python3 make.py lock [ARGS]      compile requirements/ again from pyproject.toml; ARGS go to uv, as in --upgrade
    python3 make.py help             this text

What it installs goes into .venv and node_modules, what the hub keeps into .run, all in the checkout. The first call
installs; later ones see that nothing has changed.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
PYTHON = VENV / "bin" / "python"
RUN = Path(os.environ.get("BULLETIN_RUN", HERE / ".run")).resolve()
UV = "uv==0.13.8"
#: No dependencies: their tests run where pip can get them. pip, since uv does not look where pip does.
TORCH = "torch==2.13.0 accelerate==1.15.0"
PYTHON_NEEDED, NODE_NEEDED = (3, 11), 20
#: Minor versions of Python 3 that are looked for, the newest first.
PYTHON_MINORS = (14, 13, 12, 11)
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
HUB_START_S = 180.0
#: Files that an environment has a copy of, also where Bulletin is installed to be edited.
COPIED = ("bulletin_magic/startup.py", "bulletin_lab/server_config.json")
#: All tests, in more processes than cores: for half of its time a test waits for a kernel, a pool or a browser.
EVERYTHING = ("--numprocesses", str((os.cpu_count() or 1) + 1), "--dist", "worksteal")


class Problem(Exception):
    """What stands in the way, and what to do, as one sentence for the person at the keyboard."""


def say(text: str) -> None:
    """One line on stderr."""
    print(f"make.py: {text}", file=sys.stderr, flush=True)


def do(*command: object, **options: object) -> None:
    """Run a command, in the checkout unless `cwd` says otherwise. Its output is the message if it fails."""
    words = [str(word) for word in command]
    try:
        code = subprocess.run(words, check=False, **{"cwd": HERE, **options}).returncode  # type: ignore[call-overload]
    except FileNotFoundError:
        raise Problem(f"{words[0]} is not installed.") from None
    if code:
        raise Problem(f"this failed with {code}: {' '.join(words)}")


def works(*command: object) -> str | None:
    """Return what a short command prints, or None if it fails or is not there."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


# --- what there is to work with -------------------------------------------------------------------------------------


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


def check_node() -> None:
    """Raise Problem unless there is a node that runs the proxy, with npm."""
    version = works("node", "--version")
    if version is None or works("npm", "--version") is None:
        raise Problem(f"the hub's proxy needs node >= {NODE_NEEDED} with npm, and PATH has none. Install Node.js.")
    if int(version.lstrip("v").split(".")[0]) < NODE_NEEDED:
        raise Problem(f"the hub's proxy needs node >= {NODE_NEEDED}; this is {version}. Install a newer Node.js.")


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


# --- what is installed ----------------------------------------------------------------------------------------------


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


def install_proxy() -> None:
    """Install the hub's proxy and what builds frontend/, in the versions of package-lock.json."""
    check_node()
    stamp, now = HERE / "node_modules" / ".installed", digest(HERE / "package-lock.json")
    if stamp.exists() and stamp.read_text() == now:
        return
    say("installing the hub's proxy, and what builds its pages and the extension of JupyterLab, into node_modules")
    do("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", stdout=subprocess.DEVNULL)
    stamp.write_text(now)


def build_pages() -> None:
    """Build the pages of the hub's service by npm, where their sources have changed."""
    source, built = HERE / "frontend" / "pages", HERE / "bulletin_spawner" / "service" / "static" / "built"
    files = sorted(path for path in source.rglob("*") if path.is_file() and "node_modules" not in path.parts)
    stamp, now = built / ".built", digest(HERE / "package-lock.json", *files)
    if stamp.exists() and stamp.read_text() == now:
        return
    say("building the hub's pages")
    do("npm", "run", "--silent", "--workspace", "frontend/pages", "build")
    stamp.write_text(now)


def build_lab() -> None:
    """Build the extension of JupyterLab where its sources have changed, and let .venv's JupyterLab find it."""
    modules, source, built = HERE / "node_modules", HERE / "frontend" / "lab", HERE / "bulletin_lab" / "labextension"
    files = sorted(path for path in source.rglob("*") if path.is_file() and source / "lib" not in path.parents)
    stamp, now = built / ".built", digest(*files, HERE / "package-lock.json")
    if not stamp.exists() or stamp.read_text() != now:
        say("building the extension of JupyterLab")
        shutil.rmtree(built, ignore_errors=True)
        (core,) = VENV.glob("lib/python*/site-packages/jupyterlab/staging/package.json")
        builder = modules / "@jupyter" / "builder" / "lib" / "build-labextension.js"
        do("node", modules / "typescript" / "bin" / "tsc", "-p", source)
        do("node", builder, "--core-package-file", core, source, cwd=source, stdout=subprocess.DEVNULL)
        shutil.copyfile(source / "install.json", built / "install.json")
        stamp.write_text(now)
    link = VENV / "share" / "jupyter" / "labextensions" / "@bulletin" / "lab"
    if not (link.is_symlink() and link.resolve() == built.resolve()):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(built)


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


# --- the commands ---------------------------------------------------------------------------------------------------


def run(_: list[str]) -> None:
    """Start the hub, say where it is, and stop it with everything it started at Ctrl-C."""
    install("run")
    install_proxy()
    build_pages()
    try:
        build_lab()
    except Problem as problem:
        say(f"JupyterLab will show nothing of the pool, all else works: {problem}")
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
    """All checks, and all tests on all cores, or what the arguments say. Types are checked while the tests run."""
    install_chromium()
    install("test")
    install_proxy()
    build_pages()
    build_lab()
    install_torch()
    lint()
    types = subprocess.Popen([VENV / "bin" / "mypy", "--no-error-summary"], cwd=HERE, stdout=subprocess.PIPE, text=True)
    failed = []
    try:
        do(PYTHON, "-m", "pytest", *(arguments or EVERYTHING))
        if not arguments:
            test_newest()
    except Problem as problem:
        failed.append(str(problem))
    said, _ = types.communicate()
    if types.returncode:
        failed.append(f"the types are wrong:\n{said}")
    if failed:
        raise Problem("\n".join(failed))


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
    stamp, now = venv / ".installed", digest(pins, HERE / "pyproject.toml", HERE / "make.py")
    uv = VENV / "bin" / "uv"
    if not stamp.exists() or stamp.read_text() != now:
        do(uv, "venv", "--quiet", "--clear", "--python", python, venv)
        install_here = [uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python", "-c", pins]
        do(*install_here, "--editable", ".[pool]", *MAIN_JOB_NEEDS)
        stamp.write_text(now)
    do(venv / "bin" / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", MAIN_JOB)


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
    files = ["tests/integration/test_lost_links.py", "tests/integration/test_attach.py"]
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
