# ruff: noqa: E501  a row is a line
"""Iterators that share what they go through go on sharing it, whichever side takes the next step."""

import pytest

from .notebook import Notebook

#: What is set up, and the steps that are taken one after the other.
STEPS = {
    "two of a tee": ("a, b = itertools.tee(iter([1, 2, 3]))", ["next(a)", "next(a), next(b)", "list(a), list(b)"]),
    "two of a long tee": ("a, b = itertools.tee(iter(range(200)))", ["next(a)", "[next(a) for _ in range(99)][-1], next(b)", "next(b)", "next(a), next(b), len(list(b)), list(a)[-1]"]),
    "a range in two iterators": ("it = iter(range(9)); z, c = zip(it, 'abcd'), itertools.chain(it, it)", ["next(z)", "next(z), next(c)", "next(it), next(z)", "next(c), next(z), list(it)"]),
    "a chain at its end": ("x = itertools.chain([1], [2]); held = [x]", ["list(x)", "list(x)", "list(held[0]), held[0] is x"]),
    "a group that is begun": ("g = itertools.groupby('aabbcc'); group = next(g)[1]", ["next(group)", "list(group), next(g)[0]", "[(key, len(list(found))) for key, found in g]"]),
    "slices of one iterator": ("it = iter([1, 2, 3, 4, 5]); x = itertools.islice(it, 3)", ["next(x)", "next(it), next(x)", "list(x), list(it)"]),
}  # fmt: skip


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("name", STEPS)
def test_each_step_is_the_one_after_the_last(notebook: Notebook, name: str, every: int, first: int) -> None:
    setup, steps = STEPS[name]
    plain: dict[str, object] = {}
    exec(f"import itertools\n{setup}", plain)
    expected = [eval(step, plain) for step in steps]
    found = []
    for place, cell in enumerate([f"import itertools\n{setup}", *steps]):
        is_there = every == 1 or place % 2 == first
        found.append(notebook.gpu(cell).extra.get("result") if is_there else notebook.local(cell))
    assert found[1:] == expected
