"""Loggers of loguru: each process has one core of its own, with the handlers and levels that the notebook gave it."""

import fcntl
import os
import sys
from typing import Any

from bulletin.state.encoding import Encoding
from bulletin.state.inplace import fill_dict
from bulletin.state.load_transaction import RECEIVER, LoadTransaction, Reduced

from .constants import find_constant
from .containers import make_unfilled

#: What a core has of its process: the lock, and what a thread is doing.
_OF_PROCESS = frozenset({"lock", "thread_locals", "handlers"})


def is_logger(kind: type) -> bool:
    """Tell whether a type is that of loguru's loggers."""
    module: Any = sys.modules.get("loguru._logger")
    return hasattr(module, "Logger") and kind is module.Logger


def is_core(kind: type) -> bool:
    """Tell whether a type is that of what all loggers of a process share."""
    module: Any = sys.modules.get("loguru._logger")
    return hasattr(module, "Core") and kind is module.Core


def is_file_sink(kind: type) -> bool:
    """Tell whether a type is what writes a log into a file."""
    module: Any = sys.modules.get("loguru._file_sink")
    return hasattr(module, "FileSink") and kind is module.FileSink


def reduce_file_sink(_: Encoding, sink: Any) -> Reduced:
    """Reduce what writes into a file to all but the open file: the other side goes on at the end of it."""
    how = {name: held for name, held in vars(sink).items() if name not in _OF_FILE}
    if sink._file is not None:  # the other side writes behind what is there, and so does this one from now on
        number = sink._file.fileno()
        fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) | os.O_APPEND)
    how["_kwargs"] = {**sink._kwargs, "mode": sink._kwargs["mode"].replace("w", "a")}
    return make_unfilled, (RECEIVER, type(sink)), (RECEIVER, how), None, None, fill_file_sink


_OF_FILE = frozenset({"_file", "_file_path", "_file_dev", "_file_ino"})


def fill_file_sink(sink: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Have it write as the other side's does, undoably, with the file that it has open, or as the next line comes."""
    transaction, how = state
    attributes = vars(sink)
    transaction.undoable(fill_dict, attributes, dict(attributes))
    attributes.update({"_file": None, "_file_path": None, "_file_dev": -1, "_file_ino": -1} | attributes | how)


def reduce_logger(_: Encoding, logger: Any) -> Reduced:
    """Reduce a logger to the core and its own options; the library's own to where it is, and the core."""
    state = (RECEIVER, vars(logger))
    if logger is sys.modules["loguru"].logger:
        return find_constant, (RECEIVER, "loguru", "logger"), state, None, None, fill_logger
    return make_unfilled, (RECEIVER, type(logger)), state, None, None, fill_logger


def fill_logger(logger: Any, state: tuple[LoadTransaction, dict[str, Any]]) -> None:
    """Give a logger its options, undoably."""
    transaction, attributes = state
    transaction.undoable(fill_dict, vars(logger), dict(vars(logger)))
    fill_dict(vars(logger), attributes)


def reduce_core(encoder: Encoding, core: Any) -> Reduced:
    """Reduce a core to its levels, its options and those of its handlers that can travel; others stay on their side."""
    handlers = {number: _if_it_travels(encoder, handler) for number, handler in core.handlers.items()}
    rest = {name: held for name, held in vars(core).items() if name not in _OF_PROCESS}
    return find_core, (RECEIVER, type(core)), (RECEIVER, handlers, rest), None, None, fill_core


def _if_it_travels(encoder: Encoding, handler: Any) -> Any:
    return handler if encoder.try_to_send(handler, vars(handler)["_sink"]) else None


def find_core(transaction: LoadTransaction, kind: Any) -> Any:
    """Return the core of the library's logger in this process; a new one where that is another's."""
    old = transaction.take_existing()
    found = old if type(old) is kind else sys.modules["loguru"].logger._core
    if old is not None and old is not found:
        transaction.replaced.append((old, found))
    return found


def fill_core(core: Any, state: tuple[LoadTransaction, dict[int, Any], dict[str, Any]]) -> None:
    """Give a core its levels and handlers, undoably. A handler that could not come is the one of this side, if any."""
    transaction, wanted, rest = state
    before = dict(vars(core))
    transaction.undoable(fill_dict, vars(core), before)
    here = before["handlers"]
    handlers = {number: here.get(number) if held is None else held for number, held in wanted.items()}
    vars(core).update(rest, handlers={number: held for number, held in handlers.items() if held is not None})
