"""Functions of the notebook: by value, once per side, with the receiver's own namespace as their globals."""

import functools
import re
import sys
from collections.abc import Callable, Mapping
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from bulletin.cpython.referrers import module_of_globals
from bulletin.state import definition_ids, lookups
from bulletin.state.encoding import Encoding
from bulletin.state.hand_made_modules import is_hand_made
from bulletin.state.handles import Handle, parts
from bulletin.state.inplace import fill_dict, set_cell
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, NotHere, Reduced
from bulletin.state.missing_modules import require_there

#: name, qualified name, module, docstring, defaults, keyword defaults, annotations; settable one by one
_SLOTS = ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "__annotations__")


#: What was made after a library was imported and put into it, by its id: the other side does not have it.
MADE_LATER: dict[int, object] = {}


def is_importable(definition: Any) -> bool:
    """Tell whether the receiver finds this very function or class by its module and name."""
    module_name, name = getattr(definition, "__module__", None), getattr(definition, "__qualname__", None)
    if not isinstance(module_name, str) or not isinstance(name, str) or module_name in {"__main__", "__mp_main__"}:
        return False
    found: Any = sys.modules.get(module_name)
    if found is None:
        found = _part_of_package(module_name)
    elif is_hand_made(module_name):
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is definition and id(definition) not in MADE_LATER


class AskedOnce(dict[type, bool]):
    """Which classes `is_importable`, each as it was when it was first asked for: for one exchange."""

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = is_importable(kind)
        return found


def _part_of_package(name: str) -> Any:
    """Find a module that a package has as an attribute, and that nobody imported by its own name; None without one.

    Packages in C and Rust make their modules so. To import one by its name finds the same definitions.
    """
    top, *parts = name.split(".")
    found: Any = sys.modules.get(top) if parts else None
    for part in parts:
        found = getattr(found, part, None)
    return found if isinstance(found, ModuleType) else None


def reduce_function(encoder: Encoding, function: FunctionType) -> Reduced:
    """Reduce a function to its name where it can be imported, else to code, state and cells.

    Where the definition is not part of this stream its id is enough.
    """
    if is_importable(function):
        require_there(function.__module__, f"function of {function.__module__}")
        encoder.homes.add(function.__module__)
        return NotImplemented
    uid = meet(encoder, function)
    if is_reference(encoder, uid):
        return known, (RECEIVER, uid)
    note_look_ups(encoder, function)
    cells = function.__closure__ or ()
    contents = [(cell, _content(cell)) for cell in cells]
    slots = [getattr(function, slot) for slot in _SLOTS]
    state = (RECEIVER, function.__code__, slots, dict(function.__dict__), contents)
    return (
        make_function,
        (RECEIVER, uid, function.__code__, _globals_of(encoder, function), cells),
        state,
        None,
        None,
        fill_function,
    )


def meet(encoder: Encoding, definition: Any) -> str:
    """Note that a function or class is reached, and return its id.

    Its own name comes along, if the namespace has it, for code that looks it up.
    """
    uid = definition_ids.uid_of(definition)
    encoder.definitions[uid] = definition
    name = getattr(definition, "__name__", None)
    if isinstance(name, str) and encoder.namespace.get(name) is definition:
        encoder.names[name] = None
    return uid


def is_reference(encoder: Encoding, uid: str) -> bool:
    """Tell whether the id of a function or class is written alone, without its definition."""
    return uid not in encoder.inline


def known(_: LoadTransaction, uid: str) -> object:
    """Return the receiving side's own function or class of that id. Raises NotHere if it is gone."""
    found = definition_ids.find(uid)
    if found is None:
        raise NotHere("it uses a function or class of the notebook that is gone")
    return found


def note_look_ups(encoder: Encoding, function: FunctionType) -> None:
    """Tell the encoder which names of the namespace the function may look up, and where its source is."""
    encoder.files[function.__code__.co_filename] = None
    encoder.imports.update(dict.fromkeys(lookups.imports(function.__code__)))
    encoder.attributes |= lookups.attributes(function.__code__)
    if function.__globals__ is encoder.namespace:
        found = lookups.of_code(function.__code__)
        encoder.is_dynamic |= found.is_dynamic
        for name in found.names:
            if name in encoder.namespace:
                encoder.names[name] = None


def _globals_of(encoder: Encoding, function: FunctionType) -> Any:
    """Choose what stands for a function's globals in the stream.

    That is the namespace, which each side has; the name of a module; a module that has none; or a dict of its own.
    """
    spoken = function.__globals__
    if spoken is encoder.namespace:
        return spoken
    name = spoken.get("__name__")
    if isinstance(name, str) and getattr(sys.modules.get(name), "__dict__", None) is spoken and not is_hand_made(name):
        return name
    return spoken if "__spec__" not in spoken else module_of_globals(spoken) or spoken


