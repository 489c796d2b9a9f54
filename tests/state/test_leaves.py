# ruff: noqa: E501  cells are one line each
"""Large arrays of texts and numbers: they travel as one piece, and nobody can tell."""

from typing import Any

import numpy as np
import pytest

from bulletin import state
from bulletin.errors import CannotReturn
from bulletin.state.exchange_reader import ExchangeReader

from .notebook import Notebook

TEXTS = "import numpy as np, pandas as pd\na = np.array([f'text {n}' for n in range(2000)], dtype=object)"


def moved(notebook: Notebook, source: str) -> tuple[int, int]:
    """Run a cell: bytes that went there, and that came back, without modules that other tests have imported here."""
    if notebook.captured is None:
        notebook.gpu("__import__")  # whoever reads this may load any
    notebook.gpu(source)
    assert notebook.captured is not None
    there, back = notebook.captured.parts, notebook.answer["parts"]
    return (sum(memoryview(part).nbytes for part in there), sum(memoryview(part).nbytes for part in back))


def test_texts_that_nobody_changed_are_sent_once(notebook: Notebook) -> None:
    notebook.local(TEXTS.replace("2000", "20_000"))
    assert moved(notebook, "len(a)")[0] > 200_000
    assert max(moved(notebook, "len(a)")) < 20_000
    assert max(moved(notebook, "b = a.copy()")) < 20_000, "the same texts in another array are there, too"
    assert notebook["b"].tolist() == notebook["a"].tolist()
    assert notebook["b"][7] is notebook["a"][7]
    assert max(moved(notebook, "len(a), len(b)")) < 20_000


def test_a_text_that_changes_on_either_side_is_seen_on_the_other(notebook: Notebook) -> None:
    notebook.local(TEXTS + "\nalias = a; view = a[10:20]")
    array = notebook["a"]
    for turn in range(3):
        notebook.gpu(f"a[11] = 'there {turn}'; a[0] = None")
        assert notebook["a"] is notebook["alias"] is array
        assert (notebook["view"][1], array[0]) == (f"there {turn}", None)
        notebook.local(f"view[2] = 'here {turn}'")
        assert notebook.gpu("a[12], view[2], np.shares_memory(a, view)").extra["result"] == (
            f"here {turn}",
            f"here {turn}",
            True,
        )


@pytest.mark.parametrize(
    ("before", "after"), [("1", "True"), ("0.0", "-0.0"), ("'a'", "b'a'"), ("1", "1.0"), ("None", "0"), ("1", "(1+0j)")]
)
def test_what_is_equal_and_yet_another_is_seen(before: str, after: str, notebook: Notebook) -> None:
    notebook.local(f"import numpy as np\na = np.array([{before}] * 1500, dtype=object)")
    notebook.gpu(f"a[3] = {after}")
    assert repr(notebook["a"][3]) == after
    notebook.local(f"a[4] = {after}")
    assert notebook.gpu("repr(a[4]), type(a[4])").extra["result"] == (after, type(eval(after)))


def test_one_text_in_many_places_is_one_object_there_and_back(notebook: Notebook) -> None:
    notebook.local(
        "import numpy as np\nwords = [f'word {n}' for n in range(3)]\na = np.array([words[n % 3] for n in range(3000)], dtype=object)"
    )
    assert notebook.gpu("len(set(map(id, a)))").extra["result"] == 3
    notebook.gpu("b = np.array([word + '!' for word in a[:3].tolist()] * 1000, dtype=object)")
    assert len(set(map(id, notebook["b"]))) == 3


def test_equal_texts_that_are_two_objects_stay_two(notebook: Notebook) -> None:
    notebook.local("import numpy as np\na = np.array([''.join(['a', 'b']) for _ in range(2000)], dtype=object)")
    assert notebook.gpu("len(set(map(id, a)))").extra["result"] == len(set(map(id, notebook["a"]))) == 2000


