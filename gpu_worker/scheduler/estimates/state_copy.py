"""A copy of all that the scheduler knows, to try out what will come. Nothing that changes is shared with it."""

from copy import copy, deepcopy
from enum import Enum
from typing import Any, TypeVar

import msgspec

from gpu_worker.scheduler.estimate_cache import EstimateCache
from gpu_worker.scheduler.state import State

Value = TypeVar("Value")
#: What never changes is shared: a tuple holds nothing else here (`tests/scheduler/test_replay_ahead.py` looks).
_SHARED = (type(None), bool, int, str, float, bytes, tuple, frozenset, type, Enum)


def copy_state(state: State) -> State:
    """Copy the state with everything that hangs on it, but for answers to questions that were asked of it.

    It follows what it finds, so that a rule that comes to keep something more is copied with it. Its time grows with
    the number of leases and of requests that wait: a few microseconds for each.
    """
    return _Copier({id(state.estimate_cache): EstimateCache()}).copy(state)


class _Copier:
    """Copies a graph of objects, each once, also where they hold each other."""

    def __init__(self, known: dict[int, Any]) -> None:
        self._known = known
        self._is_shared: dict[type, bool] = {}

    def copy(self, value: Value) -> Value:
        """Copy one object and all that it holds; what cannot change is handed back as it is."""
        kind = type(value)
        if kind not in self._is_shared:
            self._is_shared[kind] = _never_changes(kind)
        if self._is_shared[kind]:
            return value
        if id(value) not in self._known:
            self._copy_new(value)
        known: Value = self._known[id(value)]
        return known

    def _copy_new(self, value: object) -> None:
        other: Any
        if isinstance(value, dict):
            other = self._known[id(value)] = copy(value)
            shared = self._is_shared
            for key, one in value.items():
                if not shared.get(type(one), False):
                    other[key] = self.copy(one)
        elif isinstance(value, list):
            other = self._known[id(value)] = value[:]
            if not all(self._is_shared.get(type(one), False) for one in value):
                other[:] = [self.copy(one) for one in value]
        elif isinstance(value, set):  # its elements are hashable
            other = self._known[id(value)] = set(value)
        elif isinstance(value, msgspec.Struct):
            other = self._known[id(value)] = copy(value)
            for name in value.__struct_fields__:
                one = getattr(value, name)
                if not self._is_shared.get(type(one), False):
                    setattr(other, name, self.copy(one))
        elif hasattr(value, "__dict__"):
            other = self._known[id(value)] = object.__new__(type(value))
            for name, one in vars(value).items():
                setattr(other, name, self.copy(one))
        else:
            self._known[id(value)] = deepcopy(value)


def _never_changes(kind: type) -> bool:
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_config__.frozen
    return issubclass(kind, _SHARED)
