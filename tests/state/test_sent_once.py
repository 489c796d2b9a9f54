# ruff: noqa: E501  cells are one line each
"""What has not changed is not sent again, either way."""

import pytest

from .notebook import Notebook


def moved(notebook: Notebook, cell: str) -> tuple[int, int]:
    """Bytes that went there and came back, apart from settings, sources of modules and the like."""
    for _ in range(2):  # the first takes sources along
        notebook.gpu("0")
    assert notebook.captured is not None
    idle = (
        sum(memoryview(part).nbytes for part in notebook.captured.parts),
        sum(len(part) for part in notebook.answer["parts"]),
    )
    notebook.gpu(cell)
    there = sum(memoryview(part).nbytes for part in notebook.captured.parts)
    return there - idle[0], sum(len(part) for part in notebook.answer["parts"]) - idle[1]


UNCHANGED = {
    "array": "import numpy as np\nx = np.ones(1 << 20)",
    "list of dicts": "x = [{'a': n, 'b': str(n)} for n in range(2000)]",
    "instances": "class P:\n  def __init__(self, n): self.n = n; self.kids = [n]\nx = [P(n) for n in range(500)]",
    "frame": "import pandas as pd\nx = pd.DataFrame({'a': range(9999), 'b': ['text'] * 9999})",
    "what C code makes anew each time, with what that holds": (
        "class P: pass\nclass W:\n  def __init__(self, v): self.v = v\n"
        "  def __reduce__(self): return W.of, (slice(P()), slice(slice(P())), self.v)\n"
        "  @staticmethod\n  def of(a, b, v): return W(v)\n"
        "x = [W(str(n) * 9) for n in range(500)]"
    ),
    "estimator": "from sklearn.ensemble import RandomForestClassifier\nimport numpy as np\nx = RandomForestClassifier(5).fit(np.eye(50), [0, 1] * 25)",
    "figure": "import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt\nx, ax = plt.subplots()\nax.plot([1, 2])",
    "model and optimizer": "import torch\nm = torch.nn.Linear(200, 200)\nx = torch.optim.Adam(m.parameters())\nm(torch.ones(1, 200)).sum().backward()\nx.step()",
}


@pytest.mark.parametrize("kind", UNCHANGED)
def test_what_has_not_changed_is_not_sent_again(kind: str, notebook: Notebook) -> None:
    pytest.importorskip("torch" if "torch" in UNCHANGED[kind] else "sklearn")
    notebook.local(UNCHANGED[kind])
    first = moved(notebook, "n = id(x)")
    again = moved(notebook, "n = id(x)")
    assert first[0] > 4000
    assert again[0] < 1000
    assert max(first[1], again[1]) < 1000


def test_of_a_large_array_only_the_block_that_changed_moves(notebook: Notebook) -> None:
    pytest.importorskip("numpy")
    notebook.local("import numpy as np\nx = np.zeros(8 << 20, dtype='u1')\nkept, view = x, x[5:]")
    assert moved(notebook, "x[3 << 20] = 1")[0] > 8 << 20
    assert moved(notebook, "x[(5 << 20) + 7] = 2")[1] < (1 << 20) + 2000
    notebook.local("view[0] = 3")
    assert 1 << 20 < moved(notebook, "n = int(x.sum())")[0] < (1 << 20) + 2000
    assert (notebook["n"], notebook.local("kept is x and view.base is x and int(view[(5 << 20) + 2])")) == (6, 2)


def test_memory_that_only_one_side_still_finds_is_not_lost(notebook: Notebook) -> None:
    pytest.importorskip("pandas")
    notebook.local(
        "import pandas as pd\nt = pd.DataFrame({'a': [1, 2, 3], 'b': ['x', None, 'y']})\nc = t[t.columns[0]]"
    )
    notebook.gpu("t['c'] = 1.5\nn = int(c.sum())")
    notebook.gpu("del t[t.columns[-1]]")
    notebook.gpu("c = c * 2\nt['b'] = 'z'")
    assert notebook.local("list(t.columns), t['b'].tolist(), c.tolist(), n") == (["a", "b"], ["z"] * 3, [2, 4, 6], 6)
    notebook.local("del t, c")
    notebook.gpu("0")
    assert not notebook.table.regions
