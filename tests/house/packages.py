"""What the packages are made of, read from their files: modules, the names that they define, their docstrings."""

import ast
import statistics
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("bulletin", "bulletin_lab", "bulletin_magic", "bulletin_spawner", "gpu_worker")
#: Names that Python gives a meaning, and so stand in every package.
_EVERYWHERE = frozenset({"__init__", "__main__"})


class Definition(NamedTuple):
    """A class, function or method, and where it stands."""

    name: str
    where: str  #: "gpu_worker/agent/app.py:42"
    is_class: bool
    docstring: str | None


def files() -> list[Path]:
    """Find all Python files of the packages, relative to the checkout."""
    return sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def lines(path: Path) -> int:
    """Count the lines of a file."""
    return len((ROOT / path).read_text().splitlines())


def median_lines() -> float:
    """Compute the median length of a file."""
    return statistics.median(map(lines, files()))


@cache
def definitions() -> tuple[Definition, ...]:
    """Read every class, function and method that is not nested in a function."""
    return tuple(found for path in files() for found in _of(path, ast.parse((ROOT / path).read_text())))


def _of(path: Path, tree: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            where = f"{path}:{node.lineno}"
            yield Definition(node.name, where, isinstance(node, ast.ClassDef), ast.get_docstring(node))


def classes_by_name() -> dict[str, list[str]]:
    """Where the classes of each name stand."""
    found: dict[str, list[str]] = defaultdict(list)
    for definition in definitions():
        if definition.is_class:
            found[definition.name].append(definition.where)
    return found


def modules_by_name() -> dict[str, list[str]]:
    """Where the modules of each name stand."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in files():
        if path.stem not in _EVERYWHERE:
            found[path.stem].append(str(path))
    return found
