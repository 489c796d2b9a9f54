"""Both folders, each as they are: the notebook's and the node's."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpu_worker.executor.leased_files import LeasedFiles
from tests.unit.gpu_worker.executor.both_folders import Both


@pytest.fixture(scope="package")
def leases() -> LeasedFiles:
    return LeasedFiles()


@pytest.fixture
def make(tmp_path: Path, leases: LeasedFiles) -> Iterator[Callable[[], Both]]:
    made: list[Both] = []

    def add() -> Both:
        made.append(Both(tmp_path / str(len(made)), leases))
        return made[-1]

    yield add
    for both in made:
        both.close()


@pytest.fixture
def both(make: Callable[[], Both]) -> Both:
    return make()
