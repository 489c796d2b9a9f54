"""What a class's own code copies or counts while values load is whole, though it leads back to the instance."""

import pytest

from tests.state.notebook import Notebook

KINDS = """
from collections import deque

class Copies:
    def __init__(self, items): self.items, self.calls = items, 0
    def __getstate__(self): return {"items": self.items, "calls": self.calls}
    def __setstate__(self, state): self.calls = state.pop("calls"); self.items = list(state.pop("items"))

class Counts:
    def __init__(self, items): self.items, self.count = items, 0
    def __setstate__(self, state): self.items = state["items"]; self.count = len(self.items)

class Within:
    def __init__(self, items): self.box, self.seen = {"deep": (items,)}, 0
    def __setstate__(self, state): self.box = state["box"]; self.seen = len([*self.box["deep"][0]])

class Reduces:
    def __init__(self, items): self.items = items
    def __reduce__(self): return Reduces, (self.items,)

class Anew:
    def __init__(self, items): self.items = list(items)
    def __reduce__(self): return Anew, (self.items,)

class Node:
    def __init__(self, owner): self.owner = owner

class Many(list):
    def __len__(self): return 0

class Appends:
    def __init__(self, items): self.items = items
    def __setstate__(self, state): self.__dict__.update(state); self.items.append("restored")

class Saves:
    def __init__(self): self.cache = {}
    def __setstate__(self, state): self.calls = state.get("calls", 0) + 1; self.cache = {"k": self.calls}

class Joins:
    def __init__(self, bus): self.bus = bus
    def __setstate__(self, state): self.bus = state["bus"]; self.bus["all"].append(len(self.bus["all"]))
"""


@pytest.mark.parametrize("size", [1, 3, 1000, 2500])
@pytest.mark.parametrize("made", ["[]", "deque()", "Many()"])
def test_what_a_setstate_copies_of_a_list_that_leads_back_to_it_is_whole(
    notebook: Notebook, made: str, size: int
) -> None:
    notebook.local(f"{KINDS}\nitems = {made}")
    notebook.gpu(
        f"items.append(Copies(items)); items[0].count = 1\nitems += [Node(items[0]) for _ in range({size - 1})]"
    )
    alike = f"[*map(type, items[0].items)] == [*map(type, items)], len([*items]) == {size}"
    assert notebook.local(alike) == (True, True)
    notebook.local("items.append(Node(items[0])); items[0].items.append(5)")
    ask = "len(items[0].items), items[0].calls, type(items[0].items[-1]).__name__"
    assert notebook.gpu(ask).extra["result"] == (size + 1, 0, "int")


@pytest.mark.parametrize(
    ("filling", "asked", "expected"),
    [
        ("items += [Counts(items), Counts(items), 7]", "[items[0].count, items[1].count]", [3, 3]),
        ("items += [Within(items), 7]", "items[0].seen", 2),
        ("items += [Reduces(items), 7]", "len(items[0].items), items[0].items is items", (2, True)),
        ("a = Anew([]); a.items.append(Node(a))", "len(a.items), a.items[0].owner is a", (1, True)),
        ("d = {}; d['c'] = Counts(d); d['e'] = 1", "d['c'].count", 2),
        ("s = set(); s |= {Counts(s), Counts(s)}", "[one.count for one in s]", [2, 2]),
    ],
)
def test_what_a_class_makes_of_a_container_that_leads_back_to_it_is_made_of_all_of_it(
    notebook: Notebook, filling: str, asked: str, expected: object
) -> None:
    notebook.local(f"{KINDS}\nitems = []")
    notebook.gpu(filling)
    assert notebook.local(asked) == expected


@pytest.mark.parametrize(
    ("filling", "asked", "expected"),
    [
        ("x = Appends([])", "x.items", ["restored"]),
        ("x = Appends([1])", "x.items", [1, "restored"]),
        ("x = Appends([]); x.items.append(Node(x))", "x.items[1:]", ["restored"]),
        ("x = Saves()", "x.cache, x.calls", ({"k": 1}, 1)),
        ("bus = {'all': []}; x = [Joins(bus), Joins(bus), Joins(bus)]", "bus['all']", [0, 1, 2]),
        ("bus = {'all': [5]}; x = [Joins(bus), Joins(bus)]", "bus['all']", [5, 1, 2]),
        ("bus = {'all': []}; bus['all'] += [5, 6]; x = Joins(bus); bus['me'] = Node(x)", "bus['all']", [5, 6, 2]),
    ],
)
def test_a_setstate_that_met_all_there_is_is_called_once_whatever_it_adds(
    notebook: Notebook, filling: str, asked: str, expected: object
) -> None:
    notebook.local(KINDS)
    notebook.gpu(f"{filling}; everything = [x]; del x")
    notebook.local("x = everything[0]; bus = getattr(x[0] if type(x) is list else x, 'bus', None)")
    assert notebook.local(asked) == expected


def test_a_reduce_that_leads_back_is_refused_where_the_rest_cannot_travel(notebook: Notebook) -> None:
    notebook.local(KINDS)
    stayed = notebook.gpu("a = Anew([]); a.items.append(Node(a)); a.letters = (n for n in 'ab'); n = 1").stayed
    assert [(one.path, one.why) for one in stayed] == [("a", "its __reduce__ hands out a list that leads back to it")]
    assert notebook["n"] == 1
    assert notebook.gpu("next(a.letters)").extra["result"] == "a"
