"""One executor for all tests of this folder, and a fresh notebook for each."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.state.modules import sources

from .module_book import Book, Executor


@pytest.fixture(scope="package")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    child = Executor(tmp_path_factory.mktemp("executor"))
    yield child
    child.close()


@pytest.fixture
def book(executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Book]:
    """A fresh notebook, and an executor that knows nothing; afterwards this process has none of these modules."""
    folder = tmp_path / "notebook"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a cache takes two edits of one size in a second for one
    monkeypatch.chdir(folder)
    before, state = set(sys.modules), random.getstate()
    executor.start_anew()
    yield Book(folder, executor)
    random.setstate(state)
    for name in set(sys.modules) - before:
        if sources.location_of(name, sources.spec_in(sys.modules[name])) is not None:
            del sys.modules[name]
