"""Random programs over random object graphs: a setup cell, then cells that run here or under `%%gpu`.

A seed is a program. Statements are drawn from the grammar while a plain namespace runs them, so that they fit what is
there.
"""

import collections
import functools
import importlib
import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from .grammar import DEFINITIONS, IMPORTS, NUMPY, OBJECTS, PANDAS, STATEMENTS, VALUES, VIEWS, WORDS
from .notebook import run_cell

#: What `%%gpu` cells never mention, though it may share everything with what they change.
LOCAL_ONLY = "only_"

_WORD = re.compile(r"\b([A-Z][A-Z_]+)(\d?)\b")
_ATOMS = (int, float, complex, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class Cell:
    """Statements, and whether they run under `%%gpu`."""

    is_gpu: bool
    statements: tuple[str, ...]

    @property
    def source(self) -> str:
        """As the user writes it."""
        return "\n".join(self.statements)


@dataclass(frozen=True, slots=True)
class Program:
    """Cells in their order."""

    cells: tuple[Cell, ...]

    def __str__(self) -> str:
        return "\n".join(f"{'%%gpu' if cell.is_gpu else '# a local cell'}\n{cell.source}" for cell in self.cells)

    def smaller(self) -> Iterator["Program"]:
        """The same program without one cell, without one statement, or with two local cells as one."""
        for place, cell in reversed(list(enumerate(self.cells))):
            before, after = self.cells[:place], self.cells[place + 1 :]
            yield Program(before + after)
            if after and not cell.is_gpu and not after[0].is_gpu:
                yield Program((*before, Cell(False, cell.statements + after[0].statements), *after[1:]))
            for at in reversed(range(len(cell.statements))):
                rest = cell.statements[:at] + cell.statements[at + 1 :]
                yield Program((*before, replace(cell, statements=rest), *after))

    def as_row(self, name: str, kept: str | None, checks: list[str]) -> str:
        """A row for the tables of `test_as_if_local`: all but the last cell are its setup, and then `kept` is kept."""
        setup = "\n".join([*(cell.source for cell in self.cells[:-1]), *([f"kept = {kept}"] if kept else [])])
        return f"{name!r}: ({setup!r}, {self.cells[-1].source!r}, {checks!r}),"


@contextmanager
def as_main(module: types.ModuleType) -> Iterator[None]:
    """The module is `__main__`; warnings are off, and random numbers begin anew and are put back."""
    numpy: Any = importlib.import_module("numpy")
    was, state, state_of_numpy = sys.modules["__main__"], random.getstate(), numpy.random.get_state()
    sys.modules["__main__"] = module
    random.seed(1)
    numpy.random.seed(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.modules["__main__"] = was
        random.setstate(state)
        numpy.random.set_state(state_of_numpy)


def program(seed: int) -> Program:
    """The program of that seed."""
    module = types.ModuleType("__main__")
    with as_main(module):
        return _Author(random.Random(seed), module.__dict__).write()


class _Author:
    """Writes a program while it runs. `rng` is its own: the program's random numbers are another matter."""

    def __init__(self, rng: random.Random, namespace: dict[str, Any]) -> None:
        self.rng = rng
        self.ns = namespace
        self.is_gpu = False
        self.lacks = [word for word, share in (("np.", 0.5), ("pd.", 0.1)) if rng.random() > share]

    def write(self) -> Program:
        cells = [self._setup()]
        for _ in range(self.rng.randint(1, 6)):
            self.is_gpu = self.rng.random() < 0.65
            cells.append(self._cell())
        if not any(cell.is_gpu for cell in cells):
            self.is_gpu = True
            cells.append(self._cell())
        return Program(tuple(cells))

    def _setup(self) -> Cell:
        imports = [IMPORTS, *[NUMPY] * ("np." not in self.lacks), *[PANDAS] * ("pd." not in self.lacks)]
        wanted = self.rng.sample(list(DEFINITIONS), self.rng.randint(1, 5))
        wanted = ["P"] * ("Q" in wanted and "P" not in wanted) + sorted(wanted, key=list(DEFINITIONS).index)
        statements: list[str] = []
        for statement in ("\n".join(imports), *(DEFINITIONS[name] for name in wanted)):
            self._add(statements, statement)
        rows = ["NAME = VALUE"] * self.rng.randint(4, 12)
        rows += [
            f"{LOCAL_ONLY}{place} = {self.rng.choice(['ANY', 'VALUE'])}" for place in range(self.rng.randint(0, 3))
        ]
        for row in rows:
            if not self._add(statements, self._fill(row) or "pass"):
                break
        return Cell(False, tuple(statements))

    def _cell(self) -> Cell:
        statements: list[str] = []
        goes_on = True
        for _ in range(self.rng.randint(1, 4)):
            if not self.is_gpu and self.rng.random() < 0.1:
                statement = self._fill(f"{LOCAL_ONLY}9 = ANY") or "pass"
            else:
                statement = self._draw(STATEMENTS)
            goes_on = self._add(statements, statement)
            if not goes_on:
                break
        if goes_on and self.rng.random() < 0.2:
            self._add(statements, self._fill("ANY") or "None")
        return Cell(self.is_gpu, tuple(statements))

    def _add(self, statements: list[str], statement: str) -> bool:
        """Run it and note it; False if it raised, which ends the cell."""
        statements.append(statement)
        try:
            run_cell(statement, self.ns, "<cell>")
        except Exception:  # noqa: BLE001  the same error is expected of every run
            return False
        return True

    def _draw(self, table: Sequence[tuple[int, str]]) -> str:
        """A row of the table with all its words drawn."""
        while True:
            ((_, rows),) = self.rng.choices(table, [weight for weight, _ in table])
            row = self.rng.choice(rows.split("\n")).strip()
            text = self._fill(row.replace("\\n", "\n").replace("\\\n", "\\n")) if row else None
            if text is not None:
                return text

    def _fill(self, row: str) -> str | None:
        """The row with its words drawn; None if one of them stands for what is not there."""
        if any(library in row for library in self.lacks):
            return None
        if any(name in DEFINITIONS and name not in self.ns for name in re.findall(r"\w+", row)):
            return None
        drawn: dict[str, str | None] = {}

        def draw(match: re.Match[str]) -> str:
            if match[0] not in drawn:
                drawn[match[0]] = self._word(match[1])
            return drawn[match[0]] or ""

        text = _WORD.sub(draw, row)
        return None if None in drawn.values() else text

    def _word(self, word: str) -> str | None:
        if word in WORDS:
            return self.rng.choice(WORDS[word])
        if word in OBJECTS:
            return self._path(OBJECTS[word])
        match word:
            case "ITEM":
                roll = self.rng.random()
                found = self._path(OBJECTS["ANY"]) if roll < 0.45 else self._draw(VALUES) if roll < 0.75 else None
                return found or self.rng.choice(WORDS["ATOM"])
            case "VALUE":
                return self._draw(VALUES)
            case "VIEW":
                return self._fill(self.rng.choice(VIEWS.split()))
            case "BOUND" | "ANY_PLAIN":
                mine = [name for name in WORDS["NAME"] if name in self.ns]
                return self.rng.choice(mine) if mine else None
            case "MAKER":
                makers = [name for name in "PQSDG" if isinstance(self.ns.get(name), type)]
                return self.rng.choice(makers) if makers else None
            case "FAILURE":
                return "E" if "E" in self.ns else self.rng.choice(["ValueError", "KeyError", "OSError"])
            case "CALL":
                return self._call()
        raise LookupError(word)

    def _call(self) -> str | None:
        of = self._path(OBJECTS["CALLABLE"])
        if of is None:
            return None
        function = eval(of, self.ns)
        needed = 1
        if isinstance(function, types.FunctionType):
            needed = max(0, function.__code__.co_argcount - len(function.__defaults__ or ()))
        return f"{of}({', '.join(self._word('ITEM') or '' for _ in range(needed))})"

    def _path(self, fits: Callable[[Any], bool]) -> str | None:
        """An expression for an object that fits; rare types are as likely as common ones."""
        found: dict[type, list[str]] = {}
        for path, value in self._paths():
            if fits(value):
                found.setdefault(object if isinstance(value, _ATOMS) else type(value), []).append(path)
        return self.rng.choice(self.rng.choice(list(found.values()))) if found else None

    def _paths(self) -> list[tuple[str, Any]]:
        """Expressions and what they give, from the names that this cell may speak of; a few levels deep."""
        level = found = [
            (name, value)
            for name, value in self.ns.items()
            if name in WORDS["NAME"] or name in DEFINITIONS or (name.startswith(LOCAL_ONLY) and not self.is_gpu)
        ]
        for _ in range(3):
            level = [(path + step, part) for path, value in level for step, part in _steps(value)]
            self.rng.shuffle(level)
            found = found + level[:60]
        return found


def _steps(value: Any) -> Iterator[tuple[str, Any]]:
    """How to go on from a value, to a few of its parts."""
    if isinstance(value, list | tuple | collections.deque) or OBJECTS["OBJECTS"](value):
        yield from ((f"[{place}]", part) for place, part in enumerate(list(value)[:3]))
    elif isinstance(value, dict):
        yield from ((f"[{key!r}]", part) for key, part in list(value.items())[:4] if isinstance(key, str | int))
    elif isinstance(value, types.FunctionType):
        yield from _attributes(value)
        yield from ((f".__defaults__[{place}]", part) for place, part in enumerate(value.__defaults__ or ()))
        for place, cell in enumerate(value.__closure__ or ()):
            try:
                yield f".__closure__[{place}].cell_contents", cell.cell_contents
            except ValueError:
                continue
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, functools.partial | BaseException):
        yield from ((f".args[{place}]", part) for place, part in enumerate(value.args))
    if OBJECTS["OWNER"](value):
        yield from _attributes(value)
    if OBJECTS["CLASS"](value):
        yield from ((f".{name}", part) for name, part in vars(value).items() if name in {"kinds", "held", "extra"})
    if type(value).__name__ == "S" and hasattr(value, "a"):
        yield ".a", value.a


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Any key can be in an instance's dict, through `vars`."""
    for name, part in list(vars(value).items())[:4]:
        if isinstance(name, str) and name.isidentifier():
            yield f".{name}", part
