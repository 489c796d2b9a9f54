"""`bulletin doctor` names what environments lack, and runs no interpreter that others can change."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.doctor.conftest import SHARED, as_root, hub_file
from tests.integration.examining import examine


def make_environment(path: Path, bulletin: str = "") -> Path:
    """An environment of Python with nothing in it, or as if this Bulletin were; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
    python = path / "bin" / "python"
    if bulletin:
        (site,) = (path / "lib").glob("python*/site-packages")
        (site / f"bulletin-{bulletin}.dist-info").mkdir()
        (site / f"bulletin-{bulletin}.dist-info" / "METADATA").write_text(f"Name: bulletin\nVersion: {bulletin}\n")
    return python


def test_a_notebook_environment_lacks_what_it_needs(folder: Path, tmp_path: Path) -> None:
    folder.parent.chmod(0o755)
    examined = examine("--folder", folder, SHARED, f"--notebook-python={make_environment(tmp_path / 'bare')}")
    assert "pip install ipykernel" in examined.says("no-ipykernel")
    assert "%%gpu is unknown there" in examined.says("no-bulletin")
    examined = examine("--folder", folder, SHARED, f"--notebook-python={make_environment(tmp_path / 'old', '0.0.9')}")
    assert "has Bulletin 0.0.9, and the pool has" in examined.says("other-bulletin")
    examined = examine("--folder", folder, SHARED, "--notebook-python=/nowhere/python")
    assert "no interpreter" in examined.says("python-missing")


@as_root
@pytest.mark.parametrize("option", ["--notebook-python", "--hub-python"])
def test_root_runs_no_interpreter_whose_modules_others_can_change(folder: Path, tmp_path: Path, option: str) -> None:
    """That interpreter is root's, and so is each folder on the way; who writes into its modules would be root."""
    python, trap = make_environment(tmp_path / "course"), tmp_path / "ran"
    (site,) = (tmp_path / "course" / "lib").glob("python*/site-packages")
    (site / "sitecustomize.py").write_text(f"open({str(trap)!r}, 'w')\n")
    os.chown(site, 4711, 4711)
    examined = examine("--folder", folder, SHARED, "--hub", hub_file(tmp_path, ""), f"{option}={python}")
    assert f"{site} belongs to '4711'" in examined.says(option[2:].replace("notebook-", "") + "-foreign")
    assert not trap.exists()


def test_a_kernel_of_another_environment_is_looked_into(folder: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "jupyter" / "kernels" / "course"
    kernel.mkdir(parents=True)
    argv = [str(make_environment(tmp_path / "course")), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Course", "language": "python"}))
    examined = examine(
        "--folder", folder, SHARED, f"--notebook-python={sys.executable}", JUPYTER_PATH=str(tmp_path / "jupyter")
    )
    assert "The kernel 'course'" in examined.says("no-ipykernel")
