"""Classes of the notebook: by value, once per side, so that `type(p) is Point` holds wherever `p` has been."""

import abc
import enum
import functools
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from bulletin.cpython.class_layout import is_python_class, make_abstract, register_anew, registered_with
from bulletin.state import definition_ids
from bulletin.state.encoding import Encoding
from bulletin.state.filling import Filling, build
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, refuse
from bulletin.state.missing_modules import require_there

from . import foreign
from .functions import is_importable, is_reference, known, meet
from .named import find_by_name, held_elsewhere
from .registries import entries_of, put_down

#: Types that no module holds under their own name.
_NAMELESS = {kind: name for name, kind in vars(types).items() if type(kind) is type and not is_importable(kind)}
_SINGLES: dict[type, object] = {type(None): None, type(...): ..., type(NotImplemented): NotImplemented}
#: Made anew by the class that is made, or by each process for itself.
_MADE_WITH_IT = frozenset(
    {"__dict__", "__weakref__", "_abc_impl", "_member_map_", "_value2member_map_", "__slotnames__"}
)
_OWN = _MADE_WITH_IT | {"__module__"}
#: Plain types that members of an enum may be as well.
_MIXED = (int, float, str, bytes, tuple)


def reduce_class(encoder: Encoding, cls: type) -> Reduced:
    """Reduce a class to its name where it can be imported, else to a skeleton and its attributes.

    Where the definition is not part of this stream its id is enough. Raises Unpicklable for a class of C code that has
    no name.
    """
    if cls in _SINGLES:
        return type, (_SINGLES[cls],)
    if is_importable(cls):
        require_there(cls.__module__, f"class of {cls.__module__}")
        encoder.homes.add(cls.__module__)
        return NotImplemented
    if cls in _NAMELESS:
        return getattr, (types, _NAMELESS[cls])
    derived = foreign.reduce_derived(cls)
    if derived is not None:
        return derived
    place = held_elsewhere(cls)
    if place is not None:
        return find_by_name, place
    if not is_python_class(cls):
        return refuse(cls)
    uid = meet(encoder, cls)
    if is_reference(encoder, uid):
        return known, (RECEIVER, uid)
    slots = [name for name, value in vars(cls).items() if _is_slot(cls, value)]
    members = _members(cls)
    args = (
        RECEIVER,
        uid,
        _metaclass(cls),
        cls.__name__,
        cls.__bases__,
        vars(cls).get("__module__"),
        slots if "__slots__" in vars(cls) else None,
    )
    of_members = [member.__dict__ for member in members.values()]
    state = (RECEIVER, attributes(cls), of_members, _registered(cls), list(map(tuple, entries_of(cls))))
    bare = [(name, _plain(member)) for name, member in members.items()]
    return make_class, (*args, bare, _first_names(cls), cls.__qualname__), state, None, None, fill_class


def _metaclass(cls: type) -> type | None:
    """Return the metaclass of a class; None for one that no module has and that its bases bring along (pybind11's)."""
    kind = type(cls)
    is_nameless = not is_importable(kind) and kind.__module__ not in {"__main__", "__mp_main__"}
    return None if is_nameless and any(type(base) is kind for base in cls.__bases__) else kind


def _first_names(cls: type) -> list[str]:
    """List a class's attributes in their order, up to what Python puts behind those of the class statement."""
    found = []
    for name, value in vars(cls).items():
        if name in {"__dict__", "__weakref__"} or _is_slot(cls, value):
            break
        if name not in {"_abc_impl", "__slotnames__"}:
            found.append(name)
    return found


def attributes(cls: type) -> dict[str, Any]:
    """Return what a class holds itself, without what is made with it: its slots, fields and members, for instance."""
    members = vars(cls).get("_member_map_", {})
    return {
        name: value
        for name, value in vars(cls).items()
        if name not in _OWN and name not in members and not _is_slot(cls, value) and not foreign.is_field(value)
    }


def _is_slot(cls: type, value: object) -> bool:
    return isinstance(value, MemberDescriptorType | GetSetDescriptorType) and value.__objclass__ is cls


def _registered(cls: type) -> list[type]:
    if not isinstance(cls, abc.ABCMeta):
        return []
    return sorted(
        registered_with(cls), key=lambda other: (other.__module__, other.__qualname__)
    )  # they are kept in no order


