"""The second try of tests that failed beside others: alone, and only those that play on a live machine."""

from __future__ import annotations

import json
from pathlib import Path

from making.processes import HERE, Failed, do, say
from making.python_environments import PYTHON

#: Folders of `tests` whose tests wait for kernels, hubs, browsers and other hosts. All others fail for a reason.
LIVE = ("acceptance", "conformance", "integration", "notebooks")
#: Where more fail, it is not the machine.
_MOST = 6
#: pytest's status where all tests ran and some failed.
_SOME_FAILED = 1
_FAILED = Path(".pytest_cache") / "v" / "cache" / "lastfailed"


def run_tests(*arguments: str) -> None:
    """Run all tests; then those live ones that failed, alone. What passes only then is a defect, and is named.

    A machine that runs something else beside the tests may let one of hundreds of live ones wait for too long. Raises
    what the first try did where a test fails again, where many failed, or one that needs nothing live.
    """
    try:
        do(PYTHON, "-m", "pytest", "--cache-clear", *arguments)
    except Failed as first:
        failed = sorted(json.loads((HERE / _FAILED).read_text())) if (HERE / _FAILED).exists() else []
        if first.status != _SOME_FAILED or not deserve_second_try(failed):
            raise
        say(f"{first}. Of all that ran, these failed, and are run again, alone: {', '.join(failed)}")
        try:
            do(PYTHON, "-m", "pytest", "-p", "no:cacheprovider", *failed)
        except Failed:
            raise first from None
        say(f"these passed only alone, which is a defect of theirs or of what they test: {', '.join(failed)}")


def deserve_second_try(failed: list[str]) -> bool:
    """Return whether these tests, by their ids, are few, and each is a live one."""
    return 0 < len(failed) <= _MOST and all(
        test.startswith(tuple(f"tests/{folder}/" for folder in LIVE)) for test in failed
    )
