"""What a cell needs: the names of the notebook that it reads, binds and deletes, by Python's own compiler."""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType

from . import lookups, names
from .modules.sources import imports_of_cell

#: Line magics whose text is not Python and names no variable, unless it says `$x` or `{x}`.
_PLAIN_MAGICS = frozenset({
    "alias", "autoreload", "automagic", "cd", "colors", "conda", "config", "env", "load_ext", "ls", "lsmagic", "mamba",
    "matplotlib", "micromamba", "mkdir", "pip", "pdb", "precision", "pwd", "reload_ext", "set_env", "uv", "xmode",
})  # fmt: skip
_CODE_MAGICS = frozenset({"time", "timeit", "prun", "capture"})
_OPTIONS = re.compile(r"\s*(-[a-zA-Z]+(\s*\d+)?\s+)*")
_EXPANDS = re.compile(r"[{$]")
_BARE_CALLS = frozenset({"locals", "vars", "dir"})


@dataclass(frozen=True, slots=True)
class Needs:
    """Names of a cell, in the order in which it mentions them. `reads` are bound in the namespace now.

    `everything` is set where the cell may look up names that it does not spell. What functions of the notebook look up
    in their turn is found by `capture`, which meets them by whatever path they are reached. `imports` are modules that
    the cell may import, as it spells them; `attributes` are all names that it spells. Of `deletes`, `unbinds` are those
    that the cell deletes itself, and not a function that it defines.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    everything: bool = False
    imports: tuple[str, ...] = ()
    attributes: frozenset[str] = frozenset()
    unbinds: tuple[str, ...] = ()


def needs(source: str, namespace: Mapping[str, object]) -> Needs:
    """Find what the cell needs of this namespace.

    A cell that is not Python needs nothing: running it says what is wrong.
    """
    found = _analyse(source)
    reads = tuple(name for name in found.reads if name in namespace and name not in names.FIXED)
    return replace(found, reads=reads)


@lru_cache(maxsize=256)
def _analyse(source: str) -> Needs:
    """Do the part that depends on the source alone. Names in `reads` may not exist in a namespace."""
    found = _CellNames()
    try:
        found.read_cell(source)
    except (SyntaxError, ValueError, RecursionError):
        return Needs()
    return Needs(
        tuple(found.reads),
        tuple(found.writes),
        tuple(found.deletes),
        found.everything,
        imports_of_cell(source),
        frozenset(found.attributes),
        tuple(found.unbinds),
    )


class _CellNames:
    """Collects the names of a cell, statement by statement."""

    def __init__(self) -> None:
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.deletes: dict[str, None] = {}
        self.unbinds: dict[str, None] = {}
        self.everything = False
        self.attributes: set[str] = set()
        self._bound: set[str] = set()  # by an earlier statement of the cell, whatever happens

    def read_cell(self, source: str) -> None:
        """Add the names of a cell as typed, with magics. Raises SyntaxError or ValueError where it is not Python."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for statement in ast.parse(lookups.as_python(source)).body:
                self._read_statement(statement)

    def _read_statement(self, statement: ast.stmt) -> None:
        if not self._read_magic(statement) and not self._read_compound(statement):
            self._read_whole(statement)

    def _read_compound(self, statement: ast.stmt) -> bool:
        """Take in a statement that has others, in the order in which they run; return False to have it read at once.

        What its body binds first is not read there: `with Pool() as pool: pool.map(...)` needs no earlier `pool`.
        """
        match statement:
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                headers = [_bind(item.optional_vars, item.context_expr) for item in items]
                self._read_branches([*headers, *body], [])  # a manager may swallow what its body raises
            case ast.For(target=target, iter=source) | ast.AsyncFor(target=target, iter=source):
                self._read_whole(_bind(None, source))
                self._read_branches([_bind(target, source), *statement.body], statement.orelse, [])
            case ast.While(test=test, body=body, orelse=orelse):
                self._read_whole(_bind(None, test))
                self._read_branches(body, orelse, [])
            case ast.If(test=test, body=body, orelse=orelse):
                self._read_whole(_bind(None, test))
                self._read_branches(body, orelse)
            case ast.Break() | ast.Continue():
                pass
            case _:
                return False
        return True

    def _read_branches(self, *branches: list[ast.stmt]) -> None:
        """Take in statements of which some run: bound is then what each of these lists leaves bound."""
        before = self._bound
        left = []
        for branch in branches:
            self._bound = set(before)
            for statement in branch:
                self._read_statement(statement)
            left.append(self._bound)
        self._bound = set.intersection(*left)

    def _read_whole(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Try | ast.TryStar | ast.Match):  # it may leave a loop that is not there any more
            statement = ast.While(ast.Constant(value=True), [statement], [])
        module = ast.fix_missing_locations(ast.Module([statement], type_ignores=[]))
        code = compile(module, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        loads, stores, deletes = _top_level(code)
        found = lookups.of_code(code)
        self.attributes |= lookups.attributes(code)
        loads += found.names
        bound_here = _binds_surely(statement)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not statement.decorator_list:
            self._bound |= bound_here  # its body runs later, and may name the function itself
        for name in loads:
            if name not in self._bound:
                self.reads[name] = None
        for name in deletes:
            if name not in self._bound:
                self.reads[name] = None
            self._bound.discard(name)
        self.writes.update(dict.fromkeys(stores))
        self.deletes.update(dict.fromkeys(deletes))
        self.unbinds.update(dict.fromkeys(lookups.unbound_by(code)))
        self._bound |= bound_here - set(deletes)
        self.everything |= found.is_dynamic or _is_open(statement)
        self._read_texts(statement)

    def _read_texts(self, statement: ast.stmt) -> None:
        """Add names inside the text of `df.query("a > @x")`. A text that is not written out may name anything."""
        for node in ast.walk(statement):
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in lookups.TEXT_METHODS
            ):
                continue
            for argument in node.args[:1]:
                texts = [
                    part.value
                    for part in ast.walk(argument)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ]
                self.everything |= not texts
                for text in texts:
                    self.reads.update(dict.fromkeys(word for word in lookups.words(text) if word not in self._bound))

    def _read_magic(self, statement: ast.stmt) -> bool:
        """Take in a magic whose effect on names is known; return False to have it read as a call of `get_ipython`."""
        call = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
        parts = _magic(call)
        if parts is None:
            return False
        method, texts = parts
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        stores = [target.id for target in targets if isinstance(target, ast.Name)]
        is_plain = not any(_EXPANDS.search(text) for text in texts)
        if method in {"system", "getoutput"} or (method == "run_line_magic" and texts[0] in _PLAIN_MAGICS):
            self.everything |= not is_plain
        elif texts[0] in _CODE_MAGICS:
            self._read_code_magic(method, *texts)
        else:
            return False
        self.writes.update(dict.fromkeys(stores))
        return True

    def _read_code_magic(self, method: str, magic: str, line: str, body: str = "") -> None:
        if magic == "capture":
            self.writes.update(dict.fromkeys(word for word in line.split() if word.isidentifier()))
            self.read_cell(body)
            return
        inner = _CellNames()
        inner.read_cell(_OPTIONS.sub("", line, count=1))
        if method == "run_cell_magic":
            inner.read_cell(body)
        self.reads.update(dict.fromkeys(name for name in inner.reads if name not in self._bound))
        self.everything |= inner.everything
        self.attributes |= inner.attributes
        if magic == "time":
            self.writes.update(inner.writes)
            self.deletes.update(inner.deletes)
            self.unbinds.update(inner.unbinds)


