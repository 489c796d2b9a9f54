"""Context variables: each side has its own, by name or by its counterpart; the value that cells see goes with it.

So it is with the tokens that set them back, and with contexts, of which what each process keeps there itself stays.
"""

import contextlib
import contextvars
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import Context, ContextVar, Token
from functools import partial
from itertools import islice
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import attributes_of
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, Unpicklable

from .named import find_by_name

#: Whose variables say what this process does, and nothing of the notebook's. Those of Python have their own settings.
_OF_PROCESS = sys.stdlib_module_names | frozenset({
    "__main__", "__mp_main__", "IPython", "bulletin", "bulletin_lab", "bulletin_magic", "gpu_worker", "ipykernel",
    "jupyter_client", "jupyter_core", "tornado", "zmq",
})  # fmt: skip


class VariablePlace(NamedTuple):
    """Where a variable is found: an attribute of a module, or with `key` an entry of the dict that this is."""

    module: str
    attribute: str
    key: tuple[Any, ...] = ()


#: Of each variable that was looked for, its place, or None; this keeps it, and so its id is its own.
_places: dict[ContextVar[Any], VariablePlace | None] = {}
#: Python's own, that of executors (`gpu_worker.executor.cell_owners`) and those of ipykernel, which are in no library.
#: To look for one copies much of a fork's memory, and takes longer than most first cells.
_NOWHERE = frozenset({"decimal_context", "bulletin_cell", "parent_header", "shell_parent", "shell_parent_ident"})
#: Those of libraries that have got another value in this session (`bulletin.state.context_values`).
OF_SESSION: set[ContextVar[Any]] = set()
#: Those that had a value when the session began: where they are under no name, another session has left them.
OF_OTHERS: set[ContextVar[Any]] = set()
#: Those that have travelled in a context: here they may be under no name.
TRAVELLED: set[ContextVar[Any]] = set()
#: What settings carry (`bulletin.state.library_settings`), by modules that other versions of the library do not have.
_OF_SETTINGS = (("numpy._core.printoptions", "format_options"), ("numpy._core.umath", "_extobj_contextvar"))


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
    value = as_value(contextvars.copy_context(), variable)
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


def as_value(held: Mapping[ContextVar[Any], Any], variable: ContextVar[Any]) -> tuple[Any, ...]:
    """Return the value of a variable in a context, and nothing where it has none."""
    return (held[variable],) if variable in held else ()


def set_to(variable: ContextVar[Any], value: tuple[Any, ...]) -> None:
    """Give a variable this value where cells run, or none, where this side has given it its first one.

    Else one that is to have none gets its default, if there is one; nobody can do more.
    """
    first = _first_set.pop(variable, None)
    if not value and first is not None and not is_used(first):
        with contextlib.suppress(ValueError):  # that was in another context
            variable.reset(first)
    elif first is not None:
        _first_set[variable] = first
    value = value or (_default(variable) if variable in contextvars.copy_context() else ())
    if value and as_value(contextvars.copy_context(), variable) != value:
        token = variable.set(value[0])
        if token.old_value is Token.MISSING:
            _first_set[variable] = token


#: Of variables that got their first value here, what takes it away again: from the other side, or by people's code.
_first_set: dict[ContextVar[Any], Token[Any]] = {}


def fill_variable(variable: Any, state: tuple[LoadTransaction, tuple[Any, ...]]) -> None:
    """Give a variable this value where cells run; one without a value goes back to having none, if that can be."""
    transaction, wanted = state
    if type(variable) is not ContextVar:  # another version of the library has something else there
        return
    before = as_value(contextvars.copy_context(), variable)
    if [*map(id, before)] != [*map(id, wanted)]:
        transaction.undoable(set_to, variable, before)
        set_to(variable, wanted)


def is_used(token: Token[Any]) -> bool:
    """Tell whether somebody has reset a variable by this: its text alone says so."""
    return repr(token).startswith("<Token used ")


def reduce_token(_: Encoding, token: Token[Any]) -> Reduced:
    """Reduce what sets a variable back to the variable, what it had before, and whether that has been done."""
    _note_first(token)
    old = () if token.old_value is Token.MISSING else (token.old_value,)
    value = as_value(contextvars.copy_context(), token.var)
    return make_token, (RECEIVER, token.var, old, value, is_used(token))


def make_token(
    transaction: LoadTransaction,
    variable: ContextVar[Any],
    old: tuple[Any, ...],
    value: tuple[Any, ...],
    is_spent: bool,
) -> Token[Any]:
    """Return the existing token, to be used up if it is so there, or make one that sets the variable back to `old`.

    The variable keeps its value. One that cannot have been without a value here cannot be set back to that.
    """
    token = transaction.take_existing()
    if type(token) is Token and token.var is variable and (is_spent or not is_used(token)):
        _note_first(token)
        if is_spent and not is_used(token):
            transaction.at_end(partial(_use_up, token, value))  # nobody can take it back
        return token
    made = None if is_spent or not value else _token_of_this_context(transaction, variable, old, value)
    if made is None:
        elsewhere = contextvars.Context()
        if old:
            elsewhere.run(variable.set, old[0])
        made = elsewhere.run(variable.set, None)
        if is_spent:
            elsewhere.run(variable.reset, made)
    else:
        _note_first(made)
    if token is not None:
        transaction.replaced.append((token, made))
    return made


