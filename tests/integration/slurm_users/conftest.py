"""A cluster whose users are known where its jobs run."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_worker.agent.node_protections import find_namespace_problem
from tests.integration.slurm_cluster import Slurm, cluster
from tests.integration.slurm_users.accounts import UIDS
from tests.other_users import kept_mount_namespace, with_readable_python, with_users


@pytest.fixture
def home() -> Iterator[Path]:
    """Where the homes of the users are."""
    if os.getuid() != 0:
        pytest.skip("only root may become other users")
    if problem := find_namespace_problem():
        pytest.skip(f"no namespaces here: {problem}")
    # Not below pytest's folder, which is for its user alone.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


@pytest.fixture
def slurm(home: Path) -> Iterator[Slurm]:
    """A cluster that knows the users."""
    commands = [*with_readable_python(home), *with_users(home, UIDS)]
    with kept_mount_namespace(commands) as under, cluster(nodes=1, under=under) as made:
        yield made
