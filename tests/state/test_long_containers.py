# ruff: noqa: E501  cells are one line each
"""Long lists, dicts and sets of texts: they travel as one piece, and nobody can tell."""

import pytest

from bulletin.errors import CannotReturn
from bulletin.state.exchange_reader import ExchangeReader

from .notebook import Notebook
from .test_leaves import moved
from .test_meanwhile import send

LONG = "a = [f'text {n}' for n in range(20_000)]\nd = {f'key {n}': n for n in range(20_000)}\ns = {f'item {n}' for n in range(20_000)}"


def test_long_containers_that_nobody_changed_are_sent_once(notebook: Notebook) -> None:
    notebook.local(LONG)
    assert moved(notebook, "len(a), len(d), len(s)")[0] > 600_000
    assert max(moved(notebook, "len(a), len(d), len(s)")) < 20_000
    assert max(moved(notebook, "b = list(a); c = {'inside': [b, dict(d)]}")) < 20_000, "the same texts are there"
    assert notebook["b"] == notebook["a"]
    assert notebook["b"] is not notebook["a"]
    assert notebook["c"]["inside"][0] is notebook["b"]
    assert list(notebook["c"]["inside"][1].items()) == list(notebook["d"].items())


CHANGES = {
    "append": ("a.append('new')", "a[-1]"),
    "one item": ("a[7] = 'new'", "a[7]"),
    "an equal item of another type": ("a[7] = 1; a[8] = True; a[9] = 1.0", "[type(x).__name__ for x in a[7:10]]"),
    "order": ("a.reverse()", "a[0]"),
    "less": ("del a[5:]", "a"),
    "nothing left": ("a.clear()", "a"),
    "a list in it": ("a[3] = ['inner']; a[4] = a[3]", "a[3] is a[4], a[3]"),
    "itself": ("a[3] = a", "a[3] is a, len(a)"),
    "a key": ("d['new'] = 'value'", "list(d)[-1], d['new']"),
    "a value": ("d['key 3'] = [1]", "d['key 3']"),
    "the order of keys": ("d['key 0'] = d.pop('key 0')", "list(d)[-1]"),
    "keys that are equal": ("del d['key 1']; d[1] = 'x'; d[1.5] = 'y'", "[type(k).__name__ for k in list(d)[-2:]]"),
    "an item of a set": ("s.add('new'); s.discard('item 3')", "'new' in s, 'item 3' in s, len(s)"),
    "a tuple in a set": ("s.add((1, 2))", "(1, 2) in s"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_on_either_side_is_seen_on_the_other_in_place(change: str, notebook: Notebook) -> None:
    source, look = CHANGES[change]
    notebook.local(LONG.replace("20_000", "3_000") + "\nkept = [a, d, s]\nheld = {'a': a}")
    kept = list(notebook["kept"])
    notebook.gpu("len(a), len(d), len(s)")
    notebook.gpu(source)
    assert [one is other for one, other in zip(kept, map(notebook.ns.get, "ads"), strict=True)] == [True] * 3
    assert notebook["held"]["a"] is notebook["a"]
    there = notebook.gpu(look).extra["result"]
    assert notebook.local(look) == there

    notebook.local(LONG.replace("20_000", "3_000") + "\nkept = [a, d, s]")
    notebook.gpu("len(kept), a[0]")
    notebook.local(source)
    assert notebook.gpu(f"({look}), kept[0] is a, kept[1] is d, kept[2] is s").extra["result"] == (
        notebook.local(look),
        True,
        True,
        True,
    )


def test_one_list_under_several_names_and_inside_stays_one(notebook: Notebook) -> None:
    notebook.local(LONG + "\nclass Box: pass\nbox = Box(); box.words = a; b = a; c = [a, {'a': (a,)}]")
    assert notebook.gpu("a is b is c[0] is c[1]['a'][0] is box.words").extra["result"]
    notebook.gpu("a[0] = 'there'")
    assert notebook["b"] is notebook["c"][0] is notebook["box"].words is notebook["a"]
    assert notebook["box"].words[0] == "there"
    notebook.gpu("new = [f'n {n}' for n in range(2000)]; other = {'new': new}; a.append('x')")
    assert notebook["other"]["new"] is notebook["new"]


def test_kinds_of_lists_dicts_and_texts_of_the_users_keep_their_class(notebook: Notebook) -> None:
    notebook.local(
        "from collections import OrderedDict, defaultdict\nclass Words(list): pass\nclass Word(str): pass\n"
        "w = Words(str(n) for n in range(2000)); o = OrderedDict((str(n), n) for n in range(2000)); e = defaultdict(list, o)\n"
        "a = [str(n) for n in range(2000)]; a[1500] = Word('own'); a[1500].note = 1"
    )
    told = "type(w).__name__, type(o).__name__, type(e).__name__, e.default_factory is list, type(a[1500]).__name__, a[1500].note"
    assert notebook.gpu(told).extra["result"] == notebook.local(told)
    notebook.gpu("w.append('x'); o.move_to_end('0'); e['new'].append(1); a[1500].note = 2")
    assert (len(notebook["w"]), list(notebook["o"])[-1], notebook["e"]["new"], notebook["a"][1500].note) == (
        2001,
        "0",
        [1],
        2,
    )


def test_values_that_are_no_number_stay_what_they_are(notebook: Notebook) -> None:
    notebook.local(
        "import math\na = ['x'] * 1500; a[3] = math.nan; a[4] = float('nan')\nd = {float('nan') if n > 1500 else str(n): n for n in range(1504)}\ns = {str(n) for n in range(1500)} | {math.nan}"
    )
    assert notebook.gpu("math.isnan(a[3]), a.count(math.nan), len(d), len(s)").extra["result"][0]
    assert notebook.gpu("len(s)").extra["result"] == 1501
    notebook.gpu("b = list(a)")
    assert notebook["b"][3] is notebook["a"][3]


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 5000])
def test_of_any_length(size: int, notebook: Notebook) -> None:
    notebook.local(f"a = [str(n) for n in range({size})]; d = {{str(n): [n] for n in range({size})}}; kept = a")
    notebook.gpu("a.extend(['x', 'y']); d['x'] = 1")
    assert notebook["kept"] == [*map(str, range(size)), "x", "y"]
    notebook.gpu("del a[-3:]; d.clear()")
    assert (len(notebook["kept"]), notebook["d"]) == (max(size - 1, 0), {})


