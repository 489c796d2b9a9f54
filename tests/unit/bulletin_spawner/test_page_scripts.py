"""What the hub's pages decide in the browser, without one: the tests in frontend/pages/test, by Node."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.packages import ROOT

ESBUILD = ROOT / "node_modules" / ".bin" / "esbuild"


def test_pages_decide_as_frontend_pages_test_says(tmp_path: Path) -> None:
    if shutil.which("node") is None or not ESBUILD.exists():
        assert not os.environ.get("CI"), "CI has Node and what builds the pages"
        pytest.skip("there is no Node, or it has no modules: python3 make.py lab")
    tests = sorted((ROOT / "frontend" / "pages" / "test").glob("*.test.js"))
    bundle = [str(ESBUILD), *map(str, tests), "--bundle", "--platform=node", "--format=esm", f"--outdir={tmp_path}"]
    for command in ([*bundle, "--out-extension:.js=.mjs"], ["node", "--test", str(tmp_path)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
    assert "# pass 0" not in done.stdout
