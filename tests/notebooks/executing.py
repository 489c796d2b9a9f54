"""An example notebook executed as nbconvert does it, with a real kernel: what stands under its cells, what is left."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell
from traitlets.config import Config

from tests.clean_environ import clean_environ
from tests.kernels import where_to_listen

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
_FINGERPRINT = Path(__file__).with_name("fingerprint.py")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_ROLE = re.compile(r'role="(note|status)"')
_PATIENCE_S = 120


@dataclass(frozen=True)
class Under:
    """What stands under one cell at the end, as a person sees it: what was replaced or cleared is not there."""

    source: str
    outputs: tuple[dict[str, Any], ...]

    @property
    def stdout(self) -> str:
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        return self._stream("stderr")

    @property
    def pictures(self) -> list[str]:
        """All PNGs, in base64."""
        return [data["image/png"] for data in self._data if "image/png" in data]

    @property
    def notes(self) -> list[str]:
        """What Bulletin says: receipts, and where a cell is."""
        return [data["text/plain"] for data in self._data if _ROLE.search(data.get("text/html", ""))]

    @property
    def result(self) -> str | None:
        """The value of the last line."""
        values = [one["data"]["text/plain"] for one in self.outputs if one["output_type"] == "execute_result"]
        return values[-1] if values else None

    @property
    def own(self) -> list[tuple[str, str]]:
        """What the cell itself shows, but for bars, which have times, and stderr, where they are drawn."""
        shown = [("stdout", self.stdout)] if self.stdout else []
        for data in self._data:
            is_ours = _ROLE.search(data.get("text/html", "")) or not any(data.values())  # a line of ours, emptied
            if not is_ours and "application/vnd.jupyter.widget-view+json" not in data:
                shown += [(kind, _ADDRESS.sub("0x", str(text))) for kind, text in sorted(data.items())]
        return shown

    @property
    def _data(self) -> list[dict[str, str]]:
        return [one["data"] for one in self.outputs if "data" in one]

    def _stream(self, name: str) -> str:
        return "".join(one["text"] for one in self.outputs if one.get("name") == name)


@dataclass(frozen=True)
class Executed:
    """A notebook that has run to its end."""

    cells: tuple[Under, ...]
    #: The lines of `fingerprint` at the end.
    left: dict[str, str]
    values: dict[str, Any]

    def under(self, words: str) -> Under:
        """What stands under the one cell that has these words."""
        (found,) = [cell for cell in self.cells if words in cell.source]
        return found


def execute(name: str, folder: Path, environ: dict[str, str], asked: dict[str, str]) -> Executed:
    """Run `examples/NAME.ipynb` in a new folder. `asked` are expressions whose values are wanted, of plain data.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails, as nbconvert does.
    """
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    shutil.copy(REPOSITORY / "bulletin_magic" / "startup.py", startup / "50-bulletin.py")  # as the package installs it
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    config = Config(KernelManager=where_to_listen())
    client = NotebookClient(notebook, timeout=_PATIENCE_S, resources=resources, config=config)
    with (
        client.setup_kernel(env=clean_environ() | {"IPYTHONDIR": str(folder / "ipython"), **environ}),
        _listening(client.km.connection_file) as listener,
    ):
        for index, cell in enumerate(list(notebook.cells)):
            client.execute_cell(cell, index)
        code_cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        answers = new_code_cell(_question(asked))
        notebook.cells.append(answers)
        client.execute_cell(answers, len(notebook.cells) - 1, store_history=False)
        told = json.loads(Under(answers.source, tuple(answers.outputs)).stdout)
        late = _late(listener, until=answers.source)
    cells = tuple(Under(cell.source, (*cell.outputs, *late.get(cell.source, ()))) for cell in code_cells)
    left = {path: _ADDRESS.sub("0x", text) for path, text in told["left"].items()}
    return Executed(cells, left, told["values"])


@contextmanager
def _listening(connection_file: str) -> Iterator[BlockingKernelClient]:
    """A second front end of the kernel. nbclient itself does not hear what comes for a cell after its end."""
    listener = BlockingKernelClient(connection_file=connection_file)
    listener.load_connection_file()
    listener.start_channels(shell=False, stdin=False, hb=False, control=False)
    try:
        yield listener
    finally:
        listener.stop_channels()


def _late(listener: BlockingKernelClient, until: str) -> dict[str, list[dict[str, Any]]]:
    """What was shown under cells after their end, by their source, each display as it was at last."""
    sources: dict[str, str] = {}
    ended: set[str] = set()
    shown: dict[str, list[dict[str, Any]]] = {}
    displays: dict[str, dict[str, Any]] = {}
    while True:
        message = listener.get_iopub_msg(timeout=_PATIENCE_S)
        kind, content, parent = message["msg_type"], message["content"], message["parent_header"].get("msg_id", "")
        if kind == "execute_input":
            sources[parent] = content["code"]
        elif kind == "status" and content["execution_state"] == "idle":
            ended.add(parent)
            if sources.get(parent) == until:
                return shown
        elif kind == "update_display_data":
            displays.get(content["transient"]["display_id"], {}).update(data=content["data"])
        elif kind in {"display_data", "execute_result", "stream", "error"} and parent in ended:
            output = {"output_type": kind, **content}
            shown.setdefault(sources[parent], []).append(output)
            displays[content.get("transient", {}).get("display_id")] = output


def _question(asked: dict[str, str]) -> str:
    """One expression that binds nothing in the notebook, and prints what is asked for."""
    return (
        f"(lambda ns: (exec(compile(open({str(_FINGERPRINT)!r}).read(), 'fingerprint', 'exec'), ns), print(__import__("
        "'json').dumps({'values': {name: eval(text) for name, text in " + repr(asked) + ".items()},"
        " 'left': ns['of_notebook'](get_ipython().user_ns, get_ipython().user_ns_hidden)}))))"
        "({'__name__': 'fingerprint'});"
    )
