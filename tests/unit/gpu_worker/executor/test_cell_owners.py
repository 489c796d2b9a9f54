"""Whose a task or a thread is, which a context variable says that belongs to no library."""

import contextvars
import sys
from types import ModuleType

import pytest

from bulletin.ids import CellId
from bulletin.state.reducers.context_variables import place_of
from gpu_worker.executor.cell_owners import CellOwners


def test_libraries_are_not_searched_for_the_variable_of_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    context = contextvars.copy_context()
    context.run(CellOwners.own_context, CellId("the cell"))
    (variable,) = [one for one in context if context[one] == "the cell"]
    library = ModuleType("library_with_variables")
    library.held = variable  # type: ignore[attr-defined]  a search would find it
    monkeypatch.setitem(sys.modules, library.__name__, library)
    assert place_of(variable) is None
