"""Fixtures: one executor for all tests of this folder, a fresh notebook for each."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .notebook import Executor, Notebook


@pytest.fixture(scope="package")
def executor() -> Iterator[Executor]:
    child = Executor()
    yield child
    child.close()


@pytest.fixture
def notebook(executor: Executor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Notebook]:
    """A fresh notebook whose namespace is `__main__`, as in a kernel. The random state is put back afterwards."""
    book = Notebook(executor)
    monkeypatch.setitem(sys.modules, "__main__", book.module)
    monkeypatch.chdir(tmp_path)
    before = random.getstate()
    yield book
    random.setstate(before)
