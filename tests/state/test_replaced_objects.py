"""An old object has its new state, or one other object takes its place wherever it was held."""

import re

import numpy as np
import pytest

from bulletin.errors import CannotReturn

from .notebook import Notebook

HELD = {
    "an attribute": ("class Sampler: pass\nholder = Sampler()\nholder.rng = rng", "holder.rng"),
    "an attribute of an attribute": (
        "class Part: pass\nholder = Part()\nholder.part = Part()\nholder.part.rng = rng",
        "holder.part.rng",
    ),
    "a tuple": ("holder = (1, rng)", "holder[1]"),
    "a slot": ("class Slotted: __slots__ = ('rng',)\nholder = Slotted()\nholder.rng = rng", "holder.rng"),
    "what runs": (
        "def draws(g):\n    while True: yield g\nholder = draws(rng)\nnext(holder)",
        "holder.gi_frame.f_locals['g']",
    ),
    "a list": ("holder = [1, rng]", "holder[1]"),
    "a closure": ("def outer(g):\n    def draw():\n        return g\n    return draw\nholder = outer(rng)", "holder()"),
}


@pytest.mark.parametrize("where", HELD)
@pytest.mark.parametrize("cell", ["{held}.random(); rng", "rng.random(); {held}", "{held}.random()"])
def test_a_generator_that_others_hold_stays_theirs(notebook: Notebook, where: str, cell: str) -> None:
    made, held = HELD[where]
    notebook.local(f"import numpy as np\nrng = np.random.default_rng(3)\n{made}")
    expected = np.random.default_rng(3)
    if where == "what runs":
        cell = "rng.random()"  # a generator that runs cannot travel
    for _ in range(3):
        notebook.gpu(cell.format(held=held))
        expected.random()
        assert notebook.local(f"{held} is rng")
    assert notebook.local("rng.random()") == expected.random()


def test_of_several_that_hold_it_each_has_the_same_one(notebook: Notebook) -> None:
    notebook.gpu("""
import numpy as np
class Layer:
    def __init__(self, rng): self.rng = rng
rng = np.random.default_rng(0)
layers = {name: Layer(rng) for name in "abc"}
first = layers["a"]
""")
    notebook.gpu("first.rng.random(); rng.random(); layers['b'].rng.random()")
    notebook.gpu("first.rng.random(); layers")
    assert notebook.local("{id(layer.rng) for layer in layers.values()} | {id(first.rng)} == {id(rng)}")
    assert notebook.local("first is layers['a']")
    expected = np.random.default_rng(0)
    expected.random(4)
    assert notebook.local("rng.random()") == expected.random()


def test_a_generator_of_numpys_old_kind_and_its_bits_are_the_same_ones(notebook: Notebook) -> None:
    notebook.local(
        "import numpy as np\nold = np.random.RandomState(5)\nbits = np.random.PCG64(2)\nrng = np.random.Generator(bits)"
    )
    notebook.local("before = id(old), id(rng), id(bits)")
    notebook.gpu("a, b = old.normal(), rng.random()\nspawned = rng.spawn(1)[0].random()")
    assert notebook.local("before == (id(old), id(rng), id(bits)) and rng.bit_generator is bits")
    expected, bits = np.random.RandomState(5), np.random.Generator(np.random.PCG64(2))
    assert notebook.local("a, b") == (expected.normal(), bits.random())
    assert notebook.local("spawned") == bits.spawn(1)[0].random()
    assert notebook.local("old.normal(), rng.spawn(1)[0].random()") == (expected.normal(), bits.spawn(1)[0].random())


def test_a_generator_draws_as_before_where_a_cell_does_not_come_back(notebook: Notebook) -> None:
    notebook.local("""
import numpy as np
rng = np.random.default_rng(1)
class Late:
    def __setstate__(self, state):
        raise OSError("not here")
held = [1]
""")
    with pytest.raises(CannotReturn, match=re.escape("not here")):
        notebook.gpu("rng.random()\nlate = Late.__new__(Late)\nlate.x = 1\nheld.append(late)")
    assert notebook.local("rng.random()") == np.random.default_rng(1).random()


@pytest.mark.parametrize("cell", ["next(holder.numbered); numbered", "next(numbered); holder", "next(holder.numbered)"])
def test_what_cannot_take_its_new_state_is_replaced_by_one_object_for_all_who_hold_it(
    notebook: Notebook, cell: str
) -> None:
    notebook.local("class Held: pass\nnumbered = enumerate('abcdefg')\nholder = Held()\nholder.numbered = numbered")
    for _ in range(3):
        notebook.gpu(cell)
        assert notebook.local("holder.numbered is numbered")
    assert notebook.local("next(numbered)") == (3, "d")


def test_a_class_holds_who_calls_its_own_method_though_a_base_has_another(notebook: Notebook) -> None:
    """Such a method is not asked for by its name: while the class is made, that is the base's."""
    notebook.local(
        "class Base:\n    check = None\n"
        "class Caller:\n    def __init__(self, function): self.function = function\n"
        "    def __reduce__(self): return Caller, (self.function,)\n"
    )
    notebook.gpu(
        "class Own(Base):\n    @classmethod\n    def check(cls): return cls.__name__\n"
        "Own.caller = Caller(Own.check)\nown = Own()"
    )
    assert notebook.local("own.caller.function()") == "Own"
    notebook.gpu("class Deep(Own): pass\ndeep = Deep(); own.seen = deep.caller.function()")
    assert notebook.local("own.seen, own.caller.function(), deep.caller.function()") == ("Own", "Own", "Own")
