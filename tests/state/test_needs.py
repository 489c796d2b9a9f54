"""Which names a cell needs."""

import pytest

from bulletin.state import needs

NAMESPACE = {"a": 1, "b": 2, "f": len, "df": 3, "_": 4, "get_ipython": 5, "text": "x"}

READS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a load": ("print(a)", ("a",)),
    "a name bound before it is read": ("a = 1\nprint(a)", ()),
    "a name bound in a branch only": ("if b: a = 1\nprint(a)", ("b", "a")),
    "a name that both branches bind": ("if b: a = 1\nelse: a = 2\nprint(a)", ("b",)),
    "a name that a with statement binds": ("with f() as a: print(a)", ("f",)),
    "a name that a second manager uses": ("with f() as a, f(a) as b: b", ("f",)),
    "a name after a with statement, which may have ended early": ("with f(): a = 1\nprint(a)", ("f", "a")),
    "the variable of a loop, in it": ("for a in b: print(a)", ("b",)),
    "the variable of a loop, after it": ("for a in b: pass\nprint(a)", ("b", "a")),
    "a name that a loop reads before it binds it": ("while f():\n  print(a)\n  a = 1", ("f", "a")),
    "a loop over the name that it binds": ("for a in a: pass", ("a",)),
    "a loop that is left in a try": ("for i in b:\n  try: a\n  except E: break\n  else: continue", ("b", "a")),
    "a name that is deleted in a branch": ("a = 1\nif b: del a\nprint(a)", ("b", "a")),
    "a function in a branch": ("if b:\n  def g(): return a\ng()", ("b", "a")),
    "a shell line in a branch": ("if b:\n  !ls", ("b",)),
    "an augmented assignment": ("a += 1", ("a",)),
    "a deletion": ("del a", ("a",)),
    "a default argument": ("def g(x=a): return x", ("a",)),
    "a nested scope": ("def g():\n  return [b for _i in a]", ("a", "b")),
    "a local name": ("def g(a): return a", ()),
    "a global statement": ("def g():\n  global a\n  a = 1", ("a",)),
    "a function that calls itself": ("def f(n): return f(n - 1)", ()),
    "a class body": ("class C:\n  x = a\n  def m(self): return b", ("a", "b")),
    "a decorator": ("@f\ndef g(): pass", ("f",)),
    "an annotation": ("x: a = 1", ("a",)),
    "an attribute store": ("a.x = 1", ("a",)),
    "an item store": ("a[b] = 1", ("a", "b")),
    "top-level await": ("await f()\nasync with a: pass", ("f", "a")),
    "an f-string": ("f'{a:{b}}'", ("a", "b")),
    "a query's text": ("df.query('x > @a')", ("df", "a")),
    "a line of text only": ("print('a b')", ()),
    "what is absent": ("zz + 1", ()),
    "the last result": ("_ + 1", ("_",)),
    "a harmless magic": ("%matplotlib inline\na", ("a",)),
    "a shell line": ("!ls\na", ("a",)),
    "a timed line": ("%time b + 1", ("b",)),
    "a timed cell": ("%%timeit -n 3\nf(a)", ("f", "a")),
    "a syntax error": ("a b", ()),
    "an empty cell": ("", ()),
}  # fmt: skip


@pytest.mark.parametrize("row", READS)
def test_a_cell_reads_the_names_it_mentions_in_any_scope_and_no_others(row: str) -> None:
    source, reads = READS[row]
    found = needs(source, NAMESPACE)
    assert sorted(found.reads) == sorted(reads)
    assert not found.everything


@pytest.mark.parametrize(
    "source",
    [
        "globals()",
        "def g(): return eval('a')",
        "exec(text)",
        "vars()",
        "locals()",
        "dir()",
        "from math import *",
        "%run other.py",
        "!echo {a}",
        "get_ipython().user_ns",
        "import sys\nsys.modules['__main__']",
        "import __main__",
        "df.query(text)",
        "%time eval('a')",
    ],
)
def test_a_dynamic_look_up_needs_everything(source: str) -> None:
    assert needs(source, NAMESPACE).everything


@pytest.mark.parametrize("source", ["vars(a)", "dir(a)", "df.eval()", "a.globals", "print('eval')", "!pip list"])
def test_what_only_resembles_a_dynamic_look_up_needs_its_names_alone(source: str) -> None:
    assert not needs(source, NAMESPACE).everything


def test_writes_and_deletes_are_told_apart() -> None:
    found = needs("x = 1\nfor i in a: del b\nimport os.path\nwith f() as g: pass", NAMESPACE)
    assert found.writes == ("x", "i", "os", "g")
    assert found.deletes == ("b",)


def test_what_a_function_deletes_the_cell_that_defines_it_does_not() -> None:
    found = needs("def f():\n    global a\n    del a\nif a: del b", NAMESPACE)
    assert (found.deletes, found.unbinds) == (("a", "b"), ("b",))
    assert needs("%%time\ndel b", NAMESPACE).unbinds == ("b",)


def test_a_capture_magic_writes_the_name_it_is_given() -> None:
    found = needs("%%capture out\nprint(a)", NAMESPACE)
    assert (found.reads, found.writes) == (("a",), ("out",))
