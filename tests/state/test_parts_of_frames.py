# ruff: noqa: E501  cells are one line each
"""What frames are made of: texts, types of arrays, ranges and blocks are on the other side what they are here."""

import pytest

from bulletin import state
from bulletin.errors import CannotReturn

from .notebook import Notebook

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SETUP = "import numpy as np, pandas as pd\n"
FRAME = "pd.DataFrame({'a': np.arange(4), 'b': list('vwxy'), 'c': np.arange(4.)}, index=list('klmn'))"
#: Texts as pandas has them, and what tells them from others.
TEXTS = [
    "['p', 'qq', '']",
    "['p', None, 'r']",
    "[None, None, None]",
    "['', '', '']",
    "['\\u00fc', '\\U0001f600', 'z']",
]
TOLD = "(x.tolist(), str(x.dtype), x.dtype.storage, repr(x.dtype.na_value), x.isna().tolist(), type(x.array).__name__)"


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("of", ["'str'", "'string'", "pd.StringDtype('python', na_value=np.nan)", "object"])
def test_texts_are_on_the_other_side_what_they_are_here(texts: str, of: str, notebook: Notebook) -> None:
    told = TOLD if of != "object" else "(x.tolist(), str(x.dtype))"
    notebook.local(f"{SETUP}x = pd.Series({texts}, dtype={of})")
    assert repr(notebook.gpu(told).extra["result"]) == repr(notebook.local(told))
    notebook.local("x = pd.concat([x, x.iloc[1:]])")
    assert repr(notebook.gpu(told).extra["result"]) == repr(notebook.local(told))
    notebook.local("x = x.iloc[1:3]")
    assert repr(notebook.gpu(told).extra["result"]) == repr(notebook.local(told))
    notebook.local("x = x.iloc[:0]")
    assert repr(notebook.gpu(told).extra["result"]) == repr(notebook.local(told))