def _token_of_this_context(
    transaction: LoadTransaction, variable: ContextVar[Any], old: tuple[Any, ...], value: tuple[Any, ...]
) -> Token[Any] | None:
    transaction.undoable(set_to, variable, as_value(contextvars.copy_context(), variable))
    set_to(variable, old)
    is_as_old = [*map(id, as_value(contextvars.copy_context(), variable))] == [*map(id, old)]
    made = variable.set(value[0])
    return made if is_as_old else None


def _note_first(token: Token[Any]) -> None:
    """Note what takes a variable its first value: where the other side has none, it has been used there."""
    if token.old_value is Token.MISSING and not is_used(token):
        _first_set[token.var] = token


def _use_up(token: Token[Any], value: tuple[Any, ...]) -> None:
    with contextlib.suppress(ValueError, RuntimeError):  # it is of another context
        token.var.reset(token)
        set_to(token.var, value)


def reduce_context(encoder: Encoding, context: Context) -> Reduced:
    """Reduce a context to what the notebook's variables, and those of libraries, are in it.

    Raises Unpicklable where a variable has a value that nobody finds: on the other side it would be another one.
    """
    own = encoder.own_variables
    if own is None:
        own = encoder.own_variables = _own_variables(encoder.namespace)
    held = [(key, value) for key, value in context.items() if key in own or not _is_of_process(key, value)]
    for variable, _ in held:
        if variable not in own and variable not in TRAVELLED and place_of(variable) is None:
            raise Unpicklable(
                "nobody finds the variable on the other side",
                f"context with a value of {variable.name!r}, a variable that is under no name",
            )
    TRAVELLED.update(key for key, _ in held)
    names = tuple(key.name for key, _ in held)
    return make_context, (RECEIVER, names), (RECEIVER, [key for key, _ in held], held), None, None, fill_context


def make_context(transaction: LoadTransaction, names: Collection[str]) -> Context:
    """Return the existing context, or make one with what this process itself has in its own.

    Nobody can take a variable out of a context: where one is there that is not among `names`, another takes its place.
    """
    old = transaction.take_existing()
    if type(old) is Context and all(variable.name in names for variable in _travelled_in(old)):
        return old
    made = _fresh_context()
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def _fresh_context() -> Context:
    made = Context()
    for variable, value in contextvars.copy_context().items():
        if _is_of_process(variable, value) and not _is_left_over(variable):
            made.run(variable.set, value)
    return made


def fill_context(context: Context, state: tuple[LoadTransaction, list[Any], list[tuple[ContextVar[Any], Any]]]) -> None:
    """Give variables their values in a context. Raises ValueError where another one of the same name had one."""
    transaction, variables, held = state
    TRAVELLED.update(variables)
    for other in _travelled_in(context) - set(variables):
        raise ValueError(f"a context has another variable of the name {other.name!r}, which nobody can take out of it")
    for variable, value in held:
        if as_value(context, variable) != (value,) or context[variable] is not value:
            transaction.undoable(context.run, variable.reset, context.run(variable.set, value))


def _travelled_in(context: Context) -> set[ContextVar[Any]]:
    return {variable for variable in context if variable in TRAVELLED}


def _is_of_process(variable: ContextVar[Any], value: object) -> bool:
    """Tell whether a variable says what this process does, or has in a context what it has outside of it."""
    if variable in OF_SESSION or variable in TRAVELLED:
        return False
    if variable.name in _NOWHERE or is_setting(variable) or _is_of_python(variable):
        return True
    if place_of(variable) is None:
        return _is_left_over(variable)
    return contextvars.copy_context().get(variable, Token.MISSING) is value


def _is_left_over(variable: ContextVar[Any]) -> bool:
    return variable in OF_OTHERS and place_of(variable) is None and variable.name not in _NOWHERE


def _is_of_python(variable: ContextVar[Any]) -> bool:
    if variable not in _of_python:
        tops = _OF_PROCESS - {"__main__", "__mp_main__"}
        modules = [held for name, held in list(sys.modules.items()) if name.partition(".")[0] in tops]
        parts = (dict(vars(held)).values() for held in modules if isinstance(held, ModuleType))
        _of_python[variable] = any(id(variable) in map(id, held) for held in parts)
    return _of_python[variable]


#: Of each variable that was looked for, whether a module of the process has it.
_of_python: dict[ContextVar[Any], bool] = {}


def _own_variables(namespace: Mapping[str, Any]) -> frozenset[ContextVar[Any]]:
    """Find the variables of the notebook: those that it has under a name, or in a container, class or instance."""
    found = set()
    for value in list(namespace.values()):
        kind = type(value)
        parts: Any = value if kind in (list, tuple) else ()
        if kind is dict:
            parts = value.values()
        elif not issubclass(kind, ModuleType | FunctionType):
            held = getattr(value, "__dict__", None) if issubclass(kind, type) else attributes_of(value)
            parts = held.values() if held else parts
        found |= {part for part in (value, *islice(parts, _MOST_PARTS)) if type(part) is ContextVar}
    return frozenset(found)


#: A container of more has no variables that are looked for.
_MOST_PARTS = 200

EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    Context: reduce_context,
    ContextVar: reduce_variable,
    Token: reduce_token,
}
