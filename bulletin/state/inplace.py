"""How an old object takes the state of a new one: emptied before pickle fills it, or given what a new one holds.

Every change notes its undo with the transaction. The user's own methods are not asked: `dict.clear`, not `value.clear`.
"""

import _thread
import ctypes
import datetime as dt
import decimal
import fractions
import pathlib
import re
import sys
import uuid
from array import array
from collections import OrderedDict, defaultdict, deque
from functools import partial
from operator import length_hint
from types import BuiltinMethodType, CellType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

from bulletin.cpython.class_layout import CData, holds_slots_only, is_python_all_through

from .given_memory import is_same, take_memory
from .load_transaction import LoadTransaction

#: What they are never changes, so an old one is as good as the new one.
_STEADY: tuple[type, ...] = (
    dt.date, dt.time, dt.timedelta, dt.tzinfo, decimal.Decimal, fractions.Fraction, uuid.UUID,
    pathlib.PurePath, range, slice, re.Pattern, frozenset, complex, int, float, str, bytes,
    _thread.LockType, _thread.RLock, BaseException,
)  # fmt: skip
#: What never changes in them, and is all there is.
_PARTS: dict[type, tuple[str, ...]] = {
    MethodType: ("__self__", "__func__"),
    BuiltinMethodType: ("__self__", "__name__"),
    property: ("fget", "fset", "fdel", "__doc__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
#: Iterators that can be set to their end.
_ITERATORS = frozenset({type(iter([])), type(iter(())), type(iter("")), type(iter(b"")), type(iter(bytearray()))})
#: Libraries whose code in C gives an instance its state as often as it is asked to.
_SET_AGAIN = sys.stdlib_module_names | {"numpy"}
_UNSET = object()


def empty(transaction: LoadTransaction, value: Any) -> None:
    """Take away what pickle will put there: items, attributes, slots."""
    _empty_items(transaction, value)
    empty_attributes(transaction, value)


def _empty_items(transaction: LoadTransaction, value: Any) -> None:
    if isinstance(value, dict):
        _empty_dict(transaction, value)
    elif isinstance(value, list):
        transaction.undoable(fill_list, value, list.copy(value))
        list.clear(value)
    elif isinstance(value, set):
        transaction.undoable(fill_set, value, set.copy(value))
        set.clear(value)
    elif isinstance(value, deque):
        transaction.undoable(_fill_deque, value, list(deque.__iter__(value)))
        deque.clear(value)


def reused(transaction: LoadTransaction, old: Any, kind: Any, *, has_dict: bool = True) -> Any:
    """Empty the old object and give it that class; return it, or None where its class cannot be changed.

    Without `has_dict` its own dict is left as it is: another object is to take its place, or has taken it.
    """
    try:
        transaction.undoable(set_class, old, type(old))
        set_class(old, kind)
    except TypeError:
        return None
    _empty_items(transaction, old)
    if has_dict:
        empty_attributes(transaction, old)
    else:
        _empty_slots(transaction, old)
    return old


def set_class(value: Any, kind: Any) -> None:
    """Set the class past what `__setattr__` makes of it. Raises TypeError where the two are laid out in other ways."""
    if type(value) is not kind:
        object.__setattr__(value, "__class__", kind)


def _empty_dict(transaction: LoadTransaction, value: Any) -> None:
    kind = OrderedDict if isinstance(value, OrderedDict) else dict
    transaction.undoable(fill_dict, value, list(kind.items(value)))
    kind.clear(value)


def empty_attributes(transaction: LoadTransaction, value: Any) -> None:
    """Take away all attributes and the content of all slots, undoably."""
    attributes = attributes_of(value)
    if attributes:
        transaction.undoable(fill_dict, attributes, list(attributes.items()))
        attributes.clear()
    elif attributes is not None:
        transaction.undoable(attributes.clear)
    _empty_slots(transaction, value)


def _empty_slots(transaction: LoadTransaction, value: Any) -> None:
    for slot in _slots_of(value):
        held = _slot(slot, value)
        transaction.undoable(_set_slot, slot, value, held)
        if held is not _UNSET:
            slot.__delete__(value)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Return an instance's own dict, past what its class makes of attribute access; None where it has none."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def slots_of(kind: Any) -> tuple[Any, ...]:
    """List the writable slots of a class and its bases that were written in Python.

    The class is asked anew for each value: a notebook may put something else in a slot's place.
    """
    return tuple(
        held
        for base in kind.__mro__
        if "__slots__" in vars(base)
        for held in vars(base).values()
        if isinstance(held, MemberDescriptorType) and held.__objclass__ is base
    )


def _slots_of(value: Any) -> tuple[Any, ...]:
    kind: Any = type(value)
    return slots_of(kind)


def slots_held(value: Any) -> list[tuple[str, Any]]:
    """List the slots of an instance that hold something, with their names."""
    found = [(slot.__name__, _slot(slot, value)) for slot in _slots_of(value)]
    return [(name, held) for name, held in found if held is not _UNSET]


def _slot(slot: Any, value: Any) -> Any:
    try:
        return slot.__get__(value, type(value))
    except AttributeError:
        return _UNSET


def _set_slot(slot: Any, value: Any, held: Any) -> None:
    if held is not _UNSET:
        slot.__set__(value, held)
    elif _slot(slot, value) is not _UNSET:
        slot.__delete__(value)


def transplant(transaction: LoadTransaction, old: Any, fresh: Any, made_by: object, args: tuple[Any, ...]) -> Any:
    """Give the old object what a newly made one holds. Return the old one, or the new one where that cannot be done.

    Parameters
    ----------
    transaction, old, fresh
        The two are of any type.
    made_by, args
        The function that made the new one, and what it was called with: pickle's `__reduce__`.
    """
    kind = type(fresh)
    if old is fresh:
        return old
    if type(old) is not kind:
        return put_in_place(transaction, old, fresh)
    if isinstance(old, _STEADY):
        empty_attributes(transaction, old)
        _copy_attributes(old, fresh)
        return old
    if kind in _PARTS:
        is_alike = all(is_same(getattr(old, part), getattr(fresh, part)) for part in _PARTS[kind])
        return old if is_alike else put_in_place(transaction, old, fresh)
    if kind in _ITERATORS and not length_hint(fresh):
        if old.__reduce__()[1][0] is fresh.__reduce__()[1][0]:
            transaction.undoable(old.__setstate__, (*old.__reduce__(), 0, 0)[2])
            old.__setstate__(sys.maxsize)
        else:  # it has let go of what it went through, and there is no way back from that
            transaction.at_end(partial(deque, old, 0))
        return old
    if isinstance(old, tuple):
        is_alike = len(old) == len(fresh) and all(map(is_same, tuple.__iter__(old), tuple.__iter__(fresh)))
        if is_alike:
            empty_attributes(transaction, old)
            _copy_attributes(old, fresh)
        return old if is_alike else put_in_place(transaction, old, fresh)
    if isinstance(old, bytearray | array) and getattr(old, "typecode", "") == getattr(fresh, "typecode", ""):
        _write(transaction, old, fresh)
        empty_attributes(transaction, old)
        _copy_attributes(old, fresh)
        return old
    if isinstance(old, CData):
        transaction.undoable(_write_c, old, bytes(old))
        _write_c(old, bytes(fresh))
        empty_attributes(transaction, old)
        _copy_attributes(old, fresh)
        return old
    is_container = isinstance(old, dict | list | set | deque)
    if is_container and not (isinstance(old, deque) and old.maxlen != fresh.maxlen):
        empty(transaction, old)
        _copy_items(transaction, old, fresh)
        _copy_attributes(old, fresh)
        return old
    if not is_container and is_all_attributes(kind):
        empty_attributes(transaction, old)
        _copy_attributes(old, fresh)
        return old
    if _made_alike(transaction, old, made_by, args):
        if attributes_of(old) is not None:
            empty_attributes(transaction, old)
            _copy_attributes(old, fresh)
        return old
    if take_memory(transaction, old, fresh):
        return old
    if transaction.note_read_and_tell(old) and takes_state_again(kind):
        return old  # code in C may hold it by now, where nobody could put the new one
    return put_in_place(transaction, old, fresh)


def put_in_place(transaction: LoadTransaction, old: Any, fresh: Any) -> Any:
    """Have the new object take the place of the old one wherever that is held; return it, or a stream of the process.

    Where the old one is a standard stream of this process it is returned, and stays.
    """
    if any(old is getattr(sys, name) for name in ("stdout", "stderr", "stdin")):
        return old  # it is everywhere, and this side's own: there it was another one for a while
    transaction.replaced.append((old, fresh))
    return fresh


def is_all_attributes(kind: type) -> bool:
    """Tell whether instances hold nothing but attributes and slots of Python's."""
    if not is_python_all_through(kind):
        return False
    has_members_of_c = any(
        isinstance(held, MemberDescriptorType) and "__slots__" not in vars(base)
        for base in kind.__mro__
        for held in vars(base).values()
    )
    return not has_members_of_c and holds_slots_only(kind, len(slots_of(kind)))


def is_made_blank(kind: type) -> bool:
    """Tell whether a class makes its instances blank: its `__new__` is Python's own, or that of code in C that has one.

    One that is written in Python may hand out an instance that is there already, which nobody may empty.
    """
    return not isinstance(kind.__new__, FunctionType) and takes_state_again(kind)


def takes_state_again(kind: type) -> bool:
    """Tell whether an instance that has a state may be given another one by its `__setstate__`.

    Code in C may do there what is to be done once: bindings of C++ make the object that an instance wraps, and jax
    lists a compiled function in its cache. Of Python's own and of numpy's it is known that it does not.
    """
    for base in kind.__mro__:
        if "__setstate__" in vars(base):
            top = base.__module__.partition(".")[0]
            return isinstance(vars(base)["__setstate__"], FunctionType) or top in _SET_AGAIN
    return True


def _made_alike(transaction: LoadTransaction, old: Any, made_by: object, args: tuple[Any, ...]) -> bool:
    """Tell whether the same call would make the old object, so that only its state can differ.

    Noted with the transaction: the call that gives it its old state again.
    """
    if not takes_state_again(type(old)):
        return False
    try:
        reduced = old.__reduce_ex__(4)
    except Exception:  # noqa: BLE001  a value's own code; then the new one takes its place
        return False
    if not isinstance(reduced, tuple) or reduced[0] is not made_by or not is_same(reduced[1], args):
        return False
    if len(reduced) > 2 and reduced[2] is not None and hasattr(old, "__setstate__"):
        transaction.undoable(old.__setstate__, reduced[2])
    return True


def _copy_items(transaction: LoadTransaction, old: Any, fresh: Any) -> None:
    if isinstance(old, dict):
        fill_dict(old, list(dict.items(fresh)))
    elif isinstance(old, list):
        fill_list(old, fresh)
    elif isinstance(old, set):
        fill_set(old, fresh)
    else:
        _fill_deque(old, list(fresh))
    if isinstance(old, defaultdict):
        transaction.undoable(setattr, old, "default_factory", old.default_factory)
        old.default_factory = fresh.default_factory


def _write(transaction: LoadTransaction, old: Any, fresh: Any) -> None:
    """Replace the content without clearing it first: what a memory view looks at cannot be made smaller."""
    kind: Any = array if isinstance(old, array) else bytearray
    before = array(old.typecode, old) if kind is array else bytes(old)
    transaction.undoable(kind.__setitem__, old, slice(None), before)
    kind.__setitem__(old, slice(None), fresh)


def _write_c(value: Any, content: bytes) -> None:
    ctypes.memmove(ctypes.addressof(value), content, len(content))


def _copy_attributes(old: Any, fresh: Any) -> None:
    attributes = attributes_of(fresh)
    own = attributes_of(old)
    if attributes and own is not None:
        own.update(attributes)
    for slot in _slots_of(fresh):
        held = _slot(slot, fresh)
        if held is not _UNSET:
            slot.__set__(old, held)


def fill_dict(value: Any, items: Any) -> None:
    """Make `items` the whole content of a dict, without calling methods of a subclass."""
    kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    kind.clear(value)
    if kind is dict:
        dict.update(value, items)
    else:
        for key, held in items:
            OrderedDict.__setitem__(value, key, held)


def fill_list(value: Any, items: Any) -> None:
    """Make `items` the whole content of a list, without calling methods of a subclass."""
    list.__setitem__(value, slice(None), items)


def fill_set(value: Any, items: Any) -> None:
    """Make `items` the whole content of a set, without calling methods of a subclass."""
    set.clear(value)
    set.update(value, items)


def _fill_deque(value: Any, items: list[Any]) -> None:
    deque.clear(value)
    deque.extend(value, items)


def set_cell(transaction: LoadTransaction, cell: CellType, content: tuple[object, ...]) -> None:
    """Put a value into a closure's variable, or with no content take it away; undoably."""
    try:
        before: tuple[object, ...] = (cell.cell_contents,)
    except ValueError:
        before = ()
    transaction.undoable(_set_cell, cell, before)
    _set_cell(cell, content)


def _set_cell(cell: CellType, content: tuple[object, ...]) -> None:
    if content:
        cell.cell_contents = content[0]
    else:
        try:
            del cell.cell_contents
        except ValueError:
            return  # it is empty already
