"""What tests of the scheduler ask for by name."""

from collections.abc import Iterator

import pytest

from tests.scheduler.bench import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A bench whose journal is replayed once the test is over."""
    bench = Bench()
    yield bench
    bench.replay()