def make_class(
    transaction: LoadTransaction,
    uid: str,
    metaclass: Any,
    name: str,
    bases: tuple[type, ...],
    module: str | None,
    slots: list[str] | None,
    members: list[tuple[str, Any]],
    order: list[str],
    qualname: str,
) -> type:
    """Return the receiving side's class of that id; make one, still without its attributes, where there is none.

    Nothing of the user's runs: no metaclass's `__new__`, no `__init_subclass__`. What they did is in the attributes.
    """
    found = find_class(transaction, uid)
    if found is not None:
        return found
    if metaclass is None:
        metaclass = types.prepare_class(name, bases)[0]
    insists = foreign.insists(metaclass)
    waiting: dict[int, tuple[Any, Any]] = {}
    body: dict[str, Any] = {} if insists else _body(order, waiting)
    if module is not None:
        body["__module__"] = module
    if slots is not None:
        body["__slots__"] = tuple(slots)
    with quiet(bases):
        try:
            cls: type = metaclass(name, bases, body) if insists else type.__new__(metaclass, name, bases, body)
        except TypeError:  # another metaclass of C code that insists on its own way
            cls = metaclass(name, bases, body)
    if isinstance(cls, abc.ABCMeta):
        make_abstract(cls)
    note_class(transaction, uid, cls, qualname)
    transaction.waiting[id(cls)] = waiting
    if members:
        _make_members(cls, members)
    else:  # members are made with what came, and are made anew with it
        bare = attributes(cls)
        transaction.blank[id(cls)] = lambda: _empty_class(cls, bare, waiting)
    return cls


def _empty_class(cls: type, bare: dict[str, Any], waiting: dict[int, tuple[Any, Any]]) -> None:
    """Make a class as it was before it was filled; a structure has its fields once and for all."""
    waiting.clear()
    if not foreign.is_made_of_fields(cls):
        _set_attributes(cls, bare)


def find_class(transaction: LoadTransaction, uid: str) -> type | None:
    """Return the receiving side's class of that id, and note that it was there; None where there is none."""
    found = definition_ids.find(uid)
    if not isinstance(found, type):
        return None
    if id(found) not in transaction.fresh:
        transaction.old.add(id(found))
    return found


def note_class(transaction: LoadTransaction, uid: str, cls: type, qualname: str) -> None:
    """Note the id of a class that was made, and give it its full name."""
    if cls.__qualname__ != qualname:
        setter(cls).__setattr__(cls, "__qualname__", qualname)
    definition_ids.track(uid, cls)
    transaction.made(cls)


def _body(order: list[str], waiting: dict[int, tuple[Any, Any]]) -> dict[str, Any]:
    """Give attributes their places before they have values.

    An instance may come before them, as an attribute of its own class: it is made as any object is. If the class says
    itself how an instance gets its state, that is noted in `waiting`, and done when the class is complete.
    """
    body: dict[str, Any] = {name: _Inherited() if name in _ASKED else None for name in order}
    if "__setstate__" in order:
        body["__setstate__"] = functools.partialmethod(_wait, waiting)
    return body


