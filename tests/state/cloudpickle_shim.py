"""`dumps` and `loads` as cloudpickle has them, on Bulletin's codec: what `cloudpickle_suite.py` puts in their place.

A value is captured as the only name that a cell reads, against a table that has nothing yet; the bytes are a pickle
that plain `pickle.loads` can read, because the suite reads with it. What arrives lands in a namespace of its own.
"""

import builtins
import pickle
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

from bulletin import state
from bulletin.errors import BulletinError

#: The module whose namespace is the notebook's where it is loaded; in all other processes that is `__main__`.
_SUITE = "tests.cloudpickle_test"
_NAME = "_suite_value"
#: At which version of the table both sides begin; see `install`.
_version = 0


def dumps(value: object, protocol: int | None = None, buffer_callback: Callable[[Any], Any] | None = None) -> bytes:
    """The value as bytes. There is one protocol, and no piece stays outside.

    Raises
    ------
    pickle.PicklingError
        If any part of the value cannot travel, also where Bulletin would send a handle for it.
    """
    namespace = sys.modules.get(_SUITE, sys.modules["__main__"]).__dict__
    namespace[_NAME] = value
    try:
        captured = state.capture(namespace, state.Needs(reads=(_NAME,)), table=_table())
    except BulletinError as problem:
        raise pickle.PicklingError(str(problem)) from problem
    finally:
        del namespace[_NAME]
    if captured.stayed:
        raise pickle.PicklingError("; ".join(f"{stayed.path}: {stayed.why}" for stayed in captured.stayed))
    return pickle.dumps(_Parcel([bytes(part) for part in captured.parts]), protocol=5)


def loads(data: bytes, **options: Any) -> Any:
    """What `dumps` was given, or its twin."""
    return pickle.loads(data, **options)


def dump(value: object, file: Any, protocol: int | None = None, buffer_callback: Any = None) -> None:
    """As `dumps`, into a file."""
    file.write(dumps(value, protocol, buffer_callback))


def load(file: Any, **options: Any) -> Any:
    """As `loads`, from a file."""
    return pickle.load(file, **options)


class _Parcel:
    """Pickles as the call that makes the value."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    def __reduce__(self) -> tuple[Callable[[list[bytes]], object], tuple[list[bytes]]]:
        return arrive, (self._parts,)


def arrive(parts: list[bytes]) -> object:
    """The value, with a namespace of its own for its functions.

    Raises
    ------
    pickle.UnpicklingError
        If it cannot be loaded here.
    """
    namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    try:
        state.restore([bytearray(part) for part in parts], namespace, _table())
    except BulletinError as problem:
        raise pickle.UnpicklingError(str(problem)) from problem
    return namespace.pop(_NAME)


def _table() -> state.Table:
    return state.Table(version=_version)


def install(version: int) -> None:
    """Put these in the place of cloudpickle's own, in this process.

    `version` is the table's at the beginning. At 0 the receiver forgets all functions and classes that it knows, as a
    new executor does; from 1 on it goes on with them, as a notebook does that gets its own things back.
    """
    global _version
    _version = version
    for module in (cloudpickle, cloudpickle.cloudpickle):
        for replacement in (dumps, loads, dump, load):
            setattr(module, replacement.__name__, replacement)