def test_an_array_of_texts_that_somebody_holds_stays_the_same_one(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = pd.array(['p', None, 'r'], dtype='str'); kept = x; x.note = [1]")
    notebook.gpu("x[1] = 'there'; x.note.append(2)")
    assert notebook["x"] is notebook["kept"]
    assert notebook.local("list(x), x.note") == (["p", "there", "r"], [1, 2])
    notebook.local("del x.note; x[0] = 'here'")
    assert notebook.gpu("list(x), hasattr(x, 'note'), x is kept").extra["result"] == (
        ["here", "there", "r"],
        False,
        True,
    )
    notebook.gpu("x[2] = 'again'")
    assert notebook.local("x is kept, list(x)") == (True, ["here", "there", "again"])


def test_texts_go_back_to_what_they_were_where_a_later_value_cannot_be_loaded(notebook: Notebook) -> None:
    notebook.local(f"""{SETUP}
class Loads:
    def __setstate__(self, state):
        if __import__('os').environ.get('BULLETIN_TEST_HERE'):
            raise ValueError('not here')
x = pd.array(['p', 'q'], dtype='str'); z = Loads(); z.n = 1""")
    notebook.gpu("x, z; None")
    cell = "x[0] = 't'; z.__dict__['n'] = 2; None"
    captured = state.capture(notebook.ns, state.needs(cell, notebook.ns), table=notebook.table)
    answer = notebook.executor.ask(cell, captured.parts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BULLETIN_TEST_HERE", "1")
        with pytest.raises(CannotReturn, match="not here"):
            state.apply(answer["parts"], notebook.ns, sent=captured)
    assert notebook.local("list(x)") == ["p", "q"]


@pytest.mark.parametrize(
    "code", ["b", "B", "h", "i", "l", "L", "f", "d", "F", "g", "?", ">i4", "M8[ns]", "m8[D]", "S3", "U2"]
)
def test_types_of_arrays_are_the_very_ones(code: str, notebook: Notebook) -> None:
    notebook.local(
        f"{SETUP}x = np.zeros(3, {code!r}); view = x[1:]; none = x[:0]; meta = np.zeros(2, np.dtype('i4', metadata={{'k': 1}}))"
    )
    told = "[(a.dtype.char, a.dtype.str, a.dtype is np.dtype(a.dtype.char), a.dtype.metadata and dict(a.dtype.metadata)) for a in (x, view, none, meta)]"
    assert notebook.gpu(told).extra["result"] == notebook.local(told)


def test_an_index_that_is_a_range_gets_no_memory_for_being_sent(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = pd.DataFrame({{'a': np.arange(1000)}}); y = x.index")
    assert notebook.gpu("x.sum(); y.name; '_data' in x.index._cache").extra["result"] is False
    assert "_data" not in notebook["y"]._cache
    notebook.local("raw = y.values")
    notebook.gpu("raw; raw2 = x.index.values; None")
    assert notebook.local("raw.tolist() == raw2.tolist() == list(y)")


def test_columns_that_lie_between_those_of_another_type_stay_where_they_are(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = pd.DataFrame([[n, n / 2, n, str(n), n] for n in range(3)]).copy()")
    shown = "x.to_dict(), x.dtypes.astype(str).tolist(), [block.mgr_locs.as_array.tolist() for block in x._mgr.blocks]"
    assert notebook.gpu(shown).extra["result"] == notebook.local(shown)


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_kept_of_frames_that_are_gone_on_either_side(notebook: Notebook) -> None:
    def held_by_nothing() -> list[object]:
        table = notebook.table
        return [value for oid, value in table.objects.items() if not table._held.get(oid)]

    notebook.local(f"{SETUP}x = {FRAME}")
    for _ in range(3):
        notebook.gpu("x = x.copy(); y = pd.DataFrame({'a': np.arange(9)}, index=np.arange(9) * 2); None")
        notebook.gpu("x, y; None")
    assert not held_by_nothing()
    tables = "[held for held in gc.get_objects() if type(held) is table.Table]"  # libraries have classes of that name
    told = f"import gc\nfrom bulletin.state import table\n[type(value).__name__ for table in {tables} for oid, value in table.objects.items() if not table._held.get(oid)]"
    assert notebook.gpu(told).extra["result"] == []


@pytest.mark.filterwarnings("ignore")
def test_attributes_that_somebody_gives_to_frames_series_and_indexes_stay_theirs(notebook: Notebook) -> None:
    notebook.local(
        f"{SETUP}x = {FRAME}; x.extra = [1]; s = pd.Series([1, 2]); i = pd.Index([1, 2]); i.mark = held = x.extra"
    )
    assert notebook.gpu("(x.extra, i.mark is x.extra is held, hasattr(s, 'note'))").extra["result"] == (
        [1],
        True,
        False,
    )
    notebook.gpu("s.note = {'k': x.extra}; held.append(2); del x.extra; x.loc['k', 'a'] = 9")
    assert notebook.local("s.note['k'] is held is i.mark, held, hasattr(x, 'extra')") == (True, [1, 2], False)
    notebook.gpu("x, s, i; None")
    notebook.local("x.later = i.later = 3")  # what was known without a look is so no longer
    assert notebook.gpu("x.later, i.later, list(s.note)").extra["result"] == (3, 3, ["k"])


def test_the_flags_of_an_array_are_the_same_object_and_write_through_to_it(notebook: Notebook) -> None:
    notebook.local("import numpy as np; x = np.arange(4); f = x.flags; kept = [f]")
    notebook.gpu("f.writeable = False")
    assert notebook.local("x.flags.writeable, kept[0] is f") == (False, True)
    notebook.local("f.writeable = True; seen = x.flags; x.flags.writeable = False")
    told = "seen.writeable, seen == x.flags, seen.c_contiguous"
    assert notebook.gpu(f"first = x[1:].flags; {told}").extra["result"] == notebook.local(told) == (True, False, True)
    notebook.local("first.writeable = False")
    assert notebook["first"].owndata is False
