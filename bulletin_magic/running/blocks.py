"""`with gpu:` in a cell, rewritten so that its body can run elsewhere: as a function that shares its place's variables.

    with gpu:                     def _gpu_block():
        total += step(n)              nonlocal total
                            →         total += step(n)
                                  _gpu = gpu
                                  if not getattr(_gpu, "takes_blocks", False): (the block as it stands)
                                  else: _gpu.run_block(_gpu_block)

The variables of a function become cells of the closure, which travel and change in place as all state does. Pure: a
tree in, a tree out.
"""

import ast
import symtable
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from typing import Any

_BLOCK, _LENDER = "_gpu_block", "_gpu"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def outline(tree: ast.Module, names: Collection[str], modules: Collection[str] = ()) -> ast.Module:
    """The tree with the bodies of its `with gpu:` blocks as functions.

    Parameters
    ----------
    tree
        A cell. It is not changed where it has no such block.
    names
        What the notebook has bound to `gpu`. What the cell itself binds to it is found here.
    modules
        What the notebook has bound to the module that `gpu` is in.
    """
    if not any(isinstance(node, ast.With | ast.AsyncWith) for node in ast.walk(tree)):
        return tree
    known = _GpuNames(tree, names, modules)
    changed: ast.Module = _BlockRewriter(known).visit(tree)
    return ast.fix_missing_locations(changed)


_FIRST_LINE = ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


class _GpuNames:
    """Which expressions mean `gpu`."""

    def __init__(self, tree: ast.Module, names: Collection[str], modules: Collection[str]) -> None:
        self._names, self._modules = set(names), {"bulletin_magic", *modules}
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module == "bulletin_magic":
                self._names |= {alias.asname or alias.name for alias in node.names if alias.name == "gpu"}
            elif isinstance(node, ast.Import):
                self._modules |= {
                    alias.asname for alias in node.names if alias.name == "bulletin_magic" and alias.asname
                }
        for node in nodes:
            if isinstance(node, ast.Assign) and self.mean(node.value):
                self._names |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def mean(self, expression: ast.expr) -> bool:
        """Whether this is `gpu`, or a call of it."""
        match expression:
            case ast.Call(func=function):
                return self.mean(function)
            case ast.Name(id=name):
                return name in self._names
            case ast.Attribute(value=ast.Name(id=module), attr="gpu"):
                return module in self._modules
        return False


class _BlockRewriter(ast.NodeTransformer):
    """Goes down with the scopes it is in, and rewrites blocks on the way up."""

    def __init__(self, names: _GpuNames) -> None:
        self._names = names
        self._scopes: list[ast.AST] = []

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, _SCOPES):
            return super().visit(node)
        self._scopes.append(node)
        try:
            return self.generic_visit(node)
        finally:
            self._scopes.pop()

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        return self._rewrite(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> Any:
        self.generic_visit(node)
        return self._rewrite(node)

    def _rewrite(self, node: ast.With | ast.AsyncWith) -> ast.AST | list[ast.stmt]:
        at = next((n for n, item in enumerate(node.items) if self._names.mean(item.context_expr)), None)
        if at is None:
            return node
        body = node.body
        if node.items[at + 1 :]:
            inner = type(node)(items=node.items[at + 1 :], body=body)
            body = [ast.copy_location(inner, node)]
        statements = self._statements(node, node.items[at], body)
        if at == 0:
            return statements
        return ast.copy_location(type(node)(items=node.items[:at], body=statements), node)

    def _statements(self, node: ast.With | ast.AsyncWith, item: ast.withitem, body: list[ast.stmt]) -> list[ast.stmt]:
        scope = self._scopes[-1] if self._scopes else None
        here = type(node)(items=[ast.withitem(_load(_LENDER), item.optional_vars)], body=body)
        bind = _assign(_LENDER, item.context_expr)
        refusal = _refusal(body, scope)
        remote: list[ast.stmt] = []
        if refusal is not None:
            remote.append(
                ast.Expr(_call(ast.Attribute(_load(_LENDER), "refuse", ast.Load()), *map(ast.Constant, refusal)))
            )
        else:
            if item.optional_vars is not None:
                remote.append(ast.Assign([item.optional_vars], _load(_LENDER)))
            block = ast.copy_location(_block(body, scope), scope or _FIRST_LINE)  # tracebacks show it in its place
            run = _call(ast.Attribute(_load(_LENDER), "run_block", ast.Load()), _load(_BLOCK))
            remote += [block, _assign(_LENDER, run), *_afterwards(body)]
        takes = _call(_load("getattr"), _load(_LENDER), ast.Constant("takes_blocks"), ast.Constant(value=False))
        # What stands here comes first: a `return` where none may be is then told of the user's own line.
        choice: list[ast.stmt] = [bind, ast.If(ast.UnaryOp(ast.Not(), takes), [here], remote)]
        if scope is None:  # names of the notebook, which are not to stay
            clear = [
                _assign(_LENDER, _none()),
                _assign(_BLOCK, _none()),
                ast.Delete([_store(_LENDER, ast.Del()), _store(_BLOCK, ast.Del())]),
            ]
            choice = [ast.Try(body=choice, handlers=[], orelse=[], finalbody=clear)]
        for statement in choice:
            _locate(statement, node)
        return choice


def _refusal(body: Sequence[ast.stmt], scope: ast.AST | None) -> tuple[str, str] | None:
    """What in the block cannot be taken out of its place, and what to do, in words."""
    if isinstance(scope, ast.ClassDef):
        return "a part of a class's body", "Put it into a method, or around the whole class."
    for node in _own(body):
        match node:
            case ast.Yield() | ast.YieldFrom():
                return "`yield`", "Collect the values in a list, and yield them after the block."
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return "`import *`", "Put that line above the block."
    return None


def _block(body: Sequence[ast.stmt], scope: ast.AST | None) -> ast.stmt:
    """The function that the body becomes."""
    first = _first_argument(scope)
    statements: list[ast.stmt] = [_ExitRewriter(first).visit(deepcopy(statement)) for statement in body]
    declared = _declared(body)
    names = sorted(_bound(statements) - declared - {_LENDER, _BLOCK})
    outside = _declared(scope.body, ast.Global) if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) else set()
    shared = [name for name in names if scope is not None and name not in outside]
    common = [name for name in names if name not in shared]
    head: list[ast.stmt] = [ast.Global(common)] if common else []
    head += [ast.Nonlocal(shared)] if shared else []
    kind = ast.AsyncFunctionDef if _awaits(body) else ast.FunctionDef
    return _function(kind, _BLOCK, [*head, *statements])


