"""`with gpu:` in a cell, rewritten so that its body can run elsewhere: as a function that shares its place's variables.

    with gpu:                     def _gpumake_block_function():
        total += step(n)              nonlocal total
                            →         total += step(n)
                                  _gpu = gpu
                                  if not getattr(_gpu, "takes_blocks", False): (the block as it stands)
                                  else: _gpu.runmake_block_function(_gpu_block)

The variables of a function become cells of the closure, which travel and change in place as all state does. Pure: a
tree in, a tree out.
"""

import ast
from collections.abc import Collection
from typing import Any

from bulletin_magic.running.block_function import (
    BLOCK_NAME,
    GPU_NAME,
    SCOPES,
    exits_after_block,
    find_refusal,
    make_block_function,
)
from bulletin_magic.running.syntax import assign, call, load, none, store


def rewrite_gpu_blocks(tree: ast.Module, names: Collection[str], modules: Collection[str] = ()) -> ast.Module:
    """Return the tree with the bodies of its `with gpu:` blocks as functions.

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


#: What a block of the notebook itself takes its line from: tracebacks show its function there.
_FIRST_LINE = ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


class _GpuNames:
    """Knows which expressions of a cell mean `gpu`."""

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
            if isinstance(node, ast.Assign) and self.mean_gpu(node.value):
                self._names |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def mean_gpu(self, expression: ast.expr) -> bool:
        """Tell whether this is `gpu`, or a call of it."""
        match expression:
            case ast.Call(func=function):
                return self.mean_gpu(function)
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
        if not isinstance(node, SCOPES):
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
        index = next((n for n, item in enumerate(node.items) if self._names.mean_gpu(item.context_expr)), None)
        if index is None:
            return node
        body = node.body
        if node.items[index + 1 :]:
            inner = type(node)(items=node.items[index + 1 :], body=body)
            body = [ast.copy_location(inner, node)]
        statements = self._statements(node, node.items[index], body)
        if index == 0:
            return statements
        return ast.copy_location(type(node)(items=node.items[:index], body=statements), node)

    def _statements(self, node: ast.With | ast.AsyncWith, item: ast.withitem, body: list[ast.stmt]) -> list[ast.stmt]:
        scope = self._scopes[-1] if self._scopes else None
        local = type(node)(items=[ast.withitem(load(GPU_NAME), item.optional_vars)], body=body)
        bind = assign(GPU_NAME, item.context_expr)
        refusal = find_refusal(body, scope)
        remote: list[ast.stmt] = []
        if refusal is not None:
            remote.append(
                ast.Expr(call(ast.Attribute(load(GPU_NAME), "refuse", ast.Load()), *map(ast.Constant, refusal)))
            )
        else:
            if item.optional_vars is not None:
                remote.append(ast.Assign([item.optional_vars], load(GPU_NAME)))
            # Tracebacks show the function as the scope that the block stands in.
            block = ast.copy_location(make_block_function(body, scope), scope or _FIRST_LINE)
            run = call(ast.Attribute(load(GPU_NAME), "run_block", ast.Load()), load(BLOCK_NAME))
            remote += [block, assign(GPU_NAME, run), *exits_after_block(body)]
        takes = call(load("getattr"), load(GPU_NAME), ast.Constant("takes_blocks"), ast.Constant(value=False))
        # What stands here comes first: a `return` where none may be is then told of the user's own line.
        choice: list[ast.stmt] = [bind, ast.If(ast.UnaryOp(ast.Not(), takes), [local], remote)]
        if scope is None:  # names of the notebook, which are not to stay
            clear = [
                assign(GPU_NAME, none()),
                assign(BLOCK_NAME, none()),
                ast.Delete([store(GPU_NAME, ast.Del()), store(BLOCK_NAME, ast.Del())]),
            ]
            choice = [ast.Try(body=choice, handlers=[], orelse=[], finalbody=clear)]
        for statement in choice:
            _locate(statement, node)
        return choice


def _locate(tree: ast.AST, origin: ast.stmt) -> None:
    """Give each node without a line and column those of the `with` line."""
    for node in ast.walk(tree):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            node.lineno = node.end_lineno = origin.lineno  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = origin.col_offset  # type: ignore[attr-defined]
