"""In which order all tests run, what their processes keep, and what no test asks: how fast a machine is."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from bulletin.state.modules import sources
from tests.shares import deal

if settings.get_current_profile_name() in {"default", "ci"}:  # no other one was chosen on the command line
    settings.register_profile(
        "patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
    )
    settings.load_profile("patient")

# What one process of Python has compiled, all later ones read: tests start thousands, also where images forbid that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A kernel has none of the tests' modules. Here all are loaded, and each cell would look for what has changed in any.
sources.ON_EACH_SIDE |= {"tests"}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin each process with its live tests; inside a folder the order stays random.

    Who is done takes the last ones of others. So what a folder shares (a hub, a pool, an executor) is started in one
    or two processes, not in each, and what is taken at the end is short.
    """
    shares = deal(items, getattr(config, "workerinput", {}).get("workercount", 1))
    items[:] = [item for share in shares for item in share]
