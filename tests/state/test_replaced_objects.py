"""What cannot take its new state is replaced by another object: one for all who held the old one, wherever it is held."""

import numpy as np
import pytest

from .notebook import Notebook

HELD = {
    "an attribute": ("class Sampler: pass\nholder = Sampler()\nholder.rng = rng", "holder.rng"),
    "an attribute of an attribute": (
        "class Part: pass\nholder = Part()\nholder.part = Part()\nholder.part.rng = rng",
        "holder.part.rng",
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
