"""Instances of Python's own making: their items, attributes and slots, and nothing of the user's is asked."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from inspect import CO_VARARGS
from types import BuiltinFunctionType, FunctionType
from typing import Any

from bulletin.cpython.class_layout import is_python_all_through, is_python_class
from bulletin.cpython.pickle_memo import new_object
from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict, fill_list, fill_set, is_all_attributes, reused, slots_held, slots_of
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .functions import is_importable

_USUAL_REDUCE = tuple(kind.__reduce__ for kind in (object, set, OrderedDict, defaultdict, Counter))
#: What a class has for `__getstate__` that says nothing. No set: what pybind11 gives classes has no hash.
USUAL_STATE = (None, getattr(object, "__getstate__", None))
_NEW_ARGS = ("__getnewargs__", "__getnewargs_ex__")
#: Immutable kinds that a class may build upon; what such an instance is, is given to `__new__`.
_VALUES = (int, float, complex, str, bytes, tuple)


def is_user_container(kind: Any) -> bool:
    """Tell whether a type is a user's kind of list, dict or set, or has a `__new__` that must not be called.

    Those that say themselves how they travel are left to pickle.
    """
    return (
        is_python_class(kind)
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ in _USUAL_REDUCE
        and getattr(kind, "__getstate__", None) in USUAL_STATE
        and not any(hasattr(kind, name) for name in ("__setstate__", *_NEW_ARGS))
        and (issubclass(kind, list | dict | set) or (is_python_all_through(kind) and _is_made_bare(kind)))
    )


def _is_made_bare(kind: type) -> bool:
    """Tell whether pickle's `cls.__new__(cls)` would run code of the notebook, or code that asks for more."""
    new = kind.__new__
    if not isinstance(new, FunctionType):
        return False
    required = new.__code__.co_argcount - len(new.__defaults__ or ())
    named = new.__code__.co_kwonlyargcount - len(new.__kwdefaults__ or ())
    if required > 1 or named > 0 or not is_importable(kind):
        return True
    return bool(new.__code__.co_flags & CO_VARARGS) and not _can_be_made(kind)


def _can_be_made(kind: Any) -> bool:
    """Tell whether a class that takes any arguments is content with none, as pickle will ask it."""
    try:
        kind.__new__(kind)
    except Exception:  # noqa: BLE001  the library's own code
        return False
    return True


def is_user_value(kind: Any) -> bool:
    """Tell whether a type is a kind of int, str or tuple with a `__new__` written in Python.

    That may take something else than what the value is. Those that say themselves how they travel are left to pickle.
    """
    return (
        issubclass(kind, _VALUES)
        and isinstance(kind.__new__, FunctionType)
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and all(not isinstance(getattr(kind, name, None), FunctionType) for name in _NEW_ARGS)
    )


def is_bare(kind: Any) -> bool:
    """Tell whether a type has a `__new__` that must not be called, though it may say itself what its state is."""
    return (
        kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and not any(hasattr(kind, name) for name in _NEW_ARGS)
        and _is_made_bare(kind)
    )


def class_that_reduces(kind: Any) -> Any:
    """Find the class of a library that says how values of this class of the notebook travel: by a call of the class.

    The notebook's class may be called with something else than the library's. None where both are called alike, and
    where the user has said how the values travel.
    """
    if is_importable(kind):
        return None
    overrides = False
    for base in kind.__mro__:
        if "__reduce__" in vars(base) or "__reduce_ex__" in vars(base):
            return base if overrides and base is not object and is_importable(base) else None
        overrides = overrides or "__new__" in vars(base) or "__init__" in vars(base)
    return None


def base_new(kind: Any) -> Any:
    """Find the nearest `__new__` among the bases that is not written in Python."""
    found = (vars(base).get("__new__") for base in kind.__mro__)
    return next(new for new in found if isinstance(new, BuiltinFunctionType))


def reduce_user_container(encoder: Encoding, value: Any) -> Reduced:
    """Reduce an instance to its items, attributes and slots.

    No method of the user's is asked, and none fills the copy: an `append` of theirs would run a second time.
    """
    items: Any = None
    if isinstance(value, dict):
        items = list((OrderedDict if isinstance(value, OrderedDict) else dict).items(value))
    elif isinstance(value, list | set):
        base: Any = list if isinstance(value, list) else set
        items = list(base.__iter__(value))
    factory = value.default_factory if isinstance(value, defaultdict) else None
    attributes = instance_dict(value)
    shares_dict = id(value) in encoder.dict_sharers or (attributes is not None and type(attributes) is not dict)
    own = attributes if shares_dict or not attributes else dict(attributes)
    state = (RECEIVER, items, own, shares_dict, slots_held(value), factory)
    return make_instance, (RECEIVER, type(value), shares_dict), state, None, None, fill_user_container


