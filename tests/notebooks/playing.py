"""A notebook played in a kernel: what each cell showed and what is left, so that two kernels can be compared."""

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.integration.conftest import Notebook, Output
from tests.notebooks.percent import Cell, Material

Where = Literal["local", "gpu", "mixed", "on"]
_FINGERPRINT = Path(__file__).with_name("fingerprint.py")
#: Whatever a kernel calls the file of a cell.
_CELL_FILE = re.compile(r"(?:/[\w.-]+)*/ipykernel_\d+/\d+\.py|<ipython-input-[^>]*>")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: How IPython calls it in a SyntaxError.
_SHORT_CELL_FILE = re.compile(r"\b\d{6,}\.py\b")
#: scikit-learn counts the estimators that it has drawn.
_COUNTED = re.compile(r"(sk-(?:container|estimator)-id-)\d+")
#: A line of source in a traceback: which are shown, and how far to the right, depends on what stands around the cell.
_SOURCE = re.compile(r"(?:-+>)?\s*\d+ .*|\s+\(\.\.\.\).*")
#: How a frame is named: fully only where the source could be looked into.
_OUTER_NAMES = re.compile(r"(?<=, in )\S*\.(?=[\w<>]+\()")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Shown:
    """What one cell showed, without what differs between any two kernels: file names of cells, and addresses."""

    stdout: tuple[str, ...]
    stderr: tuple[str, ...]
    error: tuple[str, str] | None
    traceback: str
    notes: tuple[str, ...]
    status: str


@dataclass(frozen=True)
class Played:
    """All cells, and the lines of `fingerprint` at the end."""

    shown: tuple[Shown, ...]
    left: dict[str, str]


class Plain(Notebook):
    """A kernel that knows nothing of Bulletin."""

    first_cell = "pass  # where the other kernel loads the magics"


class Player:
    """A kernel in a folder of its own. Its first cell has run, so that the numbers of cells are the same everywhere."""

    def __init__(self, folder: Path, environ: dict[str, str], *, has_magic: bool) -> None:
        folder.mkdir()
        if has_magic:
            self.notebook = Notebook(environ, folder)
            self.notebook.run("%config BulletinMagics.receipts = False")
        else:
            self.notebook = Plain(environ, folder)
            self.notebook.run("%config InteractiveShell.ast_node_interactivity = 'last_expr'")

    def play(self, material: Material, where: Where) -> Played:
        """Run all cells: here, under %%gpu, by turns, or as they are in a kernel that sends them all."""
        if where == "on":
            self._switch("on")
        shown = []
        for place, cell in enumerate(material.cells):
            is_marked = where != "on" and is_gpu(place, where)
            shown.append(shown_by(self.notebook.run(source(cell, is_gpu=is_marked))))
        return Played(tuple(shown), self._left(where))

    def _left(self, where: Where) -> dict[str, str]:
        if where == "on":
            self._switch("off")
        asked = self.notebook.run(
            f"(lambda ns: (exec(compile(open({str(_FINGERPRINT)!r}).read(), 'fingerprint', 'exec'), ns),"
            " print(__import__('json').dumps(ns['of_notebook'](get_ipython().user_ns, get_ipython().user_ns_hidden))))"
            ")({'__name__': 'fingerprint'});"
        )
        assert asked.reply["status"] == "ok", asked.shown
        left: dict[str, str] = json.loads(asked.stream())
        return {path: _ADDRESS.sub("0x", text) for path, text in left.items()}

    def _switch(self, to: str) -> None:
        """Without a number: cells of the notebook may name each other by theirs."""
        self.notebook.collect(str(self.notebook.client.execute(f"%gpu {to}", store_history=False)))

    def close(self) -> None:
        """End the kernel; its slot is free again."""
        with suppress(Exception):
            self.notebook.run("%gpu stop")
        self.notebook.close()


def is_gpu(place: int, where: Where) -> bool:
    """Whether the cell at this place runs on the pool."""
    return where in {"gpu", "on"} or (where == "mixed" and place % 2 == 1)


