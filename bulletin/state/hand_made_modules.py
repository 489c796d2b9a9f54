"""Modules that a cell has made and put into `sys.modules`: nobody else can import them, so they travel as values."""

import sys
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
    before = sys.modules.get(module.__name__)
    if before is not module:
        transaction.undoable(_put, module.__name__, before)
        sys.modules[module.__name__] = module


def _put(name: str, module: ModuleType | None) -> None:
    if module is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = module