def instance_dict(value: Any) -> dict[str, Any] | None:
    """Return an instance's `__dict__` as it is; None where it has none.

    It may be of any kind of dict, and be the instance itself.
    """
    try:
        found: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found


def make_instance(transaction: LoadTransaction, kind: Any, shares_dict: bool) -> Any:
    """Empty the existing object, or make a new one; neither `__new__` nor `__init__` of the user's runs.

    With `shares_dict` the own dict of the existing object is left as it is, for another is to take its place.
    """
    old = transaction.take_existing()
    if old is not None:
        found = reused(transaction, old, kind, has_dict=not shares_dict)
        if found is not None:
            return found
    made = base_new(kind)(kind)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def make_unfilled(transaction: LoadTransaction, kind: Any) -> Any:
    """Return the existing object as it is, or make one that nothing is in yet; no `__init__` of the user's runs."""
    old = transaction.take_existing()
    if type(old) is kind:
        return old
    made = kind.__new__(kind)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def fill_user_container(value: Any, state: tuple[LoadTransaction, Any, Any, bool, Any, Any]) -> None:
    """Give an instance its items, attributes and slots, and a `defaultdict` its factory."""
    transaction, items, attributes, shares_dict, slots, factory = state
    if isinstance(value, dict):
        fill_dict(value, items)
    elif isinstance(value, list):
        fill_list(value, items)
    elif isinstance(value, set):
        fill_set(value, items)
    if factory is not None:
        transaction.undoable(setattr, value, "default_factory", value.default_factory)
        value.default_factory = factory
    if shares_dict:
        fill_dict_sharer(value, (transaction, attributes, slots))
        return
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    _set_slots(value, slots)


def reduce_dict_sharer(value: Any) -> Reduced:
    """Reduce an instance of a plain class whose own dict somebody else holds too.

    The dict itself goes, not what is in it.
    """
    dict_holder = _find_dict_holder(value)
    if dict_holder is not None:
        return _reduce_sharing(value, *dict_holder)
    state = (RECEIVER, instance_dict(value), slots_held(value))
    return make_instance, (RECEIVER, type(value), True), state, None, None, fill_dict_sharer


def fill_dict_sharer(value: Any, state: tuple[LoadTransaction, Any, list[tuple[str, Any]]]) -> None:
    """Make this dict the instance's own, and set its slots."""
    transaction, attributes, slots = state
    before = instance_dict(value)
    if before is not attributes:
        transaction.undoable(object.__setattr__, value, "__dict__", before)
        object.__setattr__(value, "__dict__", attributes)
    _set_slots(value, slots)


def _set_slots(value: Any, slots: list[tuple[str, Any]]) -> None:
    for slot, held in slots:
        object.__setattr__(value, slot, held)


def _find_dict_holder(value: Any) -> tuple[type, str] | None:
    """Find the class of a library, and its attribute, that is the instance's own dict; None if there is none.

    All instances of such a class share their attributes. The class is asked anew for each value: a library may set that
    attribute when its first instance has long travelled.
    """
    own = instance_dict(value)
    if type(own) is not dict:
        return None
    for base in type(value).__mro__[:-1]:  # the last is `object`
        for held in list(vars(base).values()):  # a copy, as another thread may set one
            if held is own and is_importable(base):
                return base, next(name for name, held in vars(base).items() if held is own)
    return None


def _reduce_sharing(value: Any, owner: type, name: str) -> Reduced:
    """Reduce an instance whose class keeps one dict for all to the name of that dict, and what is in it.

    The class on each side has its own.
    """
    state = (RECEIVER, owner, name, dict(vars(owner)[name]), slots_held(value))
    return make_instance, (RECEIVER, type(value), True), state, None, None, _fill_sharing


def _fill_sharing(value: Any, state: tuple[LoadTransaction, Any, str, dict[str, Any], list[tuple[str, Any]]]) -> None:
    """Give the dict that this side's class keeps the content that came, and make it the instance's own."""
    transaction, owner, name, items, slots = state
    shared = vars(owner)[name]
    transaction.undoable(fill_dict, shared, list(shared.items()))
    fill_dict(shared, items)
    fill_dict_sharer(value, (transaction, shared, slots))


def reduce_bare(_: Encoding, value: Any) -> Reduced:
    """Reduce an instance as pickle does, but so that it is made without its class being asked."""
    reduced = value.__reduce_ex__(5)
    if not isinstance(reduced, tuple) or reduced[0] is not new_object or len(reduced[1]) != 1:
        return reduced
    return (make_instance, (RECEIVER, type(value), False), *reduced[2:])


def reduce_user_value(_: Encoding, value: Any) -> Reduced:
    """Reduce a value to the plain one that it is to its base, its attributes and its slots."""
    base: Any = next(base for base in _VALUES if isinstance(value, base))
    plain: Any = tuple(tuple.__iter__(value)) if base is tuple else base.__new__(base, value)
    if base is str:
        plain = str.__str__(value)
    return make_value, (type(value), plain), (instance_dict(value), slots_held(value)), None, None, fill_value


