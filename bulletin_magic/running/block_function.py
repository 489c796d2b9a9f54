"""The function that the body of a `with gpu:` block becomes, and how leaving the one leaves the other.

The function returns nothing where the body came to its end, and else a pair: the word of the exit ("return", "break",
"continue") and the value of a `return`.
"""

import ast
import symtable
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from bulletin_magic.running.syntax import assign, define_function, load, none

#: The names that a rewritten block binds in its place.
BLOCK_NAME, GPU_NAME = "_gpu_block", "_gpu"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: What has variables of its own.
SCOPES = (*_FUNCTIONS, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def find_refusal(body: Sequence[ast.stmt], scope: ast.AST | None) -> tuple[str, str] | None:
    """Return what in the block cannot be taken out of its place, and what to do, in words; None where all can."""
    if isinstance(scope, ast.ClassDef):
        return "a part of a class's body", "Put it into a method, or around the whole class."
    for node in _nodes_in_scope(body):
        match node:
            case ast.Yield() | ast.YieldFrom():
                return "`yield`", "Collect the values in a list, and yield them after the block."
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                return "`import *`", "Put that line above the block."
    return None


def make_block_function(body: Sequence[ast.stmt], scope: ast.AST | None) -> ast.stmt:
    """Return the function that the body becomes. Its variables are those of the scope that the block stands in."""
    first = _first_argument(scope)
    statements: list[ast.stmt] = [_ExitRewriter(first).visit(deepcopy(statement)) for statement in body]
    declared = _declared_names(body)
    names = sorted(_bound_names(statements) - declared - {GPU_NAME, BLOCK_NAME})
    global_in_scope: set[str] = set()
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        global_in_scope = _declared_names(scope.body, ast.Global)
    nonlocal_names = [name for name in names if scope is not None and name not in global_in_scope]
    global_names = [name for name in names if name not in nonlocal_names]
    head: list[ast.stmt] = [ast.Global(global_names)] if global_names else []
    head += [ast.Nonlocal(nonlocal_names)] if nonlocal_names else []
    kind = ast.AsyncFunctionDef if _awaits(body) else ast.FunctionDef
    return define_function(kind, BLOCK_NAME, [*head, *statements])


def exits_after_block(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield what leaves the block's place, too, where the function says that the body was left by such an exit."""
    returns = [node for node in _nodes_in_scope(body) if isinstance(node, ast.Return)]
    outside_loops = {type(node) for node in _nodes_in_scope(body, (*SCOPES, *_LOOPS))}
    word, value = (ast.Subscript(load(GPU_NAME), ast.Constant(index), ast.Load()) for index in (0, 1))
    exits: list[tuple[str, ast.stmt]] = []
    if ast.Break in outside_loops:
        exits.append(("break", ast.Break()))
    if ast.Continue in outside_loops:
        exits.append(("continue", ast.Continue()))
    if returns:
        has_value = any(node.value is not None for node in returns)
        exits.append(("return", ast.Return(value if has_value else None)))
    for text, statement in exits:
        was_left = ast.Compare(load(GPU_NAME), [ast.IsNot()], [none()])
        is_this_exit = ast.Compare(word, [ast.Eq()], [ast.Constant(text)])
        yield ast.If(ast.BoolOp(ast.And(), [was_left, is_this_exit]), [statement], [])


class _ExitRewriter(ast.NodeTransformer):
    """Makes a body one of a function: leaving it is told by what it returns, and `super()` names its object."""

    def __init__(self, first: str | None) -> None:
        self._first, self._loops = first, 0

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, SCOPES):
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
        return ast.copy_location(_return_exit("return", node.value or none()), node)

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return node if self._loops else ast.copy_location(_return_exit("break", none()), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return node if self._loops else ast.copy_location(_return_exit("continue", none()), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Drop the annotation: a name that is shared takes none."""
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        plain: ast.stmt = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(plain, node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first is not None:
            node.args = [load("__class__"), load(self._first)]
        return node


def _nodes_in_scope(body: Sequence[ast.stmt], without: tuple[type[ast.AST], ...] = SCOPES) -> Iterator[ast.AST]:
    """Yield the nodes of the body but those inside functions and classes, and their decorators and defaults."""
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
        for node in _nodes_in_scope(body)
    )


def _declared_names(
    body: Sequence[ast.stmt], kind: type[ast.Global] | tuple[type[ast.stmt], ...] = (ast.Global, ast.Nonlocal)
) -> set[str]:
    return {name for node in _nodes_in_scope(body) if isinstance(node, kind) for name in node.names}  # type: ignore[attr-defined]


def _bound_names(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names that these statements bind, as Python's own compiler sees it."""
    nested = [node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Nonlocal)]
    around = [assign(name, none()) for name in sorted({name for node in nested for name in node.names})]
    inner = define_function(ast.AsyncFunctionDef, "inner", statements)
    module = ast.Module([define_function(ast.FunctionDef, "outer", [*around, inner])], type_ignores=[])
    table = symtable.symtable(ast.unparse(ast.fix_missing_locations(module)), "<block>", "exec")
    ((function,),) = [outer.get_children() for outer in table.get_children()]
    return {symbol.get_name() for symbol in function.get_symbols() if symbol.is_local()}


def _first_argument(scope: ast.AST | None) -> str | None:
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    positional = [*scope.args.posonlyargs, *scope.args.args]
    return positional[0].arg if positional else None


def _return_exit(word: str, value: ast.expr) -> ast.Return:
    return ast.Return(ast.Tuple([ast.Constant(word), value], ast.Load()))
