# ruff: noqa: E501  cells are one line each
"""Small values that are known again without being pickled: whatever changes in one is seen on the other side."""

import argparse
import sys
from types import FrameType

import pytest

from bulletin import state
from bulletin.state.encoder import Encoder
from bulletin.state.exchange_reader import ExchangeReader
from bulletin.state.table_diff import TableDiff

from .notebook import Notebook

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SETUP = """
import numpy as np, pandas as pd
class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
class Other:
    pass
class Frame(pd.DataFrame):
    pass
class Column(pd.Series):
    pass
def make(k, extra=[1]):
    def add(value, by=[2]):
        return value + k, by, extra
    return add
def looks():
    return late
"""
#: As many others that nobody changes that x is known together with them, whether or not there is memory in it.
MANY = ", ".join(f"many_{number}" for number in range(40))
MAKE_MANY = f"\n{MANY} = *([number] for number in range(20)), *(np.arange(3) + number for number in range(20))\n"

#: What x is, an expression that tells all of it, and what is done to it.
FRAME = "pd.DataFrame({'a': np.arange(4), 'b': list('vwxy'), 'c': np.arange(4.)}, index=list('klmn'))"
SHOWN = "(x.to_dict(), type(x).__name__, list(x.columns), x.dtypes.astype(str).tolist(), x.index.tolist(), x.index.name, x.columns.name, x.attrs, x.flags.allows_duplicate_labels)"
FRAME_CHANGES = [
    "x.iloc[0, 0] = 7",
    "x.loc['k', 'b'] = 'changed'",
    "x.loc['k', 'c'] = np.nan",
    "raw = x['a'].values; raw.flags.writeable = True; raw[1] = 9",
    "raw = x['a'].array._ndarray; raw.flags.writeable = True; raw[1] = 9",
    "raw = x._mgr.blocks[0].values; raw[0, 2] = 11",
    "x.columns._data._pa_array = type(x)({'n': ['p', 'q', 'r']})['n'].array._pa_array; x.columns._cache.clear()",
    "x['d'] = 1",
    "x['a'] = x['a'].astype('float32')",
    "x['a'] = x['a'].astype('uint64')",
    "x.insert(0, 'z', 5)",
    "del x['b']",
    "x.pop('a')",
    "x.attrs['k'] = [1]",
    "x.attrs = {'other': 2}",
    "x.flags.allows_duplicate_labels = False",
    "x.index.name = 'i'",
    "x.columns.name = 'c'",
    "x.index = [4, 3, 2, 1]",
    "x.index = pd.RangeIndex(2, 10, 2)",
    "x.columns = ['p', 'q', 'r']",
    "x.rename(columns={'a': 'aa'}, inplace=True)",
    "x.sort_values('a', ascending=False, inplace=True)",
    "x.drop(index='k', inplace=True)",
    "x.reset_index(inplace=True)",
    "x.set_index('b', inplace=True)",
    "x.fillna(0, inplace=True); x.replace(2, 22, inplace=True)",
    "x.update(pd.DataFrame({'c': [8.]}, index=['l']))",
    "x['b'] = x['b'].astype('category')",
    "x.__dict__['_mgr'] = x.iloc[::-1].copy()._mgr",
    "x.__class__ = Frame",
]
SERIES_CHANGES = [
    "x.iloc[0] = 7",
    "x.name = 'other'",
    "x.index.name = 'i'",
    "x.attrs['k'] = 1",
    "x.loc['new'] = 5.0",
    "x.rename(3, inplace=True)",
    "x.__class__ = Column",
]
ARRAY_CHANGES = [
    "x[2] = 7",
    "x[::2][1] = 8",
    "view = x.view('u1'); view[0] = 3",
    "x.shape = (2, 3)",
    "x.dtype = 'i8'",
    "x.flags.writeable = False",
    "x.byteswap(inplace=True)",
    "x.resize(9, refcheck=False); x[8] = 1",
    "x.resize(9000, refcheck=False); x.resize(6, refcheck=False); x[0] = 4",
]
CHANGES = [
    *((FRAME, SHOWN, change) for change in FRAME_CHANGES),
    *((f"{FRAME}['c']", "(x.to_dict(), type(x).__name__, x.name, x.index.name, x.attrs)", change) for change in SERIES_CHANGES),
    *(("np.arange(6.)", "(x.tolist(), x.shape, str(x.dtype), x.flags.writeable)", change) for change in ARRAY_CHANGES),
    ("{'id': 1, 'tags': ['a', 'b'], 'in': {'s': {1, 2}}}", "repr(x)", "x['id'] = True"),
    ("{'id': 1, 'tags': ['a', 'b'], 'in': {'s': {1, 2}}}", "repr(x)", "x['id'] = 1.0"),
    ("{'id': 0.0}", "repr(x)", "x['id'] = -0.0"),
    ("{'id': 1, 'tags': ['a', 'b']}", "repr(x)", "x['tags'].reverse()"),
    ("{'id': 1, 'in': {'s': {1, 2}}}", "repr(x)", "x['in']['s'].add(3)"),
    ("{'id': 1, 'tags': 2}", "repr(x)", "x['id'] = x.pop('id')"),
    ("{'id': [1], 'tags': [2, 3]}", "repr(x)", "x['id'].append(x['tags'].pop(0))"),
    ("{'id': [1], 'tags': [1]}", "x['id'] is x['tags']", "x['id'] = x['tags']"),
    ("[[1], ([2],)]", "repr(x)", "x[1][0].append(3)"),
    ("[{}, {}]", "repr(x)", "x[0]['self'] = x"),
    ("Point(1, [2])", "repr((type(x), vars(x)))", "x.y.append(3)"),
    ("Point(1, [2])", "repr(vars(x))", "x.z = 3"),
    ("Point(1, [2])", "repr(vars(x))", "del x.x"),
    ("Point(1, [2])", "repr(vars(x))", "x.__dict__ = {'x': 5}"),
    ("Point(1, [2])", "type(x).__name__", "x.__class__ = Other"),
    ("Point(Point(1, 2), np.arange(3))", "repr((vars(x.x), x.y))", "x.x.x = 4; x.y[0] = 5"),
    ("make(1)", "x(1)", "x.__defaults__[0].append(5)"),
    ("make(1)", "x(1)", "x.__defaults__ = ([8],)"),
    ("make(1)", "x(1)", "x.__closure__[1].cell_contents = 40"),
    ("make(1)", "x(1)", "x.__closure__[0].cell_contents.append(41)"),
    ("make(1)", "repr(vars(x))", "x.note = [1]"),
    ("Point(1, make(2))", "x.y(1)", "x.y = make(3)"),
    ("Point(1, make(2))", "x.y(1)", "x.y.__defaults__[0].append(5)"),
    ("Point(1, make(2))", "x.y(1)", "x.y.__closure__[0].cell_contents.append(41)"),
    ("Point(1, make(2))", "x.y(1)", "x.y.__code__ = (lambda k, extra: lambda value, by=[2]: (k, extra, by))(1, 2).__code__"),
    ("Point(1, looks)", "x.y.__name__", "x.y = __import__('textwrap').dedent"),
    ("make(Point(1, [2]))", "vars(x.__closure__[1].cell_contents)", "x.__closure__[1].cell_contents.y.append(3)"),
    ("make(Point(1, looks))", "x.__closure__[1].cell_contents.y.__name__", "x.__closure__[1].cell_contents.y = make"),
    ("make(1)", "repr(vars(x))", "x.__dict__ = {'note': [2]}"),
    (f"{{'in': {FRAME}}}", "type(x['in']).__name__", "x['in'].__class__ = Frame"),
    ("make(1)", "x.__name__, x.__doc__, x.__annotations__", "x.__name__ = 'n'; x.__doc__ = 'd'; x.__annotations__['v'] = 'int'"),
    ("make(1)", "x(1)", "x.__code__ = (lambda k, extra: lambda value, by=[2]: (k, extra, by))(1, 2).__code__"),
]  # fmt: skip