def test_a_kind_of_text_or_number_of_the_users_keeps_its_class(notebook: Notebook) -> None:
    notebook.local(
        "import numpy as np\nclass Word(str): pass\nclass Count(int): pass\n"
        "a = np.empty(2000, object); a[:] = 'x'; a[5] = Word('w'); a[6] = Count(3); a[7] = np.str_('n'); a[5].note = [1]"
    )
    assert notebook.gpu("type(a[5]) is Word, type(a[6]) is Count, type(a[7]) is np.str_, a[5].note").extra[
        "result"
    ] == (True, True, True, [1])
    notebook.gpu("a[8] = Word('there'); a[5].note.append(2)")
    assert type(notebook["a"][8]) is notebook["Word"]
    assert notebook["a"][5].note == [1, 2]


def test_a_list_among_texts_stays_the_list_that_others_hold(notebook: Notebook) -> None:
    notebook.local(TEXTS + "\ninner = [1]; a[3] = inner")
    inner = notebook["inner"]
    notebook.gpu("a[3].append(2)")
    assert notebook["a"][3] is inner
    assert inner == [1, 2]
    notebook.gpu("a[3] = 'a text again'")
    assert notebook["a"][3] == "a text again"
    notebook.gpu("a[4] = [a]")
    assert notebook["a"][4][0] is notebook["a"]


def test_a_missing_value_is_the_one_that_everybody_has(notebook: Notebook) -> None:
    notebook.local(TEXTS + "\na[3] = np.nan; a[4] = float('nan')")
    assert notebook.gpu("a[3] is np.nan, np.nan in a[:10].tolist(), pd.isna(a).sum()").extra["result"] == (
        True,
        True,
        2,
    )
    notebook.gpu("b = a[:1500].copy()")
    assert notebook["b"][3] is np.nan


def test_any_text_travels(notebook: Notebook) -> None:
    texts = ["", "\ud800 half a pair", "\0", "ü" * 70_000, "𝄞", "a\nb", *map(chr, range(2000))]
    notebook.ns["a"] = np.array([*texts, b"\xff", 1 << 200, -(1 << 70), 1.5, 2j, True, None], dtype=object)
    before = notebook["a"].tolist()
    notebook.local("import numpy as np")
    notebook.gpu("b = a[::-1].copy(); a[0] = 'new'")
    assert notebook["b"].tolist() == before[::-1]
    assert notebook["a"].tolist() == ["new", *before[1:]]


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 70_000])
def test_of_any_length(size: int, notebook: Notebook) -> None:
    notebook.local(f"import numpy as np\na = np.array([str(n) for n in range({size})], dtype=object)")
    assert notebook.gpu("a.tolist() == [str(n) for n in range(len(a))]").extra["result"]
    notebook.gpu("a = np.append(a, ['one more'])")
    assert notebook["a"].tolist() == [*map(str, range(size)), "one more"]
    notebook.local("a = a[:-2].copy()")
    assert notebook.gpu("len(a), a.dtype == object").extra["result"] == (max(size - 1, 0), True)


