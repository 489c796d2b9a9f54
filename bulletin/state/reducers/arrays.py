"""Arrays of numpy: a shape on a region of memory, which travels once for all that look at it."""

import importlib
import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.leaves import leaves_of
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced
from bulletin.state.memory import Region
from bulletin.state.silence import silence

from .dtypes import plain_text_of, type_of

#: An array that owns more than this is made over the bytes that came, and owns nothing: `resize` refuses.
_OWN_BYTES = 16 << 20
#: Of an owner that nobody asked for, at most so many times what is seen through its view.
OWNER_FACTOR, SMALL_BYTES = 4, 1 << 20


def reduce_array(encoder: Encoding, array: Any) -> Reduced:
    """Reduce an array to its layout, and the memory under it.

    The memory is a region, or the array or bytearray that the array is a view of, unless that is far larger than what
    is seen through the view. An array of objects goes object by object; one of records that hold objects is left to
    pickle.
    """
    flags = array.flags
    layout = (plain_text_of(array.dtype), array.shape, array.strides)
    if array.dtype.hasobject:
        return _reduce_objects(encoder, array) if array.dtype == object else NotImplemented
    if id(array) in encoder.guarded and array.nbytes:
        return make_array, (RECEIVER, *_guarded(encoder, array), *_dense(array), flags.writeable)
    if array.nbytes == 0:
        return make_array, (RECEIVER, -1, 0, *layout, flags.writeable)
    return reduce_memory(encoder, array, array)


def reduce_memory(encoder: Encoding, array: Any, looker: object) -> tuple[Any, tuple[Any, ...]]:
    """Reduce a plain array that has bytes, and no objects in them, to its layout and the memory under it.

    `looker` is the object that it is the memory of: as long as somebody has that, both sides know the memory.
    """
    layout = (plain_text_of(array.dtype), array.shape, array.strides, array.flags.writeable)
    owner, start = owner_of(array), address_of(array)
    if owner is array:
        region = encoder.finder.find_or_add(array, start, array.nbytes)
        return make_array, (RECEIVER, *encoder.region(region, start, looker), *layout)
    if type(owner) is type(array) and (owner.nbytes <= SMALL_BYTES or owner.nbytes <= OWNER_FACTOR * array.nbytes):
        return view_array, (RECEIVER, owner, start - address_of(owner), *layout)
    low, high = sys.modules["numpy"].lib.array_utils.byte_bounds(array)
    if isinstance(owner, bytearray) and low >= (base := _bytes_address(owner)) and high <= base + len(owner):
        return view_array, (RECEIVER, owner, start - base, *layout)
    region = encoder.finder.find_or_add(owner, low, high - low)
    return make_array, (RECEIVER, *encoder.region(region, start, looker), *layout)


def _guarded(encoder: Encoding, array: Any) -> tuple[int, int]:
    """Put a guarded array into a region of its own: what else looks at this memory does not count.

    Returns the number of the region, and the array's place in it.
    """
    dense = array
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        dense = array.copy(order="K")
    region = encoder.finder.find_or_add_guarded(array, dense, address_of(dense), array.nbytes)
    return encoder.region(region, region.address, dense)


