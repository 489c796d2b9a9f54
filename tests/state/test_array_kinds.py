"""Arrays of a library's own kind stay the memory that their views and parts look at, whatever its pickle would copy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .notebook import Notebook

LIBRARY = """
import weakref
import numpy as np

class Measured(np.ndarray):
    # Says how it is pickled, as arrays of unyt and astropy do: its bytes, and its unit.
    def __array_finalize__(self, other): self.unit = getattr(other, "unit", None)
    def __reduce__(self):
        made_by, args, state = np.ndarray.__reduce__(self)
        return made_by, args, (*state, self.unit)
    def __setstate__(self, state):
        *state, self.unit = state
        np.ndarray.__setstate__(self, tuple(state))

class Open(Measured):
    # Has something that cannot travel, and leaves it out.
    def __array_finalize__(self, other): self.letters = (c for c in "ab")

class Info:
    # Says less than it needs, of its slots.
    __slots__ = ("attrs", "formats", "parent")
    def __init__(self, parent): self.attrs, self.formats, self.parent = {}, {}, weakref.ref(parent)
    def __getstate__(self): return self.attrs
    def __setstate__(self, state): self.attrs = state

class Table:
    # Makes itself anew of copies of its columns.
    def __init__(self, columns): self.columns = {name: column.copy() for name, column in columns.items()}
    def __getstate__(self): return {"columns": self.columns}
    def __setstate__(self, state): self.__init__(state["columns"])

def measured(numbers, unit, kind=Measured):
    made = np.array(numbers).view(kind)
    made.unit = unit
    return made
"""


@pytest.fixture
def kinds(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("kinds", LIBRARY)
    notebook.local("import kinds, numpy as np")
    return notebook


def test_parts_and_plain_views_of_an_array_with_a_unit_share_its_memory_on_both_sides(kinds: Notebook) -> None:
    kinds.local("a = kinds.measured([0.0, 1, 2, 3], 'm')\nb, plain = a[1:3], a.view(np.ndarray)")
    cell = "b[0] = 9\na.tolist(), plain.tolist(), b.unit, type(b) is kinds.Measured"
    assert kinds.gpu(cell).extra["result"] == ([0, 9, 2, 3], [0, 9, 2, 3], "m", True)
    assert kinds.local("plain[2] = 7; a.tolist(), b.tolist()") == ([0, 9, 7, 3], [9, 7])
    assert kinds.gpu("a.unit = 'km'; a[1] = 5\nb.tolist(), plain.tolist()").extra["result"] == ([5, 7], [0, 5, 7, 3])
    assert kinds.local("a.unit, b.tolist(), plain.tolist()") == ("km", [5, 7], [0, 5, 7, 3])


def test_an_array_of_such_a_kind_with_what_cannot_travel_goes_as_its_library_says(kinds: Notebook) -> None:
    kinds.local("a = kinds.measured([1.0, 2], 'm', kinds.Open)")
    assert kinds.gpu("a[0] = 5\na.tolist(), a.unit").extra["result"] == ([5, 2], "m")
    assert kinds.local("a.tolist(), a.unit, next(a.letters)") == ([5, 2], "m", "a")


def test_the_mask_and_the_data_of_a_masked_array_are_those_of_its_parts(notebook: Notebook) -> None:
    notebook.local("import numpy as np\nm = np.ma.array([0, 1, 2, 3], mask=[0, 1, 0, 0])\npart, data = m[1:], m.data")
    notebook.gpu("part[1] = 50; m[3] = np.ma.masked; data[0] = 8")
    assert notebook.local("m.tolist(), part.tolist(), data[:3].tolist(), m[1] is np.ma.masked") == (
        [8, None, 50, None],
        [None, 50, None],
        [8, 1, 50],
        True,
    )


def test_memory_that_turns_out_to_be_wider_than_it_was_is_sent_as_that(notebook: Notebook) -> None:
    notebook.local("import numpy as np\nr = np.rec.array([(1, 2.0), (3, 4.0)], names='a,b')\nfield, one = r.a, r[1]")
    assert notebook.gpu("field[0] = 9\nr.tolist()").extra["result"] == [(9, 2.0), (3, 4.0)]
    assert notebook.local("r.b[0] = 6; r.tolist()") == [(9, 6.0), (3, 4.0)]
    notebook.local("letters = np.char.array(['a', 'b'])\nrest = letters[1:]")
    assert notebook.gpu("rest[0] = 'z'\nletters.tolist()").extra["result"] == ["a", "z"]
    assert notebook.gpu("letters.tolist(), rest.tolist()").extra["result"] == (["a", "z"], ["z"])


def test_an_instance_has_the_slots_there_that_its_state_leaves_out(kinds: Notebook) -> None:
    kinds.local("t = kinds.Table({})\ninfo = kinds.Info(t)\ninfo.attrs['name'] = 'x'")
    assert kinds.gpu("info.formats['f'] = 1\ninfo.attrs, info.parent() is t").extra["result"] == ({"name": "x"}, True)
    assert kinds.local("info.formats, info.parent() is t") == ({"f": 1}, True)


def test_columns_of_a_table_that_makes_itself_anew_are_still_its_columns(kinds: Notebook) -> None:
    kinds.local("t = kinds.Table({'x': kinds.measured([1.0, 2], 'm')})\nx = t.columns['x']")
    assert kinds.gpu("x[0] = 5\nt.columns['x'] is x, t.columns['x'].tolist()").extra["result"] == (True, [5, 2])
    assert kinds.local("x[1] = 6; t.columns['x'] is x, t.columns['x'].tolist()") == (True, [5, 6])
