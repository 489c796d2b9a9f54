"""The source of a call of our own code in the executor, which binds no name among the user's variables."""

from collections.abc import Callable, Sequence
from typing import Any


def source_of_call(function: Callable[..., Any], arguments: Sequence[str]) -> str:
    """Return the expression that imports a module's function where it runs, and calls it with these expressions."""
    module, name = function.__module__, function.__qualname__
    return f"__import__({module!r}, fromlist=[{name!r}]).{name}({', '.join(arguments)})"
