"""Jupyter's own suite for kernels, on a plain kernel and on one whose cells all run on the pool.

And message by message: what a front end is told of a cell is the same, wherever it ran.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import jupyter_kernel_test
import pytest

from tests.integration.conftest import PATIENCE_S, Notebook, Output, PoolProcess
from tests.kernels import make_manager

ROOT = Path(__file__).parents[2]


class Samples:
    """What the suite runs."""

    kernel_name = "python3"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples: ClassVar = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples: ClassVar = ["1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n"]
    incomplete_code_samples: ClassVar = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples: ClassVar = ["import = 7q"]
    code_page_something = "zip?"
    code_generate_error = "raise ValueError('on purpose')"
    code_execute_result: ClassVar = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    ]
    code_display_data: ClassVar = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))", "mime": "text/html"},
        {"code": "from IPython.display import Math, display; display(Math('\\\\frac{1}{2}'))", "mime": "text/latex"},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"


class TestPlainKernel(Samples, jupyter_kernel_test.KernelTests):
    """The suite's own samples are right."""


class TestKernelWhoseCellsAllRunOnThePool(Samples, jupyter_kernel_test.KernelTests):
    """Its cells are the suite's, and say nothing of a pool."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp())
        cls.pool = PoolProcess(cls.folder / "p")
        startup = cls.folder / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        shutil.copy(ROOT / "bulletin_magic" / "startup.py", startup / "50-bulletin.py")
        environ = os.environ | {
            "PYTHONPATH": str(ROOT),
            "IPYTHONDIR": str(cls.folder / "ipython"),
            "BULLETIN": "on",
            "BULLETIN_CONNECTION_FILE": str(cls.pool.folder / "connection.json"),
        }
        cls.km = make_manager(kernel_name=cls.kernel_name)
        cls.km.start_kernel(env=environ, cwd=str(cls.folder))
        cls.kc = cls.km.blocking_client()
        cls.kc.start_channels()
        cls.kc.wait_for_ready(timeout=PATIENCE_S)
        cls.kc.execute_interactive("%%cpu\nimport os\nhere = os.getpid()", store_history=False, timeout=PATIENCE_S)
        cls.kc.execute_interactive("elsewhere = os.getpid() != here", timeout=PATIENCE_S)
        reply = cls.kc.execute("", user_expressions={"elsewhere": "elsewhere"}, reply=True, timeout=PATIENCE_S)
        assert reply["content"]["user_expressions"]["elsewhere"]["data"]["text/plain"] == "True"

    @classmethod
    def tearDownClass(cls) -> None:
        super().tearDownClass()
        cls.pool.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)


CELLS = [
    "1 + 1",
    "print('out'); import sys; print('err', file=sys.stderr); 'value'",
    "'unseen';",
    "None",
    "x = 3\nx",
    "_ + 1",
    "print(1)\nprint(2)\nfrom IPython.display import display\ndisplay('shown', 5)\nprint(3)",
    "handle = display('first', display_id='one')",
    "handle.update('second')",
    "from IPython.display import clear_output\nprint('gone')\nclear_output(wait=True)\nprint('stays')",
    "class Rich:\n    def _repr_html_(self): return '<b>rich</b>'\n    def __repr__(self): return 'rich'\nRich()",
    "raise KeyError('missing')",
    "def f(n):\n    return 1 / n\nf(0)",
    "undefined_name",
    "if True:\nx = 1",
    "x = (",
    "assert x == 4, 'not four'",
    "%no_such_magic",
    "%%no_such_magic\n1",
    "!echo from the shell",
    "files = !echo one; echo two\nfiles",
    "len?",
    "import asyncio\nawait asyncio.sleep(0, 'awaited')",
    "%%capture got\nprint('captured')",
    "got.stdout",
    "import warnings; warnings.warn('careful')",
    "import logging; logging.getLogger('a').warning('logged')",
    "%%html\n<i>italic</i>",
    "\n\n# above\nx / 0",
    "get_ipython().run_cell('2 + 2').result",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: int\nP(1), type(P(1)).__module__",
    "In[4], Out[4], _4",
    "__name__, len(In) > 3",
    "exit_code = 3\nraise SystemExit(exit_code)",
]


@pytest.fixture
def both(pool: PoolProcess, open_notebook: Callable[..., Notebook]) -> tuple[Notebook, Notebook]:
    """A plain notebook, and one whose cells all run on the pool."""
    plain, every = open_notebook(pool), open_notebook(pool)
    for one, first in ((plain, "%gpu off"), (every, "%gpu on")):
        one.run(first)
        one.run("'the wait for the first executor has a receipt'")
    return plain, every


def told(output: Output) -> tuple[list[Any], dict[str, Any]]:
    """What a front end is told, without what is new each time. Neighbours of one stream are one."""
    messages: list[Any] = []
    for message in output.messages:
        kind, content = message["msg_type"], dict(message["content"])
        if kind == "status":
            continue
        if kind == "stream" and messages and messages[-1][:2] == ["stream", content["name"]]:
            messages[-1][2] += content["text"]
            continue
        messages.append(["stream", content["name"], content["text"]] if kind == "stream" else [kind, content])
    reply = {name: value for name, value in output.reply.items() if name != "engine_info"}
    return plain_of(messages), plain_of(reply)


def plain_of(value: Any) -> Any:
    """Without colours, addresses of objects and the file names that kernels give to cells."""
    if isinstance(value, dict):
        return {name: plain_of(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain_of(one) for one in value]
    if isinstance(value, str):
        text = re.sub(r"\x1b\[[0-9;]*m", "", value)
        text = re.sub(r"0x[0-9a-f]{6,}", "0x", text)
        return re.sub(r"\S*ipykernel_\d+/\d+\.py|<ipython-input[^>]*>", "a cell", text)
    return value


def test_a_front_end_is_told_the_same_of_every_cell(both: tuple[Notebook, Notebook]) -> None:
    plain, every = both
    different = []
    for cell in CELLS:
        here, there = told(plain.run(cell)), told(every.run(cell))
        if here != there:
            different.append((cell, here, there))
    assert not different, "\n".join(f"{cell!r}\n  here:  {here}\n  there: {there}" for cell, here, there in different)