def source(cell: Cell, *, is_gpu: bool) -> str:
    """What the kernel is given. The lines of the cell have the same numbers in both kernels, where that is possible."""
    if is_gpu:
        return f"%%gpu\n{cell.code}"
    return cell.code if cell.has_cell_magic else f"{_FIRST_LINE}\n{cell.code}"


def shown_by(output: Output) -> Shown:
    """What a person, or a program that reads the notebook, could compare."""
    streams: dict[str, list[str]] = {"stdout": [""], "stderr": [""]}
    notes = []
    for message in output.messages:
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            streams[content["name"]][-1] += content["text"]
        elif is_note(content):
            notes.append(content["data"]["text/plain"])
        elif kind != "execute_input" and kind != "error" and kind != "status":
            for parts in streams.values():  # what was shown between two prints stands there in both streams
                parts += [_as_text(kind, content), ""]
    if not any(streams["stderr"][::2]):
        streams["stderr"] = []  # what was displayed says enough in one stream
    error = output.error
    return Shown(
        stdout=tuple(filter(None, map(_neutral, streams["stdout"]))),
        stderr=tuple(filter(None, map(_neutral, streams["stderr"]))),
        error=(error["ename"], _neutral(error["evalue"])) if error else None,
        traceback=_neutral_traceback(error["traceback"]) if error else "",
        notes=tuple(notes),
        status=output.reply["status"],
    )


def is_note(content: dict[str, Any]) -> bool:
    """Whether Bulletin says it, and not the cell."""
    return 'role="note"' in content.get("data", {}).get("text/html", "")


def differences(material: Material, where: Where, here: Played, there: Played) -> list[str]:
    """All that somebody could tell the two by, in words; empty if there is nothing."""
    found = []
    for place, (cell, one, other) in enumerate(zip(material.cells, here.shown, there.shown, strict=True)):
        lines = []
        stays = cell.stays if is_gpu(place, where) else ()
        if cell.is_compared:
            for part in ("stdout", "stderr", "error", "traceback", "status"):
                mine, its = getattr(one, part), getattr(other, part)
                lines += [f"  {part} here:  {mine!r}\n  {part} there: {its!r}"] if mine != its else []
        is_said = len(other.notes) == len(stays)
        if not is_said or not all(
            note.startswith(f"{name} is ") for name, note in zip(stays, other.notes, strict=True)
        ):
            lines.append(f"  notes: {other.notes!r}, and {stays!r} should stay")
        if lines:
            found.append("\n".join([f"cell of line {cell.line}: {cell.code.splitlines()[0]}", *lines]))
    reported: list[str] = []
    for path in sorted(here.left.keys() | there.left.keys()):
        one_line, other_line = here.left.get(path, "nothing"), there.left.get(path, "nothing")
        if one_line == other_line or not material.is_left_compared(path):
            continue
        is_part = "nothing" in (one_line, other_line) and any(path.startswith(above) for above in reported)
        reported.append(path)
        if not is_part:  # its whole is among the differences
            found.append(f"{path}\n  here:  {one_line}\n  there: {other_line}")
    return found


_FIRST_LINE = "# here"


def _as_text(kind: str, content: dict[str, Any]) -> str:
    data = content.get("data", {})
    texts = [
        f"{mime}: {text if mime == 'text/plain' else _digest(mime, str(text))}" for mime, text in sorted(data.items())
    ]
    return f"<{kind} {' '.join(texts)}>"


def _digest(mime: str, text: str) -> str:
    return hashlib.sha256((_neutral(text) if mime == "text/html" else text).encode()).hexdigest()[:16]


def _neutral(text: str) -> str:
    text = _SHORT_CELL_FILE.sub("<cell>", _CELL_FILE.sub("<cell>", text))
    return _COUNTED.sub(r"\1", _ADDRESS.sub("0x", text))


def _neutral_traceback(lines: list[str]) -> str:
    text = _COLOUR.sub("", "\n".join(lines))
    kept = [_OUTER_NAMES.sub("", line.rstrip()) for line in text.splitlines() if not _SOURCE.fullmatch(line)]
    return _neutral("\n".join(filter(None, kept)))
