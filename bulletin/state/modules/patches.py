"""Whether a module was patched: old functions and classes were given the code of new ones, as `%autoreload` does it."""

import weakref
from collections.abc import Mapping
from types import CodeType, FunctionType, ModuleType

from bulletin.state.modules import attributes


def definitions_of(module: ModuleType) -> dict[str, weakref.ref[FunctionType | type]]:
    """List the functions and classes that a module defines itself, by name, as weak references."""
    home = attributes.namespace(module)
    return {
        name: weakref.ref(value)
        for name, value in home.items()
        if type(value) is FunctionType or (isinstance(value, type) and "__module__" in vars(value))
        if value.__module__ == module.__name__
    }


def codes_of(module: ModuleType) -> dict[str, CodeType]:
    """List the code of the functions that a module defines itself, and of the methods of its classes, by name."""
    found: dict[str, CodeType] = {}
    for name, reference in definitions_of(module).items():
        value = reference()
        inside = vars(value) if isinstance(value, type) else {"": value}
        for key, one in inside.items():
            function = one.__func__ if isinstance(one, staticmethod | classmethod) else one
            functions = (one.fget, one.fset, one.fdel) if isinstance(one, property) else (function,)
            for number, each in enumerate(functions):
                if type(each) is FunctionType:
                    found[f"{name}.{key}.{number}"] = each.__code__
    return found


def is_patched(before: Mapping[str, weakref.ref[FunctionType | type]], now: Mapping[str, object]) -> bool:
    """Tell whether an old function was given the code of a new one: not `reload` alone was at work."""
    for name, reference in before.items():
        old, new = reference(), now.get(name)
        if old is None or old is new:
            continue
        pairs = [(old, new)]
        if isinstance(old, type) and isinstance(new, type):
            pairs = [(value, vars(new).get(key)) for key, value in vars(old).items()]
        for was, has in pairs:
            if type(was) is FunctionType and type(has) is FunctionType and was.__code__ is has.__code__:
                return True
    return False