def _top_level(code: CodeType) -> tuple[list[str], list[str], list[str]]:
    """List the names that it loads, stores and deletes, also by global statements of nested functions."""
    loads: list[str] = []
    stores: list[str] = []
    deletes: list[str] = []
    for name, operation in lookups.operations(code):
        {"LOAD": loads, "STORE": stores, "DELETE": deletes}[operation].append(name)
    return loads, stores, deletes


def _binds_surely(statement: ast.stmt) -> set[str]:
    """List the names that are bound once the statement is done, if it ends without an exception."""
    match statement:
        case ast.Assign(targets=targets):
            return {name for target in targets for name in _targets(target)}
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases):
            return {alias.asname or alias.name.partition(".")[0] for alias in aliases}
        case ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name for alias in aliases}
    return set()


def _bind(target: ast.expr | None, value: ast.expr) -> ast.stmt:
    """Make the statement that reads a value, and binds it if there is a target."""
    return ast.Expr(value) if target is None else ast.Assign([target], value)


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _targets(element)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value)


def _is_open(statement: ast.stmt) -> bool:
    """Tell whether names are read without being spelled: bare `locals()`, star imports, `sys.modules["__main__"]`."""
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[], keywords=[]) if name in _BARE_CALLS:
                return True
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return True
            case ast.Subscript(slice=ast.Constant(value="__main__")):
                return True
    return False


def _magic(call: ast.expr | None) -> tuple[str, list[str]] | None:
    """Return the method and the texts of a `get_ipython().method("...")`; None where not all texts are written out."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")), attr=method), args=args) if (
            args
        ):
            texts = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            return (method, texts) if len(texts) == len(args) else None
    return None