def _dense(array: Any) -> tuple[Any, Any, Any]:
    """Return the type, shape and strides with which a guarded array travels: its own, or those of a dense copy."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return plain_text_of(array.dtype), array.shape, array.strides
    return plain_text_of(array.dtype), array.shape, array.copy(order="K").strides


def address_of(array: Any) -> int:
    """Return where the memory of an array begins."""
    start: int = array.__array_interface__["data"][0]
    return start


def _bytes_address(owner: bytearray) -> int:
    return address_of(sys.modules["numpy"].frombuffer(owner, "u1")) if owner else 0


def make_array(
    transaction: LoadTransaction, number: int, offset: int, dtype: Any, shape: Any, strides: Any, writeable: bool
) -> Any:
    """Make an array that looks at a region, or give the existing one that layout, where it looks there already.

    A new array owns its memory if it is the first in the region, covers all of it, and has at most `_OWN_BYTES`; a
    larger one is made over the bytes that came. A `number` of -1 means an array without bytes.
    """
    numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
    old, dtype = transaction.take_existing(), type_of(numpy, dtype)
    if number < 0:
        if type(old) is numpy.ndarray and relaid(transaction, old, address_of(old), dtype, shape, strides):
            return marked(transaction, old, writeable)
        return settle(transaction, old, marked(transaction, _empty_like(numpy, dtype, shape, strides), writeable))
    region = transaction.regions[number]
    is_here = type(old) is numpy.ndarray and region.address
    if is_here and relaid(transaction, old, region.address + offset, dtype, shape, strides):
        return marked(transaction, old, writeable)
    array = None
    if not region.address and offset == 0 and region.size <= _OWN_BYTES:
        array = _empty_like(numpy, dtype, shape, strides)
        if array.nbytes == region.size and array.strides == strides:
            region.land(array, address_of(array))
        else:
            array = None
    if array is None:
        array = numpy.ndarray(shape, dtype, buffer=bytes_of(numpy, region), offset=offset, strides=strides)
    return settle(transaction, None if region.is_guarded else old, marked(transaction, array, writeable))


def view_array(
    transaction: LoadTransaction, owner: Any, offset: int, dtype: Any, shape: Any, strides: Any, writeable: bool
) -> Any:
    """Make a view of an array or a bytearray, or give the existing view that layout, where it looks there already.

    `offset` counts bytes from where the owner begins. A read-only owner lends its memory to a writeable view all the
    same.
    """
    numpy = sys.modules["numpy"]
    old, dtype = transaction.take_existing(), type_of(numpy, dtype)
    start = (_bytes_address(owner) if isinstance(owner, bytearray) else address_of(owner)) + offset
    is_view = type(old) is numpy.ndarray and old.base is not None
    if is_view and relaid(transaction, old, start, dtype, shape, strides):
        return marked(transaction, old, writeable)
    carrier = owner if isinstance(owner, bytearray) else _in_order(owner)
    is_locked = writeable and not isinstance(owner, bytearray) and not owner.flags.writeable
    if is_locked:
        transaction.undoable(_mark, owner, False)
        owner.flags.writeable = True
    array = numpy.ndarray(shape, dtype, buffer=carrier, offset=offset, strides=strides)
    if is_locked:
        owner.flags.writeable = False
    return settle(transaction, old, marked(transaction, array, writeable))


def _in_order(array: Any) -> Any:
    """Return the array with its axes as they lie in memory: only so does it lend its memory as a whole."""
    if array.flags.c_contiguous:
        return array
    return array.transpose(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))


class _Interface:
    """Memory by its address, as numpy's `__array_interface__` describes it; keeps the memory's owner alive."""

    def __init__(self, start: int, size: int, owner: object) -> None:
        self.__array_interface__ = {"data": (start, False), "shape": (size,), "typestr": "|u1", "version": 3}
        self._owner = owner


def bytes_of(numpy: Any, region: Region) -> Any:
    """Return a region's bytes as an array that keeps them alive; a region that has no memory here yet gets some."""
    region.land()
    return numpy.asarray(_Interface(region.address, region.size, region.owner))


def _is_laid_out(array: Any, start: int, dtype: Any, shape: Any, strides: Any) -> bool:
    return bool(
        address_of(array) == start and array.shape == shape and array.strides == strides and array.dtype == dtype
    )


def relaid(transaction: LoadTransaction, old: Any, start: int, dtype: Any, shape: Any, strides: Any) -> bool:
    """Give an array of the same memory this layout, as `array.shape = ...` does. False where that is not enough."""
    if _is_laid_out(old, start, dtype, shape, strides):
        return True
    if address_of(old) != start:
        return False
    before = old.dtype, old.shape, old.strides
    transaction.undoable(_lay_out, old, *before)
    try:
        _lay_out(old, dtype, shape, strides)
    except (ValueError, AttributeError, TypeError):
        _lay_out(old, *before)
        return False
    return True


def _lay_out(array: Any, dtype: Any, shape: Any, strides: Any) -> None:
    with silence():  # numpy would rather have a new array; but this is the user's
        if array.dtype != dtype:
            array.dtype = dtype
        if array.shape != shape:
            array.shape = shape
        if array.strides != strides:
            array.strides = strides


def marked(transaction: LoadTransaction, array: Any, writeable: bool) -> Any:
    """Return the array, marked as one that can be written to or not. Raises ValueError where its memory cannot."""
    if array.flags.writeable != writeable:
        transaction.undoable(_mark, array, array.flags.writeable)
        _mark(array, writeable)
    return array


def _mark(array: Any, writeable: bool) -> None:
    array.flags.writeable = writeable


def settle(transaction: LoadTransaction, old: Any, array: Any) -> Any:
    """Return an array that is to take the place of the existing one, if there is any."""
    if old is not None:
        transaction.replaced.append((old, array))
    return array


def _empty_like(numpy: Any, dtype: Any, shape: Any, strides: Any) -> Any:
    """Make an array with memory of its own, and its axes in the order of these strides."""
    plain = numpy.empty(shape, dtype)
    if plain.strides == strides:
        return plain
    prototype = numpy.lib.stride_tricks.as_strided(numpy.empty(1, dtype), shape, strides)
    return numpy.empty_like(prototype, order="K", subok=False)


