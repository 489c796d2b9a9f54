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

class Unit:
    # Counts in a file how often it is asked how it travels.
    def __init__(self, name, counted): self.name, self.counted = name, counted
    def __reduce__(self):
        with open(self.counted, "a") as found: found.write("x")
        return Unit, (self.name, self.counted)

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


def test_a_part_of_an_array_that_owns_its_memory_is_its_part_where_a_cell_names_that_alone(notebook: Notebook) -> None:
    notebook.local("import numpy as np\nletters = np.char.array(['a', 'b'])\nrest = letters[1:]")
    notebook.gpu("rest[0] = 'z'")
    assert notebook.local("letters.tolist(), rest.base is letters") == (["a", "z"], True)
    assert notebook.gpu("rest[0] = 'y'\nletters.tolist()").extra["result"] == ["a", "y"]
    assert notebook.local("letters.tolist()") == ["a", "y"]


def test_a_record_is_written_through_to_its_array(notebook: Notebook) -> None:
    notebook.local("import numpy as np\nr = np.rec.array([(1, 2.0), (3, 4.0)], names='a,b')\none, same = r[0], [r[1]]")
    notebook.gpu("one.b = 9")
    assert notebook.local("r.tolist(), one.b, type(one) is np.record") == ([(1, 9.0), (3, 4.0)], 9.0, True)
    assert notebook.gpu("r.a[1] = 7; one.a = 5\nsame[0].tolist(), r.a.tolist()").extra["result"] == ((7, 4), [5, 7])
    assert notebook.local("same[0].a, r.tolist()") == (7, [(5, 9), (7, 4)])
    notebook.gpu("one, r")
    assert notebook.local("one.a = 6; r.a.tolist(), one.base is r") == ([6, 7], True)
    notebook.gpu("one.a = 8")
    assert notebook.local("r.a.tolist()") == [8, 7]
    notebook.local("p = np.zeros(3, 'i4,f8')[::-1]\nlast, alone = p[0], np.zeros((), 'i4,f8')[()].copy()")
    notebook.gpu("last['f1'] = 2; alone['f0'] = 3")
    assert notebook.local("p['f1'].tolist(), alone.tolist()") == ([2, 0, 0], (3, 0.0))


def test_a_record_that_arrives_before_its_array_is_one_of_it(notebook: Notebook) -> None:
    notebook.local("import numpy as np\nr = np.rec.array([(1, 2.0), (3, 4.0)], names='a,b')\none = r[0]")
    notebook.gpu("one, r")
    notebook.gpu("one.b = 9\nr.a[0] = 5")
    assert notebook.local("r.tolist(), one.tolist(), one.base is r") == ([(5, 9), (3, 4)], (5, 9), True)


def test_a_row_of_a_masked_record_is_one_of_its_array(notebook: Notebook) -> None:
    notebook.local(
        "import numpy as np\n"
        "m = np.ma.array([(1, 2.0), (3, 4.0)], dtype=[('a', int), ('b', float)], mask=[(0, 1), (1, 0)])\nrow = m[0]"
    )
    notebook.gpu("row['a'] = 100; m['b'][0] = 8.5")
    assert notebook.local("m.tolist(), row.tolist()") == ([(100, 8.5), (None, 4.0)], (100, 8.5))


def test_what_an_array_of_such_a_kind_may_be_written_to_is_the_same_on_both_sides(kinds: Notebook) -> None:
    kinds.local("a = kinds.measured([1.0, 2, 3], 'm')\npart = a[1:]")
    kinds.gpu("a, part")
    kinds.local("a.flags.writeable = False")
    refused = kinds.gpu("a[0] = 9").extra["error"]
    assert (type(refused), kinds.local("a.tolist()")) == (ValueError, [1, 2, 3])
    assert kinds.gpu("part[0] = 7\na.tolist()").extra["result"] == [1, 7, 3]
    kinds.gpu("a.flags.writeable = True; a[0] = 5")
    assert kinds.local("a.flags.writeable, a.tolist(), part.tolist()") == (True, [5, 7, 3], [7, 3])
    kinds.local("m = np.ma.array([1.0, 2], mask=[0, 1]); m.flags.writeable = False")
    kinds.gpu("m.flags.writeable = True; m[0] = 4")
    assert kinds.local("m.flags.writeable, m.tolist()") == (True, [4, None])


def test_a_class_of_the_notebook_that_says_how_its_arrays_are_pickled_is_asked(kinds: Notebook) -> None:
    kinds.local(
        "class Own(kinds.Measured):\n"
        "  def __setstate__(self, state): super().__setstate__(state); self.cache = 'made on arrival'\n"
        "class Made(np.ndarray):\n"
        "  is_open = False\n"
        "  def __array_finalize__(self, other):\n"
        "    if type(other) is np.ndarray and not Made.is_open: raise TypeError('make it by make()')\n"
        "  def __reduce__(self): return make, (self.tolist(),)\n"
        "def make(numbers):\n"
        "  Made.is_open = True\n"
        "  try: return np.array(numbers).view(Made)\n"
        "  finally: Made.is_open = False\n"
        "own, made = kinds.measured([1.0, 2], 'm', Own), make([3, 4])"
    )
    assert kinds.gpu("own.cache, own.unit, own.tolist()").extra["result"] == ("made on arrival", "m", [1, 2])
    assert kinds.gpu("made[0] = 5\nmade.tolist()").extra["result"] == [5, 4]
    assert kinds.local("made.tolist(), type(made) is Made") == ([5, 4], True)


def test_a_unit_that_many_arrays_share_is_asked_about_once(kinds: Notebook, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    kinds.local(f"unit = kinds.Unit('m', {str(counted)!r})\nmany = [kinds.measured([i], unit) for i in range(50)]")
    assert kinds.gpu("many[7].unit is many[8].unit, many[49].tolist()").extra["result"] == (True, [49])
    assert 0 < len(counted.read_text()) < 10
