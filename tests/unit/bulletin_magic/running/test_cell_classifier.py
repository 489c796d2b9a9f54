"""Which cells of a notebook go to the pool when every cell does."""

import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from bulletin_magic.running.cell_classifier import computes

_KNOWN = {
    "gpu", "remote", "cpu", "matplotlib", "load_ext", "autoreload", "pip", "html", "writefile", "pinfo", "pinfo2",
    "time", "capture", "bash", "run", "timeit", "cd", "sql", "system",
}  # fmt: skip


def goes(cell: str) -> bool:
    python = TransformerManager().transform_cell(cell)
    return computes(ast.parse(python), lambda _, name: name in _KNOWN)


@pytest.mark.parametrize(
    "cell",
    [
        "x = 1",
        "await f()",
        "'only a word'",
        "%matplotlib inline\nimport numpy",
        "!nvidia-smi",
        "!python train.py",
        "!pip list",
        "files = !ls",
        "%time f()",
        "found = %timeit -o f()",
        "%run train.py",
        "%%time\nf()",
        "%%capture out\nf()",
        "%%bash\nnvidia-smi",
        "!pip install einops\nimport einops",
        "%brought_by_another_cell",
        "%%brought_by_another_cell\nx",
        "get_ipython().run_line_magic(name, 'x')",
        "exit(1)",
        "import gpu\ngpu.start()",
    ],
)
def test_a_cell_that_computes_goes(cell: str) -> None:
    assert goes(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "# a remark",
        "%gpu",
        "%gpu off\nx = 1",
        "%%gpu\nx = 1",
        "%%remote\nx = 1",
        "%%cpu anything\nx = 1",
        "%%capture out\n%%gpu\nx = 1",
        "%%time\n%%cpu\nx = 1",
        "len?",
        "len??",
        "%matplotlib inline",
        "%load_ext autoreload\n%autoreload 2",
        "%cd data",
        "%pip install einops",
        "!pip install -q einops",
        "!pip3 --quiet install einops",
        "!{sys.executable} -m pip install einops",
        "!uv pip install einops",
        "!conda install -y einops",
        "%%html\n<b>bold</b>",
        "%%writefile train.py\nx = 1",
        "%%sql\nselect 1",
        "rows = %sql select 1",
        "quit()",
    ],
)
def test_a_cell_for_the_notebook_itself_stays(cell: str) -> None:
    assert not goes(cell)
