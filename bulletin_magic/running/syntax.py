"""Small trees of Python code, as `ast` has them: what a rewritten cell is put together of."""

import ast
from collections.abc import Sequence
from typing import Any


def load(name: str) -> ast.Name:
    """Return the name where its value is used."""
    return ast.Name(name, ast.Load())


def store(name: str, context: ast.expr_context) -> ast.Name:
    """Return the name where it is bound or deleted, as `context` says."""
    return ast.Name(name, context)


def none() -> ast.Constant:
    """Return the constant None."""
    return ast.Constant(None)


def assign(name: str, value: ast.expr) -> ast.Assign:
    """Return the statement `name = value`."""
    return ast.Assign([store(name, ast.Store())], value)


def call(callee: ast.expr, *arguments: ast.expr) -> ast.Call:
    """Return the call of an expression with these arguments."""
    return ast.Call(callee, list(arguments), [])


def define_function(kind: type[Any], name: str, body: Sequence[ast.stmt]) -> ast.stmt:
    """Return the definition of a function without parameters; `kind` is `ast.FunctionDef` or `ast.AsyncFunctionDef`."""
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    more: dict[str, Any] = {"type_params": []} if "type_params" in kind._fields else {}  # from Python 3.12 on
    definition: ast.stmt = kind(name=name, args=arguments, body=list(body), decorator_list=[], **more)
    return definition