def owner_of(array: Any) -> Any:
    """Return the object at the end of the chain of bases: arrays with the same one may overlap."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


# --- arrays of objects, and arrays in files


def _reduce_objects(encoder: Encoding, array: Any) -> Reduced:
    """Reduce an array of objects to its objects, one by one or as leaves, and a view of such an array to that array."""
    owner = owner_of(array)
    if owner is not array and type(owner) is type(array) and owner.dtype == array.dtype:
        offset = address_of(array) - address_of(owner)
        return view_objects, (RECEIVER, owner, offset, array.shape, array.strides, array.flags.writeable)
    flags = array.flags
    order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    flat = array.ravel(order="K" if flags.forc else "C")
    leaves = leaves_of(flat)
    if leaves is not None:
        state = (RECEIVER, encoder.leaves_number(leaves), flags.writeable)
        return make_objects, (RECEIVER, array.shape, order), state, None, None, fill_leaves
    return make_objects, (RECEIVER, array.shape, order), (flat.tolist(), flags.writeable), None, None, fill_objects


def make_objects(transaction: LoadTransaction, shape: Any, order: str) -> Any:
    """Make an array of objects that are not there yet, or reuse the existing one if it owns as many.

    `fill_objects` puts the objects in.
    """
    numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
    old = transaction.take_existing()
    if type(old) is numpy.ndarray and old.dtype.hasobject and old.base is None:
        if old.shape != shape and old.size == _size(shape):
            transaction.undoable(_lay_out, old, old.dtype, old.shape, old.strides)
            old.shape = shape
        if old.shape == shape:
            transaction.undoable(_put, old, list(old.ravel(order="C")), old.flags.writeable)
            return old
    return settle(transaction, old, numpy.empty(shape, dtype=object, order=order))


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def fill_objects(array: Any, state: tuple[list[Any], bool]) -> None:
    """Put the objects into their places, and set whether the array can be written."""
    items, writeable = state
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    _put(array, items, writeable, order)


def fill_leaves(array: Any, state: tuple[LoadTransaction, int, bool]) -> None:
    """Put atoms into their places, as `fill_objects` does it with objects."""
    transaction, number, writeable = state
    fill_objects(array, (list(transaction.leaves[number].items), writeable))


def _put(array: Any, items: list[Any], writeable: bool, order: str = "C") -> None:
    numpy = sys.modules["numpy"]
    flat = numpy.fromiter(items, dtype=object, count=len(items))  # one by one: else a list of lists is taken apart
    array.flags.writeable = True
    array[...] = flat.reshape(array.shape, order=order)
    array.flags.writeable = writeable


def view_objects(
    transaction: LoadTransaction, owner: Any, offset: int, shape: Any, strides: Any, writeable: bool
) -> Any:
    """Make a view of an array of objects, or return the existing one if it is laid out alike."""
    numpy = sys.modules["numpy"]
    old = transaction.take_existing()
    start = address_of(owner) + offset
    if type(old) is numpy.ndarray and old.base is not None and _is_laid_out(old, start, owner.dtype, shape, strides):
        return marked(transaction, old, writeable)
    flat = owner.ravel(order="K") if owner.size else owner
    array = numpy.lib.stride_tricks.as_strided(flat[offset // 8 :], shape, strides, writeable=writeable)
    return settle(transaction, old, array)


def reduce_memmap(_: Encoding, array: Any) -> Reduced:
    """Reduce an array in a file to the name of the file and its place there, once what was written has reached it.

    A change belongs into the file, and both sides see it. A part of such an array, and one that never writes to its
    file (mode "c"), is left to pickle, as a value.
    """
    numpy = sys.modules["numpy"]
    if array.filename is None or array.mode == "c" or isinstance(array.base, numpy.ndarray):
        return NotImplemented
    if array.mode != "r":
        array.flush()
    mode = "r+" if array.mode == "w+" else array.mode  # w+ would empty it
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return open_memmap, (RECEIVER, str(array.filename), array.dtype, mode, array.offset, array.shape, order)


def open_memmap(
    transaction: LoadTransaction, filename: str, dtype: Any, mode: Any, offset: int, shape: Any, order: Any
) -> Any:
    """Open the array in the file, or return the existing one. Raises FileNotFoundError where the file is not."""
    numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
    old = transaction.take_existing()
    if type(old) is numpy.memmap and str(old.filename) == filename and (old.dtype, old.shape) == (dtype, shape):
        return old
    return settle(transaction, old, numpy.memmap(filename, dtype, mode, offset, shape, order))


def is_generator(kind: type) -> bool:
    """Tell whether a type is `RandomState` or `random.Random`: each process has one that everybody draws from."""
    return (kind.__module__, kind.__name__) in {("numpy.random.mtrand", "RandomState"), ("random", "Random")}


def reduce_generator(_: Encoding, generator: Any) -> Reduced:
    """Reduce the generator that everybody draws from to its name; leave all others to pickle.

    Each side has its own: its state is among what cells rely on, and travels with that.
    """
    for module, name in (("numpy.random.mtrand", "_rand"), ("random", "_inst")):
        if getattr(sys.modules.get(module), name, None) is generator:
            return getattr, (sys.modules[module], name)
    return NotImplemented
