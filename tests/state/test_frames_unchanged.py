# ruff: noqa: E501  cells are one line each
"""Frames, tables and arrays between cells: what did not change does not move, and nobody is searched for who holds it."""

import gc
from typing import Any

import pytest

from bulletin.cpython import referrers
from bulletin.state import load_transaction

from .notebook import Notebook
from .test_leaves import moved

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

TEXTS = "import numpy as np, pandas as pd, pyarrow as pa\nx = pd.DataFrame({'f': np.arange(30_000.), 's': pd.array([f'user {n}' for n in range(30_000)], dtype=pd.StringDtype('pyarrow', na_value=np.nan))})"


def test_texts_of_pyarrow_move_once(notebook: Notebook) -> None:
    notebook.local(TEXTS)
    assert moved(notebook, "len(x)")[0] > 300_000
    assert max(moved(notebook, "len(x)")) < 20_000
    there, back = moved(notebook, "y = x.copy(deep=False); y['f'] = y['f'] + 1.0")
    assert there < 20_000
    assert 240_000 < back < 260_000, "the new column, and not the texts"
    notebook.gpu("len(x), len(y)")
    assert max(moved(notebook, "len(x), len(y)")) < 20_000
    assert notebook["y"]["s"].equals(notebook["x"]["s"])


def test_a_text_of_pyarrow_that_changes_on_either_side_is_seen_on_the_other(notebook: Notebook) -> None:
    notebook.local(TEXTS + "\nkept = x; column = x['s']; old = x.copy()")
    notebook.gpu("x.loc[3, 's'] = 'there'")
    assert notebook["kept"].loc[3, "s"] == "there"
    notebook.local("x.loc[4, 's'] = None; x.loc[5, 's'] = 'here'")
    assert notebook.gpu("x['s'].iloc[3:6].tolist(), x['s'].isna().sum()").extra["result"][0][::2] == ["there", "here"]
    assert notebook["old"]["s"].iloc[3] == "user 3"


def test_a_part_of_a_long_column_travels_without_the_rest(notebook: Notebook) -> None:
    notebook.local(TEXTS.replace("30_000", "200_000") + "\npart = x.iloc[100_000:100_100]; whole = x; del x")
    assert moved(notebook, "part")[0] < 1_000_000
    assert notebook.gpu("part['s'].tolist()").extra["result"] == [f"user {n}" for n in range(100_000, 100_100)]
    assert max(moved(notebook, "len(part)")) < 20_000
    assert notebook.gpu("whole['s'].iloc[-1], part['s'].iloc[0]").extra["result"] == ("user 199999", "user 100000")


TABLES = {
    "a table": "pa.table({'a': list(range(9_000)), 's': [None, 'p', 'qq'] * 3_000})",
    "a slice of one": "pa.table({'a': list(range(90_000))}).slice(100, 9_000)",
    "many chunks": "pa.chunked_array([[1, None]] * 50)",
    "nested": "pa.array([[1], None, [2, 3]] * 3_000)",
    "a dictionary": "pa.array(['a', 'b', None] * 3_000).dictionary_encode()",
    "over memory of numpy": "pa.array(np.arange(9_000))",
    "without bytes": "pa.array([], pa.string())",
}


@pytest.mark.parametrize("table", TABLES)
def test_what_pyarrow_has_goes_there_and_back(table: str, notebook: Notebook) -> None:
    notebook.local(f"import numpy as np, pyarrow as pa\na = {TABLES[table]}; kept = a")
    assert notebook.gpu("b = [a, a.slice(1)]; a.to_pylist()").extra["result"] == notebook["a"].to_pylist()
    assert notebook["b"][0].equals(notebook["kept"])
    assert notebook["b"][1].equals(notebook["kept"].slice(1))
    notebook.gpu("b[0] is a, b[1].validate(full=True)")
    assert max(moved(notebook, "len(a), len(b)")) < 20_000


def test_memory_that_numpy_and_pyarrow_look_at_stays_one(notebook: Notebook) -> None:
    notebook.local("import numpy as np, pyarrow as pa\nraw = np.arange(5_000); a = pa.array(raw)")
    notebook.gpu("raw[7] = -1")
    assert notebook["a"][7].as_py() == -1
    notebook.local("raw[8] = -2")
    assert notebook.gpu("a[8].as_py(), raw[8]").extra["result"] == (-2, -2)


