"""Sets of objects, whose order is by address and so another on each side: what nobody changes is not sent again."""

from operator import is_

import pytest

from bulletin.state import names
from bulletin.state.exchange import Exchange

from .notebook import Notebook

GRAPH = """
class Node:
    def __init__(self, *before):
        self.before, self.grad = set(before), 0
        def back():
            self.grad += 1
            for node in before:
                node.grad += 1
        self.back = back
nodes = [Node() for _ in range(40)]
nodes += [Node(*nodes[start::7]) for start in range(30)]
nodes += [Node(*nodes[start::5]) for start in range(30)]
top = Node(*nodes)
"""


def sent(notebook: Notebook) -> list[str]:
    """What values, by their names, and definitions the last cell took along, and brought back.

    What other notebooks of the executor have left in libraries is nobody's here.
    """
    assert notebook.captured is not None
    found = []
    for exchange in (notebook.captured.exchange, Exchange.unpack(notebook.answer["parts"])):
        for stream in exchange.streams:
            named = [name for name, number in exchange.bound.items() if number == stream.root]
            if any(map(names.is_registered, named)):
                continue
            found += named or ["a value"] if stream.kind == "unit" else [stream.kind] * (stream.kind == "definitions")
    return found


def require_quiet_after(most: int, cell: str, notebook: Notebook) -> None:
    """Run a cell until nothing is sent, at most so often, and then twice: each side may change its order once."""
    history = []
    for _ in range(most):
        notebook.gpu(cell)
        history.append(sent(notebook))
        if not history[-1]:
            break
    for _ in range(2):
        notebook.gpu(cell)
        assert sent(notebook) == [], history


@pytest.mark.parametrize("change", ["[node.back() for node in nodes]", "top.back()", "nodes[50].before.add(top)"])
def test_a_graph_with_sets_is_sent_once_for_each_change(change: str, notebook: Notebook) -> None:
    notebook.local(GRAPH)
    notebook.gpu("top; nodes; None")
    for run in (notebook.gpu, notebook.local):
        run(f"{change}; None")
        require_quiet_after(3, "top; nodes; None", notebook)


MADE_IN_MANY_WAYS = """
import random
class Item: pass
class Holder:
    def __init__(self, held):
        self.held, self.grad = held, 0
        def back():
            self.grad += 1
        self.back = back
rng = random.Random({seed})
space = [Item() for _ in range(3000)]
items = rng.sample(space, 60)
def make():
    held, many = set(), rng.choice([items, space])
    for item in rng.sample(many, rng.randrange(len(many))):
        held.add(item)
    for item in rng.sample(sorted(held, key=id), rng.randrange(len(held) + 1)):
        held.discard(item)
    return rng.choice([held, held.copy(), set(list(held)), held | set()])
holders = [Holder(make()) for _ in range(30)]
del space
"""


@pytest.mark.parametrize("seed", range(6))
def test_however_sets_were_made_what_nobody_changes_is_not_sent_again(seed: int, notebook: Notebook) -> None:
    notebook.local(MADE_IN_MANY_WAYS.format(seed=seed))
    notebook.gpu("holders; None")
    for run in (notebook.gpu, notebook.local):
        run("for holder in holders[::3]: holder.back()")
        require_quiet_after(3, "holders; None", notebook)


@pytest.mark.parametrize("made", ["set([16, 1, 2, 3, 4, 5])", "{16, 1, 2, 3, 4, 5}", "set(range(0, 4000, 96))"])
def test_a_set_of_numbers_is_gone_through_as_before(made: str, notebook: Notebook) -> None:
    notebook.local(f"x = [{made}, 0]; order = list(x[0])")
    for _ in range(3):
        notebook.gpu("x[1] += 1")
        assert list(notebook["x"][0]) == notebook["order"]


def test_a_set_that_gets_its_items_anew_keeps_its_order(notebook: Notebook) -> None:
    notebook.local(GRAPH)
    orders = []
    for grad in (1, 2, 3):
        notebook.gpu(f"for node in nodes: node.grad = {grad}")
        assert notebook["nodes"][0].grad == grad
        orders.append([node for parent in notebook["nodes"] for node in parent.before])
    for order in orders[1:]:
        assert all(map(is_, order, orders[0]))


@pytest.mark.parametrize(
    ("items", "change", "shown"),
    [
        ("1, 'a'", "x[0].discard(1); x[0].add(True)", "[repr(item) for item in sorted(x[0], key=str)]"),
        ("0.0", "x[0].clear(); x[0].add(-0.0)", "repr(x[0])"),
        ("one, 2", "x[0].discard(one); x[0].add(other)", "[part is other for part in x[0] if part != 2]"),
        ("keyed,", "keyed.key = 7; x[0].clear(); x[0].add(keyed)", "keyed in x[0]"),
        ("one, 3", "x[0].clear()", "x[0]"),
    ],
)
def test_what_changes_in_a_set_is_seen_there(items: str, change: str, shown: str, notebook: Notebook) -> None:
    setup = """
class One:
    pass
class Keyed:
    def __init__(self): self.key = 1
    def __hash__(self): return self.key
    def __eq__(self, other): return type(other) is Keyed and self.key == other.key
one, other, keyed = One(), One(), Keyed()
"""
    notebook.local(f"{setup}x = [{{{items}}}, 0]")
    for side, read in ((notebook.gpu, notebook.local), (notebook.local, notebook.gpu)):
        notebook.gpu("x; one; other; keyed; None")
        side(f"{change}; x[1] += 1; None")
        there = read(shown)
        here = notebook.local(shown)
        assert repr(getattr(there, "extra", {"result": there})["result"]) == repr(here)
        assert len(notebook.local("x[0]")) == len(notebook.gpu("len(x[0]) * 'x'").extra["result"])


def test_a_value_with_a_set_that_comes_anew_and_is_equal_after_the_cell_does_not_go_back(notebook: Notebook) -> None:
    notebook.local("x = {'lr': 0.1, 'tags': {'one', 'two', 'three', 'four', 'five', 'six'}}")
    notebook.gpu("x['lr'] = float('0.1')")
    assert sent(notebook) == ["x"]  # there, and not back
