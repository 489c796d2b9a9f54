"""Breaks the scheduler on purpose, bug by bug, and sees whether its tests notice: `python3 make.py mutants`.

Each bug has a process of its own, forked from one that has imported all but the scheduler. The files stay as they are,
so leave the scheduler alone meanwhile. Histories that are kept with a digest take no part: they notice every
difference, also one that breaks no promise.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from functools import partial
from pathlib import Path

from tests.mutants import trial
from tests.mutants.catalogue import MUTANTS, Mutant

_NAMES = """
    periods projects scenarios quotas changed_quotas budgets past_use reclaim resources promises rules_of_promises
    inside_projects patience credits class_hours timetable reservations prices lending backfill sharing drain
    planned_drains by_hand pause coverage crowd deferral kept_leases awaited_nodes own_nodes
"""
PROMISES = "tests/scheduler/promises"
TESTS = [
    *(f"tests/scheduler/test_{name}.py" for name in _NAMES.split()),
    PROMISES,
    "tests/scheduler/test_histories.py",
]
#: Which test of the promises noticed a mutant last time: it is run first. `--learn` writes it.
NOTICED_BY = Path(__file__).with_name("noticed_by.json")
ENOUGH = 0.95


def main() -> int:
    """Print a table; 1 if too many survive, or if the code as it is does not pass."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these mutants")
    parser.add_argument("--promises", action="store_true", help="with nothing but tests/scheduler/promises")
    parser.add_argument(
        "--learn", action="store_true", help="keep which of these tests notices which mutant, for next time"
    )
    parser.add_argument("--jobs", type=int, default=1, help="so many at once")
    arguments = parser.parse_args()
    chosen = [one for one in MUTANTS if not arguments.names or one.name in arguments.names]
    if arguments.promises:
        chosen = [one for one in chosen if not one.unseen]
    noticed_by: dict[str, str] = json.loads(NOTICED_BY.read_text())
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile everything anew
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hypothesis", "msgspec", "tests.mutants.trial"])
    began_s = time.monotonic()
    ends = []
    with context.Pool(arguments.jobs, maxtasksperchild=1) as pool:
        test = partial(_test, tests=[PROMISES] if arguments.promises else TESTS, noticed_by=noticed_by)
        control = pool.apply(test, (None, {}))
        print(f"control: {control.end} {control.by} ({sum(control.seconds.values()):.0f} s)\n", flush=True)
        if control.end != "survived":
            return 1
        print("| mutant | what it breaks | noticed by |\n| --- | --- | --- |", flush=True)
        found = pool.imap(partial(test, usual_s=control.seconds), chosen)
        for mutant, verdict in zip(chosen, found, strict=True):
            ends.append(verdict.end)
            by = verdict.by.rpartition("/")[2].replace("::", ": ")
            by = by if verdict.end == "caught" else f"**{verdict.end}** {by}"
            print(f"| {mutant.name} | {mutant.promise} | {by} |", flush=True)
            if arguments.learn:
                _learn(noticed_by, mutant, verdict)
    caught = sum(end in ("caught", "hangs") for end in ends)
    took_s = time.monotonic() - began_s
    hang = ends.count("hangs")
    print(f"\n{caught} of {len(ends)} noticed, {caught / len(ends):.1%}; {hang} of them hang; {took_s:.0f} s")
    return 0 if caught >= ENOUGH * len(ends) else 1


def _test(
    mutant: Mutant | None, usual_s: dict[str, float], tests: list[str], noticed_by: dict[str, str]
) -> trial.Verdict:
    return trial.run(mutant, tests, noticed_by.get(mutant.name, "") if mutant else "", usual_s)


def _learn(noticed_by: dict[str, str], mutant: Mutant, verdict: trial.Verdict) -> None:
    noticed_by.pop(mutant.name, None)
    if verdict.by:
        noticed_by[mutant.name] = verdict.by
    NOTICED_BY.write_text(json.dumps(noticed_by, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
