"""Single kinds of the standard library: what its values are made of, and what must not leave its process."""

import ctypes
import functools
import random
import re
import selectors
import subprocess
import sys
import typing
from collections.abc import Callable
from types import MemberDescriptorType, SimpleNamespace
from typing import Any

import cloudpickle

from bulletin.state.atoms import ATOMS
from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, Unpicklable, refuse

from .containers import reduce_user_container
from .functions import is_importable
from .named import by_name


def reduce_cached_property(_: Encoding, found: Any) -> Reduced:
    """Reduce a cached property to its parts, from which it is made anew: Python 3.11's holds a lock."""
    return make_cached_property, (), (found.func, found.attrname, found.__doc__), None, None, fill_cached_property


def make_cached_property() -> Any:
    """Make a cached property without its function, which may know the class that holds it."""
    return functools.cached_property(id)


def fill_cached_property(found: Any, state: tuple[Any, Any, Any]) -> None:
    """Set the function of a cached property, its name in the class, and its docstring."""
    found.func, found.attrname, found.__doc__ = state


#: Values that never change, and the arguments that make one alike. They are known by name: numpy may not be there.
_ARGS: dict[str, tuple[str, ...]] = {
    "_struct.Struct": ("format",),
    "numexpr.NumExpr": ("signature", "tempsig", "program", "constants", "input_names"),
    "numpy.finfo": ("dtype",),
    "numpy.iinfo": ("dtype",),
}


def is_made_of_arguments(kind: type) -> bool:
    """Tell whether a type is one of constants that pickle cannot make, but a call of the type can."""
    return f"{kind.__module__}.{kind.__qualname__}" in _ARGS


def reduce_made_of_arguments(_: Encoding, value: Any) -> Reduced:
    """Reduce a constant to the type and the arguments whose call makes one alike."""
    kind = type(value)
    return make_of_arguments, (RECEIVER, kind, *_args_of(value))


