"""Arrays of numpy: as numpy has it, unless several of them look at the same memory, which then travels once."""

import importlib
import itertools
import sys
from typing import TYPE_CHECKING, Any

from bulletin.state.landing import Reduced

if TYPE_CHECKING:
    from bulletin.state.codec import Encoder


def reduce_array(encoder: "Encoder", array: Any) -> Reduced:
    """Note whose memory it is; write it as a window where the encoder knows that others look there too."""
    if array.dtype.hasobject or array.size == 0:
        return NotImplemented
    numpy = sys.modules["numpy"]
    owner = owner_of(array)
    low, high = numpy.lib.array_utils.byte_bounds(array)
    encoder.alive.append(owner)
    if id(array) in encoder.guarded or id(owner) in encoder.guarded:
        return NotImplemented
    encoder.owners.setdefault(id(owner), []).append((id(array), low, high))
    span = encoder.shared.get(id(owner))
    if span is None:
        return NotImplemented
    region = encoder.regions.get(id(owner))
    if region is None:
        region = encoder.regions[id(owner)] = _window(numpy, array, *span)
    start = array.__array_interface__["data"][0] - span[0]
    return make_view, (region, array.dtype, array.shape, array.strides, start, array.flags.writeable)


def reduce_memmap(_: "Encoder", array: Any) -> Reduced:
    """An array in a file is that file: a change belongs there, and both sides see it. A part of one is a value."""
    numpy = sys.modules["numpy"]
    if array.filename is None or array.mode == "c" or isinstance(array.base, numpy.ndarray):
        return NotImplemented
    if array.mode != "r":
        array.flush()
    mode = "r+" if array.mode == "w+" else array.mode  # w+ would empty it
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return open_memmap, (str(array.filename), array.dtype, mode, array.offset, array.shape, order)


def open_memmap(filename: str, dtype: Any, mode: Any, offset: int, shape: Any, order: Any) -> Any:
    """The array in the file. Raises FileNotFoundError where the file is not."""
    return importlib.import_module("numpy").memmap(filename, dtype, mode, offset, shape, order)


def owner_of(array: Any) -> Any:
    """The object at the end of the chain of bases: arrays with the same one may overlap."""
    while array.base is not None:
        array = array.base
        if not hasattr(array, "base"):
            break
    return array


class _Interface:
    """Memory by its address, in numpy's own protocol."""

    def __init__(self, low: int, size: int, owner: object) -> None:
        self.__array_interface__ = {"data": (low, False), "shape": (size,), "typestr": "|u1", "version": 3}
        self._owner = owner


def _window(numpy: Any, array: Any, low: int, high: int) -> Any:
    """The bytes from `low` to `high`, as an array that the reducer lets pass."""
    return numpy.asarray(_Interface(low, high - low, owner_of(array)))


def make_view(region: Any, dtype: Any, shape: Any, strides: Any, start: int, writeable: Any) -> Any:
    """An array that looks at a window of memory."""
    array = sys.modules["numpy"].ndarray(shape, dtype, buffer=region, offset=start, strides=strides)
    if not writeable:
        array.flags.writeable = False
    return array


def overlaps(owners: dict[int, list[tuple[int, int, int]]]) -> dict[int, tuple[int, int]]:
    """Owner -> window, for memory at which more than one array looks, in places that overlap."""
    found: dict[int, tuple[int, int]] = {}
    for owner, uses in owners.items():
        ordered = sorted({(low, high, which) for which, low, high in uses})
        if any(later[0] < earlier[1] for earlier, later in itertools.pairwise(ordered)):
            found[owner] = (ordered[0][0], max(high for _, high, _ in ordered))
    return found
