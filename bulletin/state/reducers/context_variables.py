"""Context variables: each side has its own, by name or by its counterpart; the value that cells see goes with it."""

import contextvars
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any, NamedTuple

from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .named import find_by_name

#: Whose variables say what this process does, and nothing of the notebook's. Those of Python have their own settings.
_OF_PROCESS = sys.stdlib_module_names | frozenset({
    "__main__", "__mp_main__", "IPython", "bulletin", "bulletin_lab", "bulletin_magic", "gpu_worker", "ipykernel",
    "jupyter_client", "tornado", "zmq",
})  # fmt: skip


class VariablePlace(NamedTuple):
    """Where a variable is found: an attribute of a module, or with `key` an entry of the dict that this is."""

    module: str
    attribute: str
    key: tuple[Any, ...] = ()


#: Of each variable that was looked for, its place, or None; this keeps it, and so its id is its own.
_places: dict[ContextVar[Any], VariablePlace | None] = {}
#: Python's own, and that of executors (`gpu_worker.executor.cell_owners`), which are in no library. To look for one
#: copies much of a fork's memory, and takes longer than most first cells.
_NOWHERE = frozenset({"decimal_context", "bulletin_cell"})
#: What settings carry (`bulletin.state.library_settings`), by modules that other versions of the library do not have.
_OF_SETTINGS = (("numpy._core.printoptions", "format_options"),)


def is_setting(variable: ContextVar[Any]) -> bool:
    """Tell whether a variable has what a person has set of a library, and that travels as a setting."""
    return any(getattr(sys.modules.get(module), name, None) is variable for module, name in _OF_SETTINGS)


def place_of(variable: ContextVar[Any]) -> VariablePlace | None:
    """Find the module of a library that holds a variable, itself or in a dict; None if there is none."""
    if variable not in _places:
        _places[variable] = next(_look_for(variable), None) if variable.name not in _NOWHERE else None
    return _places[variable]


def _look_for(variable: ContextVar[Any]) -> Iterator[VariablePlace]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _OF_PROCESS or not isinstance(module, ModuleType):
            continue
        attributes = dict(vars(module))
        if id(variable) in map(id, attributes.values()):
            yield VariablePlace(name, next(key for key, held in attributes.items() if held is variable))
        for attribute, held in attributes.items():
            if type(held) is dict and attribute[:2] != "__" and id(variable) in map(id, list(held.values())):
                yield VariablePlace(name, attribute, (next(key for key, part in held.items() if part is variable),))


def reduce_variable(_: Encoding, variable: ContextVar[Any]) -> Reduced:
    """Reduce a variable to where it is found, or to its name and default; and the value that it has."""
    place = place_of(variable)
    value = (variable.get(),) if variable in contextvars.copy_context() else ()
    made: tuple[Any, ...]
    if place is None or place.key:
        made = make_variable, (RECEIVER, variable.name, _default(variable))
    else:
        made = find_variable, (RECEIVER, place.module, place.attribute)
    return *made, (RECEIVER, value), None, None, fill_variable


def _default(variable: ContextVar[Any]) -> tuple[Any, ...]:
    try:
        return (contextvars.Context().run(variable.get),)
    except LookupError:
        return ()


def find_variable(transaction: LoadTransaction, module: str, name: str) -> Any:
    """Return what this side's module holds under that name."""
    transaction.take_existing()
    return find_by_name(module, name)


def make_variable(transaction: LoadTransaction, name: str, default: tuple[Any, ...]) -> ContextVar[Any]:
    """Return the existing variable of that name, or make one; nobody can change the default of one."""
    old = transaction.take_existing()
    if type(old) is ContextVar and old.name == name:
        return old
    made: ContextVar[Any] = ContextVar(name, default=default[0]) if default else ContextVar(name)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def fill_variable(variable: Any, state: tuple[LoadTransaction, tuple[Any, ...]]) -> None:
    """Give a variable this value where cells run; one without a value goes back to its default, if it has one."""
    transaction, wanted = state
    if type(variable) is not ContextVar:  # another version of the library has something else there
        return
    before = (variable.get(),) if variable in contextvars.copy_context() else ()
    wanted = wanted or (_default(variable) if before else ())
    if wanted and not (before and before[0] is wanted[0]):
        if before or _default(variable):
            transaction.undoable(variable.set, (before or _default(variable))[0])
        variable.set(wanted[0])


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {ContextVar: reduce_variable}
