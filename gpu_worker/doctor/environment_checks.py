"""The environments of notebooks and cells: the right Python, the same Bulletin, a kernel, and nobody else's hand."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from bulletin import __version__
from gpu_worker.agent import environment_owners
from gpu_worker.doctor.diagnosis import Diagnosis
from gpu_worker.doctor.file_owners import find_closed, is_there
from gpu_worker.doctor.pool_setup import PoolSetup

_TIMEOUT_S = 60.0
#: Run by the environment's own interpreter: what is in it, and which interpreters its kernels have.
_PROBE = r"""
import importlib.metadata, importlib.util, json, os, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
kernels = {}
if importlib.util.find_spec("jupyter_client"):
    from jupyter_client.kernelspec import KernelSpecManager
    for name, one in KernelSpecManager().get_all_specs().items():
        if one["spec"].get("language") == "python":
            kernels[name] = one["spec"]["argv"][0]
startup = os.path.join(sys.prefix, "etc", "ipython", "startup", "50-bulletin.py")
print(json.dumps({"python": "%d.%d" % sys.version_info[:2], "bulletin": version("bulletin"), "kernels": kernels,
    "ipykernel": version("ipykernel"), "msgspec": version("msgspec"), "has_startup": os.path.exists(startup)}))
"""


class EnvironmentFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an interpreter has, as it says itself. Versions are empty where a package is not there."""

    python: str
    bulletin: str
    ipykernel: str
    msgspec: str
    has_startup: bool
    #: The interpreter of each Python kernel that notebooks there can choose.
    kernels: dict[str, str]


def check_environments(setup: PoolSetup, named: Collection[str]) -> Iterator[Diagnosis]:
    """Look into the notebooks' environments: those that are named, else that of the hub's servers on this host."""
    pythons = dict.fromkeys(named) if named else dict.fromkeys(filter(None, (find_server_python(setup),)))
    seen: set[str] = set()
    queue = [(python, "") for python in pythons]
    if setup.settings.isolation == "unix-user" and os.getuid() == 0:
        yield from filter(None, map(_judge_reach, pythons))
    while queue:
        python, kernel = queue.pop(0)
        real = os.path.abspath(python)  # noqa: PTH100  a link of a virtual environment is not to be followed
        if real in seen:
            continue
        seen.add(real)
        where = f"The kernel {kernel!r} ({python})" if kernel else f"The notebooks' environment ({python})"
        facts, found = _look_into(python, where)
        yield from found
        if facts is not None:
            yield from _judge(facts, where, is_kernel=bool(kernel) or not facts.kernels)
            queue += [
                (shutil.which(one) or one, name) for name, one in facts.kernels.items() if Path(one).is_absolute()
            ]


def _look_into(python: str, where: str) -> tuple[EnvironmentFacts | None, list[Diagnosis]]:
    """Ask an interpreter what it has. One that others could change is not run by root."""
    if not os.access(python, os.X_OK):
        return None, [
            Diagnosis(
                check="python-missing",
                what=f"{where} has no interpreter that can be run.",
                why="Its notebooks do not start.",
                remedy="Name an interpreter that is there, or make the environment again.",
            )
        ]
    if os.getuid() == 0 and (who := _find_changer(python)):
        return None, [
            Diagnosis(
                check="python-foreign",
                what=f"{where} is not looked into: {who}.",
                why="This is root, which runs nothing that others can change.",
                remedy="Look into it as its owner: bulletin doctor --notebook-python=... there.",
                level="advice",
            )
        ]
    try:
        done = subprocess.run(
            [python, "-c", _PROBE], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True, cwd="/"
        )
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=EnvironmentFacts), []
    except (OSError, subprocess.SubprocessError, IndexError, msgspec.MsgspecError, json.JSONDecodeError) as error:
        return None, [
            Diagnosis(
                check="python-broken",
                what=f"{where} does not say what it has: {error}.",
                why="Its notebooks may not start.",
                remedy="Make the environment again.",
            )
        ]


