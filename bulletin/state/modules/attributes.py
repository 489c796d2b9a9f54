"""Globals of modules that are plain data: atoms, and plain containers of them. Compared by content."""

import ast
import hashlib
import marshal
from collections.abc import Mapping
from functools import lru_cache
from types import ModuleType, NotImplementedType
from typing import Any, NamedTuple, TypeAlias

from bulletin.state.atoms import ATOMS

#: Atoms that `marshal` writes by their content.
_MARSHALLED = frozenset(ATOMS) - {NotImplementedType}
_REFILLED = frozenset({list, dict, set})
_PLAIN = _MARSHALLED | _REFILLED | {tuple, frozenset}
#: Nested deeper, or in itself, a container is not plain.
_MAX_DEPTH = 40
#: Names through which a module may bind names that its text does not spell.
_BINDERS = frozenset({"globals", "vars", "exec", "setattr", "__dict__", "eval"})
_UNKNOWN = object()


class GlobalValue(NamedTuple):
    """A global of a module: the object itself, and a token of its content.

    The object may have been changed since; the token is still that of the content at the time.
    """

    value: object
    token: bytes
    is_immutable: bool = False  #: noted, since a long table would take as long to look through at each cell


#: What a module holds, by name.
State: TypeAlias = Mapping[str, GlobalValue]


class GlobalChange(NamedTuple):
    """How one module's globals differ from an earlier state: new values by name, and deleted names.

    `rebound` are those names whose value is another object than before; the others are new or had their object changed.
    """

    values: Mapping[str, Any]
    rebound: frozenset[str]
    deleted: tuple[str, ...]


def read(module: ModuleType, before: State | None = None) -> dict[str, GlobalValue]:
    """Collect all plain globals of a module, without names such as `__name__`, each with its token.

    Where an immutable value is the same object as in `before`, its token is taken from there.
    """
    before = before or {}
    found: dict[str, GlobalValue] = {}
    for name, value in list(namespace(module).items()):
        if type(value) not in _PLAIN or not isinstance(name, str) or (name[:2] == "__" and name[-2:] == "__"):
            continue
        known = before.get(name)
        if known is not None and known.value is value and known.is_immutable:
            found[name] = known
        elif (token := token_of(value)) is not None:
            found[name] = GlobalValue(value, token, _is_immutable(value))
    return found


def difference(before: State, now: State, module: ModuleType) -> GlobalChange | None:
    """Compare a module's globals with an earlier state; None if nothing has changed.

    A global that is no longer plain is left out. A list, dict or set in whose place stands another, though equal, has
    changed.
    """
    values = {
        name: held.value for name, held in now.items() if name not in before or before[name].token != held.token
    } | {
        # Equal, but another object: who holds the old one no longer sees what happens to it.
        name: held.value
        for name, held in now.items()
        if type(held.value) in _REFILLED
        and name in before
        and before[name].value is not held.value
        and before[name].value is not _UNKNOWN
    }
    home = namespace(module)
    deleted = tuple(name for name in before if name not in home)
    if not values and not deleted:
        return None
    rebound = frozenset(
        name
        for name, value in values.items()
        if name in before and before[name].value is not _UNKNOWN and before[name].value is not value
    )
    return GlobalChange(values, rebound, deleted)


def write(module: ModuleType, change: GlobalChange) -> None:
    """Apply a change to a module's globals.

    A list, dict or set that was changed in place on the other side stays the same object here too.
    """
    home = namespace(module)
    for name, value in change.values.items():
        old: Any = home.get(name)
        if old is value:
            continue
        if name in change.rebound or type(old) is not type(value) or type(value) not in _REFILLED:
            home[name] = value
        elif type(value) is list:
            old[:] = value
        else:
            old.clear()
            old.update(value)
    for name in change.deleted:
        home.pop(name, None)


def merged(first: GlobalChange | None, then: GlobalChange) -> GlobalChange:
    """Combine two changes of a module's globals into one, of which `then` came later."""
    if first is None:
        return then
    values = {name: value for name, value in first.values.items() if name not in then.deleted} | dict(then.values)
    deleted = dict.fromkeys((*(name for name in first.deleted if name not in then.values), *then.deleted))
    return GlobalChange(values, first.rebound | then.rebound, tuple(deleted))


