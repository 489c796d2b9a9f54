"""What keeps the address of what it holds finds it by that on both sides."""

from .notebook import Notebook

CLASSES = """
class Node:
    def __init__(self): self.seen = 0

class Group:
    def __init__(self, node):
        self.key, self.number, self.node = f"group@{id(node)}", id(node), node
        self.me, self.listeners, self.count = id(self), {id(node): node}, 2**40
    def find(self):
        return self.listeners[self.number], self.key == f"group@{id(self.node)}", self.me == id(self), self.count
    def add(self, node): self.listeners[id(node)] = node
"""


def test_an_instance_that_knows_an_address_finds_it_on_both_sides(notebook: Notebook) -> None:
    notebook.local(CLASSES)
    notebook.local("n = Node(); g = Group(n)")
    assert notebook.gpu("[part if i else part is n for i, part in enumerate(g.find())]").extra["result"] == [
        True, True, True, 2**40,
    ]  # fmt: skip
    notebook.gpu("m = Node(); g.add(m); n.seen = 1; h = Group(m)")
    assert notebook.local("[id(part) == key for key, part in g.listeners.items()]") == [True, True]
    assert notebook.local("g.find()[0] is n, g.find()[1:], g.listeners[id(m)] is m, n.seen") == (
        True, (True, True, 2**40), True, 1,
    )  # fmt: skip
    assert notebook.local("h.find()[0] is m, h.find()[1:]") == (True, (True, True, 2**40))
    assert notebook.local("list(vars(g))") == ["key", "number", "node", "me", "listeners", "count"]


def test_each_instance_of_a_class_is_asked(notebook: Notebook) -> None:
    notebook.local("""class Registry:
    def __init__(self): self.seen, self.last = {}, None
    def add(self, node): self.seen[id(node)], self.last, self.last_id = node, node, id(node)
    def has(self, node): return id(node) in self.seen, self.last is None or self.last_id == id(self.last)""")
    notebook.local("first, second, third = Registry(), Registry(), Registry(); second.add([1])")
    notebook.local("third.seen['name'], third.seen[5] = 'a key', 'no address'; third.add([2])")
    notebook.local("held = [first, second, third]")
    ask = "[[each.has(part) for part in each.seen.values()] for each in held]"
    yes = (True, True)
    assert notebook.gpu(ask).extra["result"] == [[], [yes], [(False, True), (False, True), yes]]
    assert notebook.gpu("list(third.seen)[:2], third.seen[5]").extra["result"] == (["name", 5], "no address")
    notebook.gpu("first.add([3]); second.add([4])")
    assert notebook.local(ask) == [[yes], [yes, yes], [(False, True), (False, True), yes]]
    notebook.local("second.__init__()")
    assert notebook.gpu("second.seen, second.last").extra["result"] == ({}, None)


def test_what_has_an_address_and_has_not_changed_is_not_sent_again(notebook: Notebook) -> None:
    notebook.local(CLASSES)
    notebook.local("g = Group(Node())")
    notebook.gpu("g.find()")
    notebook.gpu("g.find()")
    assert notebook.captured is not None
    assert "unit" not in [stream.kind for stream in notebook.captured.exchange.streams]
