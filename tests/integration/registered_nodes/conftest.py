"""A broker, and agents of registered nodes, each started by hand in a folder of its own."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.nodes import Part


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Part]]:
    """Start a broker or an agent, in a folder of this name."""
    with contextlib.ExitStack() as started:

        def start(part: str, name: str, *options: str) -> Part:
            one = Part(part, tmp_path / name, *options)
            started.callback(one.stop)
            return one

        yield start


@pytest.fixture
def broker(start: Callable[..., Part]) -> Part:
    """A broker without an agent."""
    broker = start("broker", "pool")
    broker.until_said("broker ready")
    return broker
