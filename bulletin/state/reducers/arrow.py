"""Buffers of pyarrow: the memory of its arrays and tables, and of pandas' texts where pyarrow is installed."""

import importlib
import pickle
import sys
from typing import Any

from bulletin.cpython.pickle_memo import new_object
from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .arrays import OWNER_FACTOR, SMALL_BYTES, bytes_of

#: How objects reduce themselves where their class says nothing of it.
_USUAL: tuple[Any, ...] = (object.__reduce_ex__, object.__reduce__)


def is_buffer(kind: type) -> bool:
    """Tell whether a type is pyarrow's buffer. One is made anew each time that somebody asks an array for it."""
    return kind.__module__ == "pyarrow.lib" and kind.__name__.endswith("Buffer")


def reduce_buffer(encoder: Encoding, buffer: Any) -> Reduced:
    """Reduce a buffer to the memory under it; leave one on a device, and one without bytes, to pickle."""
    if not buffer.is_cpu or not buffer.size:
        return NotImplemented
    return make_buffer, (RECEIVER, *_place_of(encoder, buffer))


def _place_of(encoder: Encoding, buffer: Any) -> tuple[Any, ...]:
    """Return what `make_buffer` makes a buffer of."""
    region = encoder.finder.find_or_add(buffer, buffer.address, buffer.size)
    region.is_held = True  # by an array of pyarrow's, which shows nobody its buffer
    return *encoder.region(region, buffer.address, buffer), buffer.size, buffer.is_mutable


def make_buffer(transaction: LoadTransaction, number: int, offset: int, size: int, is_mutable: bool) -> Any:
    """Make a buffer over a region's memory; a slice of one is never mutable."""
    transaction.take_existing()
    pyarrow = sys.modules.get("pyarrow") or importlib.import_module("pyarrow")
    numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
    memory = bytes_of(numpy, transaction.regions[number])
    return (
        pyarrow.py_buffer(memory[offset : offset + size])
        if is_mutable
        else pyarrow.py_buffer(memory).slice(offset, size)
    )


def is_chunked(kind: type) -> bool:
    """Tell whether a type is pyarrow's array of arrays."""
    return kind.__module__ == "pyarrow.lib" and kind.__name__ == "ChunkedArray"


def reduce_chunked(encoder: Encoding, array: Any) -> Reduced:
    """Reduce an array of arrays to these and their type; of texts, to the memory of each."""
    texts = _texts_in(encoder, array)
    return (make_chunked, (RECEIVER, array.chunks, array.type)) if texts is None else (make_texts, (RECEIVER, *texts))


#: Types of texts, by the functions of pyarrow's that give them.
_TEXTS = ("large_string", "string")


def _texts_in(encoder: Encoding, array: Any) -> tuple[Any, ...] | None:
    """Say of which type the texts of an array of arrays are, and of each how long it is and what memory it has.

    That is its length, how many are missing, where it begins, and four numbers for each buffer, all in one piece: in a
    stream, each piece has a place of its own. None where there are others, or on a device.
    """
    pyarrow: Any = sys.modules["pyarrow"]
    dtype = array.type
    name = next((name for name in _TEXTS if dtype == getattr(pyarrow, name)()), None)
    if name is None:
        return None
    found = [(chunk, chunk.buffers()) for chunk in array.chunks]
    if not all(len(buffers) == _BUFFERS for _, buffers in found):
        return None
    if not all(buffer is None or buffer.is_cpu for _, buffers in found for buffer in buffers):
        return None
    told: list[Any] = [name]
    for chunk, buffers in found:
        told += (len(chunk), chunk.null_count, chunk.offset)
        for buffer in buffers:
            told += _NONE if buffer is None else _place_of(encoder, buffer) if buffer.size else _EMPTY
    return tuple(told)


#: An array of texts says in a buffer each which are missing, where each begins, and what they are.
_BUFFERS = 3
#: In place of the four numbers of a buffer: there is none, or it has no bytes.
_NONE, _EMPTY = (-1, 0, 0, False), (-2, 0, 0, False)


def make_texts(transaction: LoadTransaction, *told: Any) -> Any:
    """Make an array of arrays of texts; return the existing one if it sees the same memory: that never changes."""
    old = transaction.take_existing()
    made = _load_texts(transaction, old, *told)
    if old is not None and made is not old:
        transaction.replaced.append((old, made))
    return made


def _load_texts(transaction: LoadTransaction, old: Any, name: str, *told: Any) -> Any:
    """Make what `_texts_in` has told, or return the old array, where that sees the same memory."""
    pyarrow: Any = sys.modules.get("pyarrow") or importlib.import_module("pyarrow")
    dtype, chunks = getattr(pyarrow, name)(), []
    for start in range(0, len(told), _CHUNK):
        length, null_count, offset, *places = told[start : start + _CHUNK]
        buffers = [_buffer_at(transaction, *places[at : at + 4]) for at in range(0, len(places), 4)]
        chunks.append(pyarrow.Array.from_buffers(dtype, length, buffers, null_count, offset))
    return _old_if_alike(old, chunks, dtype)


_CHUNK = 3 + 4 * _BUFFERS


def _buffer_at(transaction: LoadTransaction, number: int, offset: int, size: int, is_mutable: bool) -> Any:
    if number < 0:
        return None if number == _NONE[0] else sys.modules["pyarrow"].py_buffer(b"")
    return make_buffer(transaction, number, offset, size, is_mutable)


