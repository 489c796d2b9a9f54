"""Which cells of a notebook in `%gpu on` mode go to the pool: those that compute. Pure: a tree in, an answer out.

A cell that has only lines for the notebook itself (help, history, settings, installing packages) stays. So does one
that says for itself where it runs. The tree is that of a cell as IPython has rewritten it, with magics as calls.
"""

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

#: Line and cell magics that run code or programs of the user. All others that the notebook has are for the notebook.
_COMPUTING = frozenset({
    "!", "bash", "capture", "lprun", "memit", "mprun", "perl", "prun", "pypy", "python", "python2", "python3", "ruby",
    "run", "sc", "script", "sh", "sx", "system", "time", "timeit",
})  # fmt: skip
#: Ours: a cell that has one of them says for itself where its parts run.
_OURS = frozenset({"gpu", "%gpu", "GPU", "remote", "%remote", "cpu", "%cpu"})
_MARKED = re.compile(r"^[ \t]*%%?(gpu|remote|cpu)\b", re.MULTILINE | re.IGNORECASE)
#: Programs that change the environment that notebook and pool both use.
_INSTALLS = re.compile(
    r"\s*(?:\S*python[\d.]*\s+-m\s+|\{?sys\.executable\}?\s+-m\s+)?(?:pip[\d.]*|uv\s+pip|uv|conda|mamba|micromamba)"
    r"\s+(?:-\S+\s+)*(?:install|uninstall|add|remove|update|upgrade)\b"
)
_LEAVING = frozenset({"exit", "quit"})

#: Whether the notebook has a magic: its kind ("line" or "cell") and its name.
HasMagic = Callable[[str, str], bool]


class _MagicCall(NamedTuple):
    """A call that IPython has made of a magic, or of a line that begins with `!`."""

    kind: str
    name: str
    text: str


def computes(tree: ast.Module, has_magic: HasMagic) -> bool:
    """Tell whether a cell of this tree is one for the pool.

    `has_magic` says which magics the notebook has: one that it has not may have come to the pool with an earlier cell.
    """
    magics = list(_magics(tree))
    if any(magic.name in _OURS or (magic.kind == "cell" and _MARKED.search(magic.text)) for magic in magics):
        return False
    return any(_statement_computes(statement, has_magic) for statement in tree.body)


def _statement_computes(statement: ast.stmt, has_magic: HasMagic) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[])) if name in _LEAVING:
            return False
        case ast.Expr(value=value) | ast.Assign(value=value):
            magic = _magic(value)
            return magic is None or _magic_computes(magic, has_magic)
    return True


def _magic_computes(magic: _MagicCall, has_magic: HasMagic) -> bool:
    if magic.name in {"system", "!", "sx"} and _INSTALLS.match(magic.text):
        return False
    return magic.name in _COMPUTING or not has_magic(magic.kind, magic.name)


def _magics(tree: ast.AST) -> Iterator[_MagicCall]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (magic := _magic(node)) is not None:
            yield magic


def _magic(value: ast.expr) -> _MagicCall | None:
    match value:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=method),
            args=[*given],
        ):
            words = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            match method, words:
                case "run_line_magic", [name, *rest]:
                    return _MagicCall("line", name, " ".join(rest))
                case "run_cell_magic", [name, line, body]:
                    return _MagicCall("cell", name, f"{line}\n{body}")
                case "system" | "getoutput", [command]:
                    return _MagicCall("line", "system", command)
    return None
