"""The state of numpy's own random numbers, in a form that any version of numpy reads: no array of numpy is pickled."""

import importlib
import pickle
from typing import Any


def read_state(numpy_random: Any) -> bytes:
    """Read the state of the generator behind `numpy.random`, as plain data."""
    return pickle.dumps(_to_plain(numpy_random.get_state(legacy=False)), protocol=5)


def write_state(state: bytes) -> None:
    """Give it to this process's. Raises what numpy raises where it knows no such generator."""
    importlib.import_module("numpy.random").set_state(_from_plain(pickle.loads(state)))


def _to_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_plain(part) for name, part in value.items()}
    if hasattr(value, "dtype"):
        return (value.dtype.str, value.tobytes()) if value.ndim else value.item()
    return value


def _from_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _from_plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        kind, data = value
        return importlib.import_module("numpy").frombuffer(data, dtype=kind)
    return value
