"""Objects of C code that stand for another object, or look at it, and refuse to pickle: they are what they look at."""

import contextlib
from typing import Any

from bulletin.cpython.class_layout import holds_more_than
from bulletin.cpython.referrers import only_part_of
from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .containers import make_unfilled

#: What a function wrapper of wrapt is made of, behind what it wraps.
_OF_WRAPPER = ("_self_instance", "_self_wrapper", "_self_enabled", "_self_binding", "_self_parent", "_self_owner")


def reduce_view(value: Any) -> Reduced:
    """Reduce an object that holds one other object, and has no room for more, to its type and that; None for others."""
    parts = only_part_of(value)
    kind = type(value)
    if not parts or not _is_made_of(kind, parts[0]):
        return None
    return make_view, (RECEIVER, kind, parts[0])


def _is_made_of(kind: Any, part: object) -> bool:
    try:
        made = kind(part)
    except Exception:  # noqa: BLE001  code of a library that is not meant to be called so
        return False
    return type(made) is kind and [id(held) for held in only_part_of(made)] == [id(part)]


def make_view(transaction: LoadTransaction, kind: Any, part: object) -> Any:
    """Return the existing view if it looks at this object, or make a new one."""
    old = transaction.take_existing()
    if type(old) is kind and any(held is part for held in only_part_of(old)):
        return old
    made = kind(part)
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def is_proxy(kind: type) -> bool:
    """Tell whether a type is one of wrapt's proxies, which answer as what they wrap."""
    return any("__self_dict__" in vars(base) for base in kind.__mro__)


def reduce_proxy(_: Encoding, proxy: Any) -> Reduced:
    """Reduce a proxy to what it wraps and its own attributes, and one of a function to what calls it as well.

    Raises what it refuses with where it holds more, which cannot be seen.
    """
    maker = _maker(proxy)
    if holds_more_than(type(proxy), maker):
        return proxy.__reduce_ex__(5)
    state = (RECEIVER, _parts(proxy), dict(_own(proxy)))
    return make_unfilled, (RECEIVER, type(proxy)), state, None, None, fill_proxy


def _maker(proxy: Any) -> Any:
    """Find the class of wrapt's whose `__init__` takes the parts of a proxy."""
    bases = type(proxy).__mro__
    return next((base for base in bases if _OF_WRAPPER[0] in vars(base)), None) or next(
        base for base in bases if "__self_dict__" in vars(base)
    )


def _parts(proxy: Any) -> tuple[Any, ...]:
    """List what a proxy was made with. Raises AttributeError where it wraps nothing yet."""
    found = next(vars(base)["__wrapped__"] for base in type(proxy).__mro__ if "__wrapped__" in vars(base))
    maker = _maker(proxy)
    names = _OF_WRAPPER if _OF_WRAPPER[0] in vars(maker) else ()
    return found.__get__(proxy), *(vars(maker)[name].__get__(proxy) for name in names)


def _own(proxy: Any) -> dict[str, Any]:
    found = next(vars(base)["__self_dict__"] for base in type(proxy).__mro__ if "__self_dict__" in vars(base))
    own: dict[str, Any] = found.__get__(proxy)
    return own


def fill_proxy(proxy: Any, state: tuple[LoadTransaction, tuple[Any, ...], dict[str, Any]]) -> None:
    """Let a proxy wrap this, undoably."""
    transaction, parts, attributes = state
    with contextlib.suppress(AttributeError, ValueError):  # a new one wraps nothing
        transaction.undoable(_fill, proxy, _parts(proxy), dict(_own(proxy)))
    _fill(proxy, parts, attributes)


def _fill(proxy: Any, parts: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    maker = _maker(proxy)
    first, *rest = parts
    maker.__init__(proxy, first, *rest)
    own = _own(proxy)
    own.clear()
    own.update(attributes)
