"""Values of libraries that do not pickle, or not by what they say: they travel where all that they are can be seen."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin.errors import CannotSend
from tests.state.notebook import Notebook

LIBRARY = """
import numpy as np

class Design:
    def __init__(self, parts): self.parts = parts
    def __getstate__(self): raise NotImplementedError("not yet")

class Reader(Design):
    def __reduce__(self): raise TypeError("a reader is of its process")

class Matrix(np.ndarray):
    def __reduce__(self): raise NotImplementedError("not yet")

def made(name):
    class Mark:
        def __reduce__(self): return name
    return Mark()
"""


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("unwillinglib", LIBRARY)
    return notebook


def test_an_instance_that_refuses_to_pickle_is_as_any_other(library: Notebook) -> None:
    library.local("import unwillinglib; held = [1]; d = unwillinglib.Design(held); d.whole = d; both = [d]")
    library.gpu("held.append(2); d.parts.append(3); d.there = both[0] is d.whole")
    assert library["d"].there
    assert library["d"].parts is library["held"] == [1, 2, 3]
    assert library["both"][0] is library["d"]


def test_an_instance_that_refuses_and_holds_what_stays_is_refused_before_the_cell(library: Notebook) -> None:
    library.local("import unwillinglib; r = unwillinglib.Reader([open('/dev/null')])")
    with pytest.raises(CannotSend, match=r"'r'.*Reader"):
        library.gpu("r.parts")
    library.local("r.parts[0].close()")


def test_an_array_that_refuses_to_pickle_keeps_its_memory(library: Notebook) -> None:
    library.local("import unwillinglib, numpy as np; a = np.zeros(3); m = a.view(unwillinglib.Matrix); m.word = 'w'")
    library.gpu("m[1] = 5; m.word += '!'")
    assert library["a"].tolist() == [0, 5, 0]
    assert library["m"].word == "w!"


def test_a_value_that_names_a_name_of_the_notebook_needs_none(library: Notebook) -> None:
    library.local("import unwillinglib; MARK = unwillinglib.made('MARK'); d = {'x': MARK}")
    assert library.gpu("y = MARK; d['x'] is MARK").extra["result"] is True
    assert library["y"] is library["MARK"]


def test_a_class_in_a_part_of_a_package_that_nobody_imported_is_the_receivers_own(notebook: Notebook) -> None:
    pytest.importorskip("tokenizers")
    notebook.gpu("from tokenizers import trainers; t = trainers.BpeTrainer(vocab_size=40)")
    notebook.local("u = trainers.BpeTrainer(vocab_size=t.vocab_size)")
    assert type(notebook["u"]) is type(notebook["t"])
    assert notebook.gpu("type(t)(vocab_size=5).vocab_size, type(u) is trainers.BpeTrainer").extra["result"] == (5, True)


def test_a_view_in_c_looks_at_the_same_on_the_other_side(notebook: Notebook) -> None:
    multidict = pytest.importorskip("multidict")
    notebook.local("from multidict import MultiDict, MultiDictProxy; d = MultiDict(x=1); view = MultiDictProxy(d)")
    notebook.gpu("seen = [*view]; d['y'] = 2; other = MultiDictProxy(d)")
    assert notebook["seen"] == ["x"]
    assert [*notebook["view"]] == [*notebook["other"]] == ["x", "y"]
    assert type(notebook["view"]) is multidict.MultiDictProxy


def test_a_method_whose_function_stays_costs_itself_alone(notebook: Notebook) -> None:
    notebook.local(
        "import types\nclass Deep:\n  def __call__(self, of): return len(of)\n"
        "  def __reduce__(self): raise TypeError('of C++')"
    )
    notebook.gpu("box = [types.MethodType(Deep(), [1, 2]), 'all else']")
    assert notebook.local("box[1], type(box[0]).__name__") == ("all else", "Handle")
    assert notebook.gpu("box[0]()").extra["result"] == 2
