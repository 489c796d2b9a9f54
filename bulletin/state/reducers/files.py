"""Files: a closed one is a name and a mode, an open one stays where it is."""

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced, refuse

if TYPE_CHECKING:
    from bulletin.state.encoder import Encoder

_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
_IN_MEMORY = (io.StringIO, io.BytesIO)
#: What a process is born with. Each side has its own.
_STREAMS = ("stdout", "stderr", "stdin", "__stdout__", "__stderr__", "__stdin__")


def is_stream(kind: type) -> bool:
    """True for the types of the standard streams of this process, as they are at this moment."""
    return not issubclass(kind, _IN_MEMORY) and any(kind is type(getattr(sys, name)) for name in _STREAMS)


def reduce_stream(encoder: "Encoder", file: Any) -> Reduced:
    """By name, if it is one of the standard streams."""
    name = next((name for name in _STREAMS if getattr(sys, name) is file), "")
    if name:
        return standard_stream, (RECEIVER, name)
    reducer = family_of_io(type(file)) if type(file).__module__ == "_io" else None
    return NotImplemented if reducer is None else reducer(encoder, file)


def standard_stream(transaction: LoadTransaction, name: str) -> Any:
    """The stream of that name on this side."""
    old = transaction.take_existing()
    if any(getattr(sys, other) is old for other in _STREAMS):
        return old  # on the other side two of the names may mean the same stream
    return getattr(sys, name)


def family_of_io(kind: type) -> Callable[["Encoder", Any], Reduced] | None:
    """Open files and sockets stay where they are; buffers in memory travel as pickle has it."""
    if kind.__name__ in {"StringIO", "BytesIO"} or issubclass(kind, BaseException):
        return None
    return reduce_file if kind in _FILES else _refuse


def reduce_file(_: "Encoder", file: Any) -> Reduced:
    """What `with open(...) as file` leaves over is closed: a name and a mode, and nothing else."""
    if not file.closed or isinstance(file.name, int):
        return refuse(file)
    encoding = file.encoding if isinstance(file, io.TextIOWrapper) else None
    return make_closed_file, (_FILES.index(type(file)), file.name, file.mode, encoding)


def make_closed_file(place: int, name: Any, mode: str, encoding: str | None) -> Any:
    """A file of that kind, closed; no file of that name is touched."""
    letter = next((letter for letter in "ra" if letter in mode), "w")
    letters = letter + ("+" if "+" in mode else "")
    kind = _FILES[place]
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


def _refuse(_: "Encoder", value: object) -> Reduced:
    return refuse(value)
