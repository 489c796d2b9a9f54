"""Where a library is, is said even where a finder of a cell's fails; and nothing else is taken for it."""

import sys
from typing import Any

import pytest

from bulletin.libraries import find_spec


class Failing:
    def find_spec(self, *_: Any) -> None:
        raise KeyError("what it relies on")


class FailingLater:
    """Finds parts of packages no more."""

    def find_spec(self, name: str, *_: Any) -> None:
        if "." in name:
            raise KeyError(name)


def _fail(folder: str) -> Any:
    raise ValueError(folder)


def test_a_library_is_found_past_a_finder_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [Failing(), *sys.meta_path])
    found = find_spec("wave")
    assert found is not None
    assert str(found.origin).endswith("wave.py")


def test_a_part_of_a_package_is_no_library_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [FailingLater(), *sys.meta_path])
    assert find_spec("email.wave") is None


def test_nothing_is_found_where_no_finder_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [Failing()])
    monkeypatch.setattr(sys, "path", ["/nowhere-at-all"])
    monkeypatch.setattr(sys, "path_hooks", [_fail])
    assert find_spec("wave") is None