def _afterwards(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """What leaves the block leaves its place, too."""
    ways = {type(node): node for node in _own(body, (*_SCOPES, *_LOOPS)) if isinstance(node, ast.Break | ast.Continue)}
    returns = [node for node in _own(body) if isinstance(node, ast.Return)]
    kind, value = (ast.Subscript(_load(_LENDER), ast.Constant(n), ast.Load()) for n in (0, 1))
    leave: list[tuple[str, ast.stmt]] = [(word, way()) for way, word in _WAYS.items() if way in ways]
    if returns:
        has_value = any(node.value is not None for node in returns)
        leave.append(("return", ast.Return(value if has_value else None)))
    for word, statement in leave:
        asked = ast.Compare(kind, [ast.Eq()], [ast.Constant(word)])
        test = ast.BoolOp(ast.And(), [ast.Compare(_load(_LENDER), [ast.IsNot()], [_none()]), asked])
        yield ast.If(test, [statement], [])


_WAYS: dict[type[ast.stmt], str] = {ast.Break: "break", ast.Continue: "continue"}


class _ExitRewriter(ast.NodeTransformer):
    """The body as a function has it: leaving it is told by what it returns, and `super()` names its object."""

    def __init__(self, first: str | None) -> None:
        self._first, self._loops = first, 0

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _SCOPES):
            return node
        if isinstance(node, _LOOPS):
            self._loops += 1
            node.body = [self.visit(statement) for statement in node.body]
            self._loops -= 1
            node.orelse = [self.visit(statement) for statement in node.orelse]
            return node
        return super().visit(node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        self.generic_visit(node)
        return ast.copy_location(_told("return", node.value or _none()), node)

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return node if self._loops else ast.copy_location(_told("break", _none()), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return node if self._loops else ast.copy_location(_told("continue", _none()), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """A name that is shared takes no annotation."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        plain: ast.stmt = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(plain, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first is not None:
            node.args = [_load("__class__"), _load(self._first)]
        return node


def _own(body: Sequence[ast.stmt], without: tuple[type[ast.AST], ...] = _SCOPES) -> Iterator[ast.AST]:
    """All nodes of the body but those inside functions and classes; decorators and defaults are left out with them."""
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, without):
            todo += ast.iter_child_nodes(node)
        elif isinstance(node, _LOOPS):
            todo += node.orelse  # where `break` is the outer loop's


def _awaits(body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)
        or (isinstance(node, ast.comprehension) and node.is_async)
        for node in _own(body)
    )


def _declared(
    body: Sequence[ast.stmt], kind: type[ast.Global] | tuple[type[ast.stmt], ...] = (ast.Global, ast.Nonlocal)
) -> set[str]:
    return {name for node in _own(body) if isinstance(node, kind) for name in node.names}  # type: ignore[attr-defined]


def _bound(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that these bind, as Python's own compiler sees it."""
    nested = [node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Nonlocal)]
    around = [_assign(name, _none()) for name in sorted({name for node in nested for name in node.names})]
    inner = _function(ast.AsyncFunctionDef, "inner", statements)
    module = ast.Module([_function(ast.FunctionDef, "outer", [*around, inner])], type_ignores=[])
    table = symtable.symtable(ast.unparse(ast.fix_missing_locations(module)), "<block>", "exec")
    ((function,),) = [outer.get_children() for outer in table.get_children()]
    return {symbol.get_name() for symbol in function.get_symbols() if symbol.is_local()}


def _first_argument(scope: ast.AST | None) -> str | None:
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    positional = [*scope.args.posonlyargs, *scope.args.args]
    return positional[0].arg if positional else None


# --- small trees


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str, context: ast.expr_context) -> ast.Name:
    return ast.Name(name, context)


def _none() -> ast.Constant:
    return ast.Constant(None)


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([_store(name, ast.Store())], value)


def _function(kind: type[Any], name: str, body: Sequence[ast.stmt]) -> ast.stmt:
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    more: dict[str, Any] = {"type_params": []} if "type_params" in kind._fields else {}  # from Python 3.12 on
    made: ast.stmt = kind(name=name, args=arguments, body=list(body), decorator_list=[], **more)
    return made


def _call(function: ast.expr, *arguments: ast.expr) -> ast.Call:
    return ast.Call(function, list(arguments), [])


def _told(word: str, value: ast.expr) -> ast.Return:
    return ast.Return(ast.Tuple([ast.Constant(word), value], ast.Load()))


def _locate(tree: ast.AST, origin: ast.stmt) -> None:
    """Give what has no place of its own the place of the `with` line."""
    for node in ast.walk(tree):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            node.lineno = node.end_lineno = origin.lineno  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = origin.col_offset  # type: ignore[attr-defined]