class _Inherited:
    """Stands for a method of a class until the class is complete: what its bases have is used."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, kind: type) -> Any:
        return getattr(super(self._owner, kind if instance is None else instance), self._name)


def _wait(value: Any, waiting: dict[int, tuple[Any, Any]], state: Any) -> None:
    waiting[id(value)] = value, state


#: What Python asks a class for while pickle makes an instance, puts it into a set and gives it its state.
_ASKED = frozenset(
    {"__new__", "__setstate__", "__setattr__", "__setitem__", "__getattr__", "__getattribute__", "__hash__", "__eq__"}
)


@contextmanager
def quiet(bases: tuple[type, ...]) -> Iterator[None]:
    """Keep the nearest `__init_subclass__` from running a second time for a class that has been made before."""
    inherited = (cls for base in bases for cls in base.__mro__ if cls is not object)  # which comes behind all bases
    owner = next((cls for cls in inherited if "__init_subclass__" in vars(cls)), object)
    if owner is object or not is_python_class(owner):
        yield
        return
    hook = vars(owner)["__init_subclass__"]
    own = setter(owner)
    own.__setattr__(owner, "__init_subclass__", classmethod(lambda _, **__: None))
    try:
        yield
    finally:
        own.__setattr__(owner, "__init_subclass__", hook)


def fill_class(
    cls: type, state: tuple[LoadTransaction, dict[str, Any], list[dict[str, Any]], list[type], list[Any]]
) -> None:
    """Give a class its attributes: now if it is new, at the end of the transaction if this side had it.

    What fails may be done again: instances that have got their state do not get it twice.
    """
    transaction, new, members, registered, entries = state
    if id(cls) not in transaction.old:
        _set_attributes(cls, new)
        _fill_members(cls, members)
        _set_registered(cls, registered)
        put_down(transaction, entries)
        _give_states(transaction, transaction.waiting.get(id(cls), {}))
        return
    put_down(transaction, entries)
    _change_members(transaction, cls, members)
    before, registered_before = attributes(cls), _registered(cls)
    transaction.later(lambda: _set_attributes(cls, new), lambda: _set_attributes(cls, before))
    if registered != registered_before:
        transaction.later(lambda: _set_registered(cls, registered), lambda: _set_registered(cls, registered_before))


def _give_states(transaction: LoadTransaction, waiting: dict[int, tuple[Any, Any]]) -> None:
    """Give instances the states that they wait for. Raises what the first fails with that never gets it."""

    def give(value: Any, state: Any) -> None:
        build(value, state, transaction.namespace)
        del waiting[id(value)]

    filling = Filling()
    for value, state in list(waiting.values()):
        filling.do(give, value, state)
    filling.finish()


def _set_registered(cls: Any, registered: list[type]) -> None:
    if _registered(cls) != registered:
        register_anew(cls, registered)


def _set_attributes(cls: type, new: Mapping[str, Any]) -> None:
    before = attributes(cls)
    own = type(cls) if foreign.is_made_of_fields(cls) else setter(cls)
    for name in before.keys() - new.keys():
        own.__delattr__(cls, name)
    laid_out = foreign.lay_out(cls, new)
    for name, value in new.items():
        if name in laid_out:
            continue
        if name not in before or before[name] is not value:
            own.__setattr__(cls, name, value)
    if own is type:
        _put_in_order(cls, new)


def setter(cls: type) -> Any:
    """Find who sets attributes of a class without asking code in Python: `type`, or a metaclass in C (pybind11's)."""
    metaclass: Any = type(cls)
    return next(
        kind for kind in metaclass.__mro__ if isinstance(vars(kind).get("__setattr__"), types.WrapperDescriptorType)
    )


def _put_in_order(cls: type, new: Mapping[str, Any]) -> None:
    """Bring the attributes into the order of `new`.

    Those from the first that stands elsewhere are taken out and put back.
    """
    now = [name for name in vars(cls) if name in new]
    wanted = [name for name in new if name in vars(cls)]
    first_other = next((index for index, pair in enumerate(zip(now, wanted, strict=True)) if pair[0] != pair[1]), None)
    for name in wanted[first_other:] if first_other is not None else ():
        if name not in _FIXED_PLACES:
            type.__delattr__(cls, name)
            type.__setattr__(cls, name, new[name])


#: Python gives these their place.
_FIXED_PLACES = frozenset({"__doc__", "__slots__", "__abstractmethods__", "__annotations__", "__qualname__"})


def is_enum(kind: type) -> bool:
    """Tell whether a type is an enum of the notebook, whose members need their class first."""
    return issubclass(kind, enum.Enum) and not is_importable(kind)


def reduce_member(_: Encoding, member: enum.Enum) -> Reduced:
    """Reduce a member of an enum to its name, and a combination of flags to its value."""
    cls = type(member)
    if cls.__members__.get(member.name) is member:
        return member_of, (cls, member.name)
    return cls, (member.value,)


def member_of(cls: Any, name: str) -> Any:
    """Return the member of that name, without asking the enum's own look-up."""
    return cls._member_map_[name]


def _members(cls: type) -> dict[str, enum.Enum]:
    """Return the members of an enum by name, an alias with the member that it means; none of any other class."""
    return dict(vars(cls).get("_member_map_", {}))


def _plain(member: enum.Enum) -> Any:
    """Return what a member of an enum is besides a member, and its name.

    That is a plain type and a value, of an IntEnum's member `int` and 3 for instance; or None and None.
    """
    for kind in _MIXED:
        if isinstance(member, kind):
            return (kind, str.__str__(member) if isinstance(member, str) else kind.__new__(kind, member), member.name)
    return (None, None, member.name)


def _make_members(cls: Any, members: list[tuple[str, Any]]) -> None:
    """Make the members of an enum without their attributes, so that what refers to them can load.

    An alias names the member again.
    """
    by_name: dict[str, Any] = {}
    for name, (kind, plain, own_name) in members:
        if own_name in by_name:
            by_name[name] = by_name[own_name]
        else:
            by_name[name] = object.__new__(cls) if kind is None else kind.__new__(cls, plain)
        type.__setattr__(cls, name, by_name[name])
    type.__setattr__(cls, "_member_map_", by_name)


def _fill_members(cls: Any, states: list[dict[str, Any]]) -> None:
    if not states:
        return
    by_value: dict[Any, Any] = {}
    for member, state in zip(cls._member_map_.values(), states, strict=True):
        member.__dict__.update(state)
        try:
            by_value.setdefault(member._value_, member)
        except TypeError:  # a value without a hash is found by search
            continue
    type.__setattr__(cls, "_value2member_map_", by_value)


def _change_members(transaction: LoadTransaction, cls: Any, states: list[dict[str, Any]]) -> None:
    """Note what has become of the attributes of members, such as what a cached property has found."""
    for member, state in zip(_members(cls).values(), states, strict=False):
        held = member.__dict__
        if held is not state:
            before = dict(held)
            transaction.later(functools.partial(fill_dict, held, state), functools.partial(fill_dict, held, before))
