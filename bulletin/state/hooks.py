"""What Python and IPython call that a notebook may give them: handlers of signals, hooks for errors, magics, printers.

They are places like those in libraries: each kind is a dict, which is read anew each time, of a module that has it.
"""

import builtins
import signal
import sys
import threading
import warnings  # noqa: F401  it is looked up in `sys.modules`
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

from .library_places import LibraryPlace
from .setting_kind import shell_of_cells


class HookKind(NamedTuple):
    """One kind: the module that has it, what is there now by key, and how one is set; None sets it as it was."""

    module: str
    read: Callable[[], dict[Any, Any]]
    write: Callable[[Any, Any], None]


def is_hook(place: LibraryPlace) -> bool:
    """Tell whether a place is one of a hook."""
    return place.attribute in HOOK_KINDS


def find_hook(place: LibraryPlace) -> Any:
    """Return what is called there now, the notebook's own or not; None if nothing is."""
    return HOOK_KINDS[place.attribute].read().get(place.key[0])


def all_hooks() -> Iterator[tuple[LibraryPlace, Any]]:
    """List all that there are in this process, with their places."""
    for name, kind in HOOK_KINDS.items():
        for key, hook in kind.read().items():
            yield LibraryPlace(kind.module, "", name, (key,)), hook


def set_hook(place: LibraryPlace, hook: Any) -> None:
    """Have this called from now on; with None, what was called before the notebook gave its own."""
    HOOK_KINDS[place.attribute].write(place.key[0], hook)


def _read_handlers() -> dict[int, Any]:
    return {int(number): handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}


def _write_handler(number: int, handler: Any) -> None:
    if number in _SIGNALS and threading.current_thread() is threading.main_thread():  # no other thread may
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


#: Those that neither a kernel nor an executor needs for itself.
_SIGNALS = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGUSR1, signal.SIGUSR2)


def _read_functions() -> dict[str, Any]:
    return {name: getattr(sys.modules[_home(name)], name.rpartition(".")[2]) for name in _FUNCTIONS}


def _write_function(name: str, hook: Any) -> None:
    if name in _FUNCTIONS:
        _replaced.setdefault(name, _read_functions()[name])
        setattr(sys.modules[_home(name)], name.rpartition(".")[2], _replaced.pop(name) if hook is None else hook)


def _home(name: str) -> str:
    return name.rpartition(".")[0]


_FUNCTIONS = ("sys.excepthook", "sys.unraisablehook", "threading.excepthook", "warnings.showwarning")
#: What they were on this side, before they were replaced here by those of the other one.
_replaced: dict[str, Any] = {}


def _read_built_ins() -> dict[str, Any]:
    return {name: value for name, value in vars(builtins).items() if type(value) is FunctionType}


def _write_built_in(name: str, value: Any) -> None:
    if value is not None:
        _replaced.setdefault(name, vars(builtins).get(name))
        setattr(builtins, name, value)
    elif (before := _replaced.pop(name, None)) is not None:
        setattr(builtins, name, before)
    else:
        vars(builtins).pop(name, None)


def _magics() -> dict[str, dict[str, Any]]:
    manager = getattr(shell_of_cells(), "magics_manager", None)
    return getattr(manager, "magics", {})


def _read_magics() -> dict[tuple[str, str], Any]:
    found = {(kind, name): magic for kind, by_name in _magics().items() for name, magic in by_name.items()}
    return {key: magic for key, magic in found.items() if _is_added(magic)}


def _is_added(magic: Any) -> bool:
    """Tell whether a magic is none of the many that come with IPython, which nobody need ask about."""
    home = getattr(magic, "__module__", None)
    return not (isinstance(home, str) and home.startswith("IPython."))


def _write_magic(key: tuple[str, str], magic: Any) -> None:
    _put(_magics().get(key[0]), key[1], magic)


def _printers() -> dict[str, dict[Any, Any]]:
    formatter = getattr(shell_of_cells(), "display_formatter", None)
    return {mime: one.type_printers for mime, one in getattr(formatter, "formatters", {}).items()}


def _read_printers() -> dict[tuple[str, Any], Any]:
    return {(mime, kind): printer for mime, by_type in _printers().items() for kind, printer in by_type.items()}


def _write_printer(key: tuple[str, Any], printer: Any) -> None:
    _put(_printers().get(key[0]), key[1], printer)


def _put(held: dict[Any, Any] | None, key: Any, value: Any) -> None:
    if held is not None and value is None:
        held.pop(key, None)
    elif held is not None:
        held[key] = value


HOOK_KINDS = {
    "handlers of signals": HookKind("signal", _read_handlers, _write_handler),
    "functions for errors": HookKind("sys", _read_functions, _write_function),
    "built-ins": HookKind("builtins", _read_built_ins, _write_built_in),
    "magics": HookKind("IPython", _read_magics, _write_magic),
    "printers": HookKind("IPython", _read_printers, _write_printer),
}
#: The modules that have hooks: whatever a cell does may come to them.
HOMES = frozenset(kind.module for kind in HOOK_KINDS.values())
