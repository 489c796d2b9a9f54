"""What looks at another object: memory views, read-only dicts, views of dicts, and iterators of dicts and sets."""

from collections import OrderedDict
from collections.abc import Callable
from io import BytesIO
from types import MappingProxyType
from typing import Any

from bulletin.cpython.raw_memory import address_of
from bulletin.cpython.referrers import (
    behind_proxy,
    class_of_attributes,
    dict_of_iterator,
    id_behind_iterator,
    only_part_of,
)
from bulletin.state.encoding import Encoding
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, Unpicklable


def reduce_mapping_proxy(_: Encoding, proxy: Any) -> Reduced:
    """Reduce a read-only view to what is behind it; behind `vars(cls)` is the class."""
    behind = behind_proxy(proxy)
    owner = class_of_attributes(behind)
    return make_mapping_proxy, (RECEIVER, behind if owner is None else owner, owner is not None)


def make_mapping_proxy(transaction: LoadTransaction, behind: Any, is_class: bool) -> Any:
    """Return the existing view if the same is behind it, or make a new one."""
    made: Any = vars(behind) if is_class else MappingProxyType(behind)
    return _old_or(transaction, made, behind_proxy)


def _old_or(transaction: LoadTransaction, made: Any, key: Callable[[Any], Any]) -> Any:
    """Return the existing object if `key` gives the very same for both; else what was made, in its place."""
    old = transaction.take_existing()
    if type(old) is type(made) and key(old) is key(made):
        return old
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def reduce_memory_view(_: Encoding, view: memoryview) -> Reduced:
    """Reduce a memory view to the object that it looks into, and the place in it; one that was released, to nothing.

    Raises
    ------
    Unpicklable
        If nobody owns the memory, or it is neither contiguous nor a row.
    """
    try:
        looks_into = view.obj
    except ValueError:
        return make_released_view, (RECEIVER,)
    if looks_into is None or not (view.c_contiguous or view.ndim == 1):
        raise Unpicklable("cannot pickle a memoryview of such memory")
    owner = _owner_of(view)
    if isinstance(owner, BytesIO) and type(owner) is not BytesIO:
        raise Unpicklable("cannot pickle a view of what a class of one's own does with bytes in memory")
    return make_memory_view, (RECEIVER, owner, view.readonly, *_layout(view))


def make_released_view(transaction: LoadTransaction) -> Any:
    """Return the existing view if it was released, or make one that was."""
    made = memoryview(b"")
    made.release()
    return _old_or(transaction, made, _is_released)


def _is_released(view: memoryview) -> bool:
    try:
        return view.nbytes < 0
    except ValueError:
        return True


def _owner_of(view: memoryview) -> Any:
    """Return what a memory view looks into: behind the buffer of a `BytesIO` that is the `BytesIO`."""
    behind = only_part_of(view.obj) if type(view.obj).__name__ == "_BytesIOBuffer" else []
    return behind[0] if behind else view.obj


def _layout(view: memoryview) -> tuple[int, int, str, tuple[int, ...], int]:
    """Describe the place of a memory view in its object.

    It is where the view begins, in bytes; the size of its items and their format; its shape; and its step, in bytes.
    """
    shape = view.shape or ()
    step = (view.strides or (view.itemsize,))[0] if len(shape) == 1 else view.itemsize
    with memoryview(view.obj) as whole:
        return address_of(view) - address_of(whole), view.itemsize, view.format, tuple(shape), step


