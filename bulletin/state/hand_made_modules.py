"""Modules that a cell has made and put into `sys.modules`: nobody else can import them, so they travel as values."""

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from bulletin.cpython.class_layout import is_python_class

from .load_transaction import LoadTransaction

#: What says where a module comes from.
_ORIGINS = ("__spec__", "__loader__", "__file__", "__path__")


def is_hand_made(name: str) -> bool:
    """Tell whether nothing but `types.ModuleType(name)` has made the module of this name.

    Parts of packages are left out, which whoever imports the package has as well, and those that C code makes, as what
    Cython shares.
    """
    module = sys.modules.get(name)
    if type(module) is not ModuleType or "." in name or name in {"__main__", "__mp_main__"}:
        return False
    held = vars(module)
    if any(held.get(origin) is not None for origin in _ORIGINS):
        return False
    return not any(_is_of_c(value, name) for value in list(held.values()))


def _is_of_c(value: Any, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module and not is_python_class(value)


def register(transaction: LoadTransaction, module: ModuleType) -> None:
    """Put a module into `sys.modules`, undoably."""
    _on_both_sides.add(module.__name__)
    before = sys.modules.get(module.__name__)
    if before is not module:
        transaction.undoable(_put, module.__name__, before)
        sys.modules[module.__name__] = module


def note_imports(imports: Iterable[str]) -> bool:
    """Have both sides have the hand-made ones among these modules, which code imports; tell whether that is news."""
    new = {top for name in imports if is_hand_made(top := name.partition(".")[0])} - _on_both_sides
    _on_both_sides.update(new)
    return bool(new)


def on_both_sides() -> dict[str, ModuleType]:
    """Return those that both sides are to have, as they are here, by their names."""
    _on_both_sides.intersection_update([name for name in _on_both_sides if is_hand_made(name)])
    return {name: sys.modules[name] for name in sorted(_on_both_sides)}


def forget() -> None:
    """Forget which those are: another notebook begins."""
    _on_both_sides.clear()


#: Names of those that came from the other side, or that cells import.
_on_both_sides: set[str] = set()


def take_out(transaction: LoadTransaction, name: str) -> ModuleType | None:
    """Take a module that came from the other side, where a file stands for it now, out of `sys.modules`, undoably."""
    if name not in _on_both_sides or not is_hand_made(name):
        return None
    module = sys.modules.pop(name)
    transaction.undoable(_put, name, module)
    return module


def _put(name: str, module: ModuleType | None) -> None:
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module