def make_value(kind: Any, plain: Any) -> Any:
    """Make a value of that class which is the plain one; no `__new__` of the user's runs."""
    return base_new(kind)(kind, plain)


def fill_value(value: Any, state: tuple[Any, list[tuple[str, Any]]]) -> None:
    """Set the attributes and slots of a value."""
    attributes, slots = state
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    _set_slots(value, slots)


def reduce_by_base(encoder: Encoding, value: Any) -> Reduced:
    """Reduce a value as its library has it, but so that the library's class makes it.

    The user's own class may be called with something else.
    """
    kind = type(value)
    reduced = value.__reduce_ex__(5)
    if says_too_little(value, reduced):
        return reduce_user_container(encoder, value)
    if not isinstance(reduced, tuple) or reduced[0] is not kind:
        return reduced
    state, *items = (*reduced[2:], None, None, None)[:3]
    made = make_by_base, (class_that_reduces(kind), kind, *reduced[1])
    if state is not None:
        return (*made, state, *items)
    return (*made, (instance_dict(value), slots_held(value)), *items, fill_value)


def make_by_base(base: Any, kind: Any, *args: Any) -> Any:
    """Make what `base(*args)` gives, as an instance of `kind`."""
    made = base.__new__(kind, *args)
    base.__init__(made, *args)
    return made


def is_delegating(kind: type) -> bool:
    """Tell whether a class answers for attributes that it does not have, and does not say how to set its state."""
    return hasattr(kind, "__getattr__") and not hasattr(kind, "__setstate__")


def reduce_delegating(encoder: Encoding, value: Any) -> Reduced:
    """Reduce an instance so that its state is set without asking it.

    Its `__getattr__` would be asked for `__setstate__` while it is still empty.
    """
    dict_holder = _find_dict_holder(value)
    if dict_holder is not None:
        return _reduce_sharing(value, *dict_holder)
    reduced = value.__reduce_ex__(5)
    if says_too_little(value, reduced):
        return reduce_user_container(encoder, value)
    if not isinstance(reduced, tuple) or len(reduced) != 5 or reduced[2] is None:
        return reduced
    return (*reduced, fill_instance)


def says_too_little(value: Any, reduced: Any) -> bool:
    """Tell whether what a library says of a value cannot make it again, while all that the value is can be seen.

    It names a base in place of a class that was made as the program ran and that no module has (pint's, of one
    registry); it names by a text what the notebook has under a name (toolz); or it says nothing but a class of the
    notebook, and which attribute of it the value is: the class is made with its attributes (cachetools).
    """
    if not isinstance(reduced, tuple) or not isinstance(reduced[1], tuple):
        return False
    kind, made_by, args = type(value), reduced[0], reduced[1]
    if any(isinstance(arg, str) and arg.startswith("__main__") for arg in args):
        return is_all_attributes(kind) and is_importable(kind)
    if len(args) == 2 and isinstance(args[0], type) and isinstance(args[1], str) and not is_importable(args[0]):
        return vars(args[0]).get(args[1]) is value and is_all_attributes(kind)
    if made_by is kind or (args and args[0] is kind):  # mostly, and this is quick to see
        return False
    mentions = [one for one in (made_by, getattr(made_by, "__self__", None), *args) if isinstance(one, type)]
    is_forgotten = any(issubclass(kind, one) for one in mentions) and all(one is not kind for one in mentions)
    return is_forgotten and not is_importable(kind) and is_importable(_sayer(kind)) and is_all_attributes(kind)


def _sayer(kind: Any) -> type:
    """Find the class that says how values of a class travel."""
    bases: tuple[type, ...] = kind.__mro__
    return next(base for base in bases if "__reduce__" in vars(base) or "__reduce_ex__" in vars(base))


def fill_instance(value: Any, state: Any) -> None:
    """Set attributes and slots as pickle does with a state, without asking the instance."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        object.__getattribute__(value, "__dict__").update(attributes)
    _set_slots(value, list((slots or {}).items()))


def has_covered_slots(kind: Any) -> bool:
    """Tell whether a class has something else in the place of a slot of its bases, which set it by what they pickle."""
    return (
        kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and is_all_attributes(kind)
        and any(isinstance(getattr(kind, slot.__name__, None), property) for slot in slots_of(kind))
    )


def of_family(kind: type) -> Callable[[Encoding, Any], Reduced] | None:
    """Choose the reducer for a class that was written in Python.

    None leaves its values to pickle, above all where the class says itself how they travel.
    """
    if is_user_container(kind) or has_covered_slots(kind):
        return reduce_user_container
    if is_user_value(kind):
        return reduce_user_value
    if is_bare(kind):
        return reduce_bare
    if class_that_reduces(kind) is not None:
        return reduce_by_base
    return reduce_delegating if is_delegating(kind) else None
