"""The wheel has everything: all modules, the hub's pages, the extension of JupyterLab, and what loads the magics."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("bulletin", "bulletin_lab", "bulletin_magic", "bulletin_spawner", "gpu_worker")
LAB = "share/jupyter/labextensions/@bulletin/lab"


def test_the_wheel_has_all_that_a_checkout_has_after_it_was_built(tmp_path: Path) -> None:
    if not os.environ.get("CI") and not (ROOT / "bulletin_lab" / "labextension").exists():
        pytest.skip("what is built of frontend/ is not there: python3 make.py wheel")
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(file.relative_to(ROOT)) for package in PACKAGES for file in (ROOT / package).rglob("*.py")}
    assert modules - names == set()
    assert {name.partition("/")[0] for name in names if not name.startswith("bulletin-")} == set(PACKAGES)
    assert {f"bulletin_spawner/service/static/built/pages.{kind}" for kind in ("js", "css")} <= names
    data = {name.partition(".data/data/")[2] for name in names}
    assert {f"{LAB}/package.json", f"{LAB}/install.json", "etc/ipython/startup/50-bulletin.py"} <= data
    assert any(name.startswith(f"{LAB}/static/remoteEntry.") for name in data)
