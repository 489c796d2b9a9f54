"""The one instance that a library has for everybody, and what people put into it, is the same one on both sides."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin.state import registrations

from .notebook import Notebook

LIBRARY = """
class Only(type):
    _instances = {}
    def __call__(cls):
        if cls not in cls._instances: cls._instances[cls] = super().__call__()
        return cls._instances[cls]

class Store(metaclass=Only):
    def __init__(self): self.kept = {"of the library": 1}

class Board:
    _board = None
    def __init__(self): self.notes = []
    @classmethod
    def get(cls):
        if cls._board is None: cls._board = cls()
        return cls._board

class Shelf:
    def __init__(self): self.books = {"first": object()}

shelf = Shelf()
def kept(): return list(Store().kept)
"""


@pytest.fixture
def single(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("singly", LIBRARY)
    return notebook


def test_what_is_put_into_a_singleton_is_there_on_both_sides(single: Notebook) -> None:
    single.local("from singly import Store, Board, kept; s, b = Store(), Board.get(); s.kept['mine'] = 2")
    single.local("b.notes.append('here')")
    assert single.gpu("kept(), Board.get().notes").extra["result"] == (["of the library", "mine"], ["here"])
    single.gpu(
        "same = s is Store() and b is Board.get(); Store().kept['there'] = [3]; Board.get().notes.append('pool')"
    )
    assert single.local("kept(), Board.get().notes") == (["of the library", "mine", "there"], ["here", "pool"])
    assert single.local("same, s is Store(), b is Board.get()") == (True, True, True)


def test_a_singleton_that_a_cell_names_is_that_of_the_notebook(single: Notebook) -> None:
    single.gpu("from singly import Store, kept; s = Store(); s.kept['there'] = 1")
    assert single.local("kept(), s is Store()") == (["of the library", "there"], True)
    registrations.forget()
    assert "_instances" in single.local("vars(type(Store))")


def test_what_a_notebook_puts_into_an_instance_of_a_librarys_module_is_there_on_the_other_side(
    single: Notebook,
) -> None:
    single.local("import singly; mine = singly.shelf; mine.books['mine'] = [1]; del singly")
    assert single.gpu("import singly; list(singly.shelf.books), mine is singly.shelf").extra["result"] == (
        ["first", "mine"],
        True,
    )


def test_what_python_lets_nobody_change_is_each_sides_own(notebook: Notebook) -> None:
    notebook.local("import datetime; best = datetime.datetime.min; worst = [datetime.date.max, datetime.time.min]")
    for _ in range(2):
        notebook.gpu("x = 3; seen = best is None; worst.append(best)")
    assert notebook.local("x, datetime.datetime.min == best, worst[2:] == [best, best]") == (3, True, True)
    notebook.gpu("from datetime import date as D, timedelta as T; first, longest = D.min, T.max")
    notebook.local("del best")
    assert notebook.gpu("first == D.min, longest == T.max").extra["result"] == (True, True)
    assert notebook.local("first == D.min, longest == T.max, first.year") == (True, True, 1)


def test_what_takes_the_place_of_something_else_in_such_an_instance_is_there_on_both_sides(
    notebook: Notebook, install: Callable[[str, str], Path]
) -> None:
    install("shelved", LIBRARY)  # the executor is one for all tests, and keeps what is put there
    notebook.local("from shelved import shelf; shelf.books['mine'] = [1]")
    assert notebook.gpu("list(shelf.books)").extra["result"] == ["first", "mine"]
    notebook.gpu("shelf.books['moved'] = shelf.books.pop('mine')")  # as many as before
    assert notebook.local("list(shelf.books), shelf.books['moved']") == (["first", "moved"], [1])
    notebook.local("del shelf.books['moved']; shelf.books['a'], shelf.books['b'] = [2], [3]")  # one more
    assert notebook.gpu("sorted(shelf.books), shelf.books['a']").extra["result"] == (["a", "b", "first"], [2])
    notebook.gpu("shelf.books['b'] = shelf.books.pop('b'); del shelf.books['a']; shelf.books['c'] = [4]")
    assert notebook.local("sorted(shelf.books), shelf.books['b'], shelf.books['c']") == (["b", "c", "first"], [3], [4])
    notebook.gpu("del shelf.books['c'], shelf.books['b']; shelf.books['d'] = [5]")  # fewer
    assert notebook.local("sorted(shelf.books)") == ["d", "first"]


def test_where_a_library_has_no_instance_nothing_is_taken_for_the_next_notebooks(single: Notebook) -> None:
    single.local("from singly import Board; b = Board.get()")
    single.gpu("b.notes.append('pool')")
    registrations.forget()
    single.local("Board._board = None; b = None")
    found = registrations.observe(vars(single.module))
    assert None not in [value for places in found.values() for value in places.values()]
