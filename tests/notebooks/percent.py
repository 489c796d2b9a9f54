"""Notebooks in percent format: cells between `# %%` lines, magics behind `# `, and what a test must know of a cell."""

import re
from dataclasses import dataclass, field
from pathlib import Path

MATERIAL = Path(__file__).with_name("material")
_SEEDS = {
    "@random": r"(?<!np\.)random\.seed\(",
    "@numpy.random": r"np\.random\.seed\(",
    "@torch.random": r"manual_seed\(",
}
_LIBRARIES = ("datasets", "matplotlib", "numpy", "pandas", "scipy", "sklearn", "torch", "tqdm", "transformers")
_BORDER = re.compile(r"# %%(?:\s+(?P<kind>\[markdown\]))?(?:\s.*)?$")
_MAGIC = re.compile(r"(\s*)# ?(%{1,2}[a-zA-Z]|!)")
_MARK = re.compile(r"# (?P<mark>compare|raises|stays|state):\s*(?P<text>.*)$")


class BadMaterial(Exception):
    """A notebook says something that its reader does not know."""


@dataclass
class Cell:
    """A code cell. Marks are comments of their own lines, and are not part of the code.

    # compare: no, REASON      its outputs are not compared, for they differ from one run to the next
    # raises: NAME             it ends with this exception
    # stays: NAME, NAME        what it leaves over cannot travel, and a note of Bulletin says so
    """

    line: int
    code: str
    is_compared: bool = True
    raises: str | None = None
    stays: tuple[str, ...] = ()

    @property
    def has_cell_magic(self) -> bool:
        return self.code.startswith("%%")


@dataclass
class Material:
    """A notebook. A line `# state: no NAME, REASON` in it leaves a variable out of the comparison of what is left."""

    name: str
    cells: list[Cell] = field(default_factory=list)
    not_compared: tuple[str, ...] = ()

    @property
    def needs(self) -> list[str]:
        """Libraries that not everybody has."""
        found = (re.search(rf"^\s*(import|from) {library}\b", self.code, re.MULTILINE) for library in _LIBRARIES)
        return [library for library, is_there in zip(_LIBRARIES, found, strict=True) if is_there]

    @property
    def code(self) -> str:
        """All of it."""
        return "\n".join(cell.code for cell in self.cells)

    def is_left_compared(self, path: str) -> bool:
        """Whether what the fingerprint says of this path is the same each time the notebook runs."""
        if path in _SEEDS:  # generators that nobody has seeded begin anywhere
            return re.search(_SEEDS[path], self.code) is not None
        name = re.split(r"[.\[(]", path)[0]
        return name not in self.not_compared and not any(name in cell.stays for cell in self.cells)


def _uncommented(line: str) -> str:
    """A magic as IPython wants it: jupytext, too, keeps magics behind a `#` so that the file stays Python."""
    return _MAGIC.sub(r"\1\2", line, count=1) if _MAGIC.match(line) else line


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _cell(path: Path, start: int, lines: list[str]) -> tuple[Cell, list[str]]:
    """The cell of these lines, and variables that are not compared."""
    cell, kept, not_compared = Cell(start, ""), [], []
    for number, line in enumerate(lines, start):
        mark = _MARK.match(line)
        if mark is None:
            kept.append(_uncommented(line))
            continue
        kind, text = mark["mark"], mark["text"]
        if kind in {"compare", "state"} and not re.match(r"no\b.*, \S", text):
            raise BadMaterial(f"{path.name}:{number}: `{line}` gives no reason")
        if kind == "compare":
            cell.is_compared = False
        elif kind == "raises":
            cell.raises = text
        elif kind == "stays":
            cell.stays = _words(text)
        else:
            not_compared.append(text.removeprefix("no ").partition(",")[0].strip())
    cell.code = "\n".join(kept).strip("\n")
    return cell, not_compared


def read(path: Path) -> Material:
    """The notebook of a file. Raises BadMaterial."""
    material = Material(path.stem)
    sections: list[tuple[int, bool, list[str]]] = [(1, True, [])]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        border = _BORDER.match(line)
        if border is not None:
            sections.append((number + 1, border["kind"] is not None, []))
        else:
            sections[-1][2].append(line)
    not_compared: list[str] = []
    for start, is_text, lines in sections:
        if is_text:
            continue
        cell, names = _cell(path, start, lines)
        not_compared += names
        if cell.code.strip():
            material.cells.append(cell)
    material.not_compared = tuple(not_compared)
    return material


def names() -> list[str]:
    """All notebooks, by name."""
    return sorted(path.stem for path in MATERIAL.glob("*.py"))