def make_memory_view(
    transaction: LoadTransaction,
    owner: Any,
    is_readonly: bool,
    start: int,
    itemsize: int,
    form: str,
    shape: tuple[int, ...],
    step: int,
) -> Any:
    """Return the existing view if it looks at the same, or make a new one."""
    old = transaction.take_existing()
    layout = (start, itemsize, form, shape, step)
    is_view = type(old) is memoryview and not _is_released(old)
    if is_view and _owner_of(old) is owner and old.readonly == is_readonly and _layout(old) == layout:
        return old
    made = owner.getbuffer() if isinstance(owner, BytesIO) else memoryview(owner)
    if len(shape) == 1 and step != itemsize:
        if made.format != form or made.ndim != 1:
            made = made.cast("B").cast(form)  # type: ignore[call-overload]
        first, pace = start // itemsize, step // itemsize
        end: int | None = first + pace * shape[0]
        made = made[first : end if end is not None and end >= 0 else None : pace]
    elif (made.format, made.shape) != (form, shape):
        count = itemsize
        for size in shape:
            count *= size
        made = made.cast("B")[start : start + count]
        if form != "B" or len(shape) != 1:
            made = made.cast(form, shape)  # type: ignore[call-overload]
    made = made.toreadonly() if is_readonly else made
    if old is not None:
        transaction.replaced.append((old, made))
    return made


_WAYS: tuple[Callable[[Any], Any], ...] = (
    iter,
    lambda of: iter(of.values()),
    lambda of: iter(of.items()),
    reversed,
    lambda of: reversed(of.values()),
    lambda of: reversed(of.items()),
)
_KINDS: tuple[type, ...] = tuple(type(way({})) for way in _WAYS)


def reduce_dict_iterator(_: Encoding, iterator: Any) -> Reduced:
    """Reduce an iterator to its dict and how many items are left; without a dict where it has come to the end.

    One whose dict has changed its size since has nothing left.
    """
    of = dict_of_iterator(iterator)
    left = iterator.__length_hint__()
    if of is not None and not left < len(of) + 1:
        raise Unpicklable("cannot pickle an iterator of a dict that has changed")
    return make_dict_iterator, (RECEIVER, of, _KINDS.index(type(iterator)), left)


def make_dict_iterator(transaction: LoadTransaction, of: Any, way: int, left: int) -> Any:
    """Make an iterator of the dict that is as far as the other one, in place of the existing one."""
    made = _WAYS[way]({} if of is None else of)
    while made.__length_hint__() > left:
        next(made)
    if of is None:
        next(made, None)
    return _old_or(transaction, made, lambda iterator: (iterator.__length_hint__(), *id_behind_iterator(iterator)))


#: How to make each kind of view, past what a subclass makes of these methods.
_VIEWS: tuple[Callable[[Any], Any], ...] = (
    dict.keys, dict.values, dict.items, OrderedDict.keys, OrderedDict.values, OrderedDict.items,
)  # fmt: skip
_KINDS_OF_VIEWS: tuple[type, ...] = tuple(type(view(OrderedDict())) for view in _VIEWS)


def reduce_dict_view(_: Encoding, view: Any) -> Reduced:
    """Reduce a view of a dict's keys, values or items to the dict, which it follows."""
    return make_dict_view, (RECEIVER, behind_proxy(view.mapping), _KINDS_OF_VIEWS.index(type(view)))


def make_dict_view(transaction: LoadTransaction, of: Any, kind: int) -> Any:
    """Return the existing view if it is one of this dict, or make a new one."""
    return _old_or(transaction, _VIEWS[kind](of), lambda view: behind_proxy(view.mapping))


def reduce_set_iterator(_: Encoding, iterator: Any) -> Reduced:
    """Reduce an iterator of a set to what is left: the order of a set is each process's own."""
    return make_set_iterator, (list(iterator.__reduce__()[1][0]),)


def make_set_iterator(left: list[Any]) -> Any:
    """Make an iterator of a set of these."""
    return iter(set(left))


EXACT: dict[type, Callable[[Encoding, Any], Reduced]] = {
    MappingProxyType: reduce_mapping_proxy,
    memoryview: reduce_memory_view,
    type(iter(set())): reduce_set_iterator,
    **dict.fromkeys(_KINDS_OF_VIEWS, reduce_dict_view),
    **dict.fromkeys(_KINDS, reduce_dict_iterator),
}
