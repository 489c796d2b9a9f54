"""A few tests of a live machine are tried again, alone, where they fail beside all others; no other test is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.packages import ROOT

#: Fails the first time that it runs, or each time.
ONCE = """
from pathlib import Path

def test_{name}():
    ran = Path("{name}")
    is_first = not ran.exists()
    ran.touch()
    assert not is_first{always}
"""


def write_test(checkout: Path, folder: str, name: str, *, always: bool = False) -> None:
    path = checkout / "tests" / folder / f"test_{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ONCE.format(name=name, always=" and False" if always else ""))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with no more than what runs tests."""
    shutil.copytree(ROOT / "making", tmp_path / "making", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['tests']\n")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


def run_tests(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from making.second_try import run_tests; run_tests('-q', '-p', 'no:randomly')"]
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # most of the time would be theirs
    return subprocess.run(command, cwd=checkout, env=plain, capture_output=True, text=True, check=False)


def test_a_live_test_that_passes_alone_fails_nothing_and_is_named(checkout: Path) -> None:
    write_test(checkout, "integration", "cut")
    done = run_tests(checkout)
    assert done.returncode == 0, done.stderr
    assert "these passed only alone" in done.stderr
    assert "tests/integration/test_cut.py::test_cut" in done.stderr.splitlines()[-1]


def test_a_live_test_that_fails_again_has_failed(checkout: Path) -> None:
    write_test(checkout, "integration", "cut", always=True)
    done = run_tests(checkout)
    assert done.returncode != 0
    assert "this failed with 1" in done.stderr


def test_a_test_that_needs_nothing_live_is_not_tried_again_nor_those_beside_it(checkout: Path) -> None:
    write_test(checkout, "integration", "cut")
    write_test(checkout, "scheduler", "guarantee")
    done = run_tests(checkout)
    assert done.returncode != 0
    assert "run again" not in done.stderr


def test_where_many_fail_none_is_tried_again(checkout: Path) -> None:
    for number in range(7):
        write_test(checkout, "acceptance", f"page_{number}")
    done = run_tests(checkout)
    assert done.returncode != 0
    assert "run again" not in done.stderr


def test_where_not_all_tests_ran_none_is_tried_again(checkout: Path) -> None:
    write_test(checkout, "integration", "cut")
    (checkout / "tests" / "integration" / "conftest.py").write_text(
        "import os\n\ndef pytest_sessionfinish():\n    os._exit(3)\n"
    )
    done = run_tests(checkout)
    assert done.returncode != 0
    assert "run again" not in done.stderr
