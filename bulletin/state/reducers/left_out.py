"""What the own way of a library's class leaves out, and the program relies on: who observes, and who shares its parts.

Pickle makes a copy in another program, where nobody waits for the observers of the first. Here it is the same object.
"""

import functools
import re
import threading
import weakref
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from bulletin.state.atoms import ATOMS
from bulletin.state.encoding import Encoding
from bulletin.state.half_read import Lengths, give_state, leads_to, lengths_in, set_state
from bulletin.state.inplace import is_all_attributes, slots_held
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, Unpicklable

from . import containers
from .containers import instance_dict

#: Of each class, who says how its instances travel, where that is a method in Python and all they are can be seen.
_says_how: dict[type, tuple[bool, type | None]] = {}
_CALLED = (FunctionType, MethodType, BuiltinMethodType, functools.partial, weakref.WeakMethod)
_CONTAINERS = (dict, list, tuple, set, frozenset)
_MAX_DEPTH, _MAX_PARTS = 4, 200
_HIGHEST_KEY = 1 << 20


def _how(kind: type) -> tuple[bool, type | None]:
    """Tell whether a class has a `__getstate__` in Python, and which base has a `__reduce__` in Python."""
    found = _says_how.get(kind)
    if found is None:
        bases = [base for base in kind.__mro__ if isinstance(vars(base).get("__reduce__"), FunctionType)]
        has_state = isinstance(getattr(kind, "__getstate__", None), FunctionType)
        is_seen = (has_state or bool(bases)) and is_all_attributes(kind)
        found = _says_how[kind] = has_state and is_seen, bases[0] if bases and is_seen else None
    return found


def shares_parts(value: Any) -> bool:
    """Tell whether an instance knows one of its kind that shares parts with it, which its `__reduce__` would copy."""
    base = _how(type(value))[1]
    if base is None:
        return False
    held = _parts(value)
    others = [part() if isinstance(part, weakref.ref) else part for part in held]
    others = [part for part in others if part is not value and issubclass(type(part), base)]
    own = {id(part) for part in held if type(part) in _CONTAINERS}
    return any(id(part) in own for other in others for part in _parts(other))


def is_made_anew(encoder: Encoding, value: Any) -> bool:
    """Tell whether an instance makes itself anew of its state (`self.__init__(...)`), and could keep all that it has.

    So it would have copies of its parts, which others hold too, as columns of astropy's tables are held. One with slots
    is none: what it has it takes from its state, as sqlalchemy's views of columns do, whose parts are made anew, too.
    """
    setstate = getattr(type(value), "__setstate__", None)
    return (
        isinstance(setstate, FunctionType)
        and "__init__" in setstate.__code__.co_names
        and not slots_held(value)
        and _how(type(value))[0]
        and encoder.try_to_send(value, _parts(value))
    )


def _parts(value: Any) -> list[Any]:
    return [*(instance_dict(value) or {}).values(), *(part for _, part in slots_held(value))]


def with_observers(encoder: Encoding, value: Any, reduced: Reduced) -> Reduced:
    """Add to what a class says of an instance the functions that it leaves out of its state, and what is the thread's.

    A function that cannot travel is a handle there, which says so when it is called.
    """
    if not isinstance(reduced, tuple) or len(reduced) > 5 or reduced[2:3] == ():
        return reduced
    if not _how(type(value))[0]:
        return _with_own_state(encoder, value, reduced)
    state, attributes = reduced[2], instance_dict(value)
    if attributes is None and type(state) is dict:
        return _with_slots(encoder, value, reduced)
    if type(state) is not dict or not attributes:
        return _with_own_state(encoder, value, reduced)
    if type(formula := attributes.get("formula")) is str:
        note_formula(encoder, formula)
    left = {
        name: held
        for name, held in attributes.items()
        if state.get(name) is not held
        and ((type(held) in _CONTAINERS and held and _are_called(held)) or _is_of_thread(encoder, value, held))
    }
    if not left:
        return _with_own_state(encoder, value, reduced)
    told = RECEIVER, state, left, _lengths_for(encoder, value, state)
    return (*reduced[:2], told, *(*reduced[3:], None, None)[:2], fill_observed)


def _is_of_thread(encoder: Encoding, value: Any, held: Any) -> bool:
    """Tell whether this is what each thread has its own of, and the one that runs the cells has something there."""
    return type(held) is threading.local and bool(vars(held)) and encoder.try_to_send(value, dict(vars(held)))


def _with_own_state(encoder: Encoding, value: Any, reduced: Any) -> Reduced:
    """Have it noted, where a `__setstate__` in Python gets a state with something in it, what of that is not whole."""
    state = reduced[2]
    held = state.values() if type(state) is dict else state if type(state) in (list, tuple) else ()
    if not sets_own_state(type(value)) or all(type(part) in ATOMS for part in held):
        return reduced
    if type(state) is dict and state is instance_dict(value):
        state = dict(state)  # or the stream would seem to share it with somebody
    lengths = lengths_in(encoder, state)
    if not any(lengths):
        return reduced
    return (*reduced[:2], (RECEIVER, state, lengths), *(*reduced[3:], None, None)[:2], set_state)


