"""What the page decides by itself (when to ask, what to tell, what the button writes), by node's own test runner."""

import os
import subprocess

import pytest

from tests.house.packages import ROOT

TYPESCRIPT = ROOT / "node_modules" / "typescript" / "bin" / "tsc"


def test_the_pages_own_decisions_are_what_its_tests_say() -> None:
    if not TYPESCRIPT.exists():
        assert not os.environ.get("CI"), "CI installs what builds frontend/"
        pytest.skip("what builds frontend/ is not installed: python3 make.py lab")
    page = ROOT / "frontend" / "lab"
    for command in (["node", str(TYPESCRIPT), "-p", str(page)], ["node", "--test", str(page / "test")]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=page)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
    assert "# pass 0" not in done.stdout
