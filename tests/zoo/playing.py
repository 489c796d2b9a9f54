"""One notebook played one way, in a process of its own: `python -m tests.zoo.playing NAME WAY` prints JSON."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tests.notebooks.percent import Cell
from tests.state.cell_output import CellOutput
from tests.state.notebook import ROOT, Executor, Notebook
from tests.zoo.specimens import Specimen, specimen

Way = Literal["here", "pool", "turns"]
#: What is compared with a notebook that is played here: all cells on the executor, and every other one.
WAYS: tuple[Way, ...] = ("pool", "turns")
#: One thread, sets in one order, no network, no window: then a notebook shows the same each time it runs.
SETTLED = {
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
    "MPLBACKEND": "agg",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONWARNINGS": "ignore",
    "TOKENIZERS_PARALLELISM": "false",
}
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_LONGEST_S = 240


@dataclass(frozen=True)
class Shown:
    """What one cell showed: what it printed with its result, and its error."""

    text: str
    error: str | None

    @property
    def error_name(self) -> str | None:
        """The class of its error."""
        return self.error.partition(":")[0] if self.error is not None else None


class CannotPlay(Exception):
    """The process of a notebook ended before its last cell, or did not end in time."""


def play(name: str, way: Way, python: str = sys.executable) -> list[Shown]:
    """Play a notebook in a new process of this Python. Raises CannotPlay."""
    command = [python, "-m", "tests.zoo.playing", name, way]
    environ = {**os.environ, **SETTLED, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=_LONGEST_S
        )
    except subprocess.TimeoutExpired as late:
        raise CannotPlay(f"{name}, {way}: not done after {_LONGEST_S} s") from late
    if done.returncode:
        raise CannotPlay(f"{name}, {way}: {done.stderr[-2000:]}")
    return [Shown(**cell) for cell in json.loads(done.stdout.splitlines()[-1])]


def _play_here(material: Specimen, way: Way) -> list[Shown]:
    """Play all cells. What they print is caught in one stream, as a kernel has one for all cells."""
    environ = {name: value for name, value in os.environ.items() if name in SETTLED or name == "HOME"}
    notebook = Notebook(Executor(environ) if way != "here" else None)
    sys.modules["__main__"] = notebook.module
    printed, shown = CellOutput(), []
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed), contextlib.chdir(folder):
        for place, cell in enumerate(material.cells):
            is_gpu = way == "pool" or (way == "turns" and place % 2 == 1)
            shown.append(_shown(_on_executor if is_gpu else _in_notebook, notebook, cell, printed))
    if notebook.executor is not None:
        notebook.executor.close()
    return shown


def _in_notebook(notebook: Notebook, cell: Cell, printed: CellOutput) -> Any:
    return notebook.local(cell.code)


def _on_executor(notebook: Notebook, cell: Cell, printed: CellOutput) -> Any:
    applied = notebook.gpu(cell.code)
    printed.write(notebook.answer["out"])
    if "error" in applied.extra:
        raise applied.extra["error"]
    return applied.extra.get("result")


def _shown(
    run: Callable[[Notebook, Cell, CellOutput], Any], notebook: Notebook, cell: Cell, printed: CellOutput
) -> Shown:
    printed.take()
    error = None
    try:
        result = run(notebook, cell, printed)
        if result is not None:
            printed.write(f"{result!r}\n")
    except BaseException as raised:  # noqa: BLE001  it is the cell's, and is compared
        error = f"{type(raised).__name__}: {_sentence(raised)}"
    return Shown(_ADDRESS.sub("0x", printed.take()), error if error is None else _ADDRESS.sub("0x", error))


def _sentence(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001  what arrived is no longer whole, and that is what is told
        return f"<its sentence cannot be made: {failure}>"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    cells = [asdict(cell) for cell in _play_here(specimen(sys.argv[1]), sys.argv[2])]  # type: ignore[arg-type]
    print(json.dumps(cells))