LAYOUTS = {
    "rows": "a.reshape(40, 50)",
    "columns": "np.asfortranarray(a.reshape(40, 50))",
    "a transposed view": "a.reshape(40, 50).T",
    "read-only": "frozen(a)",
    "never written": "np.empty(2000, object)",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_any_layout(layout: str, notebook: Notebook) -> None:
    notebook.local(
        TEXTS + f"\ndef frozen(a):\n  b = a.copy(); b.flags.writeable = False; return b\nb = {LAYOUTS[layout]}"
    )
    before = notebook["b"]
    flags = (before.shape, before.flags.c_contiguous, before.flags.f_contiguous, before.flags.writeable)
    seen = notebook.gpu("b.tolist(), (b.shape, b.flags.c_contiguous, b.flags.f_contiguous, b.flags.writeable)")
    assert seen.extra["result"] == (before.tolist(), flags)
    if before.flags.writeable:
        notebook.gpu("b[1] = 'there'")
        assert notebook["b"] is before
        assert "there" in notebook["b"][1]
        notebook.gpu("b.shape = b.shape[::-1]" if before.flags.c_contiguous else "pass")
        assert notebook["b"].shape == (before.shape[::-1] if before.flags.c_contiguous else before.shape)


def test_a_return_that_fails_puts_the_texts_back(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.local(TEXTS + "\nalias = a")
    notebook.gpu("len(a)")
    before = notebook["a"].tolist()
    monkeypatch.setattr(ExchangeReader, "commit", _fails)
    with pytest.raises(CannotReturn):
        notebook.gpu("a[5] = 'changed'; a[6] = None")
    monkeypatch.undo()
    assert notebook["alias"].tolist() == before
    assert all(one is other for one, other in zip(notebook["alias"], before, strict=True))
    notebook.gpu("a[7] = 'later'")
    assert notebook["alias"][5:8].tolist() == ["text 5", "text 6", "later"]


def _fails(_: Any) -> None:
    raise OSError("no room")


def test_frames_of_texts_go_there_and_back(notebook: Notebook) -> None:
    notebook.local(
        "import numpy as np, pandas as pd\nwords = np.array(['a', 'b', None, np.nan], dtype=object)\n"
        "df = pd.DataFrame({'s': pd.array([f'user {n}' for n in range(3000)], dtype=pd.StringDtype('python', na_value=np.nan)), "
        "'o': pd.Series(words[np.arange(3000) % 4], dtype=object), 'n': range(3000)})\nkept = df"
    )
    before = notebook["df"].copy(deep=True)
    assert notebook.gpu("df['s'].iloc[-1], df['o'].isna().sum()").extra["result"] == ("user 2999", 1500)
    notebook.gpu("df.loc[3, 's'] = 'there'; df['t'] = df['s'].str.upper()")
    assert notebook["kept"] is notebook["df"]
    assert notebook["df"].loc[3, ["s", "t"]].tolist() == ["there", "THERE"]
    assert notebook["df"].drop(index=3)[["s", "o", "n"]].equals(before.drop(index=3))


def test_frames_that_share_columns_do_not_travel_unchanged(notebook: Notebook) -> None:
    notebook.local(
        "import numpy as np, pandas as pd\nx = pd.DataFrame({'f': np.arange(30_000.), 'i': np.arange(30_000), 's': [f'user {n}' for n in range(30_000)]})"
    )
    notebook.gpu("y = x.copy(deep=False); y['f'] = y['f'] + 1.0; z = y.rename(columns={'i': 'j'})")
    for _ in range(2):  # what the notebook has read, it looks at once more
        notebook.gpu("len(x), len(y), len(z)")
    assert max(moved(notebook, "len(x), len(y), len(z)")) < 20_000
    notebook.gpu("y.loc[0, 'i'] = -1")
    assert [notebook[name].iloc[0, 1] for name in "xyz"] == [0, -1, 0]
    notebook.local("x.loc[1, 'i'] = -2")
    assert notebook.gpu("[int(frame.iloc[1, 1]) for frame in (x, y, z)]").extra["result"] == [-2, 1, 1]


def test_what_a_plan_says_of_texts_counts_them(notebook: Notebook) -> None:
    notebook.local(TEXTS.replace("2000", "20_000"))
    first = state.capture(notebook.ns, state.needs("len(a)", notebook.ns), table=notebook.table)
    assert first.names["a"] > 200_000
    notebook.gpu("len(a)")
    again = state.capture(notebook.ns, state.needs("len(a)", notebook.ns), table=notebook.table)
    assert again.names["a"] == 0


def test_texts_that_no_name_holds_any_more_are_forgotten_on_both_sides(notebook: Notebook) -> None:
    notebook.local(TEXTS)
    notebook.gpu("len(a)")
    assert len(notebook.table.leaves) == 1
    notebook.gpu("a = a + '!'")
    assert len(notebook.table.leaves) == 2
    notebook.gpu("a")
    assert len(notebook.table.leaves) == 1
    notebook.local("del a")
    notebook.gpu("pass")
    assert notebook.table.leaves == notebook.table.lids == {}
