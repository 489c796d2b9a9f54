"""A frame of the notebook's, from which values are loaded: some look up names in the frame of whoever loads them."""

import builtins
from collections.abc import Callable
from types import FunctionType
from typing import Any


def call_from(namespace: dict[str, Any], load: Callable[..., Any], *args: Any) -> Any:
    """Call a function as a cell of this namespace would; return its result."""
    has_builtins = "__builtins__" in namespace
    if not has_builtins:  # no cell has run in it yet, and imports ask for them
        namespace["__builtins__"] = vars(builtins)
    try:
        return FunctionType(_call.__code__, namespace)(load, args)
    finally:
        if not has_builtins:
            namespace.pop("__builtins__", None)


def _call(load: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return load(*args)