def _lengths_for(encoder: Encoding, value: Any, state: Any) -> Lengths:
    """Say how long what is in a state is, where the class has code of its own that could look."""
    return lengths_in(encoder, state) if sets_own_state(type(value)) else ((), ())


def reduce_setting(encoder: Encoding, value: Any) -> Reduced:
    """Reduce an instance as pickle does, whose class has nothing of its own but a `__setstate__`."""
    if id(value) in encoder.dict_sharers:
        return containers.reduce_dict_sharer(value)
    reduced = value.__reduce_ex__(5)
    return reduced if len(reduced) < 3 or reduced[2] is None else _with_own_state(encoder, value, reduced)


def sets_own_state(kind: type) -> bool:
    """Tell whether a class has a `__setstate__` in Python."""
    return isinstance(getattr(kind, "__setstate__", None), FunctionType)


def holds_itself(encoder: Encoding, value: Any, reduced: Reduced) -> bool:
    """Tell whether a `__reduce__` in Python hands out a container of the value's that leads back to the value.

    Who is made of it would be made while it is empty. Raises Unpicklable if it could not be made in any other way.
    """
    if _how(type(value))[1] is None or not isinstance(reduced, tuple) or not reduced[1]:
        return False
    handed = [part for part in reduced[1] if isinstance(part, _CONTAINERS) and part]
    own = _parts(value) if handed else []
    handed = [part for part in handed if any(held is part for held in own) and leads_to(part, value)]
    if handed and not encoder.try_to_send(value, own):
        raise Unpicklable(f"its __reduce__ hands out a {type(handed[0]).__name__} that leads back to it")
    return bool(handed)


def _with_slots(encoder: Encoding, value: Any, reduced: Any) -> Reduced:
    """Add the slots that an instance leaves out of its state, if all of them can travel; who asks for one needs it.

    A number may be one of this process: a hash.
    """
    state = reduced[2]
    left = {name: held for name, held in slots_held(value) if held is not state and type(held) not in ATOMS}
    if not left or not encoder.try_to_send(value, left):
        return _with_own_state(encoder, value, reduced)
    told = RECEIVER, state, left, _lengths_for(encoder, value, state)
    return (*reduced[:2], told, *(*reduced[3:], None, None)[:2], fill_slots)


def note_formula(encoder: Encoding, formula: str) -> None:
    """Note the functions of the notebook that a text calls, which is evaluated where the value loads (statsmodels)."""
    for name in _WORD.findall(formula):
        if isinstance(encoder.namespace.get(name), FunctionType):
            encoder.names[name] = None


_WORD = re.compile(r"\b[^\W\d]\w*\b")


def says_state(kind: type) -> bool:
    """Tell whether a class has a `__getstate__` in Python, and its instances hold nothing else but attributes."""
    return _how(kind)[0]


def reduce_bare(encoder: Encoding, value: Any) -> Reduced:
    """Reduce an instance that is made without its class being asked, with the functions that its state leaves out."""
    return with_observers(encoder, value, containers.reduce_bare(encoder, value))


def _are_called(value: Any, depth: int = 0) -> bool:
    """Tell whether a container holds functions, and nothing else but names for them."""
    if len(value) > _MAX_PARTS or depth > _MAX_DEPTH:
        return False
    parts = list(value.values()) if isinstance(value, dict) else list(value)
    if isinstance(value, dict) and any(type(key) is int and key > _HIGHEST_KEY for key in value):
        return False  # a number like these is that of an object in this process
    kinds = [type(part) for part in parts]
    if not all(kind in ATOMS or issubclass(kind, _CONTAINERS) or _is_called(kind) for kind in kinds):
        return False
    inside = [part for part in parts if isinstance(part, _CONTAINERS) and part]
    return all(_are_called(part, depth + 1) for part in inside) and (bool(inside) or any(map(_is_called, kinds)))


def _is_called(kind: type) -> bool:
    return issubclass(kind, _CALLED) or any(
        isinstance(vars(base).get("__call__"), FunctionType) for base in kind.__mro__
    )


def fill_slots(value: Any, state: tuple[LoadTransaction, dict[str, Any], dict[str, Any], Lengths]) -> None:
    """Give an instance its state by its own way, and then those slots that have nothing."""
    transaction, own, left, lengths = state

    def fill() -> None:
        held = dict(slots_held(value))
        for name in left.keys() - held.keys():
            object.__setattr__(value, name, left[name])

    give_state(transaction, value, own, lengths, fill)


def fill_observed(value: Any, state: tuple[LoadTransaction, dict[str, Any], dict[str, Any], Lengths]) -> None:
    """Give an instance its state by its own way, and then what that leaves out."""
    transaction, own, left, lengths = state
    if hasattr(value, "__setstate__"):
        give_state(transaction, value, own, lengths, lambda: object.__getattribute__(value, "__dict__").update(left))
    else:
        object.__getattribute__(value, "__dict__").update({**own, **left})
