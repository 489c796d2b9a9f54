"""Fixtures: one executor for all tests of this folder, a fresh notebook for each."""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bulletin.state import registrations

from .notebook import Executor, Notebook


@pytest.fixture(scope="package")
def executor() -> Iterator[Executor]:
    child = Executor()
    yield child
    child.close()


@pytest.fixture
def notebook(executor: Executor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Notebook]:
    """A fresh notebook whose namespace is `__main__`, as in a kernel. The random state, and libraries, are put back."""
    book = Notebook(executor)
    monkeypatch.setitem(sys.modules, "__main__", book.module)
    monkeypatch.chdir(tmp_path)
    before = random.getstate()
    yield book
    random.setstate(before)
    registrations.forget()  # what it has put into libraries, which are one for all tests of a process


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Put a module of this name and text where libraries are installed, for one test; return the folder."""
    folder, names = tmp_path / "site-packages", list[str]()
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name: str, text: str) -> Path:
        (folder / f"{name}.py").write_text(text)
        names.append(name)
        return folder

    yield write
    for name in names:
        sys.modules.pop(name, None)
