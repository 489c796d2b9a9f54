# ruff: noqa: E501  cells are one line each
"""What weak references alone lead to is gone once the notebook has let go of it, on both sides."""

from tests.state.notebook import Notebook

SETUP = """
import weakref
class Part:
    pass
"""


def test_weak_containers_let_go_of_what_the_notebook_has_let_go_of(notebook: Notebook) -> None:
    notebook.local(
        SETUP
        + "a, b = Part(), Part()\nkeys, values, members = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary(), weakref.WeakSet()"
    )
    notebook.gpu(
        "keys[a] = keys[b] = 1; values[1], values[2] = a, b; members.add(a); members.add(b)\nto_a, to_b = weakref.ref(a), weakref.proxy(b)\na.own = keys"
    )
    assert notebook.local("len(keys), len(values), len(members)") == (2, 2, 2)
    notebook.local("del b")
    told = "sorted(values), len(keys), len(members), to_a() is a"
    assert notebook.gpu(told).extra["result"] == ([1], 1, 1, True)
    assert notebook.local(told) == ([1], 1, 1, True)
    notebook.gpu("del a")
    assert notebook.gpu("len(keys), len(values), len(members), to_a()").extra["result"] == (0, 0, 0, None)
    assert notebook.local("len(keys), len(values), len(members), to_a()") == (0, 0, 0, None)


def test_what_something_else_holds_is_not_let_go_of(notebook: Notebook) -> None:
    notebook.local(
        SETUP
        + "a, b = Part(), Part(); kept = [a]; members = weakref.WeakSet([a, b]); del a\ndef holds(of=b): return of\ndel b"
    )
    for _ in range(3):
        assert notebook.gpu("len(members)").extra["result"] == 2
        assert notebook.local("len(members), kept[0] in members, holds() in members") == (2, True, True)


def test_what_stayed_on_the_pool_may_hold_what_nobody_holds_here(notebook: Notebook) -> None:
    notebook.local(SETUP + "members = weakref.WeakSet()")
    notebook.gpu("def go():\n  own = Part(); members.add(own); yield 1; yield own\nrunning = go(); next(running)")
    assert notebook.local("len(members)") == 1
    assert notebook.gpu("len(members), next(running) in members").extra["result"] == (1, True)
