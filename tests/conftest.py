"""In which order all tests run, what their processes keep, and what no test asks: how fast a machine is."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if settings.get_current_profile_name() in {"default", "ci"}:  # no other one was chosen on the command line
    settings.register_profile(
        "patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
    )
    settings.load_profile("patient")

# What one process of Python has compiled, all later ones read: tests start thousands, also where images forbid that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

TESTS = Path(__file__).parent
#: Folders whose tests take longest, the longest first. All others come after them.
SLOW_FOLDERS = ("acceptance", "notebooks", "integration", "gpu", "conformance", "state", "scheduler")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, and keep those of a folder together; inside it the order stays random.

    So no process of the tests is left alone with a long test at the end, and what a folder shares (a hub, a pool, an
    executor) is started in one or two of them, not in each.
    """
    items.sort(key=lambda item: _rank(item.path))


def _rank(path: Path) -> int:
    folder = path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""
    return SLOW_FOLDERS.index(folder) if folder in SLOW_FOLDERS else len(SLOW_FOLDERS)
