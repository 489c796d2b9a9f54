"""Weak references and the containers made of them: each side's own, to the counterparts of what they refer to."""

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from bulletin.state.inplace import attributes_of, empty_attributes
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, refuse

if TYPE_CHECKING:
    from bulletin.state.encoder import Encoder

_Collection: TypeAlias = Any
_COLLECTIONS = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)


def reduce_weakref(_: "Encoder", reference: Any) -> Reduced:
    """A weak reference to the counterpart of what it refers to. A callback stays here."""
    target = reference()
    return (dead_reference, ()) if target is None else (make_weakref, (RECEIVER, target))


def make_weakref(transaction: LoadTransaction, target: Any) -> Any:
    """The old one, or a new one; the transaction keeps the target alive, which may have no other owner on this side."""
    transaction.alive.append(target)
    old = transaction.take_existing()
    return _kept(transaction, old, weakref.ref(target), isinstance(old, weakref.ref) and old() is target)


def _kept(transaction: LoadTransaction, old: Any, made: Any, is_alike: bool) -> Any:
    """The old one if it is as good, for it may have a callback; else the new one, in its place."""
    if is_alike:
        return old
    if old is not None:
        transaction.replaced.append((old, made))
    return made


class _Gone:
    """Something to refer to, and to lose."""


def dead_reference() -> Any:
    """A weak reference whose target is gone."""
    return weakref.ref(_Gone())


def reduce_proxy(_: "Encoder", proxy: Any) -> Reduced:
    """As a weak reference."""
    try:
        target = proxy.__reduce_ex__.__self__
    except ReferenceError:
        return dead_proxy, ()
    return make_proxy, (RECEIVER, target)


def make_proxy(transaction: LoadTransaction, target: Any) -> Any:
    """A proxy of the target, which is kept alive as that of a weak reference is."""
    transaction.alive.append(target)
    old = transaction.take_existing()
    made = weakref.proxy(target)
    return _kept(transaction, old, made, old is made)


def dead_proxy() -> Any:
    """A proxy whose target is gone."""
    return weakref.proxy(_Gone())


def reduce_weak_method(_: "Encoder", reference: Any) -> Reduced:
    """Its object and its function."""
    method = reference()
    if method is None:
        return dead_method, ()
    return make_weak_method, (RECEIVER, method.__self__, method.__func__)


def make_weak_method(transaction: LoadTransaction, owner: Any, function: Any) -> Any:
    """A weak reference to a method of the owner."""
    transaction.alive.append(owner)
    old = transaction.take_existing()
    method = old() if isinstance(old, weakref.WeakMethod) else None
    is_alike = method is not None and method.__self__ is owner and method.__func__ is function
    return _kept(transaction, old, weakref.WeakMethod(function.__get__(owner)), is_alike)


def dead_method() -> Any:
    """A weak reference to a method whose object is gone."""
    return weakref.WeakMethod(_Gone().__reduce__)


def reduce_collection(_: "Encoder", value: _Collection) -> Reduced:
    """Their items; each side's references call back to its own collection."""
    base = _base_of(type(value))
    items = list(value) if base is weakref.WeakSet else list(base.items(value))
    own = vars(_empty(base))
    attributes = {name: held for name, held in vars(value).items() if name not in own}
    return make_collection, (RECEIVER, type(value)), (RECEIVER, items, attributes), None, None, fill_collection


def _base_of(kind: type) -> Any:
    return next(base for base in _COLLECTIONS if issubclass(kind, base))


def _empty(kind: Any) -> _Collection:
    """An empty one; no `__init__` of the user's runs."""
    made = object.__new__(kind)
    _base_of(kind).__init__(made)
    return made


def make_collection(transaction: LoadTransaction, kind: Any) -> _Collection:
    """The old one, or a new one, empty."""
    old = transaction.take_existing()
    if type(old) is kind:
        return old
    return _kept(transaction, old, _empty(kind), is_alike=False)


def fill_collection(value: _Collection, state: tuple[LoadTransaction, list[Any], dict[str, Any]]) -> None:
    """Its items and the user's attributes."""
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


def of_family(kind: type) -> Callable[["Encoder", Any], Reduced] | None:
    """For dicts and sets that hold weakly, and the user's own kinds of them."""
    return reduce_collection if issubclass(kind, _COLLECTIONS) else None


def _refuse(_: "Encoder", value: object) -> Reduced:
    return refuse(value)


EXACT: dict[type, Callable[["Encoder", Any], Reduced]] = {
    weakref.ref: reduce_weakref,
    weakref.ProxyType: reduce_proxy,
    weakref.CallableProxyType: reduce_proxy,
    weakref.WeakMethod: reduce_weak_method,
    weakref.finalize: _refuse,  # it waits for the end of an object, and of a process
}
