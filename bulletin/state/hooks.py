"""What Python and IPython call that a notebook may give them: handlers of signals, hooks for errors, magics, printers.

They are places like those in libraries: each kind is a dict, which is read anew each time, of a module that has it.
"""

import builtins
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple, Self

from bulletin.cpython.raw_memory import addresses_in

from .entry_owners import is_own_entry
from .library_places import LibraryPlace
from .setting_kind import shell_of_cells


class HookKind(NamedTuple):
    """One kind: the module that has it, what is there now by key, whosever it is, and how one is set or taken out."""

    module: str
    #: The dicts that `read` goes through: it finds the same again as long as they hold the very same.
    dicts: Callable[[], Sequence[Mapping[Any, Any]]]
    read: Callable[[], dict[Any, Any]]
    write: Callable[[Any, Any], None]


def is_hook(place: LibraryPlace) -> bool:
    """Tell whether a place is one of a hook."""
    kind = HOOK_KINDS.get(place.attribute)
    return kind is not None and kind.module == place.module  # a library may have `printers` of its own


def label(place: LibraryPlace) -> str:
    """Name what is at a place, a hook or not, for people: `sys.excepthook`, "magics", `library.Class.method`."""
    if not is_hook(place):
        return ".".join(filter(None, (place.module, place.owner, place.attribute)))
    return place.key[0] if isinstance(place.key[0], str) else place.attribute


def find_hook(place: LibraryPlace) -> Any:
    """Return what is called there now, the notebook's own or not; None if nothing is."""
    return HOOK_KINDS[place.attribute].read().get(place.key[0])


def observe() -> list[tuple[LibraryPlace, Any]]:
    """List the notebook's own that are in this process, with their places; note what else is there."""
    found: list[tuple[LibraryPlace, Any]] = []
    for name, kind in HOOK_KINDS.items():
        now = _Entries.of(kind.dicts())
        if now.are_as(_foreign.get(name)):
            continue
        hooks, others, count = kind.read(), _others[name], len(found)
        for key in others.keys() - hooks.keys():
            del others[key]
        for key, hook in hooks.items():
            if others.get(key) is hook:
                continue
            if _is_notebooks(hook):
                found.append((LibraryPlace(kind.module, "", name, (key,)), hook))
            else:
                others[key] = hook
        _foreign[name] = now if len(found) == count else None
    return found


class _Entries(NamedTuple):
    """The entries of some dicts, hundreds that each cell asks for: all are compared at once, by their addresses."""

    lengths: list[int]
    #: Keys and values, which live as long as this does, so that an address is always of the same one.
    parts: tuple[Any, ...]
    addresses: bytes

    @classmethod
    def of(cls, dicts: Sequence[Mapping[Any, Any]]) -> Self:
        """Note what these hold now."""
        parts: list[Any] = []
        for held in dicts:
            parts += held
            parts += held.values()
        whole = tuple(parts)
        return cls(list(map(len, dicts)), whole, addresses_in(whole).tobytes())

    def are_as(self, seen: "_Entries | None") -> bool:
        """Tell whether these are the very same keys and values."""
        return seen is not None and self.addresses == seen.addresses and self.lengths == seen.lengths


def set_hook(place: LibraryPlace, hook: Any) -> None:
    """Have this called from now on; with None, what was called on this side before the notebook gave its own."""
    (key,), others, now = place.key, _others[place.attribute], find_hook(place)
    if now is not None and not _is_notebooks(now):
        others[key] = now
    _foreign[place.attribute] = None
    HOOK_KINDS[place.attribute].write(key, others.get(key) if hook is None else hook)


def _is_notebooks(hook: Any) -> bool:
    return hook is signal.SIG_IGN or is_own_entry(hook)  # Python itself ignores none of these signals


def _handlers() -> dict[signal.Signals, Any]:
    return {number: signal.getsignal(number) for number in _TIMERS}


def _read_handlers() -> dict[int, Any]:
    found = _handlers().items()
    return {int(number): handler for number, handler in found if callable(handler) or handler is signal.SIG_IGN}


def _write_handler(number: int, handler: Any) -> None:
    if number not in _TIMERS or threading.current_thread() is not threading.main_thread():  # no other thread may
        return
    timer = _TIMERS[signal.Signals(number)]
    if handler is None and timer is not None:  # one that a cell has set on this side would end the process
        signal.setitimer(timer, 0)
    signal.signal(number, signal.SIG_DFL if handler is None else handler)


#: Signals that neither a kernel nor an executor needs for itself, each with the timer that sends it.
_TIMERS = {
    signal.SIGALRM: signal.ITIMER_REAL,
    signal.SIGVTALRM: signal.ITIMER_VIRTUAL,
    signal.SIGPROF: signal.ITIMER_PROF,
    signal.SIGUSR1: None,
    signal.SIGUSR2: None,
}


def _read_functions() -> dict[str, Any]:
    return {name: getattr(module, attribute) for name, (module, attribute) in _FUNCTION_PLACES.items()}


def _write_function(name: str, hook: Any) -> None:
    if name in _FUNCTIONS:
        setattr(*_FUNCTION_PLACES[name], hook)


#: Each as Python has it.
_FUNCTIONS: dict[str, Any] = {
    "sys.excepthook": sys.__excepthook__,
    "sys.unraisablehook": sys.__unraisablehook__,
    "threading.excepthook": threading.__excepthook__,
    "warnings.showwarning": warnings._showwarning_orig,  # type: ignore[attr-defined]
}
_FUNCTION_PLACES = {name: (sys.modules[name.partition(".")[0]], name.partition(".")[2]) for name in _FUNCTIONS}


def _read_built_ins() -> dict[str, Any]:
    return {name: value for name, value in vars(builtins).items() if isinstance(value, _DEFINITIONS)}


def _write_built_in(name: str, value: Any) -> None:
    _put(vars(builtins), name, value)


_DEFINITIONS = (FunctionType, BuiltinFunctionType, type)


def _magics() -> dict[str, dict[str, Any]]:
    manager = getattr(shell_of_cells(), "magics_manager", None)
    return getattr(manager, "magics", {})


def _read_magics() -> dict[tuple[str, str], Any]:
    return {(kind, name): magic for kind, by_name in _magics().items() for name, magic in by_name.items()}


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
    "handlers of signals": HookKind("signal", lambda: [_handlers()], _read_handlers, _write_handler),
    "functions for errors": HookKind("sys", lambda: [_read_functions()], _read_functions, _write_function),
    "built-ins": HookKind("builtins", lambda: [vars(builtins)], _read_built_ins, _write_built_in),
    "magics": HookKind("IPython", lambda: list(_magics().values()), _read_magics, _write_magic),
    "printers": HookKind("IPython", lambda: list(_printers().values()), _read_printers, _write_printer),
}
#: What was last there that was not the notebook's, by kind and key.
_others: dict[str, dict[Any, Any]] = {name: {} for name in HOOK_KINDS}
_others["functions for errors"].update(_FUNCTIONS)
#: By kind, what its dicts held when none of it was the notebook's.
_foreign: dict[str, _Entries | None] = {}
#: The modules that have hooks: whatever a cell does may come to them.
HOMES = frozenset(kind.module for kind in HOOK_KINDS.values())

observe()  # before a cell of this notebook runs, what is there is seldom its own
