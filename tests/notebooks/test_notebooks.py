"""A whole notebook comes to the same whether its cells run in the notebook, on the pool, or by turns."""

from concurrent.futures import Future

import pytest

from tests.notebooks.known import reasons, unexplained
from tests.notebooks.percent import MATERIAL, BadMaterial, Material, names, read
from tests.notebooks.playing import Played, Player, Where, differences

#: Those whose cells also run by turns, every other one on the pool.
BY_TURNS = (
    "game_of_life",
    "hf_trainer",
    "messy_names",
    "numpy_basics",
    "own_hooks",
    "pandas_cleaning",
    "python_objects",
    "recursion_memo",
    "scipy_fitting",
    "text_processing",
    "torch_mlp",
    "torch_tensors",
    "torch_transfer",
)
#: Those that run as they were found, with `%gpu on` before the first cell.
AS_FOUND = tuple(name for name in names() if name.startswith("colab_"))
CASES = [(name, "gpu") for name in names() if name not in AS_FOUND]
CASES += [(name, "mixed") for name in BY_TURNS] + [(name, "on") for name in AS_FOUND]


@pytest.fixture
def material(name: str) -> Material:
    material = read(MATERIAL / f"{name}.py")
    for library in material.needs:
        pytest.importorskip(library)
    return material


@pytest.mark.parametrize(("name", "where"), CASES)
def test_a_notebook_comes_to_the_same(
    name: str, where: Where, material: Material, here: Future[Played], there: Player
) -> None:
    played = there.play(material, where)
    alone = here.result()
    unlike_itself = [
        f"line {cell.line} ends with {shown.error or 'nothing'}, and {cell.raises or 'nothing'} was meant"
        for cell, shown in zip(material.cells, alone.shown, strict=True)
        if (shown.error[0] if shown.error else None) != cell.raises
    ]
    if unlike_itself:
        raise BadMaterial(name, unlike_itself)
    new, gone = unexplained(differences(material, where, alone, played), name, where)
    assert not new, f"{len(new)} differences\n" + "\n".join(new)
    assert not gone, "these no longer differ; take them out of known.py"
    if known := reasons(name, where):
        pytest.xfail(known)
