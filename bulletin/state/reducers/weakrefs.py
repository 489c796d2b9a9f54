"""Weak references and the containers made of them: each side's own, to the counterparts of what they refer to."""

import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import attributes_of, empty_attributes
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, refuse

_Collection: TypeAlias = Any
_COLLECTIONS = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)


def reduce_weakref(encoder: Encoding, reference: Any) -> Reduced:
    """Reduce a weak reference to what it refers to, and its callback if that is the notebook's: others stay here."""
    forgotten = encoder.forgotten()
    target, callback = reference(), reference.__callback__
    if target is None or id(target) in forgotten:
        return dead_reference, ()
    is_ours = type(callback) is FunctionType and callback.__globals__ is encoder.namespace
    return make_weakref, (RECEIVER, target, *((callback,) if is_ours else ()))


def make_weakref(transaction: LoadTransaction, target: Any, callback: Any = None) -> Any:
    """Return the existing reference if it has that target, or make a new one.

    The transaction keeps the target alive, which may have no other owner on this side.
    """
    transaction.alive.append(target)
    old = transaction.take_existing()
    is_alike = isinstance(old, weakref.ref) and old() is target and callback in (None, old.__callback__)
    return _kept(transaction, old, weakref.ref(target, callback), is_alike)


def _kept(transaction: LoadTransaction, old: Any, made: Any, is_alike: bool) -> Any:
    """Return the old object if it is as good, for it may have a callback; else the new one, in its place."""
    if is_alike:
        return old
    if old is not None:
        transaction.replaced.append((old, made))
    return made


class _Gone:
    """The target of references that are dead from the start: each of its instances is lost at once."""


def dead_reference() -> Any:
    """Make a weak reference whose target is gone."""
    return weakref.ref(_Gone())


def reduce_proxy(encoder: Encoding, proxy: Any) -> Reduced:
    """Reduce a weak proxy to what it stands for. A callback stays here."""
    forgotten = encoder.forgotten()
    try:
        target = proxy.__reduce_ex__.__self__
    except ReferenceError:
        return dead_proxy, ()
    if id(target) in forgotten:
        return dead_proxy, ()
    return make_proxy, (RECEIVER, target)


def make_proxy(transaction: LoadTransaction, target: Any) -> Any:
    """Make a proxy of the target, which the transaction keeps alive; the existing one stays if it is the same."""
    transaction.alive.append(target)
    old = transaction.take_existing()
    made = weakref.proxy(target)
    return _kept(transaction, old, made, old is made)


def dead_proxy() -> Any:
    """Make a proxy whose target is gone."""
    return weakref.proxy(_Gone())


def reduce_weak_method(encoder: Encoding, reference: Any) -> Reduced:
    """Reduce a weak reference to a method to its object and its function."""
    forgotten = encoder.forgotten()
    method = reference()
    if method is None or id(method.__self__) in forgotten:
        return dead_method, ()
    return make_weak_method, (RECEIVER, method.__self__, method.__func__)


def make_weak_method(transaction: LoadTransaction, owner: Any, function: Any) -> Any:
    """Return the existing reference if it means that method of the owner, or make a new one.

    The transaction keeps the owner alive, which may have no other one on this side.
    """
    transaction.alive.append(owner)
    old = transaction.take_existing()
    method = old() if isinstance(old, weakref.WeakMethod) else None
    is_alike = method is not None and method.__self__ is owner and method.__func__ is function
    return _kept(transaction, old, weakref.WeakMethod(function.__get__(owner)), is_alike)


def dead_method() -> Any:
    """Make a weak reference to a method whose object is gone."""
    return weakref.WeakMethod(_Gone().__reduce__)


def reduce_collection(encoder: Encoding, value: _Collection) -> Reduced:
    """Reduce a weak collection to its items and the user's attributes.

    What is its own stays: each side's references call back to their own collection.
    """
    forgotten, base = encoder.forgotten(), _base_of(type(value))
    items = list(value) if base is weakref.WeakSet else list(base.items(value))
    if forgotten:
        weak = {weakref.WeakValueDictionary: 1, weakref.WeakKeyDictionary: 0}.get(base)
        items = [item for item in items if id(item if weak is None else item[weak]) not in forgotten]
    own = vars(_empty(base))
    attributes = {name: held for name, held in vars(value).items() if name not in own}
    return make_collection, (RECEIVER, type(value)), (RECEIVER, items, attributes), None, None, fill_collection


def _base_of(kind: type) -> Any:
    return next(base for base in _COLLECTIONS if issubclass(kind, base))


def _empty(kind: Any) -> _Collection:
    """Make an empty collection of that class; no `__init__` of the user's runs."""
    made = object.__new__(kind)
    _base_of(kind).__init__(made)
    return made


def make_collection(transaction: LoadTransaction, kind: Any) -> _Collection:
    """Return the existing collection, as it is, or make an empty one."""
    old = transaction.take_existing()
    if type(old) is kind:
        return old
    return _kept(transaction, old, _empty(kind), is_alike=False)


def fill_collection(value: _Collection, state: tuple[LoadTransaction, list[Any], dict[str, Any]]) -> None:
    """Replace the items of a collection, which the transaction keeps alive, and the user's attributes."""
    transaction, items, attributes = state
    base = _base_of(type(value))
    transaction.alive.append(items)
    before = list(value) if base is weakref.WeakSet else list(base.items(value))
    transaction.undoable(_fill, base, value, before)
    _fill(base, value, items)
    own = {name: held for name, held in (attributes_of(value) or {}).items() if name in vars(_empty(base))}
    empty_attributes(transaction, value)
    value.__dict__.update({**own, **attributes})


def _fill(base: Any, value: _Collection, items: list[Any]) -> None:
    value.data.clear()
    if base is weakref.WeakSet:
        for held in items:
            base.add(value, held)
    else:
        for key, held in items:
            base.__setitem__(value, key, held)


def of_family(kind: type) -> Callable[[Encoding, Any], Reduced] | None:
    """Choose the reducer for dicts and sets that hold weakly, and the user's own kinds of them; else None."""
    return reduce_collection if issubclass(kind, _COLLECTIONS) else None


def _refuse(_: Encoding, value: object) -> Reduced:
    return refuse(value)


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    weakref.ref: reduce_weakref,
    weakref.ProxyType: reduce_proxy,
    weakref.CallableProxyType: reduce_proxy,
    weakref.WeakMethod: reduce_weak_method,
    weakref.finalize: _refuse,  # it waits for the end of an object, and of a process
}
