"""What doctor is to look at: a pool that has or has not been started, and the file of a hub."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import PoolProcess
from tests.integration.examining import HUB

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away, and mounts")
SHARED = "--Pool.isolation=shared"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a pool that has not been started yet."""
    folder = tmp_path / "pool"
    folder.mkdir(mode=0o711)
    return folder


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PoolProcess]:
    pool = PoolProcess(tmp_path / "pool", "--slots", "1")
    yield pool
    pool.stop()


def hub_file(tmp_path: Path, text: str) -> Path:
    """A hub's file: what is right of it, and this."""
    path = tmp_path / "jupyterhub_config.py"
    path.write_text(HUB + text)
    return path


def configured(tmp_path: Path, *options: str) -> str:
    """The call of `configure` in a hub's file."""
    folder = str(tmp_path / "pool")
    return f"configure({', '.join(['c', f'folder={folder!r}', 'port=0', *options])})\n"
