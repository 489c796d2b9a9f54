"""What each side has of its own under a name: modules, loggers, constants that are known by their identity."""

import dataclasses
import importlib
import logging
import sys
import weakref
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType
from typing import Any

from bulletin.cpython.class_layout import is_python_class
from bulletin.cpython.pickle_memo import module_holding
from bulletin.state.encoding import Encoding
from bulletin.state.hand_made_modules import is_hand_made, register, take_out
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, NotHere, Reduced, Unpicklable, refuse
from bulletin.state.missing_modules import require_there
from bulletin.state.setting_kind import shell_of_cells


def reduce_module(encoder: Encoding, module: ModuleType) -> Reduced:
    """Reduce a module to its name, if `travels_by_name` says so, else to what it holds."""
    require_there(module.__name__, "module")
    if travels_by_name(module):
        encoder.modules[module.__name__] = None
        return find_module, (RECEIVER, module.__name__)
    if encoder.is_digest:
        state = {name: value for name, value in vars(module).items() if name != "__builtins__"}
        return ModuleType, (module.__name__,), state
    is_registered = sys.modules.get(module.__name__) is module
    args = (RECEIVER, module.__name__, module.__doc__, is_registered)
    return make_module, args, vars(module), None, None, fill_module


def reduce_kind_of_module(encoder: Encoding, module: ModuleType) -> Reduced:
    """Reduce a module of a library's own type, as lazy ones are, to its name.

    Raises Unpicklable where the other side cannot import it by that: what such a module holds, its type makes.
    """
    return reduce_module(encoder, module) if travels_by_name(module) else refuse(module)


def travels_by_name(module: ModuleType) -> bool:
    """Tell whether the other side imports a module by itself: `sys.modules` has it, and no cell has put it there."""
    return sys.modules.get(module.__name__) is module and not is_hand_made(module.__name__)


def import_module(name: str) -> ModuleType:
    """Return the receiving side's module of that name, and import it if need be.

    Raises
    ------
    NotHere
        If it cannot be imported here.
    """
    found = sys.modules.get(name)
    if found is not None:
        return found
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotHere(f"it uses the module {name!r}, which cannot be imported there ({error})") from error


def find_module(transaction: LoadTransaction, name: str) -> ModuleType:
    """Import a module of this side, whatever existing object this side has in its place.

    Raises NotHere if it cannot be imported here.
    """
    transaction.take_existing()
    before = take_out(transaction, name)
    try:
        return import_module(name)
    except NotHere:
        if before is None:
            raise
        return sys.modules.setdefault(name, before)


def make_module(transaction: LoadTransaction, name: str, doc: str | None, is_registered: bool) -> ModuleType:
    """Empty the existing module, or make a new one, where no file stands for the module; `import` finds it too."""
    old = transaction.take_existing()
    if type(old) is not ModuleType:
        old = ModuleType(name, doc)
    if is_registered:
        register(transaction, old)
    transaction.undoable(fill_dict, vars(old), list(vars(old).items()))
    for key in [key for key in vars(old) if key != "__builtins__"]:
        del vars(old)[key]
    return old


def fill_module(module: ModuleType, state: dict[str, Any]) -> None:
    """Set the names of a module."""
    vars(module).update(state)


def by_name(value: object, name: str) -> Reduced:
    """Reduce a value that says itself by which name it is known to its module and that name.

    Raises
    ------
    Unpicklable
        If no module that the other side can import has it under that name.
    """
    module = module_holding(value, name)
    if module in {"__main__", "__mp_main__"} or find_by_name(module, name) is not value:
        raise Unpicklable(f"cannot find {name!r} in {module!r}")
    return find_by_name, (module, name)


def find_by_name(module: str, name: str) -> Any:
    """Return what this side has under that name; None where its module has nothing.

    Raises NotHere if the module cannot be imported here.
    """
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


#: Where modules hold classes that give themselves a module that there is not.
_elsewhere: weakref.WeakKeyDictionary[type, tuple[str, str]] = weakref.WeakKeyDictionary()


def held_elsewhere(cls: type) -> tuple[str, str] | None:
    """Find the module that holds a class of C code which is not where it says, and the class's name there.

    Such code may forget the package (`_wrappers` for `wrapt._wrappers`), or have a class under another name.
    """
    home = cls.__module__
    if not isinstance(home, str) or home in _OF_NOTEBOOK or (is_python_class(cls) and _is_text(home)):
        return None
    known = _elsewhere.get(cls)
    if known is not None and getattr(sys.modules.get(known[0]), "__dict__", {}).get(known[1]) is cls:
        return known
    top = home.partition(".")[0]
    place = next(_places_of_class(cls, top if home in sys.modules else ""), None)
    if place is not None:
        _elsewhere[cls] = place
    return place


def _is_text(module: str) -> bool:
    """Tell whether a module is here and was written in Python, or by nobody knows whom."""
    held = sys.modules.get(module)
    spec = getattr(held, "__spec__", None)
    file = getattr(spec, "origin", None) or getattr(held, "__file__", None) or ""
    return held is not None and not (file == "built-in" or file.endswith(tuple(EXTENSION_SUFFIXES)))


def _places_of_class(cls: type, top: str) -> Iterator[tuple[str, str]]:
    for module, held in list(sys.modules.items()):
        if type(held) is not ModuleType or module in _OF_NOTEBOOK or (top and module.partition(".")[0] != top):
            continue
        if vars(held).get(cls.__name__) is cls:
            yield module, cls.__name__
        elif top:
            yield from ((module, name) for name, value in list(vars(held).items()) if value is cls)


_OF_NOTEBOOK = frozenset({"__main__", "__mp_main__"})


