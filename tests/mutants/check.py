"""Breaks the scheduler on purpose, bug by bug, and sees whether its tests notice: `python3 make.py mutants`.

Histories that are kept with a digest take no part: they notice every difference, also one that breaks no promise.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.mutants.catalogue import MUTANTS, Mutant
from tests.mutants.edits import mutated

HERE = Path(__file__).parents[2]
SCHEDULER = Path("gpu_worker") / "scheduler"
#: The quickest first. All in one process, which ends with the first test that fails.
_NAMES = """
    periods projects scenarios quotas reclaim resources promises rules_of_promises inside_projects patience shares
    credits class_hours timetable reservations prices lending backfill sharing drain planned_drains by_hand pause
    coverage crowd
"""
PROMISES = "tests/scheduler/promises"
TESTS = [
    *(f"tests/scheduler/test_{name}.py" for name in _NAMES.split()),
    PROMISES,
    "tests/scheduler/test_histories.py",
]
#: A mutant that takes so many times as long as the code as it is hangs.
PATIENCE, FIRST_LIMIT_S = 10, 600.0
ENOUGH = 0.95


class Verdict(NamedTuple):
    """What the tests said."""

    end: str  #: caught, hangs, survived or broken
    by: str
    seconds: float


def run(mutant: Mutant | None, limit_s: float = FIRST_LIMIT_S, tests: Sequence[str] = TESTS) -> Verdict:
    """Test a copy of the code, with the bug, or as it is."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("bulletin", "gpu_worker", "tests/scheduler", "tests/mutants"):
            shutil.copytree(HERE / name, root / name, ignore=ignored)
        shutil.copy(HERE / "tests" / "__init__.py", root / "tests")
        shutil.copy(HERE / "pyproject.toml", root)
        if mutant is not None:
            file = root / SCHEDULER / mutant.file
            file.write_text(mutated(file.read_text(), mutant))
        began_s = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "-p", "no:randomly", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.quick", "--tb=line", *(test for test in tests if (root / test).exists())]
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=root, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return Verdict("hangs", f"no end within {limit_s:.0f} s", time.monotonic() - began_s)
    lines = done.stdout.splitlines()
    failed = [line.removeprefix("FAILED ").partition(" - ")[0] for line in lines if line.startswith("FAILED ")]
    by = failed[0].rpartition("/")[2].replace("::", ": ") if failed else done.stdout[-300:]
    end = {0: "survived", 1: "caught"}.get(done.returncode, "broken")
    return Verdict(end, "" if end == "survived" else by, time.monotonic() - began_s)


def main() -> int:
    """Print a table; 1 if too many survive, or if the code as it is does not pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these mutants")
    parser.add_argument("--promises", action="store_true", help="with nothing but tests/scheduler/promises")
    parser.add_argument("--jobs", type=int, default=1, help="so many at once")
    arguments = parser.parse_args()
    chosen = [one for one in MUTANTS if not arguments.names or one.name in arguments.names]
    began_s = time.monotonic()
    tests = [PROMISES] if arguments.promises else TESTS
    control = run(None, tests=tests)
    print(f"control: {control.end} {control.by} ({control.seconds:.0f} s)\n", flush=True)
    if control.end != "survived":
        return 1
    print("| mutant | what it breaks | noticed by |\n| --- | --- | --- |", flush=True)
    ends = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        limits_s = [PATIENCE * control.seconds] * len(chosen)
        for mutant, verdict in zip(chosen, pool.map(partial(run, tests=tests), chosen, limits_s), strict=True):
            ends.append(verdict.end)
            by = verdict.by if verdict.end == "caught" else f"**{verdict.end}** {verdict.by}"
            print(f"| {mutant.name} | {mutant.promise} | {by} |", flush=True)
    caught = sum(end in ("caught", "hangs") for end in ends)
    took_s = time.monotonic() - began_s
    hang = ends.count("hangs")
    print(f"\n{caught} of {len(ends)} noticed, {caught / len(ends):.1%}; {hang} of them hang; {took_s:.0f} s")
    return 0 if caught >= ENOUGH * len(ends) else 1


if __name__ == "__main__":
    sys.exit(main())