def _args_of(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    return tuple(getattr(value, name) for name in _ARGS[f"{kind.__module__}.{kind.__qualname__}"])


def make_of_arguments(transaction: LoadTransaction, kind: Any, *args: Any) -> Any:
    """Return the existing constant if the same arguments make it, or make a new one."""
    old = transaction.take_existing()
    if type(old) is kind and _args_of(old) == args:
        return old
    made = kind(*args)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def is_scanner(kind: type) -> bool:
    """Tell whether a type is the part in C of a decoder, Python's or that of simplejson."""
    return f"{kind.__module__}.{kind.__qualname__}" in {"_json.Scanner", "simplejson._speedups.Scanner"}


def reduce_scanner(_: Encoding, scanner: Any) -> Reduced:
    """Reduce the part of a `JSONDecoder` that is in C to how the decoder was set when it was made."""
    names = tuple(name for name, held in vars(type(scanner)).items() if isinstance(held, MemberDescriptorType))
    return make_scanner, (RECEIVER, type(scanner), names, *(getattr(scanner, name) for name in names))


def make_scanner(transaction: LoadTransaction, kind: Any, names: tuple[str, ...], *parts: Any) -> Any:
    """Return the existing scanner if all its settings are these, or make a new one; nobody can change one."""
    old = transaction.take_existing()
    if type(old) is kind and all(map(_is_same, (getattr(old, name) for name in names), parts)):
        return old
    made = kind(SimpleNamespace(**dict(zip(names, parts, strict=True))))
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def _is_same(one: object, other: object) -> bool:
    return one is other


def reduce_new_type(encoder: Encoding, value: Any) -> Reduced:
    """Leave a `NewType` that can be imported to pickle; reduce others as plain instances, which need no name."""
    return NotImplemented if is_importable(value) else reduce_user_container(encoder, value)


def reduce_type_parameter(_: Encoding, value: Any) -> Reduced:
    """Reduce a type parameter to its name, or to what it was made with where no module has it."""
    try:
        return by_name(value, value.__name__)
    except Unpicklable:
        options = {
            option: getattr(value, f"__{option}__")
            for option in ("bound", "covariant", "contravariant")
            if hasattr(value, f"__{option}__")
        }
        return make_type_parameter, (RECEIVER, type(value), value.__name__, value.__module__, options)


def make_type_parameter(
    transaction: LoadTransaction, kind: Any, name: str, module: str, options: dict[str, Any]
) -> Any:
    """Return the existing type parameter of that name, or make a new one; nobody can change one."""
    old = transaction.take_existing()
    if type(old) is kind and old.__name__ == name:
        return old
    made = kind(name, **options)
    made.__module__ = module
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def reduce_type_variable(_: Encoding, value: typing.TypeVar) -> Reduced:
    """Reduce a type variable as cloudpickle does, which gives it an id, with the module that it says it is of."""
    made_by, args = cloudpickle.CloudPickler.dispatch_table[typing.TypeVar](value)
    return (made_by, args) if made_by is getattr else (make_type_variable, (value.__module__, made_by, args))


def make_type_variable(module: str, made_by: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Make a type variable, or find the one that has its id, and let it say that it is of this module."""
    made = made_by(*args)
    if made.__module__ != module:
        made.__module__ = module
    return made


def reduce_match(_: Encoding, match: re.Match[Any]) -> Reduced:
    """Reduce a match to how its pattern finds it in its text. Raises Unpicklable where it does not find it again."""
    pattern, text, pos, endpos = match.re, match.string, match.pos, match.endpos
    # The next one of several is found from where it begins, and looks at what is before that.
    ways = (("search", pos), ("match", pos), ("fullmatch", pos), ("match", match.start()), ("fullmatch", match.start()))
    for way, start in ways:
        if _is_same_match(match, getattr(pattern, way)(text, start, endpos)):
            return make_match, (RECEIVER, pattern, text, way, start, endpos)
    raise Unpicklable("cannot pickle a match that its pattern does not find again")


def make_match(transaction: LoadTransaction, pattern: Any, text: Any, way: str, start: int, endpos: int) -> Any:
    """Return the existing match if its pattern, text and places are these, or find it anew; nobody can change one."""
    old = transaction.take_existing()
    made = getattr(pattern, way)(text, start, endpos)
    is_same = type(old) is re.Match and old.re is pattern and _is_same_match(old, made)
    if is_same and (old.string is text or (type(text) in ATOMS and old.string == text)):
        return old
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def _is_same_match(match: re.Match[Any], other: re.Match[Any] | None) -> bool:
    return other is not None and match.regs == other.regs and match.lastindex == other.lastindex


def reduce_popen(_: Encoding, process: Any) -> Reduced:
    """Leave a process that has ended to pickle: it is plain data.

    Raises Unpicklable while it runs: only the process that started another one can wait for it.
    """
    return refuse(process) if process.returncode is None else NotImplemented


def _refuse(_: Encoding, value: object) -> Reduced:
    return refuse(value)


def of_family(kind: type) -> Callable[[Encoding, Any], Reduced] | None:
    """Choose the reducer for those types that have it with all their subclasses; None for other types."""
    if is_made_of_arguments(kind):
        return reduce_made_of_arguments
    if is_scanner(kind):
        return reduce_scanner
    if issubclass(kind, random.SystemRandom):
        return reduce_user_container
    if issubclass(kind, subprocess.Popen):
        return reduce_popen
    asyncio: Any = sys.modules.get("asyncio")
    bound = (ctypes.CDLL, selectors.BaseSelector, getattr(asyncio, "AbstractEventLoop", ctypes.CDLL))
    return _refuse if issubclass(kind, bound) else None


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    functools.cached_property: reduce_cached_property,
    re.Match: reduce_match,
    typing.NewType: reduce_new_type,
    typing.TypeVar: reduce_type_variable,
    typing.ParamSpec: reduce_type_parameter,
    typing.TypeVarTuple: reduce_type_parameter,
}
