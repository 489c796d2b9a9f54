"""Finds the place of a bug by syntax, so that comments, line breaks and what stands elsewhere change nothing."""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from textwrap import dedent

from tests.mutants.catalogue import Mutant

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
#: Puts the bug where it belongs in the tree.
_Edit = Callable[[], None]


class DoesNotApply(Exception):
    """What a mutant quotes is not in its function, or more than once."""


def mutated(text: str, mutant: Mutant) -> str:
    """Write the file with the bug in it, without comments.

    Raises
    ------
    DoesNotApply
        If the file has no such function or class, or not exactly one place in it says what the mutant quotes.
    """
    tree = ast.parse(text)
    scope = _find_scope(tree, mutant)
    old, new = ast.parse(dedent(mutant.old)).body, ast.parse(dedent(mutant.new)).body
    both = [one.value for one in (*old, *new) if isinstance(one, ast.Expr)]
    if len(old) == len(new) == 1 and len(both) == 2:
        edits = list(_find_expression(scope, *both))
    else:
        edits = list(_find_statements(scope, old, new))
    if len(edits) != 1:
        where = f"{mutant.within or 'the module'} in {mutant.file}"
        raise DoesNotApply(f"{mutant.name}: {len(edits)} places of {where} say what it quotes")
    edits[0]()
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _find_scope(tree: ast.Module, mutant: Mutant) -> ast.AST:
    scope: ast.AST = tree
    for name in mutant.within.split(".") if mutant.within else ():
        found = next((one for one in _definitions(scope) if one.name == name), None)
        if found is None:
            raise DoesNotApply(f"{mutant.name}: {mutant.file} has no {mutant.within}")
        scope = found
    return scope


def _definitions(scope: ast.AST) -> Iterator[_Definition]:
    """List functions and classes directly inside, also within an `if` or the like."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, _Definition):
            yield node
        else:
            yield from _definitions(node)


def _find_expression(scope: ast.AST, old: ast.expr, new: ast.expr) -> Iterator[_Edit]:
    """Look for an expression, also as a part of a larger one."""
    wanted = ast.dump(old)
    for node in ast.walk(scope):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and ast.dump(value) == wanted:
                yield partial(setattr, node, field, new)
            for number, one in enumerate(value if isinstance(value, list) else ()):
                if isinstance(one, ast.expr) and ast.dump(one) == wanted:
                    yield partial(value.__setitem__, number, new)


def _find_statements(scope: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[_Edit]:
    """Look for statements that follow one another. Where there are to be none, there is `pass`."""
    wanted = [ast.dump(one) for one in old]
    for node in ast.walk(scope):
        for _, value in ast.iter_fields(node):
            if not isinstance(value, list) or not all(isinstance(one, ast.stmt) for one in value):
                continue
            dumped = [ast.dump(one) for one in value]
            for first in range(len(dumped) - len(wanted) + 1):
                if dumped[first : first + len(wanted)] == wanted:
                    yield partial(value.__setitem__, slice(first, first + len(wanted)), new or [ast.Pass()])