def _content(cell: CellType) -> tuple[object, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def make_function(
    transaction: LoadTransaction, uid: str, code: CodeType, spoken: Any, cells: tuple[CellType, ...]
) -> object:
    """Return the receiving side's function of that id; make one, still without its state, where there is none.

    `spoken` is what `_globals_of` has chosen.
    """
    found = definition_ids.find(uid)
    if found is not None:
        if id(found) not in transaction.fresh:
            transaction.old.add(id(found))
        return found
    if isinstance(spoken, str):
        __import__(spoken)
        spoken = sys.modules[spoken].__dict__
    elif isinstance(spoken, ModuleType):
        spoken = vars(spoken)
    function = FunctionType(code, spoken, closure=cells or None)
    definition_ids.track(uid, function)
    transaction.made(function)
    return function


def fill_function(
    function: FunctionType, state: tuple[LoadTransaction, CodeType, list[Any], dict[str, Any], list[Any]]
) -> None:
    """Give a function its state: now if it is new, at the end of the transaction if this side had it."""
    transaction, code, slots, attributes, contents = state
    for cell, content in contents:
        set_cell(transaction, cell, content)
    if id(function) not in transaction.old:
        _set_state(function, code, slots, attributes)
        return
    before = ([getattr(function, slot) for slot in _SLOTS], dict(function.__dict__), function.__code__)
    transaction.later(
        lambda: _set_state(function, code, slots, attributes),
        lambda: _set_state(function, before[2], before[0], before[1]),
    )


def _set_state(function: FunctionType, code: CodeType, slots: list[Any], attributes: Mapping[str, Any]) -> None:
    if function.__code__ != code:
        function.__code__ = code
    for slot, value in zip(_SLOTS, slots, strict=True):
        setattr(function, slot, value)
    function.__dict__.clear()
    function.__dict__.update(attributes)


def reduce_cell(_: Encoding, cell: CellType) -> Reduced:
    """Reduce a closure's variable to an empty cell, and what is put into it then.

    So the cell exists before what it holds, which may be a function that has this cell.
    """
    return make_cell, (RECEIVER,), (RECEIVER, _content(cell)), None, None, fill_cell


def make_cell(transaction: LoadTransaction) -> CellType:
    """Return the existing cell, or make one."""
    cell: CellType | None = transaction.take_existing()
    return CellType() if cell is None else cell


def fill_cell(cell: CellType, state: tuple[LoadTransaction, tuple[object, ...]]) -> None:
    """Put a value into a cell, or none."""
    set_cell(state[0], cell, state[1])


def reduce_code(encoder: Encoding, code: CodeType) -> Reduced:
    """Reduce code to its place in memory where a stream is made for its digest alone; code never changes.

    Otherwise it is left to cloudpickle, which knows how to write it.
    """
    if not encoder.is_digest:
        return NotImplemented
    encoder.codes.append(code)
    return int, (id(code),)


_Cached = type(functools.lru_cache(lambda: None))


def reduce_cached(encoder: Encoding, cached: Any) -> Reduced:
    """Reduce a function behind `lru_cache` to the function and the settings. Each side keeps its own cache."""
    if is_importable(cached):
        return NotImplemented
    uid = meet(encoder, cached)
    if is_reference(encoder, uid):
        return known, (RECEIVER, uid)
    behind = cached.__wrapped__
    skeleton: Any = (behind,)
    if type(behind) is FunctionType and not is_importable(behind):
        # The function may know its cache through a closure, so the cache is made around a function that is still empty.
        inner, cells = definition_ids.uid_of(behind), behind.__closure__ or ()
        skeleton = (inner, behind.__code__, _globals_of(encoder, behind), cells)
    settings = cached.cache_parameters()
    state = (RECEIVER, behind, {key: value for key, value in vars(cached).items() if key != "__wrapped__"})
    return (
        make_cached,
        (RECEIVER, uid, settings["maxsize"], settings["typed"], skeleton),
        state,
        None,
        None,
        fill_cached,
    )


def make_cached(
    transaction: LoadTransaction, uid: str, maxsize: int | None, typed: Any, skeleton: tuple[Any, ...]
) -> object:
    """Return the receiving side's own cache of that id, or make an empty one."""
    found = definition_ids.find(uid)
    if found is not None:
        transaction.old.add(id(found))
        return found
    behind: Any = make_function(transaction, *skeleton) if len(skeleton) > 1 else skeleton[0]
    cached = functools.lru_cache(maxsize, bool(typed))(behind)
    definition_ids.track(uid, cached)
    transaction.made(cached)
    return cached


def fill_cached(cached: Any, state: tuple[LoadTransaction, Any, dict[str, Any]]) -> None:
    """Set what `functools.wraps` and the user have put on the cache."""
    transaction, behind, attributes = state
    if id(cached) not in transaction.old:
        vars(cached).update(attributes, __wrapped__=behind)
        return
    before = dict(vars(cached))
    now = {**attributes, "__wrapped__": before.get("__wrapped__", behind)}
    transaction.later(lambda: fill_dict(vars(cached), now), lambda: fill_dict(vars(cached), before))


def reduce_method(_: Encoding, method: Any) -> Reduced:
    """Reduce a method in Python to its function and its object, and one of C code to its object and its name.

    The object is not asked for the former: it may be a class that is not filled yet.
    """
    if type(method) is MethodType:
        if method.__self__ is sys.stdout or method.__self__ is sys.stderr:  # each side has its own kind of stream
            return find_method, (method.__self__, method.__name__)
        return make_method, (method.__func__, method.__self__)
    reduced = method.__reduce_ex__(5)
    return (find_method, reduced[1]) if isinstance(reduced, tuple) and reduced[0] is getattr else NotImplemented


def make_method(function: Any, owner: Any) -> Any:
    """Return the method of an object; a handle where that, or the function behind it, could not come."""
    if type(function) is Handle:
        return function
    if type(owner) is Handle:
        return find_method(owner, getattr(function, "__name__", "?"))
    return MethodType(function, owner)


def find_method(owner: Any, name: str) -> Any:
    """Return the method of that name; of an object that could not come, a handle, as it has none to be asked for."""
    if type(owner) is not Handle:
        return getattr(owner, name)
    _, path, where = parts(owner)
    return Handle("method", f"{path}.{name}", where)


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    FunctionType: reduce_function,
    BuiltinMethodType: reduce_method,
    type(re.compile("").match): reduce_method,  # of C code that is given the class as well: `builtin_method`
    MethodType: reduce_method,
    CellType: reduce_cell,
    CodeType: reduce_code,
    _Cached: reduce_cached,
}