def known(notebook: Notebook, name: str) -> bool:
    """Tell whether the witness of what was agreed of a name says that it is as it was."""
    table, value = notebook.table, notebook[name]
    unit = table.unit_of(value) or next(unit for unit in table.definitions.values() if unit.root is value)
    return unit.witness is not None and bool(unit.witness.holds(TableDiff(notebook.ns, table).encoder))


def warm_up(notebook: Notebook, value: str) -> None:
    """Make x, and have both sides agree on it until they know it again."""
    notebook.local(f"{SETUP}{MAKE_MANY}x = {value}; kept = x")
    for _ in range(3):
        notebook.gpu(f"x; kept; Other; Frame; Column; ({MANY}); None")
    assert known(notebook, "x"), "or nothing is tried"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("value", "shown", "change"), CHANGES)
def test_what_changes_here_is_seen_there(value: str, shown: str, change: str, notebook: Notebook) -> None:
    warm_up(notebook, value)
    notebook.local(change)
    here = notebook.local(shown)
    assert repr(notebook.gpu(f"({MANY}); {shown}").extra["result"]) == repr(here)
    assert notebook.gpu("x is kept").extra["result"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("value", "shown", "change"), CHANGES)
def test_what_changes_there_is_seen_here(value: str, shown: str, change: str, notebook: Notebook) -> None:
    warm_up(notebook, value)
    notebook.gpu(f"{change}; raw = view = None; ({MANY}); None")
    there = notebook.gpu(shown).extra["result"]
    assert repr(notebook.local(shown)) == repr(there)
    assert notebook["x"] is notebook["kept"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("value", "shown", "change"), CHANGES)