def _find_changer(python: str) -> str:
    """Say who else can change what this interpreter would run: the modules of its environment are as good as it."""
    try:
        return environment_owners.find_changer(python, os.environ.get("PYTHONPATH", ""))
    except OSError as error:
        return f"it cannot be looked at ({error})"


def _judge_reach(python: str) -> Diagnosis | None:
    """Look whether all users come to an interpreter: a virtual environment's may lie in root's own folder."""
    at = find_closed(Path(python))
    if at is None:
        return None
    return Diagnosis(
        check="python-closed",
        what=f"The interpreter {python} lies behind {at}, where users of this host may not go.",
        why="Servers run it as their users: no notebook starts.",
        remedy="Make the environment with an interpreter that everybody may run, as /usr/bin/python3 is; or open that "
        "folder to them: chmod o+x (and o+r for files).",
    )


def _judge(facts: EnvironmentFacts, where: str, *, is_kernel: bool) -> Iterator[Diagnosis]:
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if is_kernel and not facts.ipykernel:
        yield Diagnosis(
            check="no-ipykernel",
            what=f"{where} has no ipykernel.",
            why="Notebooks of it do not start.",
            remedy="Run there: pip install ipykernel",
        )
    if not facts.bulletin:
        if is_kernel:
            yield Diagnosis(
                check="no-bulletin",
                what=f"{where} has no Bulletin.",
                why="%%gpu is unknown there.",
                remedy=f"Run there: pip install bulletin=={__version__}",
            )
        return
    if facts.bulletin != __version__:
        yield Diagnosis(
            check="other-bulletin",
            what=f"{where} has Bulletin {facts.bulletin}, and the pool has {__version__}.",
            why="They may not understand each other: cells are refused, or fail.",
            remedy=f"Run there: pip install bulletin=={__version__}",
        )
    elif not facts.has_startup and is_kernel:
        yield Diagnosis(
            check="no-startup",
            what=f"{where} has Bulletin, and its file etc/ipython/startup/50-bulletin.py is not there.",
            why="New kernels do not know %%gpu before `%load_ext bulletin_magic`.",
            remedy="Install it as a wheel: pip install --force-reinstall --no-deps bulletin",
        )
    if is_kernel and facts.python != own:
        yield Diagnosis(
            check="other-python",
            what=f"{where} has Python {facts.python}, and the pool runs cells with {own}.",
            why="Functions and classes of a notebook are code of its Python's version, which another does not run.",
            remedy="Give the pool an environment of that version (Pool.environments), or notebooks one of the pool's.",
            level="advice",
        )


def find_server_python(setup: PoolSetup) -> str:
    """Find the interpreter of the servers that the hub starts on this host; empty where that is not known."""
    facts = setup.hub
    if facts is None or not facts.is_local or not facts.server_command:
        return ""
    beside = Path(sys.executable).parent / facts.server_command[0]
    program = shutil.which(facts.server_command[0]) or (str(beside) if is_there(beside) else "")
    if not program:
        return ""
    try:
        with open(program, "rb") as file:  # noqa: PTH123
            first = file.readline(4096).decode(errors="replace")
    except OSError:
        return ""
    return first[2:].strip() if first.startswith("#!") and "python" in first else ""


def check_cell_environments(setup: PoolSetup) -> Iterator[Diagnosis]:
    """Look whether others could change what root's zygotes run; and whether the interpreters are there."""
    if setup.settings.isolation != "unix-user" or os.getuid() != 0:
        return
    for name, python in {"default": sys.executable, **setup.settings.environments}.items():
        try:
            problem = environment_owners.find_problem(python, os.environ.get("PYTHONPATH", ""))
        except OSError as error:
            problem = f"the environment of {python} cannot be looked at: {error}"
        if problem:
            yield Diagnosis(
                check="environment-foreign",
                what=f"The environment {name!r} of cells cannot be used: {problem}.",
                why="No cell runs there.",
                remedy="Install it anew as root in /opt, with a umask of 022.",
            )