def reduce_mark(_: Encoding, value: Any) -> Reduced:
    """Reduce a mark of `dataclasses`, which is compared by identity, to its name."""
    return getattr, (dataclasses, "MISSING" if value is dataclasses.MISSING else "_HAS_DEFAULT_FACTORY")


class _Suppressed:
    """Stands for a string that `argparse` knows by its identity, and that pickle would copy."""

    def __reduce__(self) -> Reduced:
        return getattr, (sys.modules["argparse"], "SUPPRESS")


_SUPPRESSED = _Suppressed()


def is_of_argparse(kind: type) -> bool:
    """Tell whether a type is one of parsers, their groups or their actions."""
    argparse: Any = sys.modules.get("argparse")
    return hasattr(argparse, "Action") and issubclass(kind, argparse._ActionsContainer | argparse.Action)


def reduce_of_argparse(_: Encoding, value: Any) -> Reduced:
    """Reduce a part of `argparse` as any instance, with the constant `SUPPRESS` by its name."""
    made_by, args, state, *rest = value.__reduce_ex__(5)
    suppress: Any = sys.modules["argparse"].__dict__["SUPPRESS"]
    if isinstance(state, dict):
        state = {key: _SUPPRESSED if held is suppress else held for key, held in state.items()}
    return made_by, args, state, *rest


_TORCH_CONSTANTS = frozenset({"memory_format", "layout", "qscheme", "dtype"})


def is_of_torch(kind: type) -> bool:
    """Tell whether a type is one of torch's of which each value is a constant of its module."""
    return kind.__module__ == "torch" and kind.__name__ in _TORCH_CONSTANTS


def reduce_of_torch(_: Encoding, value: Any) -> Reduced:
    """Reduce a constant of torch to its module and its name."""
    module, name = str(value).split(".")
    return getattr, (sys.modules[module], name)


#: What a logger has of its process, or that is told elsewhere.
_OF_PROCESS = frozenset({"name", "level", "parent", "manager", "root", "_cache"})


def reduce_logger(_: Encoding, logger: logging.Logger) -> Reduced:
    """Reduce a logger to its name, filters and handlers; and its parents, which handle what it is told.

    Levels, and the handlers of the root, are settings of the process, and travel as such. A logger that `getLogger`
    does not know is left to pickle.
    """
    if logger is logging.root:
        return logging.getLogger, ()
    if logging.Logger.manager.loggerDict.get(logger.name) is not logger:
        return NotImplemented
    state = {name: value for name, value in vars(logger).items() if name not in _OF_PROCESS}
    return find_logger, (RECEIVER, logger.name), (RECEIVER, state, logger.parent), None, None, fill_logger


def find_logger(transaction: LoadTransaction, name: str) -> logging.Logger:
    """Return the logger of that name on this side."""
    transaction.take_existing()
    return logging.getLogger(name)


def fill_logger(logger: logging.Logger, state: tuple[LoadTransaction, dict[str, Any], object]) -> None:
    """Let a logger log as the other one does, with its filters and handlers; its level stays."""
    transaction, attributes, _ = state
    own = {name: value for name, value in vars(logger).items() if name in _OF_PROCESS}
    transaction.undoable(_set_logger, logger, dict(vars(logger)))
    _set_logger(logger, {**own, **attributes})


def _set_logger(logger: logging.Logger, attributes: dict[str, Any]) -> None:
    fill_dict(vars(logger), attributes)
    clear: Callable[[], None] = logging.Logger.manager._clear_cache  # type: ignore[attr-defined]
    clear()  # each logger remembers which levels it is asked for in vain


def is_shell(kind: type) -> bool:
    """Tell whether a type is a kind of IPython's shell."""
    interactive: Any = sys.modules.get("IPython.core.interactiveshell")
    return hasattr(interactive, "InteractiveShell") and issubclass(kind, interactive.InteractiveShell)


def reduce_shell(_: Encoding, shell: Any) -> Reduced:
    """Reduce the shell that runs the cells to the receiver's own. Raises Unpicklable for any other shell.

    Threads lead to the shell too: they know who shows their errors.
    """
    return (find_shell, (RECEIVER,)) if shell_of_cells() is shell else refuse(shell)


def is_of_kernel(kind: type) -> bool:
    """Tell whether a type is of what runs a notebook's process: the kernel, its threads and their loops."""
    loops: Any = sys.modules.get("tornado.ioloop")
    is_loop = hasattr(loops, "IOLoop") and issubclass(kind, loops.IOLoop)
    return is_loop or str(kind.__module__).startswith("ipykernel.")


def refuse_part_of_kernel(_: Encoding, part: Any) -> Reduced:
    """Raise Unpicklable: with one part all would go along, and a second kernel would be made where a cell runs."""
    return refuse(part)


def find_shell(transaction: LoadTransaction) -> Any:
    """Return the shell that runs the cells of this side."""
    transaction.take_existing()
    return shell_of_cells()


def of_family(kind: type) -> Callable[[Encoding, Any], Reduced] | None:
    """Choose the reducer for a shell, a logger, a module, a part of `argparse`, a constant of torch; else None."""
    if is_shell(kind):
        return reduce_shell
    if is_of_kernel(kind):
        return refuse_part_of_kernel
    if issubclass(kind, logging.Logger):
        return reduce_logger
    if is_of_argparse(kind):
        return reduce_of_argparse
    if issubclass(kind, ModuleType) and kind.__reduce__ is object.__reduce__:
        return reduce_kind_of_module
    return reduce_of_torch if is_of_torch(kind) else None


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    ModuleType: reduce_module,
    type(dataclasses.MISSING): reduce_mark,
    type(dataclasses._HAS_DEFAULT_FACTORY): reduce_mark,  # type: ignore[attr-defined]
}
