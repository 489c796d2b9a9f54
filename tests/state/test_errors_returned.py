"""Errors of cells that code in C or Rust has made, or that cannot be loaded, and what a cell has done before them."""

import pytest

from tests.state.notebook import Notebook


def test_errors_that_a_library_in_rust_makes_arrive_as_themselves(notebook: Notebook) -> None:
    core = pytest.importorskip("pydantic_core")
    notebook.local("import pydantic_core as core")
    for raised, said in (
        ("core.PydanticKnownError('greater_than', {'gt': 3})", "Input should be greater than 3"),
        ("core.PydanticCustomError('odd', 'not {what}', {'what': 'even'})", "not even"),
        ("core.SchemaError('no such schema')", "no such schema"),
        ("core.PydanticOmit()", "PydanticOmit()"),
    ):
        error = notebook.gpu(f"done = {said!r}\nraise {raised} from ValueError('why')").extra["error"]
        assert (type(error), str(error), notebook["done"]) == (getattr(core, type(error).__name__), said, said)
    assert "union_error" in str(notebook.gpu("core.SchemaValidator({'type': 'union_error'})").extra["error"])


def test_an_error_in_rust_that_is_held_keeps_its_identity_its_cause_and_its_attributes(notebook: Notebook) -> None:
    pytest.importorskip("pydantic_core")
    notebook.local(
        "import pydantic_core as core\nerror = core.PydanticKnownError('greater_than', {'gt': 3})\n"
        "error.__cause__, held = KeyError('k'), [error]"
    )
    seen = notebook.gpu("error.note = 1\nerror is held[0], error.message(), repr(error.__cause__)").extra["result"]
    assert seen == (True, "Input should be greater than 3", "KeyError('k')")
    assert notebook.local("error.note, error is held[0], repr(error.__cause__)") == (1, True, "KeyError('k')")


def test_an_error_that_cannot_be_loaded_costs_nothing_of_what_the_cell_did(notebook: Notebook) -> None:
    notebook.local("kept = [1]\nclass Bad(Exception):\n  def __reduce__(self): return int, ('no number',)")
    applied = notebook.gpu("kept.append(2)\nnew = 3\nraise Bad(kept)")
    assert "error" not in applied.extra
    assert notebook.local("kept, new") == ([1, 2], 3)
    assert notebook.gpu("kept.append(new)\nkept").extra["result"] == [1, 2, 3]
    assert notebook["kept"] == [1, 2, 3]
