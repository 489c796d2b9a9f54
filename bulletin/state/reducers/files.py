"""Files: a closed one is a name and a mode, an open one stays where it is."""

import contextlib
import io
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, refuse

_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
_IN_MEMORY = (io.StringIO, io.BytesIO)
#: What a process is born with. Each side has its own.
_STREAMS = ("stdout", "stderr", "stdin", "__stdout__", "__stderr__", "__stdin__")


def is_stream(kind: type) -> bool:
    """Tell whether a standard stream of this process is of that type at this moment, buffers in memory apart."""
    return not issubclass(kind, _IN_MEMORY) and any(kind is type(getattr(sys, name)) for name in _STREAMS)


def reduce_stream(encoder: Encoding, file: Any) -> Reduced:
    """Reduce a standard stream to its name, and what is of the same type but is none as `family_of_io` says."""
    name = next((name for name in _STREAMS if getattr(sys, name) is file), "")
    if not name and type(file).__module__ == "ipykernel.iostream" and file.name in _STREAMS:
        name = file.name  # it writes where the one does that has taken its place
    if name:
        return standard_stream, (RECEIVER, name)
    reducer = family_of_io(type(file)) if type(file).__module__ == "_io" else None
    return NotImplemented if reducer is None else reducer(encoder, file)


def standard_stream(transaction: LoadTransaction, name: str) -> Any:
    """Return the stream of that name on this side.

    The existing object stays if it is a standard stream: on the other side two of the names may mean the same one.
    """
    old = transaction.take_existing()
    if any(getattr(sys, other) is old for other in _STREAMS):
        return old  # on the other side two of the names may mean the same stream
    return getattr(sys, name)


def family_of_io(kind: type) -> Callable[[Encoding, Any], Reduced] | None:
    """Choose the reducer for a type of `io`, `socket` or `ssl`: what is open is refused, with Unpicklable.

    None leaves buffers in memory, and exceptions, to pickle.
    """
    if kind is io.BytesIO:
        return reduce_bytes
    if kind is io.StringIO:
        return reduce_text
    if kind.__name__ in {"StringIO", "BytesIO"} or issubclass(kind, BaseException):
        return None
    return reduce_file if kind in _FILES else _refuse


def reduce_bytes(_: Encoding, file: Any) -> Reduced:
    """Reduce bytes in memory as Python does, unless they are closed; views of them may be held on the other side."""
    if file.closed:
        return _reduce_closed(file)
    content, position, attributes = file.__getstate__()
    state = (RECEIVER, content, position, attributes)
    return make_bytes, (RECEIVER, len(content)), state, None, None, fill_bytes


def reduce_text(_: Encoding, file: Any) -> Reduced:
    """Reduce text in memory as Python does, unless it is closed."""
    return _reduce_closed(file) if file.closed else NotImplemented


def _reduce_closed(file: Any) -> Reduced:
    state = (RECEIVER, vars(file).copy())
    return close_in_memory, (RECEIVER, type(file)), state, None, None, fill_closed


def close_in_memory(transaction: LoadTransaction, kind: Any) -> Any:
    """Return the existing buffer, which is closed when nothing can fail any more, or a closed one.

    One that is viewed here cannot be closed: a closed one takes its place, and the view goes on looking into the old.
    """
    old = transaction.take_existing()
    if type(old) is kind and (old.closed or kind is io.StringIO or not _is_viewed(old)):
        transaction.at_end(partial(_close, old))
        return old
    made = kind()
    made.close()
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def fill_closed(file: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Give a closed buffer its attributes."""
    transaction, attributes = state
    transaction.undoable(fill_dict, vars(file), vars(file).copy())
    fill_dict(vars(file), attributes)


def _close(file: Any) -> None:
    with contextlib.suppress(BufferError):  # somebody here holds a view of it
        file.close()


def make_bytes(transaction: LoadTransaction, size: int) -> io.BytesIO:
    """Return the existing bytes in memory, or new ones where views keep those from becoming of this size."""
    old, made = transaction.take_existing(), io.BytesIO()
    if type(old) is io.BytesIO and not old.closed and (len(old.getbuffer()) == size or not _is_viewed(old)):
        return old
    if old is not None:
        transaction.replaced.append((old, made))
    return made


def _is_viewed(file: Any) -> bool:
    try:
        file.__setstate__(file.__getstate__())
    except BufferError:
        return True
    return False


def fill_bytes(file: Any, state: tuple[LoadTransaction, bytes, int, Any]) -> None:
    """Give bytes in memory their content, and attributes; where views of them are held, in place."""
    transaction, *wanted = state
    transaction.undoable(_set_bytes, file, *file.__getstate__())
    _set_bytes(file, *wanted)


def _set_bytes(file: Any, content: bytes, position: int, attributes: Any) -> None:
    if _is_viewed(file):
        with file.getbuffer() as view:
            view[:] = content
    else:
        file.__setstate__((content, position, None))
    file.seek(position)
    fill_dict(vars(file), attributes or {})


def reduce_file(_: Encoding, file: Any) -> Reduced:
    """Reduce a closed file, as `with open(...) as file` leaves it over, to a name, a mode and an encoding.

    Raises Unpicklable for a file that is open, and for one that was opened by a number.
    """
    if not file.closed or isinstance(file.name, int):
        return refuse(file)
    encoding = file.encoding if isinstance(file, io.TextIOWrapper) else None
    return make_closed_file, (_FILES.index(type(file)), file.name, file.mode, encoding)


def make_closed_file(kind_number: int, name: Any, mode: str, encoding: str | None) -> Any:
    """Make a closed file of the type at that place in `_FILES`.

    No file of that name is touched.
    """
    letter = next((letter for letter in "ra" if letter in mode), "w")
    letters = letter + ("+" if "+" in mode else "")
    kind = _FILES[kind_number]
    raw: Any = io.FileIO(os.devnull, letters)
    raw.name = name
    file: Any = raw
    if kind is io.TextIOWrapper:
        layer = io.BufferedRandom if "+" in mode else io.BufferedReader if letter == "r" else io.BufferedWriter
        file = io.TextIOWrapper(layer(raw), encoding=encoding)
        file.mode = mode
    elif kind is not io.FileIO:
        file = kind(raw)
    file.close()
    return file


def _refuse(_: Encoding, value: object) -> Reduced:
    return refuse(value)
