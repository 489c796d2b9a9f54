"""Gives the objects of a stream their items and their state; what fails while it is half read is done at its end.

Classes of the notebook travel with what they hold, and that leads back to them. A library's instance that asks its
class as it gets its state, or as it is put into a set, would meet one that has nothing yet.
"""

import sys
from collections.abc import Callable
from operator import is_
from types import NoneType
from typing import Any, NamedTuple

from .calling_frame import call_from
from .inplace import fill_dict, fill_set
from .load_transaction import Namespace


class _Step(NamedTuple):
    problem: Exception
    act: Callable[..., object]
    target: Any
    args: tuple[Any, ...]


class Filling:
    """The steps of one stream: `act(target, *args)` for an object that is there, and as yet without what it holds."""

    def __init__(self) -> None:
        self._late: list[_Step] = []
        self._targets: dict[int, Exception] = {}  # by id, with what its first step has failed with
        self._sets: list[tuple[set[Any], set[Any], list[Any]]] = []  # with a copy of each, and its order, as it was

    def do(self, act: Callable[..., object], target: Any, *args: Any) -> None:
        """Do a step, or note it for `finish` if it fails, or if one of the same target waits: items keep their order.

        Raises MemoryError if there is none.
        """
        if id(target) in self._targets:
            self._late.append(_Step(RecursionError(), act, target, args))
            return
        try:
            act(target, *args)
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001  of a class's own code; what fails again is raised in the end
            self._late.append(_Step(problem, act, target, args))
            self._targets[id(target)] = problem

    def note_set(self, held: set[Any], before: set[Any]) -> None:
        """Note a set that gets its items, and a copy of it as it was: the very same ones are to keep their order."""
        self._sets.append((held, before, list(held)))

    def is_late(self, value: object) -> bool:
        """Tell whether a step of this object waits, so that a copy would miss something. Nobody copies classes."""
        return id(value) in self._targets and not issubclass(type(value), type)

    def require_whole(self, *args: Any) -> None:
        """Raise what a step has failed with that waits for one of these, or for a part of a container among them.

        Whoever is called with it may copy what is in it, and would miss the rest without a word.
        """
        if not self._targets:
            return
        for value in args:
            parts = (*value, *value.values()) if type(value) is dict else value if type(value) in (tuple, list) else ()
            late = next(filter(self.is_late, (value, *parts)), None)
            if late is not None:
                raise self._targets[id(late)]

    def finish(self) -> None:
        """Do what is left, as often as some of it succeeds. Raises what the first step fails with that never does.

        Then sets get an order that is this side's own: it tells what came first where hashes collide.
        """
        while self._late:
            late, self._late = self._late, []
            self._targets.clear()
            for step in late:
                self.do(step.act, step.target, *step.args)
            if len(self._late) == len(late):
                raise self._late[0].problem
        for held, before, order in self._sets:
            _put_in_order(held, before, order)


#: Atoms whose hash is the same as long as the process lives, and which are equal to no other that is to be told apart.
_STEADY = frozenset({str, bytes, int, bool, NoneType})


def _put_in_order(held: set[Any], before: set[Any], order: list[Any]) -> None:
    """Give a set the order that the very same items had in it, or else one that it keeps when it gets them again.

    Objects have their addresses as hashes, and so another order on each side. A set that changes its order looks
    changed, and so does all else that holds it: each side would send it to the other again and again.
    """
    if _has_order(held, order):
        return
    keys = set(map(_key, held))
    if None in keys:
        return
    is_as_before = len(order) == len(held) and keys == set(map(_key, order)) and held <= before
    if is_as_before:
        fill_set(held, before)
        if not _has_order(held, order):  # a copy has the table of one that was made at once
            fill_set(held, order)
    if any(type(key) is int for key in keys) and not (is_as_before and _has_order(held, order)):
        fill_set(held, held.copy())  # the order of a copy is that of the copy's copy


def _has_order(held: set[Any], order: list[Any]) -> bool:
    return len(held) == len(order) and all(map(is_, held, order))


def _key(value: Any) -> object:
    kind: Any = type(value)
    if kind in _STEADY:
        return kind, value
    return id(value) if kind.__hash__ is object.__hash__ else None


def set_items(target: Any, items: list[Any]) -> None:
    """Set items of a kind of dict: a key, its value, and so on."""
    each = iter(items)
    if type(target) is dict:
        target.update(zip(each, each, strict=True))
    else:
        for key in each:
            target[key] = next(each)


def add_items(target: Any, items: list[Any]) -> None:
    """Add items to a kind of set."""
    if isinstance(target, set):
        target.update(items)
    else:
        for value in items:
            target.add(value)


def build(value: Any, state: Any, namespace: Namespace) -> None:
    """Give a value its state as pickle does: by `__setstate__`, else into its dict and its slots."""
    setstate = getattr(value, "__setstate__", None)
    if setstate is not None:
        before = dict(state) if type(state) is dict else None
        try:
            call_from(namespace, setstate, state)
        except Exception:  # whatever a class's own code fails with
            if before is not None:  # it may have taken something out, and may be asked once more
                fill_dict(state, before)
            raise
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        attributes = value.__dict__
        intern = sys.intern
        for key, held in state.items():
            attributes[intern(key) if type(key) is str else key] = held
    if slots:
        for key, held in slots.items():
            setattr(value, key, held)