def test_what_the_first_cell_changes_is_seen_here(value: str, shown: str, change: str, notebook: Notebook) -> None:
    notebook.local(f"{SETUP}{MAKE_MANY}x = {value}; kept = x")
    notebook.gpu(f"({MANY}); kept; {change}; raw = view = None")
    there = notebook.gpu(shown).extra["result"]
    assert repr(notebook.local(shown)) == repr(there)
    assert notebook["x"] is notebook["kept"]
    notebook.gpu(f"kept; ({MANY}); many_0.append(1); many_20[1] = 50")
    assert (notebook["many_0"], notebook["many_20"].tolist()) == ([0, 1], [0, 50, 2])


def test_what_nobody_changes_is_known_again_on_either_side_after_any_other_change(notebook: Notebook) -> None:
    names = {
        "f": FRAME,
        "d": "{'k': [1]}",
        "p": "Point(1, {2})",
        "g": "make(3)",
        "a": "np.arange(5)",
        "s": f"{FRAME}['b']",
    }
    notebook.local(SETUP + "; ".join(f"{name} = {value}" for name, value in names.items()) + "; n = [0]")
    for number in range(3):
        notebook.local("n[0] += 1")
        assert notebook.gpu(f"n.append({number}); {'; '.join(names)}; n[0]").extra["result"] == number + 1
    assert all(known(notebook, name) for name in names)
    notebook.gpu("d['k'].append(p); p.x = a; a[0] = 9")
    assert notebook["d"]["k"][1] is notebook["p"]
    assert notebook["p"].x is notebook["a"]
    assert notebook["a"][0] == 9
    notebook.gpu(f"{'; '.join(names)}; None")
    assert all(known(notebook, name) for name in names)