DTYPES = [
    "float64",
    "int32",
    "bool",
    "datetime64[ns]",
    "<U5",
    "S3",
    "complex64",
    ">i4",
    "float16",
    "timedelta64[s]",
    "V4",
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_plain_type_of_arrays_is_the_one_that_numpy_has(dtype: str, notebook: Notebook) -> None:
    notebook.local(f"import numpy as np\nd = np.dtype('{dtype}'); a = np.zeros(3, d)")
    here = notebook["d"]
    is_one = notebook.gpu("b = np.zeros(4, d); d is np.dtype(d.str), a.dtype == d == b.dtype").extra["result"]
    assert is_one[1]
    assert notebook["d"] is here
    assert notebook["b"].dtype == here
    if here.isbuiltin:
        assert notebook["b"].dtype is here
        assert is_one[0]


OTHERS = {
    "fields": "np.dtype([('a', 'i4'), ('b', object)])",
    "notes": "np.dtype('f8', metadata={'unit': 'm'})",
    "a shape": "np.dtype(('i4', (2, 3)))",
    "objects": "np.dtype(object)",
    "texts of any length": "np.dtypes.StringDType(na_object=None)",
}


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_type_keeps_what_it_says(kind: str, notebook: Notebook) -> None:
    notebook.local(f"import numpy as np\nd = {OTHERS[kind]}")
    here = notebook["d"]
    notebook.gpu("e = {'x': d}; d.metadata")
    assert notebook["e"]["x"] == notebook["d"] == here
    assert (notebook["e"]["x"].metadata or {}) == (here.metadata or {})


def test_who_holds_a_part_of_a_frame_is_not_searched_in_the_whole_heap(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[type] = []

    def search(*values: object) -> list[Any]:
        searched.extend(map(type, values))
        return referrers.holders_of(*values)

    monkeypatch.setattr(load_transaction, "holders_of", search)
    notebook.local(
        "import numpy as np, pandas as pd\na = np.arange(4.); f = pd.DataFrame({'n': [1, 2], 's': ['a', 'b']}); kept = f"
    )
    for cell in (
        "a = a + 1",
        "a += 1",
        "b = np.arange(9)",
        "f.loc[0, 'n'] = 7",
        "f = f.copy(); f['m'] = 1",
        "f = f[f.n > 2]",
    ):
        notebook.gpu(cell)
    assert searched == []
    assert notebook["kept"].loc[0, "n"] == 7


def test_a_part_that_somebody_else_holds_is_replaced_there(notebook: Notebook) -> None:
    notebook.local(
        "import re\nclass Box: pass\nbox = Box(); box.p = re.compile('a'); held = [box.p]; alias = {'p': box.p}\ndef f(p=box.p): return p"
    )
    notebook.gpu("import re\nheld[0] = re.compile('b'); box.p = (box.p, held[0])")
    assert (notebook["alias"]["p"].pattern, notebook["held"][0].pattern) == ("a", "b")
    assert notebook["box"].p[0] is notebook["alias"]["p"]
    assert notebook["box"].p[1] is notebook["held"][0]


def test_a_return_leaves_no_garbage_that_holds_what_was_before(notebook: Notebook) -> None:
    notebook.local("import numpy as np\nclass Node: pass\nnode = Node(); node.array = np.arange(5.)")
    gc.collect()
    gc.disable()
    try:
        notebook.gpu("node.array = np.arange(50.); node.next = Node()")
        transactions = [one for one in gc.get_objects() if type(one) is load_transaction.LoadTransaction]
        assert all(not one._undo for one in transactions)
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "dtype",
    ["str", "pd.StringDtype('python')", "pd.StringDtype('pyarrow')", "pd.StringDtype('python', na_value=np.nan)"],
)
def test_a_type_of_texts_keeps_where_they_are_and_what_is_missing(dtype: str, notebook: Notebook) -> None:
    notebook.local(
        f"import numpy as np, pandas as pd\nd = pd.array(['a', None], dtype={dtype}).dtype; s = pd.Series(['a', None], dtype=d)"
    )
    here = notebook["d"]
    told = "(str(d), d.storage, repr(d.na_value), d.na_value is np.nan, s.dtype == d, s[1] is d.na_value)"
    assert notebook.gpu(told).extra["result"] == notebook.local(told)
    notebook.gpu("t = s.copy(); t[0] = 'there'; d.storage")
    assert notebook["d"] is here
    assert notebook["t"].dtype == here
    assert notebook["t"][1] is notebook["t"].dtype.na_value
    notebook.gpu(
        "d = pd.StringDtype('python', na_value=pd.NA) if d.na_value is np.nan else pd.StringDtype('python', na_value=np.nan); s = s.astype(d)"
    )
    assert notebook["s"].dtype == notebook["d"]
    assert notebook["d"] != here


def test_frames_that_share_their_columns_names_come_to_rest(notebook: Notebook) -> None:
    notebook.local(TEXTS)
    notebook.gpu("y = x.copy(deep=False); y['f'] = y['f'] + 1; z = y[['s']]")
    notebook.gpu("len(x), len(y), len(z)")
    assert notebook.captured is not None
    before = notebook.captured.names
    notebook.gpu("len(x), len(y), len(z)")
    assert notebook.captured.names == {"x": 0, "y": 0, "z": 0}, before


def test_a_buffer_can_be_changed_where_it_could_be(notebook: Notebook) -> None:
    notebook.local(
        "import pyarrow as pa\nm = pa.py_buffer(bytearray(100_000)); f = pa.py_buffer(b'x' * 100_000); part = m.slice(8, 90_000)"
    )
    asked = "m.is_mutable, f.is_mutable, part.is_mutable, part.address - m.address"
    assert notebook.gpu(asked).extra["result"] == (True, False, False, 8)
    notebook.gpu("n = pa.py_buffer(bytearray(50_000))")
    assert notebook["n"].is_mutable