def test_a_return_that_fails_puts_long_containers_back(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.local(LONG + "\nkept = [a, d, s]")
    notebook.gpu("len(a), len(d), len(s)")
    before = [list(notebook["a"]), list(notebook["d"].items()), set(notebook["s"])]
    monkeypatch.setattr(ExchangeReader, "commit", _fails)
    with pytest.raises(CannotReturn):
        notebook.gpu("a[5] = 'changed'; d['new'] = 1; del d['key 3']; s.clear()")
    monkeypatch.undo()
    assert [notebook["kept"][0], list(notebook["kept"][1].items()), notebook["kept"][2]] == before
    assert all(one is other for one, other in zip(notebook["a"], before[0], strict=True))
    notebook.gpu("a[6] = 'later'")
    assert notebook["kept"][0][5:7] == ["text 5", "later"]


def _fails(_: object) -> None:
    raise OSError("no room")


def test_the_namespace_is_not_looked_into(notebook: Notebook) -> None:
    notebook.local("for n in range(1200): globals()[f'name{n}'] = str(n)\nhere = globals(); holder = [here]; del n")
    assert notebook.gpu("holder[0] is here is globals(), name7").extra["result"] == (True, "7")
    notebook.gpu("name7 = 'there'")
    assert notebook["here"] is notebook.ns
    assert notebook["here"]["name7"] == "there"


def test_many_names_of_texts_come_as_they_are(notebook: Notebook) -> None:
    notebook.local("for n in range(1500): globals()[f'name{n}'] = f'value {n}'\ndel n")
    notebook.gpu("; ".join(f"name{n}" for n in range(1500)) + "\nname3 = 'there'")
    assert (notebook["name3"], notebook["name1499"]) == ("there", "value 1499")


def test_a_value_that_both_sides_change_is_laid_aside_whole(notebook: Notebook) -> None:
    notebook.local("outer = {'words': [str(n) for n in range(2000)], 'n': 1}; words = outer['words']")
    notebook.gpu("outer['n'] = 2; words[0] = 'there'")
    assert (notebook["outer"]["n"], notebook["words"][0], notebook["outer"]["words"] is notebook["words"]) == (
        2,
        "there",
        True,
    )


BOTH = "import numpy as np\nlong = [f'text {n}' for n in range(2000)]; array = np.array(long, dtype=object); free = dict.fromkeys(long); also = long"


def test_texts_that_both_sides_have_changed_are_laid_aside_whole(notebook: Notebook) -> None:
    notebook.local(BOTH)
    notebook.gpu("len(long), len(array), len(free)")
    land = send(notebook, "long[0] = array[0] = 'there'; free['there'] = 1; copy = list(long)")
    notebook.local("long[1] = array[1] = 'mine'")
    applied = land()
    assert (applied.aside["long"][:2], applied.aside["long"] is applied.aside["also"]) == (["there", "text 1"], True)
    assert applied.aside["array"][:2].tolist() == ["there", "text 1"]
    assert (notebook["long"][:2], notebook["array"][:2].tolist()) == (["text 0", "mine"], ["text 0", "mine"])
    assert (notebook["also"] is notebook["long"], notebook["free"]["there"], notebook["copy"][:2]) == (
        True,
        1,
        ["there", "text 1"],
    )
    assert notebook.gpu("long[:2], array[:2].tolist(), also is long, copy[:2]").extra["result"] == (
        ["text 0", "mine"],
        ["text 0", "mine"],
        True,
        ["there", "text 1"],
    )


def test_the_cell_sees_texts_as_they_were_when_it_left(notebook: Notebook) -> None:
    notebook.local(BOTH)
    land = send(notebook, "seen = (long[0], array[0], len(free))")
    notebook.local("long[0] = array[0] = 'later'; free.clear()")
    assert land().aside == {}
    assert notebook["seen"] == ("text 0", "text 0", 2000)
    assert notebook.gpu("long[0], array[0], len(free)").extra["result"] == ("later", "later", 0)