def after_import(text: str | None, now: State) -> dict[str, GlobalValue]:
    """Work out the globals that importing a module gives, so that what any cell changed afterwards shows.

    A name that the text binds once, to a literal, had that value. What it computes may be another on another machine (a
    device, a path) and counts as what it is `now`. A name that it does not bind was set from outside, and is left out;
    but where the text may bind names that it does not spell, such a name counts as what it is `now`.
    """
    literals, is_open = _bindings(text or "")
    found: dict[str, GlobalValue] = {}
    for name, token in literals.items():
        if token is not None:
            found[name] = now[name] if name in now and now[name].token == token else GlobalValue(_UNKNOWN, token)
        elif name in now:
            found[name] = now[name]
    if is_open:
        found = {**now, **found}
    return found


@lru_cache(maxsize=1024)
def _bindings(text: str) -> tuple[Mapping[str, bytes | None], bool]:
    """Map the names that a text binds at its top to the token of the literal that each is bound to.

    The token is None for a name that is bound to anything else, or more than once. The second result tells whether the
    text may bind further names, which it does not spell: by `exec`, `globals` or `import *`, or as it cannot be parsed.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}, True
    bound: dict[str, bytes | None] = {}
    is_open = False
    literal_of = {
        id(target): value for statement in tree.body for target, value in _literals(statement)
    }  # by the node that is bound
    for node in _top_level(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound[name] = literal_of.get(id(node)) if name not in bound else None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound[name] = None
            case ast.alias(name="*"):
                is_open = True
            case ast.alias(name=name, asname=other):
                bound[other or name.partition(".")[0]] = None
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                bound[name] = None
            case ast.Name(id=name) | ast.Attribute(attr=name):
                is_open |= name in _BINDERS
    return bound, is_open


def _literals(statement: ast.stmt) -> list[tuple[ast.expr, bytes | None]]:
    match statement:
        case ast.Assign(targets=targets, value=value) | ast.AnnAssign(target=ast.Name() as targets, value=value) if (
            value is not None
        ):
            found = targets if isinstance(targets, list) else [targets]
            try:
                token = token_of(ast.literal_eval(value))
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return []
            return [(target, token) for target in found]
    return []


def _top_level(tree: ast.Module) -> list[ast.AST]:
    """List, roughly in order, the nodes of a module that are not inside its functions, classes and lambdas."""
    found: list[ast.AST] = []
    rest: list[ast.AST] = [tree]
    while rest:
        node = rest.pop()
        found.append(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        rest.extend(reversed(list(ast.iter_child_nodes(node))))
    return found


def token_of(value: object) -> bytes | None:
    """Return bytes that are equal for equal content of equal types, in equal order; None for what is not plain."""
    if not _is_plain(value, 0):
        return None
    plain: Any = value
    try:
        data = marshal.dumps(plain, 2)  # version 2 writes what a value is, not how often it is referred to
    except ValueError:
        return None
    return data if len(data) < 16 else hashlib.blake2b(data, digest_size=16).digest()


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _MARSHALLED:
        return True
    if kind not in _PLAIN or depth > _MAX_DEPTH:
        return False
    parts = (value.keys(), value.values()) if kind is dict else (value,)
    for part in parts:
        kinds = set(map(type, part))
        if not kinds <= _PLAIN:
            return False
        if not kinds <= _MARSHALLED and not all(_is_plain(item, depth + 1) for item in part):
            return False
    return True


def _is_immutable(value: object) -> bool:
    """Tell whether a value is an atom, or a tuple or frozen set of what is immutable.

    Such a value still has the token that it had.
    """
    if isinstance(value, tuple | frozenset):
        return all(map(_is_immutable, value))
    return type(value) in _MARSHALLED


def namespace(module: ModuleType) -> dict[str, Any]:
    """Return a module's globals, past whatever its type does to attributes."""
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found
