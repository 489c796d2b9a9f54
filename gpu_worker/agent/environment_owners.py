"""Whether nobody but root can change what root's zygote imports: what sshd's StrictModes asks of keys, of environments.

Only folders and what lies directly in those that Python imports from are looked at, and nothing of the environment is
run for it: with what somebody has put there, it could say anything.
"""

import grp
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from bulletin.errors import BadConfig
from gpu_worker.config import account_name

#: Where an installation has its modules, below its prefix; Debian's pythons have some in another one, too.
_LIBRARIES = ("lib/python3*", "lib64/python3*")
_SITES = ("site-packages", "dist-packages")
_DEBIAN = {Path("/usr"): Path("/usr/local")}
_MODULE_SUFFIXES = frozenset({".py", ".pyc", ".so", ".pth"})


def find_problem(python: str, python_path: str) -> str:
    """Say in a sentence why a zygote that is root must not run this interpreter; empty if it may.

    `python_path` is the variable PYTHONPATH that the zygote will have. Raises OSError if something cannot be looked at.
    """
    problem = find_changer(python, python_path)
    if not problem:
        return ""
    return (
        f"others than root can change the environment of {python}: {problem}. Its zygote is root, to start cells as "
        "their users (Pool.isolation is 'unix-user'), and would run what they put there. Run `chown -R root` and "
        "`chmod -R go-w` on what it consists of, or install it where only root writes"
    )


def find_changer(python: str, python_path: str) -> str:
    """Say who else can change what an interpreter would run, as a clause; empty if nobody can. Raises OSError."""
    steps: set[Path] = set()
    interpreter = Path(python).absolute()
    problem = _describe_path(interpreter, steps)
    folders = _find_import_folders(interpreter, python_path)
    # Nothing is read there that may be somebody else's: it could be a pipe without an end, or memory without one.
    while not problem and (folder := next(folders, None)) is not None:
        problem = _describe_folder(folder, steps)
    return problem


def describe_path(path: Path) -> str:
    """Say who else can change a file, or a folder or link on the way to it, as a clause; empty if nobody can."""
    return _describe_path(path.absolute(), set())


def require_roots() -> None:
    """Raise BadConfig where others can change what this program consists of, which is root to become them."""
    if problem := find_problem(sys.executable, os.environ.get("PYTHONPATH", "")):
        raise BadConfig(f"{problem[0].upper()}{problem[1:]}.")


def _find_import_folders(interpreter: Path, python_path: str) -> Iterator[Path]:
    """Find the folders that an interpreter imports from; some may not be there."""
    for word in filter(None, python_path.split(os.pathsep)):
        yield Path(word)
    prefixes = {interpreter.parent.parent, interpreter.resolve().parent.parent}
    for config in (interpreter.parent / "pyvenv.cfg", interpreter.parent.parent / "pyvenv.cfg"):
        if config.exists():
            yield config.parent
            prefixes |= {Path(home).parent for home in _read_homes(config)}
    prefixes |= {other for prefix, other in _DEBIAN.items() if prefix in prefixes}
    for prefix in sorted(prefixes):
        for library in (folder for pattern in _LIBRARIES for folder in sorted(prefix.glob(pattern))):
            yield from (library, library / "lib-dynload")
            for site in (library / name for name in _SITES):
                yield site
                yield from _read_path_files(site)


def _read_homes(config: Path) -> list[str]:
    """Read where the interpreter of a virtual environment comes from."""
    rows = (line.partition("=") for line in config.read_text().splitlines())
    return [value.strip() for key, _, value in rows if key.strip().lower() == "home"]


def _read_path_files(site: Path) -> Iterator[Path]:
    """Read which further folders the .pth files of a folder name, as the module site does."""
    for file in sorted(site.glob("*.pth")):
        for line in file.read_text(errors="replace").splitlines():
            if line.strip() and not line.startswith(("#", "import ", "import\t")):
                yield site / line.strip()


def _describe_folder(folder: Path, steps: set[Path]) -> str:
    """Say what is wrong with a folder that Python imports from, with what it lies in, and with the modules in it."""
    if not folder.is_absolute():
        return f"PYTHONPATH has {str(folder)!r}, which is another folder wherever it is used"
    problem = _describe_path(folder, steps)
    if problem or not folder.is_dir():
        return problem
    problem = _describe_entry(folder, may_be_sticky=False)
    with os.scandir(folder) as entries:
        for entry in entries:
            if not problem and (entry.name.isidentifier() or Path(entry.name).suffix in _MODULE_SUFFIXES):
                problem = _describe_path(Path(entry.path), steps)
    return problem


def _describe_path(path: Path, steps: set[Path]) -> str:
    """Say who else can change what a path leads to, by all folders and links on the way; empty if nobody.

    What was looked at is remembered in `steps`, and not looked at again.
    """
    return next(filter(None, (_describe_entry(step) for step in _walk(path, steps))), "")


def _walk(path: Path, steps: set[Path]) -> Iterator[Path]:
    for step in [*reversed(path.parents), path]:
        if step not in steps:
            steps.add(step)
            yield step
            if step.is_symlink():
                yield from _walk(step.parent.resolve() / step.readlink(), steps)


def _describe_entry(path: Path, *, may_be_sticky: bool = True) -> str:
    """Say who can change this one file or folder; empty if nobody but root, and whoever this process is."""
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return ""  # and where nobody else can make it, it stays so
    if facts.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to {account_name(facts.st_uid)!r}"
    is_sticky = stat.S_ISDIR(facts.st_mode) and bool(facts.st_mode & stat.S_ISVTX)
    if stat.S_ISLNK(facts.st_mode) or (is_sticky and may_be_sticky):  # in /tmp nobody can replace what is another's
        return ""
    if facts.st_mode & stat.S_IWOTH:
        return f"everybody can change {path}"
    if facts.st_mode & stat.S_IWGRP and facts.st_gid != 0:  # packages of conda are often writable by root's own group
        return f"the group {_group_name(facts.st_gid)!r} can change {path}"
    return ""


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
