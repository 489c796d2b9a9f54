"""Whose hand can be in an environment: found in the folders that Python really imports from."""

import glob
import os
import re
import sys
import venv
from pathlib import Path

import pytest

from gpu_worker.agent.environment_owners import find_problem

#: Somebody else: where tests run as root.
OTHER = 4711


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an environment that is all ours."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def library(python: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return python.parent.parent / "lib" / version / "site-packages"


def test_an_environment_of_ones_own_is_in_nobody_elses_hand(python: Path) -> None:
    assert find_problem(str(python), "") == ""


@pytest.mark.parametrize("where", ["", "..", "bin", "lib", "lib/python3*/site-packages", "bin/python3"])
def test_nobody_else_may_write_to_what_an_environment_consists_of(python: Path, where: str) -> None:
    (changed,) = map(Path, glob.glob(f"{python.parent.parent}/{where}"))  # noqa: PTH207  Path.glob knows no ".."
    if changed.is_symlink():
        changed.unlink()
        changed.write_text("")
        python.unlink()
        python.symlink_to("python3")
    changed.chmod(0o777)
    assert f"everybody can change {changed.resolve()}" in find_problem(str(python), "")
    changed.chmod(0o775)
    if os.getuid() == 0:
        assert find_problem(str(python), "") == "", "root's own group is root"
        os.chown(changed, 0, OTHER)
    assert re.search(f"the group '.+' can change {changed.resolve()}", find_problem(str(python), ""))


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("what", ["interpreter", "folder", "package", "module", "path file"])
def test_nothing_of_it_may_be_anothers(python: Path, what: str) -> None:
    site = library(python)
    changed = {
        "interpreter": python,
        "folder": site,
        "package": site / "numpy",
        "module": site / "six.py",
        "path file": site / "local.pth",
    }[what]
    if what == "package":
        changed.mkdir()
    elif what in ("module", "path file"):
        changed.touch()
    assert find_problem(str(python), "") == ""
    os.lchown(changed, OTHER, OTHER)
    assert f"{changed} belongs to '{OTHER}'" in find_problem(str(python), "")


def test_folders_count_that_are_named_elsewhere(python: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    (library(python) / "local.pth").write_text(f"# not this\nimport os\n{shared}\n")
    assert f"everybody can change {shared}" in find_problem(str(python), "")
    (library(python) / "local.pth").unlink()
    assert f"everybody can change {shared}" in find_problem(str(python), f"/usr:{shared}")
    assert "another folder wherever it is used" in find_problem(str(python), "modules")


def test_links_on_the_way_count(python: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    moved = python.parent.parent.rename(shared / "environment")
    link = tmp_path / "link"
    link.symlink_to(shared)
    through = str(link / "environment" / "bin" / "python")
    assert moved.exists()
    assert find_problem(through, "") == ""
    shared.chmod(0o777)
    assert f"everybody can change {shared}" in find_problem(through, "")


def test_in_a_folder_like_tmp_what_is_ours_stays_ours_but_nothing_is_imported_from_it(
    python: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o1777)
    assert find_problem(str(python), "") == ""
    assert f"everybody can change {tmp_path}" in find_problem(str(python), str(tmp_path))


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("file", ["pyvenv.cfg", "lib/python3*/site-packages/_virtualenv.pth"])
def test_nothing_is_read_of_what_is_anothers(python: Path, file: str) -> None:
    """It could be a pipe that nobody writes to, and the agent would wait for that without end."""
    folder, _, name = f"{python.parent.parent}/{file}".rpartition("/")
    (changed,) = map(Path, glob.glob(folder))  # noqa: PTH207  as above
    (changed / name).unlink(missing_ok=True)
    os.mkfifo(changed / name)
    os.chown(changed, OTHER, OTHER)
    assert f"{changed} belongs to" in find_problem(str(python), "")