def test_a_dict_that_is_lent_from_now_on_stays_its_instances(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = Point(1, 2)")
    for _ in range(3):
        notebook.gpu("x")
    notebook.local("d = vars(x)")
    notebook.gpu("d['x'] = 5")
    assert notebook["x"].x == 5
    assert notebook["d"] is vars(notebook["x"])


def test_a_name_that_a_function_looks_up_goes_with_it_once_it_is_there(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = [looks]")
    for _ in range(3):
        notebook.gpu("looks")
    notebook.local("late = [1]")
    assert notebook.gpu("looks()").extra["result"] == [1]
    notebook.local("late.append(2)")
    assert notebook.gpu("looks()").extra["result"] == [1, 2]


def test_a_class_that_gets_a_method_of_pickles_is_asked_from_then_on(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = Point(1, 2)")
    for _ in range(3):
        notebook.gpu("x")
    notebook.local("Point.__getstate__ = lambda self: {'x': 'said'}")
    notebook.local("x.y = 3")
    assert notebook.gpu("x.x").extra["result"] == "said"


def test_frames_that_copy_on_write_lets_share_stay_apart(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = {FRAME}")
    for _ in range(3):
        notebook.gpu("x")
    notebook.local("y = x.copy(deep=False); z = x[['a']]; column = x['a']; raw = column.values")
    assert notebook.gpu("y.iloc[0, 0] = 50; z.iloc[1, 0] = 60; x['a'].tolist()").extra["result"] == [0, 1, 2, 3]
    assert notebook["x"]["a"].tolist() == notebook["raw"].tolist() == [0, 1, 2, 3]
    assert notebook["y"]["a"].tolist() == [50, 1, 2, 3]
    notebook.local("x.iloc[2, 0] = 70")
    assert notebook.gpu("x['a'].tolist(), y['a'].tolist(), z['a'].tolist(), column.tolist()").extra["result"] == (
        [0, 1, 70, 3], [50, 1, 2, 3], [0, 60, 2, 3], [0, 1, 2, 3]
    )  # fmt: skip


def test_a_function_inside_a_value_brings_what_it_looks_up_under_any_name(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = Point(1, looks)")
    for _ in range(3):
        notebook.gpu("x; None")
    assert known(notebook, "x")
    notebook.local("late = [1]; inner, Point.call = looks, lambda self: eval('inner')()")
    assert notebook.gpu("x.y(), x.call()").extra["result"] == ([1], [1])
    notebook.local("looks.__code__ = (lambda: late + more).__code__; more = [2]")
    assert notebook.gpu("x.y()").extra["result"] == [1, 2]


def test_a_function_inside_a_value_that_a_module_has_from_now_on_goes_by_its_name(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_up(notebook, "Point(1, looks)")
    monkeypatch.setattr(argparse, "looks", notebook["looks"], raising=False)
    notebook.local("looks.__module__ = 'argparse'")
    assert not known(notebook, "x")


def test_a_value_that_grows_is_pickled_again(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = [Point(n, n) for n in range(5)]")
    for _ in range(3):
        notebook.gpu("x")
    notebook.local("x += [Point(n, 'text') for n in range(5000)]")
    assert notebook.gpu("len(x), x[4000].x").extra["result"] == (5005, 3995)
    assert not known(notebook, "x")


@pytest.mark.filterwarnings("ignore")
def test_metadata_that_frames_get_later_goes_with_them(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    warm_up(notebook, FRAME)
    monkeypatch.setattr(notebook["pd"].DataFrame, "_metadata", [])
    notebook.gpu("pd.DataFrame._metadata = []; x; None")
    assert known(notebook, "x")
    notebook.local("pd.DataFrame._metadata.append('note'); object.__setattr__(x, 'note', 5)")
    assert not known(notebook, "x")
    assert notebook.gpu("x.note").extra["result"] == 5


def test_a_class_whose_name_its_module_has_for_another_no_longer_goes_by_it(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_up(notebook, "__import__('argparse').Namespace(a=1)")
    with monkeypatch.context() as patched:
        patched.setattr(argparse, "Namespace", type("Namespace", (), {}))
        assert not known(notebook, "x")
    assert known(notebook, "x")


def test_what_is_another_while_it_is_encoded_and_then_as_before_is_sent_again(notebook: Notebook) -> None:
    warm_up(notebook, "{'busy': False, 'rows': []}")
    value = notebook["x"]
    value["rows"].append(1)

    def switch(frame: FrameType, event: str, _: object) -> None:
        """Do, at the worst moment, what a thread may do."""
        if frame.f_code is Encoder.encode.__code__ and event in ("call", "return"):
            value["busy"] = event == "call"

    sys.setprofile(switch)
    try:
        notebook.gpu("x; None")
    finally:
        sys.setprofile(None)
    assert value["busy"] is False
    assert notebook.gpu("x['busy']").extra["result"] is False


def test_what_pickling_one_value_changes_in_another_of_many_goes_with_it(notebook: Notebook) -> None:
    warm_up(notebook, "[]")
    notebook.local("""
import os
class Telling:
    home = os.getpid()
    def __getstate__(self):
        if os.getpid() == self.home:
            x.append(len(x))
            many_30[0] += 100
        return {}
telling = Telling()
""")
    there = notebook.gpu(f"telling; ({MANY}); list(x), int(many_30[0])").extra["result"]
    assert there == (notebook["x"], int(notebook["many_30"][0]))
    assert there[0]


def test_many_that_are_gone_or_changed_leave_the_others_as_they_are(notebook: Notebook) -> None:
    warm_up(notebook, "{'id': 1}")
    notebook.local("del many_0, many_39; many_1.append(5); many_38[0] = 7; x['id'] = many_2")
    left = MANY.removeprefix("many_0, ").removesuffix(", many_39")
    for _ in range(3):
        assert notebook.gpu(f"({left}); many_1, int(many_38[0]), x['id'] is many_2").extra["result"] == (
            [1, 5],
            7,
            True,
        )
    notebook.gpu(f"({left}); many_3.append(many_1); many_1.append(6)")
    assert notebook["many_3"][-1] is notebook["many_1"]
    assert notebook["many_1"] == [1, 5, 6]
    assert notebook.gpu(f"many_0, many_39 = 1, 2; ({left}); x['id']").extra["result"] == [2]


def test_what_a_cell_has_just_made_is_known_at_once(notebook: Notebook) -> None:
    notebook.local(SETUP)
    made = {"f": FRAME, "p": "Point(1, {2})", "a": "np.arange(5)"}
    notebook.gpu("; ".join(f"{name} = {value}" for name, value in made.items()))
    assert all(known(notebook, name) for name in made)


def test_what_is_another_while_it_is_looked_at_for_the_first_time_is_as_it_came(notebook: Notebook) -> None:
    notebook.local(f"{SETUP}x = Point(1, [])")
    notebook.gpu("x; None")
    value = notebook["x"]

    def switch(frame: FrameType, event: str, _: object) -> None:
        """Do, at the worst moment, what a thread may do."""
        if frame.f_code is ExchangeReader.update_table.__code__ and event == "call":
            looking.append(True)
        if looking and frame.f_code is Encoder.encode.__code__ and event in ("call", "return"):
            value.x = 5 if event == "call" else 1

    looking: list[bool] = []
    captured = notebook.captured = state.capture(
        notebook.ns, state.needs("x.y.append(2)", notebook.ns), table=notebook.table
    )
    answer = notebook.executor.ask("x.y.append(2)", captured.parts)
    sys.setprofile(switch)
    try:
        state.apply(answer["parts"], notebook.ns, sent=captured)
    finally:
        sys.setprofile(None)
    assert looking, "or nothing is tried"
    assert notebook.gpu("x.x, x.y").extra["result"] == (value.x, [2]) == (1, [2])
    value.x = 5
    assert notebook.gpu("x.x").extra["result"] == 5


def test_a_value_of_thousands_of_parts_is_known_again_and_a_change_deep_in_it_is_seen(notebook: Notebook) -> None:
    notebook.local("x = [{'n': i, 'l': [i]} for i in range(3000)]")
    for _ in range(4):
        notebook.gpu("x[0]")
    unit = notebook.table.unit_of(notebook["x"])
    assert unit is not None
    assert unit.witness is not None
    notebook.local("x[2999]['l'][0] = 'new'")
    assert notebook.gpu("x[2999]['l']").extra["result"] == ["new"]
    notebook.gpu("x[5]['n'] = -1")
    assert notebook.local("x[5]['n'], x[2999]['l']") == (-1, ["new"])


def test_a_large_value_that_changes_with_each_cell_is_not_walked_through(notebook: Notebook) -> None:
    notebook.local("x = [{'n': i, 'l': [i]} for i in range(3000)]")
    for number in range(4):
        notebook.gpu(f"x[{number}]['l'].append(0)")
    unit = notebook.table.unit_of(notebook["x"])
    assert unit is not None
    assert not unit.is_worth_a_walk
