"""Modules that the other side does not have: what is theirs stays here, and a handle goes in its place."""

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from bulletin.state.load_transaction import Reduced, Unpicklable, refuse

#: Top modules. Only an executor is told of some: those that its cells imported and the notebook cannot.
_missing: set[str] = set()


def note_missing(names: Iterable[str]) -> None:
    """Take note that the other side has none of these top modules."""
    _missing.update(names)


def note_present(names: Iterable[str]) -> None:
    """Take note that the other side has these top modules, by now."""
    _missing.difference_update(names)


def forget_missing() -> None:
    """Forget all: there is another side."""
    _missing.clear()


def is_missing(module: object) -> bool:
    """Tell whether the other side lacks a module of this name."""
    return bool(_missing) and isinstance(module, str) and module.partition(".")[0] in _missing


def stays_here(definition: Any) -> bool:
    """Tell whether a module, function or class is one of which the other side lacks the module."""
    if not _missing:
        return False
    is_module = isinstance(definition, ModuleType)
    return is_missing(definition.__name__ if is_module else getattr(definition, "__module__", None))


def require_there(module: object, kind: str) -> None:
    """Raise Unpicklable where the other side lacks the module of a value, which people know as a `kind`."""
    if is_missing(module):
        raise Unpicklable(f"the other side has no module {module!r}", kind)


def refuse_missing(_encoder: object, value: object) -> Reduced:
    """Refuse an instance of a class that the other side lacks: a reducer."""
    return refuse(value)