def make_chunked(transaction: LoadTransaction, chunks: list[Any], dtype: Any) -> Any:
    """Make an array of arrays; return the existing one if it sees the same memory: that never changes."""
    old = transaction.take_existing()
    made = _old_if_alike(old, chunks, dtype)
    if old is not None and made is not old:
        transaction.replaced.append((old, made))
    return made


def _old_if_alike(old: Any, chunks: list[Any], dtype: Any) -> Any:
    pyarrow: Any = sys.modules.get("pyarrow") or importlib.import_module("pyarrow")
    made = pyarrow.chunked_array(chunks, dtype)
    is_alike = type(old) is type(made) and old.type == dtype and _is_flat(pyarrow, dtype)
    return old if is_alike and list(map(_seen_by, old.chunks)) == list(map(_seen_by, chunks)) else made


def _is_flat(pyarrow: Any, dtype: Any) -> bool:
    """Tell whether an array of this type sees no other memory than its `buffers` say."""
    is_of_python = isinstance(dtype, pyarrow.BaseExtensionType)
    return dtype.num_fields == 0 and not pyarrow.types.is_dictionary(dtype) and not is_of_python


def _seen_by(array: Any) -> tuple[Any, ...]:
    """Say what a flat array sees: which part of which memory."""
    buffers = tuple(None if buffer is None else (buffer.address, buffer.size) for buffer in array.buffers())
    return array.offset, len(array), buffers, type(array)


def is_pandas_array(kind: type) -> bool:
    """Tell whether a type is an array of pandas that holds one of pyarrow's, and leaves it to pandas how it travels."""
    pandas: Any = sys.modules.get("pandas")
    arrow_array = getattr(getattr(pandas, "arrays", None), "ArrowExtensionArray", None)
    if arrow_array is None or not issubclass(kind, arrow_array):
        return False
    reductions = (getattr(kind, name) for name in ("__reduce_ex__", "__reduce__"))
    return kind.__getstate__ is arrow_array.__getstate__ and tuple(reductions) == _USUAL


def reduce_pandas_array(encoder: Encoding, array: Any) -> Reduced:
    """Reduce an array of pandas as pandas does, but with the memory that it has.

    Pandas copies that together first, so that it would look like another one each time. This is done only where the
    array sees a small part of its memory; that copy goes inside the stream. Of an array of texts as pandas makes them
    nothing but these goes: they are in every frame, mostly twice.
    """
    found = array.__dict__.get("_pa_array")
    if not hasattr(found, "get_total_buffer_size"):
        return NotImplemented
    whole = found.get_total_buffer_size()
    if whole <= SMALL_BYTES or whole <= OWNER_FACTOR * found.nbytes:
        texts = _texts_in(encoder, found) if _is_plain(array) else None
        if texts is not None:
            return make_text_array, (RECEIVER, array.__dict__["_dtype"].storage, *texts)
        state = dict(array.__dict__)
    else:
        state = array.__getstate__()
        state["_pa_array"] = _Copy(sys.modules["pyarrow"].chunked_array(state["_pa_array"]))
    if "_cache" in state:
        state["_cache"] = None  # what pandas has worked out, and works out again
    state = {sys.intern(name): held for name, held in state.items()}  # pandas sets some anew, with names of its own
    return new_object, (type(array),), state, None, None, fill_pandas_array


def _is_plain(array: Any) -> bool:
    """Tell whether an array of pandas is nothing but its texts, with NaN for a missing one."""
    pandas: Any = sys.modules["pandas"]
    own, dtype = array.__dict__, array.__dict__.get("_dtype")
    is_usual = type(array) is pandas.arrays.ArrowStringArray and type(dtype) is pandas.StringDtype
    return is_usual and type(dtype.na_value) is float and own.keys() <= {"_pa_array", "_dtype", "_cache"}


def make_text_array(transaction: LoadTransaction, storage: str, *told: Any) -> Any:
    """Make pandas' array of these texts, or put them into the existing one."""
    numpy: Any = sys.modules.get("numpy") or importlib.import_module("numpy")
    pandas: Any = sys.modules.get("pandas") or importlib.import_module("pandas")
    old, dtype = transaction.take_existing(), pandas.StringDtype(storage, na_value=numpy.nan)
    kind = pandas.arrays.ArrowStringArray
    is_reused = type(old) is kind
    made = old if is_reused else kind.__new__(kind)
    own = made.__dict__
    before = dict(own)
    held = _load_texts(transaction, before.get("_pa_array"), *told)
    if is_reused:
        transaction.undoable(fill_dict, own, list(before.items()))
        own.clear()
    elif old is not None:
        transaction.replaced.append((old, made))
    same_dtype = before.get("_dtype") if before.get("_dtype") == dtype else dtype
    own.update({"_pa_array": held, "_dtype": same_dtype, "_cache": {}})
    return made


def fill_pandas_array(array: Any, state: dict[str, Any]) -> None:
    """Set the attributes that came: pandas would make another array of pyarrow's of the one among them."""
    for name, held in state.items():
        array.__dict__[sys.intern(name)] = {} if name == "_cache" else held


class _Copy:
    """What is made for a stream alone: it goes inside, and no memory of it is known afterwards."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __reduce__(self) -> Reduced:
        return pickle.loads, (pickle.dumps(self.made, protocol=5),)
