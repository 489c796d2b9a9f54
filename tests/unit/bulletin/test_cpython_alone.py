"""No module but those of `bulletin.cpython` uses what CPython does not promise."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILES = [
    path
    for package in ("bulletin", "bulletin_magic", "bulletin_spawner", "gpu_worker")
    for path in sorted((ROOT / package).rglob("*.py"))
    if "cpython" not in path.parts
]
#: Attributes of any object, by their name.
NAMES = {
    "getrefcount": "sys.getrefcount",
    "get_referrers": "gc.get_referrers",
    "get_referents": "gc.get_referents",
    "pythonapi": "ctypes.pythonapi",
    "_bootstrap_inner": "Thread._bootstrap_inner",
    "_getframe": "sys._getframe",
    "_ThreadHandle": "_thread._ThreadHandle",
    "__flags__": "the flags of a class",
    "__basicsize__": "the size of instances",
    "_initializing": "ModuleSpec._initializing",
    "_is_owned": "RLock._is_owned",
}
#: Modules of which nothing private is used.
PRIVATE_OF = frozenset({"copyreg", "pickle", "gc", "threading", "sys", "ctypes.pythonapi"})


def is_private(module: str, name: str) -> bool:
    """`sys.__stderr__` is promised; `copyreg.__newobj__` is not."""
    return module in PRIVATE_OF and name.startswith("_") and (module == "copyreg" or not name.endswith("__"))


def hooks(source: str) -> Iterator[str]:
    """Each use of an inside of CPython in a text, with its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if is_private(module, name):
                yield f"line {node.lineno}: {module}.{name}"
            case ast.Attribute(attr=name) if name in NAMES:
                yield f"line {node.lineno}: {NAMES[name]}"
            case ast.Constant(value=str(name)) if name in NAMES.keys() - {"__flags__", "__basicsize__"}:
                yield f"line {node.lineno}: {NAMES[name]}, by its name"
            case ast.ImportFrom(module=str(module), names=names) if module in PRIVATE_OF:
                for alias in names:
                    if is_private(module, alias.name) or alias.name in NAMES:
                        yield f"line {node.lineno}: {module}.{alias.name}"
            case ast.Import(names=names):
                yield from (f"line {node.lineno}: {alias.name}" for alias in names if alias.name == "_abc")
            case ast.BinOp(left=ast.Constant(value=1), op=ast.LShift(), right=ast.Constant(value=9)):
                yield f"line {node.lineno}: the flag of a heap type"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_relies_on_no_inside_of_cpython(path: Path) -> None:
    found = list(hooks(path.read_text()))
    assert found == [], f"move it to bulletin/cpython/, with a line in its table and a test: {found}"


@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.getrefcount(x)",
        "from sys import getrefcount",
        "import copyreg\ncopyreg._inverted_registry",
        "import copyreg as _; from copyreg import __newobj__",
        "HEAP = 1 << 9",
        "kind.__flags__ & flag",
        "import ctypes\nctypes.pythonapi.PyObject_GetBuffer",
        "thread._bootstrap_inner()",
        "getattr(thread, '_bootstrap_inner')",
        "sys._getframe(1)",
        "gc.get_referrers(x)",
        "import _abc",
    ],
)
def test_such_a_use_is_noticed(source: str) -> None:
    assert list(hooks(source))
